package archive_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/smithy-go"

	"holdfast/shared/archive"
	"holdfast/shared/lease"
	"holdfast/shared/ledger"
	"holdfast/shared/telemetry"
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

// An event that no bus has accepted is published from the table: its hold stays there until
// it is.
func TestAHoldWithAnUnpublishedEventStays(t *testing.T) {
	w := newWorld(t, 10)
	hold := w.hold()
	_, err := w.commands.CancelHold(t.Context(), owner(), hold, rendered)
	w.check(err)
	w.clock.Advance(holdsAfter)
	if report := w.mustRun(); report != (archive.Report{PutOff: 1}) || w.read(hold).ArchivedIn != "" {
		t.Errorf("the run reports %+v", report)
	}
	w.publish(ledger.ArchiveSubject{Hold: hold})
	w.clock.Advance(archive.PutOffFor)
	if report := w.mustRun(); report != (archive.Report{Archived: 1}) {
		t.Errorf("once it is published the run reports %+v", report)
	}
}

// A hold that can't be read, and one that no batch has room for, are told and put off. The
// others are archived.
func TestWhatCannotBeArchivedKeepsNobodyElse(t *testing.T) {
	w := newWorld(t, 100)
	subjects := w.holds(20)
	broken := subjects[3].Hold
	w.watched.breakItem(t, broken)
	w.clock.Advance(holdsAfter)
	if report := w.mustRun(); report != (archive.Report{Archived: 19, PutOff: 1}) {
		t.Errorf("the run reports %+v", report)
	}
	w = newWorld(t, 100)
	subjects = w.holds(5)
	w.clock.Advance(holdsAfter)
	worker := w.worker(nil)
	worker.LimitBatch(10, 100)
	if report, err := worker.Run(t.Context(), "run"); err != nil || report != (archive.Report{PutOff: len(subjects)}) {
		t.Errorf("without room the run reports %+v, %v", report, err)
	}
}

// A batch is full by its subjects or by its bytes; the rest is in the next ones.
func TestBatchesAreBounded(t *testing.T) {
	for name, limit := range map[string]struct{ subjects, bytes, most int }{
		"by subjects": {2, 1 << 20, 2},
		"by bytes":    {100, 10_000, 3},
	} {
		w := newWorld(t, 1000)
		subjects := w.holds(100)
		w.clock.Advance(holdsAfter)
		worker := w.worker(nil)
		worker.LimitBatch(limit.subjects, limit.bytes)
		if report, err := worker.Run(t.Context(), "run"); err != nil || report != (archive.Report{Archived: 100}) {
			t.Errorf("%s: the run reports %+v, %v", name, report, err)
		}
		w.archivedOnce(ledger.ArchiveHolds, subjects)
		batches := w.batches(ledger.ArchiveHolds)
		for _, b := range batches {
			if m, err := w.archive().Verify(t.Context(), b); err != nil || m.Count < 1 || m.Count > limit.most {
				t.Errorf("%s: a batch has %d subjects, %v", name, m.Count, err)
			}
		}
		if len(batches) < 100/limit.most {
			t.Errorf("%s: there are %d batches", name, len(batches))
		}
	}
}

// A run stops before its deadline, also within a batch, and says so; the next one goes on
// with the same batch.
func TestARunStopsInTime(t *testing.T) {
	w := newWorld(t, 1000)
	subjects := w.holds(100)
	w.clock.Advance(holdsAfter)
	marks := 0
	w.watched.step = func(call string, done bool) {
		if call == "TransactWriteItems" && done {
			if marks++; marks == 10 {
				w.clock.Advance(archive.RunForMax)
			}
		}
	}
	report := w.mustRun()
	if !report.Truncated || marks != 10 || report.Archived >= 10 {
		t.Errorf("after %d marks the run reports %+v", marks, report)
	}
	w.watched.step = nil
	if again := w.mustRun(); again.Truncated || again.Archived+report.Archived != 100 {
		t.Errorf("the next run reports %+v", again)
	}
	w.archivedOnce(ledger.ArchiveHolds, subjects)
	w.ended(0)
	w.clock.Advance(holdsAfter)
	ctx := endsAt{t.Context(), w.clock.Now().Add(archive.MarginBeforeDeadline)}
	if report, err := w.worker(nil).Run(ctx, "late"); err != nil || report != (archive.Report{Truncated: true}) {
		t.Errorf("without time the run reports %+v, %v", report, err)
	}
}

// endsAt is a context that says when it ends by the test's clock. It never ends by itself.
type endsAt struct {
	context.Context
	at time.Time
}

func (c endsAt) Deadline() (time.Time, bool) { return c.at, true }

// A shard whose lease another worker has is left to it.
func TestAShardOfAnotherWorkerIsLeft(t *testing.T) {
	w := newWorld(t, 10)
	hold := w.ended(0)
	w.clock.Advance(holdsAfter)
	now := w.clock.Now()
	_, ours, err := w.store.TakeLease(t.Context(), lease.KindArchive, ledger.DueShard(hold), "another", now, now.Add(archive.LeaseFor))
	if err != nil || !ours {
		t.Fatal(ours, err)
	}
	if report := w.mustRun(); report != (archive.Report{TakenElsewhere: 1}) {
		t.Errorf("the run reports %+v", report)
	}
	w.clock.Advance(archive.LeaseFor)
	if report := w.mustRun(); report != (archive.Report{Archived: 1}) {
		t.Errorf("after the lease has ended the run reports %+v", report)
	}
}

// A retention of nothing would archive what has just ended.
func TestARetentionIsNeeded(t *testing.T) {
	for _, retention := range []archive.Retention{{}, {Holds: holdsAfter}, {Reservations: reservationsAfter}} {
		if _, err := archive.NewWorker(archive.Ports{}, retention); err == nil {
			t.Errorf("%+v is accepted", retention)
		}
	}
}

// A table that refuses every read, as for want of a permission, is a failure of the run. It
// must not pass for records that can't be read: those are put off, and the run is a success.
func TestARefusedReadIsNoUnreadableRecord(t *testing.T) {
	w := newWorld(t, 10)
	subjects := w.holds(3)
	w.clock.Advance(holdsAfter)
	w.watched.refused = &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"}
	report, err := w.worker(nil).Run(t.Context(), "refused")
	if err == nil || report.Failed == 0 || report.PutOff != 0 {
		t.Errorf("the run reports %+v, %v", report, err)
	}
	w.watched.refused = nil
	if report := w.mustRun(); report != (archive.Report{Archived: len(subjects)}) {
		t.Errorf("once it is allowed the run reports %+v", report)
	}
}

// A planned hold that can't be read any more when the plan is taken up, before its batch is
// written, keeps nobody else of its shard in the table.
func TestARecordThatBreaksAfterThePlanKeepsNobodyElse(t *testing.T) {
	w := newWorld(t, 200)
	hold := w.holds(1)[0].Hold
	neighbour := ledger.ArchiveSubject{Hold: w.neighbour(hold)}
	w.clock.Advance(holdsAfter)
	ctx, die := context.WithCancel(t.Context())
	w.watched.step = func(call string, done bool) {
		if call == "PutItem" && done {
			die()
		}
	}
	if _, err := w.worker(nil).Run(ctx, "dies"); err == nil {
		t.Fatal("the first run did not die")
	}
	w.watched.step = nil
	w.watched.breakItem(t, hold)
	w.clock.Advance(archive.LeaseFor)
	if report := w.mustRun(); report != (archive.Report{Archived: 1, PutOff: 1}) {
		t.Errorf("the run reports %+v", report)
	}
	w.archivedOnce(ledger.ArchiveHolds, []ledger.ArchiveSubject{neighbour})
}

// told keeps what was measured.
type told map[telemetry.MetricName]float64

func (m told) Emit(_ telemetry.Properties, measurements ...telemetry.Measurement) error {
	for _, one := range measurements {
		m[one.Metric] = one.Value
	}
	return nil
}

// A run whose time ends while it still chooses a batch has old records left, and says so.
func TestARunThatIsCutWhileItChoosesTellsOfIt(t *testing.T) {
	w := newWorld(t, 10)
	w.holds(1)
	w.clock.Advance(holdsAfter)
	reads := 0
	w.watched.step = func(call string, done bool) {
		switch {
		case call == "UpdateItem" && done: // the lease
			reads = 2 // of the lease, and of the plan
		case call == "GetItem" && done && reads > 0:
			if reads--; reads == 0 {
				w.clock.Advance(archive.RunForMax)
			}
		}
	}
	metrics := told{}
	handler := archive.NewHandler(w.worker(nil), metrics, w.random, slog.New(slog.DiscardHandler))
	if err := handler.Handle(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if metrics[telemetry.MetricArchiveTruncated] != 1 || metrics[telemetry.MetricArchiveArchived] != 0 || metrics[telemetry.MetricArchiveHeartbeat] != 1 {
		t.Errorf("the run tells %v", metrics)
	}
}

// A run tells of what it could not archive yet, so that a table that grows has its reason.
func TestWhatIsPutOffIsTold(t *testing.T) {
	w := newWorld(t, 10)
	w.captured() // its delivery is not known, so it is not at rest
	w.clock.Advance(10 * reservationsAfter)
	metrics := told{}
	handler := archive.NewHandler(w.worker(nil), metrics, w.random, slog.New(slog.DiscardHandler))
	if err := handler.Handle(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if metrics[telemetry.MetricArchivePutOff] != 1 || metrics[telemetry.MetricArchiveFailed] != 0 || metrics[telemetry.MetricArchiveArchived] != 0 {
		t.Errorf("the run tells %v", metrics)
	}
}
