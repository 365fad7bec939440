package archive_test

import (
	"context"
	"testing"
	"time"

	"holdfast/shared/archive"
	"holdfast/shared/dynamo"
	"holdfast/shared/lease"
	"holdfast/shared/ledger"
)

// beside is another worker's way to the same table and bucket, with steps of its own.
func (w *world) beside() *world {
	other := *w
	watching := *w.watched
	watching.step = nil
	other.watched = &watching
	other.store = dynamo.NewStore(other.watched, "table", w.clock, w.random)
	other.bucket = archive.NewBucket(other.watched, bucketName, w.clock, w.random)
	other.runs = 100
	return &other
}

// rest says that the reservation need not be looked at, after a lookAt. Neither is a step.
func (w *world) rest(id ledger.ReservationID) {
	w.tb.Helper()
	w.check(w.store.Postpone(context.Background(), id, w.reservation(id).Version, time.Time{}, 0))
}

// A worker stands still right before its mark. The record is restless meanwhile, so the
// next worker leaves it out and ends the batch; then it is at rest again, at the same
// version. The late mark would put it into a batch that nobody will ever write down.
func TestALateMarkIsRefused(t *testing.T) {
	w := newWorld(t, 10)
	hold, id := w.captured()
	w.complete(id)
	w.clock.Advance(holdsAfter)
	other := w.beside()
	w.watched.step = func(call string, done bool) {
		if call == "TransactWriteItems" && !done {
			w.watched.step = nil
			w.clock.Advance(2 * archive.LeaseFor)
			other.lookAt(id)
			if report := other.mustRun(); report.Archived != 0 {
				t.Errorf("the other run reports %+v", report)
			}
			other.rest(id)
		}
	}
	if report := w.mustRun(); report != (archive.Report{TakenElsewhere: 1}) {
		t.Errorf("the late run reports %+v", report)
	}
	if in := w.read(hold).ArchivedIn; in != "" {
		t.Errorf("the hold is in batch %s", in)
	}
	w.clock.Advance(archive.PutOffFor)
	w.mustRun()
	w.archivedOnce(ledger.ArchiveHolds, []ledger.ArchiveSubject{{Hold: hold}})
	w.booksAreRight()
}

// A worker has left a restless record out and stands still right before it seals the batch.
// The next worker, with a later lease, marks that record. Then the first goes on: if it
// could seal, its manifest would not name what is archived.
func TestALateSealIsRefused(t *testing.T) {
	w := newWorld(t, 100)
	hold, id := w.captured()
	w.complete(id)
	neighbour := w.neighbour(hold)
	w.clock.Advance(holdsAfter)
	other := w.beside()
	marked, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	other.watched.step = func(call string, done bool) {
		if call == "TransactWriteItems" && done {
			other.watched.step = nil
			marked <- struct{}{}
			<-goOn
		}
	}
	saves := 0
	w.watched.step = func(call string, done bool) {
		switch {
		case call == "PutObject" && done:
			w.beside().lookAt(id)
		case call == "PutItem" && !done:
			if saves++; saves == 2 { // the plan, and now the seal
				w.watched.step = nil
				w.beside().rest(id)
				w.clock.Advance(2 * archive.LeaseFor)
				go func() {
					defer close(ended)
					other.mustRun()
				}()
				<-marked
			}
		}
	}
	report := w.mustRun()
	close(goOn)
	<-ended
	if report != (archive.Report{TakenElsewhere: 1}) {
		t.Errorf("the late run reports %+v", report)
	}
	w.archivedOnce(ledger.ArchiveHolds, []ledger.ArchiveSubject{{Hold: hold}, {Hold: neighbour}})
	w.booksAreRight()
}

// A worker that needs longer than its lease keeps it while it works.
func TestALongRunRenewsItsLease(t *testing.T) {
	w := newWorld(t, 200)
	hold := w.ended(0)
	for range 4 {
		w.neighbour(hold)
	}
	w.clock.Advance(holdsAfter)
	marks := 0
	w.watched.step = func(call string, done bool) {
		if call != "TransactWriteItems" || !done {
			return
		}
		marks++
		w.clock.Advance(archive.LeaseFor * 2 / 3)
		now := w.clock.Now()
		if marks == 3 {
			_, ours, err := w.beside().store.TakeLease(t.Context(), lease.KindArchive, ledger.DueShard(hold), "another", now, now)
			if err != nil || ours {
				t.Errorf("another worker gets the lease of one that works: %t, %v", ours, err)
			}
		}
	}
	if report := w.mustRun(); report != (archive.Report{Archived: 5}) {
		t.Errorf("the run reports %+v", report)
	}
}
