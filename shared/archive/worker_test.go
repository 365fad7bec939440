package archive_test

import (
	"testing"
	"time"

	"holdfast/shared/archive"
	"holdfast/shared/ledger"
)

// What has ended long enough ago is in the bucket, verified, marked, and leaves the table
// after a week; what has not stays.
func TestOldRecordsAreArchivedAndLeaveTheTable(t *testing.T) {
	w := newWorld(t, 1000)
	old := w.holds(30)
	w.clock.Advance(holdsAfter)
	fresh := w.ended(0)
	alive := w.hold()
	if report := w.mustRun(); report != (archive.Report{Archived: 30}) {
		t.Errorf("the run reports %+v", report)
	}
	w.archivedOnce(ledger.ArchiveHolds, old)
	w.booksAreRight()
	if w.read(fresh).ArchivedIn != "" || w.read(alive).ArchivedIn != "" {
		t.Error("a hold was archived before its time")
	}
	if report := w.mustRun(); report != (archive.Report{}) {
		t.Errorf("a second run reports %+v", report)
	}
	w.clock.Advance(archive.PurgeAfter - time.Second)
	if len(w.items(old[0])) != 3 {
		t.Error("an archived hold left the table too early")
	}
	w.clock.Advance(time.Second)
	for _, s := range old {
		if items := w.items(s); len(items) != 0 {
			t.Fatalf("%s still has %d items", s.Hold, len(items))
		}
	}
	if violations := w.watched.bucket.Violations(); len(violations) > 0 {
		t.Error(violations)
	}
}
