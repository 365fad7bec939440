package saga_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/saga"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/telemetry"
	"holdfast/shared/telemetry/telemetrytest"
	"holdfast/shared/topology"
)

// numbered is a reservation id that ends in n.
func numbered(n int) ledger.ReservationID { return ledger.ReservationID(fmt.Sprintf("rsv_%026d", n)) }

// workshop is a worker and a tick with a driver that does what the test says.
type workshop struct {
	tb      testing.TB
	clock   *systemtest.Clock
	metrics bytes.Buffer
	logs    bytes.Buffer
	dwells  telemetry.Spread
	// drive is the driver; driven are its calls.
	drive   func(ctx context.Context, id ledger.ReservationID) error
	driven  []ledger.ReservationID
	notices []*payment.Notice
	request ledger.RequestID
	inside  bool
}

func newWorkshop(tb testing.TB) *workshop {
	return &workshop{tb: tb, clock: systemtest.NewClock(tenOClock), drive: func(context.Context, ledger.ReservationID) error { return nil }}
}

func (w *workshop) Drive(ctx context.Context, id ledger.ReservationID, notice *payment.Notice, request ledger.RequestID) error {
	if w.inside {
		w.tb.Error("two drives at once")
	}
	w.inside = true
	defer func() { w.inside = false }()
	if _, bounded := ctx.Deadline(); !bounded {
		w.tb.Error("a drive has no deadline")
	}
	w.driven, w.notices, w.request = append(w.driven, id), append(w.notices, notice), request
	return w.drive(ctx, id)
}

func (w *workshop) source() telemetry.Source { return telemetry.Source{Stage: "dev", Function: "saga"} }

func (w *workshop) worker() *saga.Worker {
	return saga.NewWorker(w, telemetry.NewEmitter(&w.metrics, w.clock, w.source()), w.clock, telemetry.NewLogger(&w.logs, w.source()))
}

// reported is the sum of each metric since the last call, without "saga_".
func (w *workshop) reported() map[string]float64 {
	w.tb.Helper()
	out := map[string]float64{}
	for line := range strings.SplitSeq(strings.TrimSpace(w.metrics.String()), "\n") {
		for name, values := range telemetrytest.Values(w.tb, line) {
			for _, value := range values {
				out[strings.TrimPrefix(string(name), "saga_")] += value
			}
		}
	}
	w.metrics.Reset()
	return out
}

// failures are the ids that a batch of these bodies hands back: m1, m2, and so on.
func (w *workshop) failures(ctx context.Context, bodies ...string) []string {
	w.tb.Helper()
	var batch events.SQSEvent
	for i, body := range bodies {
		batch.Records = append(batch.Records, events.SQSMessage{MessageId: fmt.Sprintf("m%d", i+1), Body: body, EventSource: "aws:sqs"})
	}
	response, err := w.worker().Handle(ctx, batch, "request_batch")
	if err != nil {
		w.tb.Fatal(err)
	}
	if response.BatchItemFailures == nil {
		w.tb.Error("the answer has null in place of an empty list")
	}
	var out []string
	for _, f := range response.BatchItemFailures {
		out = append(out, f.ItemIdentifier)
	}
	return out
}

func wakeUp(n int) string { return `{"reservation_id":"` + string(numbered(n)) + `"}` }

func noticeOf(tb testing.TB, n int, id ledger.ProviderEventID) string {
	tb.Helper()
	body, err := payment.Message{Reservation: numbered(n), Notice: &payment.Notice{
		ID: id, Type: "payment_intent.succeeded", Payment: "pi_1", Reservation: numbered(n), Attempt: 1, OccurredAt: tenOClock,
		AmountMinor: 1000, Currency: "USD", Status: payment.StatusCaptured,
	}}.Encode()
	if err != nil {
		tb.Fatal(err)
	}
	return body
}

func TestMessagesAreDriven(t *testing.T) {
	w := newWorkshop(t)
	if failed := w.failures(t.Context(), wakeUp(1), noticeOf(t, 2, "evt_1"), wakeUp(1)); failed != nil {
		t.Errorf("handed back %v", failed)
	}
	// The same reservation twice: one after the other, in the order of the batch.
	if !slices.Equal(w.driven, []ledger.ReservationID{numbered(1), numbered(2), numbered(1)}) || w.request != "request_batch" {
		t.Errorf("driven %v for %s", w.driven, w.request)
	}
	if w.notices[0] != nil || w.notices[1] == nil || w.notices[1].ID != "evt_1" {
		t.Errorf("notices %v", w.notices)
	}
	want := map[string]float64{"driven": 3, "unknown": 0, "failed": 0, "truncated": 0}
	if got := w.reported(); !maps.Equal(got, want) {
		t.Errorf("reported %v, want %v", got, want)
	}
	if failed := w.failures(t.Context()); failed != nil {
		t.Errorf("an empty batch hands back %v", failed)
	}
}

// Whatever is wrong with a message, it alone comes again, and the others are driven. What
// can't be read is not repeated in the log (P12).
func TestAFailedMessageComesAgainAlone(t *testing.T) {
	w := newWorkshop(t)
	w.drive = func(_ context.Context, id ledger.ReservationID) error {
		switch id {
		case numbered(2):
			return errors.New("throttled")
		case numbered(3):
			panic("panic-marker")
		case numbered(4):
			return fmt.Errorf("drive: %w", ledger.ReservationNotFound())
		}
		return nil
	}
	failed := w.failures(t.Context(), wakeUp(1), wakeUp(2), `{"reservation_id":"body-marker"}`, wakeUp(3), ``, wakeUp(4), wakeUp(5))
	if !slices.Equal(failed, []string{"m2", "m3", "m4", "m5", "m6"}) {
		t.Errorf("handed back %v", failed)
	}
	if w.driven[len(w.driven)-1] != numbered(5) {
		t.Errorf("driven %v", w.driven)
	}
	want := map[string]float64{"driven": 2, "unknown": 1, "failed": 4, "truncated": 0}
	if got := w.reported(); !maps.Equal(got, want) {
		t.Errorf("reported %v, want %v", got, want)
	}
	log := w.logs.String()
	if strings.Contains(log, "marker") || !strings.Contains(log, `"message_id":"m3"`) || !strings.Contains(log, "worker_test.go") {
		t.Errorf("the log has a marker, or does not tell which message and where: %s", log)
	}
}

// Each drive takes eight seconds. What can't be begun before the margin comes again.
func TestABatchStopsBeforeItsDeadline(t *testing.T) {
	w := newWorkshop(t)
	w.drive = func(context.Context, ledger.ReservationID) error { w.clock.Advance(8 * time.Second); return nil }
	ctx := until{t.Context(), tenOClock.Add(saga.DriveMargin + 20*time.Second)}
	if failed := w.failures(ctx, wakeUp(1), wakeUp(2), wakeUp(3), wakeUp(4), `broken`); !slices.Equal(failed, []string{"m4", "m5"}) {
		t.Errorf("handed back %v", failed)
	}
	if got := w.reported(); got["driven"] != 3 || got["truncated"] != 1 || got["failed"] != 0 {
		t.Errorf("reported %v", got)
	}
	// A run that was ended begins nothing more.
	over, cancel := context.WithCancel(t.Context())
	w.drive = func(ctx context.Context, _ ledger.ReservationID) error { cancel(); return ctx.Err() }
	if failed := w.failures(over, wakeUp(1), wakeUp(2)); !slices.Equal(failed, []string{"m1", "m2"}) || len(w.driven) != 4 {
		t.Errorf("handed back %v after %d drives", failed, len(w.driven))
	}
}

// until is a context that says when it ends by the test's clock.
type until struct {
	context.Context
	at time.Time
}

func (c until) Deadline() (time.Time, bool) { return c.at, true }

// The last drive that is begun ends before Lambda ends the function.
func TestADriveFitsIntoTheMargin(t *testing.T) {
	function, _ := topology.FunctionNamed(topology.FunctionSaga)
	if saga.DriveFor >= saga.DriveMargin || saga.DriveMargin+saga.DriveFor >= function.Timeout || saga.RunForMax > function.Timeout-saga.DriveMargin {
		t.Errorf("drives of %s, a margin of %s, runs of %s in a time-out of %s", saga.DriveFor, saga.DriveMargin, saga.RunForMax, function.Timeout)
	}
}

// A message that could not be named in the answer makes the whole batch come again.
func TestAMessageWithoutAnIDFailsTheBatch(t *testing.T) {
	w := newWorkshop(t)
	_, err := w.worker().Handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m1", Body: wakeUp(1)}, {Body: wakeUp(2)}}}, "r")
	if err == nil || len(w.driven) > 0 {
		t.Errorf("%v after %d drives", err, len(w.driven))
	}
}

type brokenMetrics struct{}

func (brokenMetrics) Emit(telemetry.Properties, ...telemetry.Measurement) error {
	return errors.New("broken pipe")
}

// A report that is lost is logged; failing the batch would drive everything again.
func TestALostReportOfABatchIsLogged(t *testing.T) {
	w := newWorkshop(t)
	worker := saga.NewWorker(w, brokenMetrics{}, w.clock, telemetry.NewLogger(&w.logs, w.source()))
	response, err := worker.Handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m1", Body: wakeUp(1)}}}, "r")
	if err != nil || len(response.BatchItemFailures) > 0 || !strings.Contains(w.logs.String(), "broken pipe") {
		t.Errorf("%v, %v, log %s", response, err, w.logs.String())
	}
}
