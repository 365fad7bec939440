package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"holdfast/shared/due"
	"holdfast/shared/ledger"
	"holdfast/shared/objects"
)

// erasePassesMax bounds how often the whole archive is read: the last time nothing of the owner
// is found. What is archived meanwhile was read before its owner was forgotten.
const erasePassesMax = 3

// EraseClient is the part of the S3 client that forgetting needs beside that of the archive. It
// is apart, because no function may delete.
type EraseClient interface {
	objects.Client
	ListObjectVersions(ctx context.Context, in *s3.ListObjectVersionsInput, options ...func(*s3.Options)) (*s3.ListObjectVersionsOutput, error)
	DeleteObject(ctx context.Context, in *s3.DeleteObjectInput, options ...func(*s3.Options)) (*s3.DeleteObjectOutput, error)
}

var _ EraseClient = (*s3.Client)(nil)

// Planned says which batches are being written. A dynamo.Store is one.
type Planned interface {
	// Plan returns the plan of a shard, and whether there is one.
	Plan(ctx context.Context, kind ledger.ArchiveKind, shard int) (ledger.ArchivePlan, bool, error)
}

// Rewrite is the text of an archived item without a name, and whether it had it.
type Rewrite func(text []byte) ([]byte, bool, error)

// Eraser takes a name out of the archive. At every moment each batch can be read and verified,
// so it may be killed anywhere and run again.
type Eraser struct {
	archive *Archive
	client  EraseClient
	bucket  string
	planned Planned
	rewrite Rewrite
}

// NewEraser returns one that rewrites the items of the archive in the bucket of that name.
func NewEraser(of *Archive, client EraseClient, bucket string, planned Planned, rewrite Rewrite) *Eraser {
	return &Eraser{archive: of, client: client, bucket: bucket, planned: planned, rewrite: rewrite}
}

// Erased is what an Eraser has done.
type Erased struct {
	// Read counts the objects that were looked through in the last pass, each version of its
	// own. Rewritten counts batches, and Deleted versions of objects that had the name.
	Read, Rewritten, Deleted int
	// Running are batches that have the name and are being written: a later run takes it out.
	Running []ledger.BatchID
}

// Run looks through all versions of all data objects until a pass finds the name in none, and
// rewrites those that have it.
func (e *Eraser) Run(ctx context.Context) (Erased, error) {
	var sum Erased
	for range erasePassesMax {
		sum.Read, sum.Running = 0, nil
		before := sum.Rewritten + sum.Deleted
		for _, kind := range []ledger.ArchiveKind{ledger.ArchiveHolds, ledger.ArchiveReservations} {
			if err := e.pass(ctx, kind, &sum); err != nil {
				return sum, err
			}
		}
		if sum.Rewritten+sum.Deleted == before {
			return sum, nil
		}
	}
	return sum, fmt.Errorf("the archive still got objects with the name after %d passes; run it again", erasePassesMax)
}

// pass looks through all objects of one kind once.
func (e *Eraser) pass(ctx context.Context, kind ledger.ArchiveKind, sum *Erased) error {
	in := &s3.ListObjectVersionsInput{
		Bucket: aws.String(e.bucket), Prefix: aws.String(rootPrefix + string(kind) + "/"), MaxKeys: aws.Int32(objects.ListObjectsMax),
	}
	for range listPagesMax {
		page, err := e.versions(ctx, in)
		if err != nil {
			return err
		}
		for _, version := range page.Versions {
			if b, data := parseDataKey(aws.ToString(version.Key)); data {
				sum.Read++
				if err := e.look(ctx, b, version, sum); err != nil {
					return err
				}
			}
		}
		if !aws.ToBool(page.IsTruncated) {
			return nil
		}
		in.KeyMarker, in.VersionIdMarker = page.NextKeyMarker, page.NextVersionIdMarker
	}
	return fmt.Errorf("the archive of %ss has more than %d pages of objects", kind, listPagesMax)
}

func (e *Eraser) versions(ctx context.Context, in *s3.ListObjectVersionsInput) (*s3.ListObjectVersionsOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, objects.CallFor)
	defer cancel()
	page, err := e.client.ListObjectVersions(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("list the versions of the archive's objects: %w", err)
	}
	return page, nil
}

// look reads one version of a data object, and takes the name out of the archive if it is there.
// First the batch gets another object and its manifest names that; then this one is deleted.
func (e *Eraser) look(ctx context.Context, b Batch, version types.ObjectVersion, sum *Erased) error {
	key := aws.ToString(version.Key)
	object, _, err := e.read(ctx, key, version.VersionId, ObjectBytesMax)
	if errors.Is(err, objects.ErrNotThere) {
		return nil // deleted by another run
	}
	if err != nil {
		return err
	}
	without, named, err := e.without(object)
	if err != nil {
		return fmt.Errorf("batch %s: %w", b.ID, err)
	}
	if !named {
		return nil
	}
	// The plan is read before the manifest: a batch without a plan will never get a manifest.
	running, err := e.running(ctx, b)
	if err != nil {
		return err
	}
	if running {
		sum.Running = append(sum.Running, b.ID)
		return nil
	}
	if aws.ToBool(version.IsLatest) {
		rewritten, err := e.replace(ctx, b, key, without)
		if err != nil {
			return err
		}
		if rewritten {
			sum.Rewritten++
		}
	}
	if err := e.remove(ctx, key, version.VersionId); err != nil {
		return err
	}
	sum.Deleted++
	return nil
}

// without is the object with the name written over, and whether it was there.
func (e *Eraser) without(object []byte) ([]byte, bool, error) {
	texts, err := decompress(object)
	if err != nil {
		return nil, false, err
	}
	named := false
	for at, text := range texts {
		l, err := decodeLine(text)
		if err != nil {
			return nil, false, err
		}
		changed := false
		for i, of := range l.Items {
			out, had, err := e.rewrite(of)
			if err != nil {
				return nil, false, err
			}
			l.Items[i], changed = out, changed || had
		}
		if changed {
			if texts[at], err = encodeLine(l); err != nil {
				return nil, false, err
			}
		}
		named = named || changed
	}
	if !named {
		return object, false, nil
	}
	out, err := compress(texts)
	return out, true, err
}

// running reports whether the batch is planned and not done. Whoever goes on with it needs its
// object as it was written.
func (e *Eraser) running(ctx context.Context, b Batch) (bool, error) {
	for _, shard := range due.AllShards() {
		plan, planned, err := e.planned.Plan(ctx, b.Kind, shard)
		if err != nil {
			return false, fmt.Errorf("read the plans of the archive: %w", err)
		}
		if planned && plan.Batch == b.ID {
			return true, nil
		}
	}
	return false, nil
}

// replace gives the batch the object that has the name no more, and reports whether it did: an
// object that no manifest names is of a batch that never was, or was replaced before.
func (e *Eraser) replace(ctx context.Context, b Batch, key string, without []byte) (bool, error) {
	text, tag, err := e.read(ctx, b.ManifestKey(), nil, ObjectBytesMax)
	if errors.Is(err, objects.ErrNotThere) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	m, err := decodeManifest(text, b)
	if err != nil {
		return false, err
	}
	if m.DataObject != key {
		return false, nil
	}
	m.DataObject, m.DataBytes = b.rewrittenKey(without), len(without)
	hash := sha256.Sum256(without)
	m.DataSHA256 = hex.EncodeToString(hash[:])
	if _, err := m.check(without); err != nil {
		return false, err // before anything is written
	}
	if _, err := e.archive.bucket.create(ctx, m.DataObject, dataType, without); err != nil {
		return false, err
	}
	stored, err := e.archive.bucket.read(ctx, m.DataObject)
	if err != nil {
		return false, err
	}
	if !bytes.Equal(stored, without) {
		return false, fmt.Errorf("read the object %s back: %w", m.DataObject, errDamaged)
	}
	if err := e.overwrite(ctx, b, m, tag); err != nil {
		return false, err
	}
	_, err = e.archive.Verify(ctx, b)
	return true, err
}

// overwrite puts the manifest in place of the one that was read, and of no other: two names may
// be forgotten at once.
func (e *Eraser) overwrite(ctx context.Context, b Batch, m Manifest, tag *string) error {
	text, err := m.encode()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, objects.CallFor)
	defer cancel()
	sum := sha256.Sum256(text)
	_, err = e.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String(e.bucket), Key: aws.String(b.ManifestKey()), Body: bytes.NewReader(text),
		ContentType: aws.String(manifestType), ContentLength: aws.Int64(int64(len(text))),
		ChecksumSHA256: aws.String(base64.StdEncoding.EncodeToString(sum[:])), IfMatch: tag,
	})
	if err != nil {
		return fmt.Errorf("write the manifest of %s anew: %w", b.ID, err)
	}
	return nil
}

// read reads one version of an object, nil for the current one, with its entity tag.
func (e *Eraser) read(ctx context.Context, key string, version *string, bytesMax int) (body []byte, tag *string, err error) {
	ctx, cancel := context.WithTimeout(ctx, objects.CallFor)
	defer cancel()
	out, err := e.client.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(e.bucket), Key: aws.String(key), VersionId: version})
	if code := objects.CodeOf(err); code == "NoSuchKey" || code == "NoSuchVersion" {
		return nil, nil, fmt.Errorf("read the object %s: %w", key, objects.ErrNotThere)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the object %s: %w", key, err)
	}
	defer func() { err = errors.Join(err, out.Body.Close()) }()
	body, err = io.ReadAll(io.LimitReader(out.Body, int64(bytesMax)+1))
	if err == nil && len(body) > bytesMax {
		err = objects.ErrTooLarge
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the object %s: %w", key, err)
	}
	return body, out.ETag, nil
}

// remove deletes one version of an object for ever. A bucket that keeps no versions calls the
// only one "null", and takes it as a version.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/VersioningWorkflows.html
func (e *Eraser) remove(ctx context.Context, key string, version *string) error {
	ctx, cancel := context.WithTimeout(ctx, objects.CallFor)
	defer cancel()
	in := &s3.DeleteObjectInput{Bucket: aws.String(e.bucket), Key: aws.String(key), VersionId: version}
	if _, err := e.client.DeleteObject(ctx, in); err != nil {
		return fmt.Errorf("delete the object %s: %w", key, err)
	}
	return nil
}
