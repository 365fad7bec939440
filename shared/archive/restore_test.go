package archive_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"holdfast/shared/archive"
	"holdfast/shared/archive/archivetest"
	"holdfast/shared/ledger"
)

// What was purged comes back with the same bytes, archived as before, once.
func TestRestoreGivesTheSameBytes(t *testing.T) {
	w := newWorld(t, 1000)
	subjects := w.holds(10)
	w.clock.Advance(holdsAfter)
	w.mustRun()
	before := make(map[ledger.ArchiveSubject][]string)
	for _, s := range subjects {
		before[s] = kept(w.texts(s))
	}
	restore := func() (restored int) {
		for _, b := range w.batches(ledger.ArchiveHolds) {
			n, err := w.archive().Restore(context.Background(), b)
			w.check(err)
			restored += n
		}
		return restored
	}
	if n := restore(); n != 0 {
		t.Errorf("restoring what is there put %d items", n)
	}
	w.clock.Advance(archive.PurgeAfter)
	w.booksAreRight()
	if n := restore(); n != 30 {
		t.Errorf("%d items were restored, want 30", n)
	}
	for _, s := range subjects {
		if after := kept(w.texts(s)); !slices.Equal(after, before[s]) {
			t.Fatalf("%s was\n%s\nand is\n%s", s.Hold, before[s], after)
		}
	}
	w.archivedOnce(ledger.ArchiveHolds, subjects)
	w.booksAreRight()
	if report := w.mustRun(); report != (archive.Report{}) {
		t.Errorf("what was restored is archived again: %+v", report)
	}
	w.clock.Advance(archive.RestoreFor)
	if items := w.items(subjects[0]); len(items) != 0 {
		t.Error("what was restored stays for ever")
	}
}

// One subject is found by its id alone, and restored without the others.
func TestOneSubjectIsFoundAndRestored(t *testing.T) {
	w := newWorld(t, 1000)
	subjects := w.holds(20)
	w.clock.Advance(holdsAfter)
	w.mustRun()
	w.watched.bucket.Page(3)
	batch := w.read(subjects[7].Hold).ArchivedIn
	w.clock.Advance(archive.PurgeAfter)
	found, err := w.archive().FindSubject(t.Context(), subjects[7])
	if err != nil || found.ID != batch {
		t.Fatalf("found %+v, %v; want batch %s", found, err, batch)
	}
	if named, err := w.archive().Find(t.Context(), ledger.ArchiveHolds, batch); err != nil || named != found {
		t.Errorf("found %+v by its id, %v", named, err)
	}
	if n, err := w.archive().Restore(t.Context(), found, subjects[7]); err != nil || n != 3 {
		t.Errorf("restored %d items, %v", n, err)
	}
	for i, s := range subjects {
		if there := len(w.items(s)) > 0; there != (i == 7) {
			t.Errorf("hold %d is in the table: %t", i, there)
		}
	}
	absent := ledger.ArchiveSubject{Hold: ledger.NewHoldID(w.random.Bits128())}
	if _, err := w.archive().Restore(t.Context(), found, absent); !errors.Is(err, archive.ErrNoBatch) {
		t.Errorf("restoring a hold that the batch does not have: %v", err)
	}
	if _, err := w.archive().FindSubject(t.Context(), absent); !errors.Is(err, archive.ErrNoBatch) {
		t.Errorf("finding a hold that is nowhere: %v", err)
	}
	if _, err := w.archive().Find(t.Context(), ledger.ArchiveReservations, batch); !errors.Is(err, archive.ErrNoBatch) {
		t.Errorf("finding a batch of the other kind: %v", err)
	}
}

// Whatever is wrong with the objects of a batch is found, and nothing of it is restored.
func TestVerifyFindsEachDamage(t *testing.T) {
	damages := map[string]func(b *archivetest.Bucket, batch archive.Batch){
		"the data object is gone": func(b *archivetest.Bucket, batch archive.Batch) {
			b.Tamper(batch.DataKey(), func([]byte) []byte { return nil })
		},
		"the manifest is gone": func(b *archivetest.Bucket, batch archive.Batch) {
			b.Tamper(batch.ManifestKey(), func([]byte) []byte { return nil })
		},
		"a bit of the data has turned": func(b *archivetest.Bucket, batch archive.Batch) {
			b.Tamper(batch.DataKey(), func(body []byte) []byte { body[len(body)/2] ^= 1; return body })
		},
		"a bit has turned that no reader of gzip looks at": func(b *archivetest.Bucket, batch archive.Batch) {
			b.Tamper(batch.DataKey(), func(body []byte) []byte { body[4] ^= 1; return body })
		},
		"the data is cut": func(b *archivetest.Bucket, batch archive.Batch) {
			b.Tamper(batch.DataKey(), func(body []byte) []byte { return body[:len(body)-1] })
		},
		"the manifest counts another number": func(b *archivetest.Bucket, batch archive.Batch) {
			b.Tamper(batch.ManifestKey(), func(body []byte) []byte {
				return bytes.Replace(body, []byte(`"count":`), []byte(`"count":1`), 1)
			})
		},
		"the manifest is of another version": func(b *archivetest.Bucket, batch archive.Batch) {
			b.Tamper(batch.ManifestKey(), func(body []byte) []byte {
				return bytes.Replace(body, []byte(`"version":2`), []byte(`"version":3`), 1)
			})
		},
		"the manifest has another format": func(b *archivetest.Bucket, batch archive.Batch) {
			b.Tamper(batch.ManifestKey(), func(body []byte) []byte {
				return bytes.Replace(body, []byte(`"format_version":1`), []byte(`"format_version":2`), 1)
			})
		},
		"the manifest is of another batch": func(b *archivetest.Bucket, batch archive.Batch) {
			b.Tamper(batch.ManifestKey(), func(body []byte) []byte {
				return bytes.ReplaceAll(body, []byte(batch.ID), []byte("batch_00000000000000000000000000"))
			})
		},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 10)
			w.holds(1)
			w.clock.Advance(holdsAfter)
			w.mustRun()
			batch := w.batches(ledger.ArchiveHolds)[0]
			if m, err := w.archive().Verify(t.Context(), batch); err != nil || m.Count != 1 {
				t.Fatalf("before the damage: %+v, %v", m, err)
			}
			damage(w.watched.bucket, batch)
			if _, err := w.archive().Verify(t.Context(), batch); err == nil {
				t.Error("the damage is not found")
			}
			w.clock.Advance(archive.PurgeAfter)
			if n, err := w.archive().Restore(t.Context(), batch); err == nil || n != 0 {
				t.Errorf("restored %d items, %v", n, err)
			}
		})
	}
}
