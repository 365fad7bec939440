package archive_test

import (
	"context"
	"flag"
	"slices"
	"testing"
	"time"

	"holdfast/shared/archive"
	"holdfast/shared/ledger"
	"holdfast/shared/system/systemtest"
)

// holdsToArchive is for a longer test: go test ./shared/archive -run Killed -archive.holds=50000
var holdsToArchive = flag.Int("archive.holds", 2000, "ended holds that are archived by a worker that is killed 20 times")

// killed is the panic of a worker that dies.
type killed struct{}

// killAt lets the worker die at the nth call from now, before it is carried out or after.
// What is dead calls nobody, not even to clean up.
func (w *watched) killAt(n int, after bool) {
	calls, dead := 0, false
	w.step = func(_ string, done bool) {
		if !done {
			calls++
		}
		if dead || calls == n && done == after {
			dead = true
			panic(killed{})
		}
	}
}

// mayDie runs the archive, and reports whether it died.
func (w *world) mayDie() (died bool, err error) {
	w.tb.Helper()
	defer func() {
		w.watched.step = nil
		if cause := recover(); cause != nil {
			if _, died = cause.(killed); !died {
				panic(cause)
			}
		}
	}()
	_, err = w.run()
	return false, err
}

// I4 and B8: whatever a worker dies at, the next one goes on with it. Nothing is lost,
// nothing is archived twice, and what comes back has the bytes that went.
func TestAWorkerKilledAnywhereLosesNothing(t *testing.T) {
	const kills = 20
	began := time.Now()
	w := newWorld(t, ledger.Units(2**holdsToArchive))
	subjects := w.holds(*holdsToArchive)
	t.Logf("%d holds made in %s", len(subjects), time.Since(began))
	w.clock.Advance(holdsAfter)
	callsOfAll := 6 * *holdsToArchive // about: a read, a mark, a read and two events of each
	random := systemtest.NewRandom(7)
	for kill := range kills {
		n := 1 + int(random.Below(int64(callsOfAll/kills)))
		after := random.Below(2) == 0
		w.watched.killAt(n, after)
		died, err := w.mayDie()
		if err != nil || !died {
			t.Fatalf("kill %d at call %d: died %t, %v", kill, n, died, err)
		}
		w.clock.Advance(2 * archive.LeaseFor) // the lease of the dead one ends
	}
	w.mustRun()
	t.Logf("archived by %s", time.Since(began))
	w.archivedOnce(ledger.ArchiveHolds, subjects)
	w.booksAreRight()
	if violations := w.watched.bucket.Violations(); len(violations) > 0 {
		t.Error(violations)
	}
	before := make(map[ledger.ArchiveSubject][]string, len(subjects))
	for _, s := range subjects {
		before[s] = kept(w.texts(s))
	}
	w.clock.Advance(archive.PurgeAfter)
	w.booksAreRight()
	for _, b := range w.batches(ledger.ArchiveHolds) {
		_, err := w.archive().Restore(context.Background(), b)
		w.check(err)
	}
	for _, s := range subjects {
		if after := kept(w.texts(s)); !slices.Equal(after, before[s]) {
			t.Fatalf("%s was\n%s\nand is\n%s", s.Hold, before[s], after)
		}
	}
	t.Logf("restored by %s", time.Since(began))
}

// A small archive dies at each of its calls, before and after, one by one.
func TestAWorkerKilledAtEachCallLosesNothing(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			w := newWorld(t, 10)
			subjects := w.holds(2)
			w.clock.Advance(holdsAfter)
			w.watched.killAt(n, after)
			died, err := w.mayDie()
			w.check(err)
			if !died {
				if n < 50 {
					t.Fatalf("the archive made %d calls only", n)
				}
				break
			}
			w.clock.Advance(2 * archive.LeaseFor)
			w.mustRun()
			w.archivedOnce(ledger.ArchiveHolds, subjects)
			w.booksAreRight()
			if t.Failed() {
				t.Fatalf("died at call %d, after it: %t", n, after)
			}
		}
	}
}

// A worker stands still at each of its calls for longer than its lease, another one does
// all of the work in the meantime, and the first goes on as if nothing had happened.
func TestAWorkerThatWasThoughtDeadArchivesNothingTwice(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			w := newWorld(t, 10)
			subjects := w.holds(2)
			w.clock.Advance(holdsAfter)
			calls, stood := 0, false
			w.watched.step = func(_ string, done bool) {
				if !done {
					calls++
				}
				if !stood && calls == n && done == after {
					stood = true
					w.clock.Advance(2 * archive.LeaseFor)
					w.mustRun()
				}
			}
			_, err := w.run()
			w.watched.step = nil
			if err != nil {
				t.Logf("stood at call %d, after it: %t: %v", n, after, err)
			}
			if !stood {
				break
			}
			w.clock.Advance(2 * archive.LeaseFor)
			w.mustRun()
			w.archivedOnce(ledger.ArchiveHolds, subjects)
			w.booksAreRight()
			if t.Failed() {
				t.Fatalf("stood at call %d, after it: %t", n, after)
			}
		}
	}
}

// A worker dies in the middle of its marks, and nobody goes on before what it had marked has
// left the table. The data object is the only copy then, and its lines count.
func TestABatchIsTakenUpAfterThePurge(t *testing.T) {
	w := newWorld(t, 200)
	first := w.ended(0)
	subjects := []ledger.ArchiveSubject{{Hold: first}}
	for range 4 {
		subjects = append(subjects, ledger.ArchiveSubject{Hold: w.neighbour(first)})
	}
	w.clock.Advance(holdsAfter)
	marks := 0
	w.watched.step = func(call string, done bool) {
		if call == "TransactWriteItems" && done {
			marks++
		}
		if marks == 3 { // its events have no time to live yet
			panic(killed{})
		}
	}
	if died, err := w.mayDie(); !died {
		t.Fatal(err)
	}
	w.clock.Advance(archive.PurgeAfter)
	if report := w.mustRun(); report != (archive.Report{Archived: 5}) {
		t.Errorf("the next run reports %+v", report)
	}
	w.archivedOnce(ledger.ArchiveHolds, subjects)
	w.booksAreRight()
	w.clock.Advance(archive.PurgeAfter)
	w.booksAreRight()
	for _, s := range subjects {
		if items := w.items(s); len(items) != 0 {
			t.Errorf("%s still has %d items", s.Hold, len(items))
		}
	}
}
