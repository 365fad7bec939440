package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"holdfast/shared/lease"
	"holdfast/shared/ledger"
	"holdfast/shared/objects"
	"holdfast/shared/system"
)

// markTriesMax is how often a mark is made anew that was refused.
const markTriesMax = 3

// errDamaged is the error of an object that does not read as it was written.
var errDamaged = errors.New("the object does not read as it was written")

// batch is one batch on its way into the archive.
type batch struct {
	plan ledger.ArchivePlan
	// records are the subjects as this worker has read them for the data object; none for
	// an object that another run has written.
	records map[ledger.ArchiveSubject]record
	object  []byte // as it is in the bucket
	data    data
}

// batch takes up the plan of the shard, or makes one, and brings it to its end. It reports
// whether there may be more.
func (s *shardRun) batch(ctx context.Context) (more bool, err error) {
	plan, planned, err := s.stored(ctx)
	if err != nil {
		return false, err
	}
	b := &batch{plan: plan}
	if planned {
		complete, err := s.resume(ctx, b)
		if err != nil || complete {
			return complete, err
		}
	} else {
		b, err = s.begin(ctx)
		if err != nil || b == nil {
			return false, err
		}
	}
	if b.object == nil { // nothing of the plan is left as it was
		return true, s.clear(ctx, b.plan)
	}
	return s.finish(ctx, b)
}

// resume takes up what a worker before has left. It writes the plan first, as it is: from
// then on that worker can't seal it, if it still lives. It reports true if the batch was
// sealed already and only had to be told of.
func (s *shardRun) resume(ctx context.Context, b *batch) (complete bool, err error) {
	if !b.plan.Sealed {
		if err := s.save(ctx, b.plan); err != nil {
			return false, err
		}
	}
	object, err := s.bucket.read(ctx, batchOf(b.plan).DataKey())
	if errors.Is(err, objects.ErrNotThere) && !b.plan.Sealed {
		lines, err := s.gather(ctx, b)
		if err != nil || len(lines) == 0 {
			return false, err
		}
		return false, s.write(ctx, b, lines)
	}
	if err != nil {
		return false, err
	}
	if err := b.take(object); err != nil {
		return false, err
	}
	if b.plan.Sealed {
		return true, s.conclude(ctx, b)
	}
	return false, nil
}

// gather reads the planned subjects for a data object that is not there yet. Those that
// have changed since are left out.
func (s *shardRun) gather(ctx context.Context, b *batch) (lines [][]byte, err error) {
	b.records = make(map[ledger.ArchiveSubject]record, len(b.plan.Subjects))
	size := 0
	for _, planned := range b.plan.Subjects {
		if err := s.keep(ctx); err != nil {
			return nil, err
		}
		r, there, err := s.read(ctx, planned.Subject)
		if unreadable(err) {
			continue // nothing of it is in the archive yet; its next turn puts it off
		}
		if err != nil {
			return nil, err
		}
		if !there || r.version() != planned.Version || r.archivedIn() != "" {
			continue
		}
		text, err := s.line(r)
		if err != nil {
			return nil, err
		}
		if size += len(text); size > s.batchBytes {
			break // it is archived later, in another batch
		}
		b.records[planned.Subject] = r
		lines = append(lines, text)
	}
	return lines, nil
}

// write puts the data object into the bucket and reads it back. If there is one, another
// worker on the same plan was faster, and its object counts: it is never written twice.
func (s *shardRun) write(ctx context.Context, b *batch, lines [][]byte) error {
	object, err := compress(lines)
	if err != nil {
		return err
	}
	key := batchOf(b.plan).DataKey()
	created, err := s.bucket.create(ctx, key, dataType, object)
	if err != nil {
		return err
	}
	stored, err := s.bucket.read(ctx, key)
	if err != nil {
		return err
	}
	same := bytes.Equal(stored, object)
	if created && !same {
		return fmt.Errorf("read the object %s back: %w", key, errDamaged)
	}
	if !same {
		b.records = nil
	}
	if err := b.take(stored); err != nil {
		return err
	}
	return b.verify(lines, same)
}

// take reads the data object of the batch.
func (b *batch) take(object []byte) error {
	d, err := decodeData(object)
	if err != nil {
		return fmt.Errorf("batch %s: %w", b.plan.Batch, err)
	}
	b.object, b.data = object, d
	return nil
}

// verify compares what the object reads as with the lines that were written: a fault of
// the encoding must be found while the table still has all of it.
func (b *batch) verify(lines [][]byte, same bool) error {
	if !same {
		return nil // each of its lines is compared with the table
	}
	read := 0
	for _, text := range lines {
		l, err := decodeLine(text)
		if err != nil {
			return err
		}
		if bytes.Equal(b.data.lines[l.subject()].text, text) {
			read++
		}
	}
	if read != len(lines) || len(b.data.lines) != len(lines) {
		return fmt.Errorf("batch %s has %d lines, and %d read as they were written: %w", b.plan.Batch, len(lines), read, errDamaged)
	}
	return nil
}

// finish marks what the data object has, and seals the plan with what was marked. It
// reports whether to go on: not when time ran out, and the plan stays for the next run.
func (s *shardRun) finish(ctx context.Context, b *batch) (bool, error) {
	var archived []ledger.PlannedSubject
	for _, planned := range b.plan.Subjects {
		if s.late(ctx) {
			s.report.Truncated = true
			return false, nil
		}
		if err := s.keep(ctx); err != nil {
			return false, err
		}
		done, err := s.settle(ctx, b, planned)
		if err != nil {
			return false, err
		}
		if done {
			archived = append(archived, planned)
		}
	}
	if len(archived) == 0 {
		// To try the same ones at once would go on until the time is over.
		return false, s.clear(ctx, b.plan)
	}
	// Nobody with an earlier lease can mark any more, and nobody with a later one has begun:
	// so these are all that the batch will ever have.
	b.plan.Subjects, b.plan.Sealed = archived, true
	if err := s.save(ctx, b.plan); err != nil {
		return false, err
	}
	return true, s.conclude(ctx, b)
}

// conclude says in the archive what a sealed batch has, and forgets the plan.
func (s *shardRun) conclude(ctx context.Context, b *batch) error {
	if err := s.writeManifest(ctx, batchOf(b.plan).ManifestKey(), newManifest(b.plan, b.object)); err != nil {
		return err
	}
	if err := s.clear(ctx, b.plan); err != nil {
		return err
	}
	s.report.Archived += len(b.plan.Subjects)
	return nil
}

// settle marks one subject as archived, if it still is what the data object has of it, and
// reports whether it lies in this batch now. What changed since stays in the table, and is
// archived later in another batch.
func (s *shardRun) settle(ctx context.Context, b *batch, planned ledger.PlannedSubject) (bool, error) {
	stored, there := b.data.lines[planned.Subject]
	if !there || stored.Version != planned.Version {
		return false, nil
	}
	r, known := b.records[planned.Subject]
	if !known {
		var err error
		if r, there, err = s.read(ctx, planned.Subject); err != nil {
			return false, err
		}
		if !there {
			// Nothing but the archive takes it out of the table, and no other batch had it.
			return true, s.purge(ctx, b.plan, planned.Subject)
		}
	}
	if in := r.archivedIn(); in != "" {
		if in != b.plan.Batch {
			return false, nil
		}
		return true, s.leave(ctx, b.plan, r)
	}
	text, err := s.line(r)
	if err != nil {
		return false, err
	}
	if !bytes.Equal(text, stored.text) {
		return false, nil
	}
	if marked, err := s.commit(ctx, b.plan, r); err != nil || !marked {
		return false, err
	}
	return true, s.leave(ctx, b.plan, r)
}

// commit marks the record under the worker's lease, and reports false if it may not be
// archived any more. A refusal may be the doing of another worker on the same batch, whose
// mark is as good, or of one that marked the other hold of the same reservation: then the
// mark is made anew.
func (s *shardRun) commit(ctx context.Context, plan ledger.ArchivePlan, r record) (bool, error) {
	for range markTriesMax {
		change, err := s.mark(ctx, r, plan.Batch, system.Millisecond(s.clock))
		if ledger.CodeOf(err) == ledger.CodeNotArchivable {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		change.Lease = &ledger.LeaseHeld{Kind: string(lease.KindArchive), Shard: s.leaseShard(), Fence: int64(s.lease.Fence)}
		err = s.apply(ctx, change)
		if err == nil {
			return true, nil
		}
		refused := (*ledger.Refused)(nil)
		if !errors.As(err, &refused) {
			return false, fmt.Errorf("mark %s %s as archived: %w", plan.Kind, idOf(r.subject), err)
		}
		if len(refused.LegsOf(ledger.LegLease)) > 0 {
			return false, errTakenOver
		}
		now, there, err := s.read(ctx, r.subject)
		if err != nil || !there {
			return false, err
		}
		if in := now.archivedIn(); in != "" || now.version() != r.version() {
			return in == plan.Batch, nil
		}
	}
	return false, nil
}

func (s *shardRun) apply(ctx context.Context, change ledger.Change) error {
	ctx, cancel := context.WithTimeout(ctx, StepFor)
	defer cancel()
	return s.store.Commit(ctx, change)
}

// leave makes what belongs to a marked record leave the table with it: its events, and the
// counts of its owner that it has left at zero. It may be repeated.
func (s *shardRun) leave(ctx context.Context, plan ledger.ArchivePlan, r record) error {
	if err := s.purge(ctx, plan, r.subject); err != nil {
		return err
	}
	return s.tidy(ctx, r)
}

// tidy takes counts that are zero out of the owner's item, which would otherwise grow by
// every slot that the owner ever had. A count that is not zero stays: what was sold counts
// on, also when the hold has left the table.
func (s *shardRun) tidy(ctx context.Context, r record) error {
	keys := r.mayBeZero()
	if len(keys) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, StepFor)
	defer cancel()
	if err := s.store.TidyQuota(ctx, r.hold.Owner, keys); err != nil {
		return fmt.Errorf("tidy the counts of hold %s: %w", r.hold.ID, err)
	}
	return nil
}

// purge makes the events of what is marked leave the table with it.
func (s *shardRun) purge(ctx context.Context, plan ledger.ArchivePlan, subject ledger.ArchiveSubject) error {
	ctx, cancel := context.WithTimeout(ctx, StepFor)
	defer cancel()
	if err := s.store.PurgeEvents(ctx, subject, plan.Batch, purgeAt(system.Millisecond(s.clock))); err != nil {
		return fmt.Errorf("purge the events of %s %s: %w", plan.Kind, idOf(subject), err)
	}
	return nil
}

// writeManifest writes the manifest. One that is there must be the same: the answer of the
// first try was lost.
func (s *shardRun) writeManifest(ctx context.Context, key string, m Manifest) error {
	text, err := m.encode()
	if err != nil {
		return err
	}
	if _, err := s.bucket.create(ctx, key, manifestType, text); err != nil {
		return err
	}
	stored, err := s.bucket.read(ctx, key)
	if err != nil {
		return err
	}
	if !bytes.Equal(stored, text) {
		return fmt.Errorf("the object %s: %w", key, errDamaged)
	}
	return nil
}
