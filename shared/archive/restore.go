package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/objects"
	"holdfast/shared/system"
)

const (
	// RestoreFor is how long what was restored stays in the table.
	RestoreFor = 30 * 24 * time.Hour
	// RestoreStepFor bounds the restoring of one subject, whose items are put back one by one.
	RestoreStepFor = 30 * time.Second
	// listPagesMax bounds the pages of names that are read to find one batch: ten million
	// objects.
	listPagesMax = 10_000
)

// ErrNoBatch is the error of a batch or a subject that the archive does not have.
var ErrNoBatch = errors.New("the archive has no such batch")

// Restorer puts archived items back. A dynamo.Store is one.
type Restorer interface {
	// RestoreItems puts the items back where they were, marked as archived in the batch,
	// until purgeAt, and returns how many: one that is still there stays as it is.
	RestoreItems(ctx context.Context, items []ledger.ArchiveItem, batch ledger.BatchID, purgeAt time.Time) (int, error)
}

// Archive reads what was archived.
type Archive struct {
	bucket   *Bucket
	restorer Restorer
	clock    system.Clock
}

// New returns the archive in the bucket, which restores into the restorer.
func New(bucket *Bucket, restorer Restorer, clock system.Clock) *Archive {
	return &Archive{bucket: bucket, restorer: restorer, clock: clock}
}

// Cursor is where the next page of batches begins; "" for the first, and after the last.
type Cursor string

// Batches lists the batches of one kind that are complete, by the day on which they were
// begun. A page may be empty and not be the last.
func (a *Archive) Batches(ctx context.Context, kind ledger.ArchiveKind, after Cursor) ([]Batch, Cursor, error) {
	keys, next, err := a.bucket.list(ctx, rootPrefix+string(kind)+"/", string(after))
	if err != nil {
		return nil, "", err
	}
	var out []Batch
	for _, key := range keys {
		if b, complete := parseManifestKey(key); complete && b.Kind == kind {
			out = append(out, b)
		}
	}
	return out, Cursor(next), nil
}

// Find looks for a batch by its id. It returns ErrNoBatch if none is complete.
func (a *Archive) Find(ctx context.Context, kind ledger.ArchiveKind, id ledger.BatchID) (Batch, error) {
	return a.find(ctx, kind, func(b Batch) (bool, error) { return b.ID == id, nil })
}

// FindSubject looks for the batch that a subject is in. It reads all manifests until it
// is found: who knows the batch, which an item that is still in the table says, uses Find.
func (a *Archive) FindSubject(ctx context.Context, subject ledger.ArchiveSubject) (Batch, error) {
	return a.find(ctx, subject.Kind(), func(b Batch) (bool, error) {
		m, err := a.manifest(ctx, b)
		return err == nil && m.names(subject), err
	})
}

func (a *Archive) find(ctx context.Context, kind ledger.ArchiveKind, is func(Batch) (bool, error)) (Batch, error) {
	var after Cursor
	for range listPagesMax {
		batches, next, err := a.Batches(ctx, kind, after)
		if err != nil {
			return Batch{}, err
		}
		for _, b := range batches {
			if found, err := is(b); err != nil || found {
				return b, err
			}
		}
		if after = next; after == "" {
			break
		}
	}
	return Batch{}, ErrNoBatch
}

// Verify reads a batch and compares it with its manifest: length, checksum, and a line for
// each subject that can be read. Its error says all that is wrong.
func (a *Archive) Verify(ctx context.Context, b Batch) (Manifest, error) {
	m, _, err := a.open(ctx, b)
	return m, err
}

// Restore puts what the batch has archived back into the table, for RestoreFor, and
// returns how many items it put there. With subjects, only those; one that the batch does
// not have is an error. What was restored can be read again and stays archived. It may be
// repeated.
func (a *Archive) Restore(ctx context.Context, b Batch, subjects ...ledger.ArchiveSubject) (int, error) {
	m, d, err := a.open(ctx, b)
	if err != nil {
		return 0, err
	}
	if len(subjects) == 0 {
		for _, s := range m.Subjects {
			subjects = append(subjects, subjectOf(m.Kind, s.ID))
		}
	}
	for _, s := range subjects {
		if !m.names(s) {
			return 0, fmt.Errorf("restore %s from %s: %w", idOf(s), b.ID, ErrNoBatch)
		}
	}
	purgeAt := a.clock.Now().Add(RestoreFor).Truncate(time.Second)
	restored := 0
	for _, s := range subjects {
		items := make([]ledger.ArchiveItem, 0, len(d.lines[s].Items))
		for _, text := range d.lines[s].Items {
			items = append(items, ledger.ArchiveItem{Text: text})
		}
		n, err := a.restore(ctx, items, b.ID, purgeAt)
		restored += n
		if err != nil {
			return restored, fmt.Errorf("restore %s from %s: %w", idOf(s), b.ID, err)
		}
	}
	return restored, nil
}

// Items finds the batch that a subject is in, and returns the texts of its items as they were
// archived. It reads all manifests until it is found, and returns ErrNoBatch if none has it.
func (a *Archive) Items(ctx context.Context, subject ledger.ArchiveSubject) (Batch, []ledger.ArchiveItem, error) {
	b, err := a.FindSubject(ctx, subject)
	if err != nil {
		return Batch{}, nil, err
	}
	_, d, err := a.open(ctx, b)
	if err != nil {
		return Batch{}, nil, err
	}
	items := make([]ledger.ArchiveItem, 0, len(d.lines[subject].Items))
	for _, text := range d.lines[subject].Items {
		items = append(items, ledger.ArchiveItem{Text: text})
	}
	return b, items, nil
}

func (a *Archive) restore(ctx context.Context, items []ledger.ArchiveItem, batch ledger.BatchID, purgeAt time.Time) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, RestoreStepFor)
	defer cancel()
	return a.restorer.RestoreItems(ctx, items, batch, purgeAt)
}

// open reads and verifies a batch.
func (a *Archive) open(ctx context.Context, b Batch) (Manifest, data, error) {
	m, err := a.manifest(ctx, b)
	if err != nil {
		return Manifest{}, data{}, err
	}
	object, err := a.bucket.read(ctx, m.DataObject)
	if err != nil {
		return Manifest{}, data{}, err
	}
	d, err := m.check(object)
	return m, d, err
}

func (a *Archive) manifest(ctx context.Context, b Batch) (Manifest, error) {
	text, err := a.bucket.read(ctx, b.ManifestKey())
	if errors.Is(err, objects.ErrNotThere) {
		return Manifest{}, fmt.Errorf("%w: %w", ErrNoBatch, err)
	}
	if err != nil {
		return Manifest{}, err
	}
	return decodeManifest(text, b)
}

// names reports whether the batch has archived the subject.
func (m Manifest) names(subject ledger.ArchiveSubject) bool {
	for _, s := range m.Subjects {
		if subjectOf(m.Kind, s.ID) == subject {
			return true
		}
	}
	return false
}
