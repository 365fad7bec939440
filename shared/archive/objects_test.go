package archive_test

import (
	"errors"
	"strings"
	"testing"

	"holdfast/shared/archive"
	"holdfast/shared/archive/archivetest"
	"holdfast/shared/ledger"
	"holdfast/shared/objects"
)

// faultOnce lets the first call of an operation on a name with that end go wrong.
func faultOnce(operation archivetest.Operation, suffix string, fault archivetest.Fault) func(archivetest.Operation, string) archivetest.Fault {
	met := false
	return func(o archivetest.Operation, key string) archivetest.Fault {
		if met || o != operation || !strings.HasSuffix(key, suffix) {
			return archivetest.None
		}
		met = true
		return fault
	}
}

// One call of the bucket goes wrong. What is repeated by itself costs nothing; the rest
// costs the batch one run, and the next one brings it to its end with the same objects.
func TestOneFaultOfTheBucketCostsOneRun(t *testing.T) {
	const dataObject, manifest = ".jsonl.gz", ".manifest.json"
	for _, test := range []struct {
		operation archivetest.Operation
		suffix    string
		fault     archivetest.Fault
		fails     bool
	}{
		{archivetest.Put, dataObject, archivetest.Conflict, false},
		{archivetest.Put, dataObject, archivetest.Down, true},
		{archivetest.Put, dataObject, archivetest.LoseAnswer, true},
		{archivetest.Get, dataObject, archivetest.Down, true},
		{archivetest.Get, dataObject, archivetest.LoseAnswer, true},
		{archivetest.Put, manifest, archivetest.Conflict, false},
		{archivetest.Put, manifest, archivetest.Down, true},
		{archivetest.Put, manifest, archivetest.LoseAnswer, true},
		{archivetest.Get, manifest, archivetest.Down, true},
		{archivetest.Get, manifest, archivetest.LoseAnswer, true},
	} {
		w := newWorld(t, 10)
		hold := w.ended(0)
		w.clock.Advance(holdsAfter)
		w.watched.bucket.Order(faultOnce(test.operation, test.suffix, test.fault))
		want := archive.Report{Archived: 1}
		if test.fails {
			want = archive.Report{Failed: 1}
		}
		report, err := w.run()
		if report != want || (err != nil) != test.fails {
			t.Errorf("%s of *%s, fault %d: the run reports %+v, %v", test.operation, test.suffix, test.fault, report, err)
		}
		if test.fails {
			if report := w.mustRun(); report != (archive.Report{Archived: 1}) {
				t.Errorf("%s of *%s, fault %d: the next run reports %+v", test.operation, test.suffix, test.fault, report)
			}
		}
		w.archivedOnce(ledger.ArchiveHolds, []ledger.ArchiveSubject{{Hold: hold}})
		w.booksAreRight()
		if n := w.watched.bucket.Writes(); n != 2 {
			t.Errorf("%s of *%s, fault %d: %d objects were written", test.operation, test.suffix, test.fault, n)
		}
	}
}

// A write that meets another one for ever is given up.
func TestAConflictWithoutEndIsAnError(t *testing.T) {
	w := newWorld(t, 10)
	w.ended(0)
	w.clock.Advance(holdsAfter)
	calls := 0
	w.watched.bucket.Order(func(o archivetest.Operation, _ string) archivetest.Fault {
		if o != archivetest.Put {
			return archivetest.None
		}
		calls++
		return archivetest.Conflict
	})
	if report, err := w.run(); err == nil || report.Failed != 1 || calls != 4 {
		t.Errorf("after %d tries: %+v, %v", calls, report, err)
	}
}

// What does not read back as it was written is never marked: the table keeps all of it.
func TestNothingIsMarkedThatDoesNotReadBack(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"another byte": func(body []byte) []byte { body[len(body)/2] ^= 1; return body },
		"cut":          func(body []byte) []byte { return body[:len(body)-3] },
		"empty":        func([]byte) []byte { return []byte{} },
		"too large":    func(body []byte) []byte { return append(body, make([]byte, archive.ObjectBytesMax)...) },
	} {
		w := newWorld(t, 10)
		hold := w.ended(0)
		w.clock.Advance(holdsAfter)
		w.watched.step = func(call string, done bool) {
			if call == "PutObject" && done {
				for _, key := range w.watched.bucket.Keys() {
					w.watched.bucket.Tamper(key, damage)
				}
			}
		}
		for range 2 { // the second run finds the object as it is
			report, err := w.run()
			if tooLarge := name == "too large"; errors.Is(err, objects.ErrTooLarge) != tooLarge {
				t.Errorf("%s: %v", name, err)
			}
			if err == nil || report.Failed != 1 || report.Archived != 0 {
				t.Errorf("%s: the run reports %+v, %v", name, report, err)
			}
		}
		if w.read(hold).ArchivedIn != "" {
			t.Errorf("%s: the hold is marked", name)
		}
	}
}

// The plan names a batch whose data object is not what the table has any more: the worker
// before had written it, and the records have changed since, by a mark of the outbox.
func TestALineThatIsNotWhatTheTableHasIsLeftOut(t *testing.T) {
	w := newWorld(t, 10)
	hold := w.ended(0)
	w.clock.Advance(holdsAfter)
	w.watched.bucket.Order(faultOnce(archivetest.Put, ".jsonl.gz", archivetest.LoseAnswer))
	if _, err := w.run(); !errors.Is(err, archivetest.ErrAnswerLost) {
		t.Fatal(err)
	}
	for _, item := range w.items(ledger.ArchiveSubject{Hold: hold}) {
		if item.Event != nil {
			w.check(w.store.MarkPublished(t.Context(), *item.Event, w.clock.Now()))
		}
	}
	if report := w.mustRun(); report != (archive.Report{}) || w.read(hold).ArchivedIn != "" {
		t.Errorf("the run reports %+v", report)
	}
	if report := w.mustRun(); report != (archive.Report{Archived: 1}) {
		t.Errorf("the next run reports %+v", report)
	}
	w.archivedOnce(ledger.ArchiveHolds, []ledger.ArchiveSubject{{Hold: hold}})
}
