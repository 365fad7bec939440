package expiry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/shared/due"
	"holdfast/shared/expiry"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/telemetry"
	"holdfast/shared/telemetry/telemetrytest"
)

// dueQueue is a queue that keeps each message back for its delay, by the test's clock.
type dueQueue struct {
	clock system.Clock

	mutex  sync.Mutex
	kept   []keptMessage
	delays []time.Duration // of all that was ever sent
	broken error
}

type keptMessage struct {
	body  string
	ready time.Time
}

func (q *dueQueue) Send(_ context.Context, body string, delay time.Duration) error {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.broken != nil {
		return q.broken
	}
	q.kept = append(q.kept, keptMessage{body, q.clock.Now().Add(delay)})
	q.delays = append(q.delays, delay)
	return nil
}

// take takes the bodies of the messages that are ready.
func (q *dueQueue) take() []string {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	var bodies []string
	var kept []keptMessage
	for _, m := range q.kept {
		if m.ready.After(q.clock.Now()) {
			kept = append(kept, m)
		} else {
			bodies = append(bodies, m.body)
		}
	}
	q.kept = kept
	return bodies
}

// gauge is what is known of the clock.
type gauge struct {
	skew time.Duration
	// needs is after how many asks something is known: the test's stand-in for the answers.
	needs int
}

func (g *gauge) Skew() time.Duration { return g.skew }

func (g *gauge) Known() bool { return g.needs <= 0 }

func (g *gauge) Unreliable() bool { return g.Known() && g.skew.Abs() > 30*time.Second }

// function is the whole expiry function on a world, whose parts a test may replace.
type function struct {
	*world
	store    expiry.Store
	releaser expiry.Releaser
	ahead    expiry.Ahead
	parking  expiry.Parking
	failed   expiry.Sender
	parallel system.Parallel
	queue    *dueQueue
	gauge    gauge
	fared    telemetry.CommandTally
	metrics  bytes.Buffer
	logs     bytes.Buffer
}

func (w *world) function() *function {
	return &function{
		world: w, store: w.store, releaser: w.commands, ahead: expiry.NewReadAhead(w.store), parking: w.store, failed: w.failed,
		parallel: systemtest.OneByOne{}, queue: &dueQueue{clock: w.clock}, fared: telemetry.NewCommandTally(),
	}
}

// handler builds the function from its parts.
func (f *function) handler() *expiry.Handler {
	f.tb.Helper()
	handler, err := expiry.NewFunction(f.ports(), expiry.SweepSettings{PageItems: 100, ParallelMax: expiry.ParallelMaxDefault})
	must(f.tb, err)
	return handler
}

func (f *function) ports() expiry.FunctionPorts {
	source := telemetry.Source{Stage: "dev", Function: "expiry"}
	return expiry.FunctionPorts{
		Store: f.store, Releaser: f.releaser, Ahead: f.ahead, Parking: f.parking, Leases: f.leases, Due: f.queue, Failed: f.failed,
		Skew: &f.gauge, Commands: f.fared, Metrics: telemetry.NewEmitter(&f.metrics, f.clock, source), Clock: f.clock,
		Random: systemtest.NewRandom(2), Parallel: f.parallel, Logger: telemetry.NewLogger(&f.logs, source),
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// tick is one tick of the Scheduler, and what it reported.
func (f *function) tick() (map[string]float64, error) {
	f.tb.Helper()
	answer, err := f.handler().Handle(context.Background(), json.RawMessage(`{}`))
	if answer != nil {
		f.tb.Errorf("a tick is answered with %v", answer)
	}
	return f.reported(), err
}

func (f *function) mustTick() map[string]float64 {
	f.tb.Helper()
	reported, err := f.tick()
	must(f.tb, err)
	return reported
}

// batch hands over one batch of these bodies, as m1, m2 and so on, and gives the ids of
// those that must come again.
func (f *function) batch(bodies ...string) []string {
	f.tb.Helper()
	failed, err := f.batchIn(context.Background(), bodies...)
	must(f.tb, err)
	return failed
}

func (f *function) batchIn(ctx context.Context, bodies ...string) ([]string, error) {
	f.tb.Helper()
	batch := events.SQSEvent{Records: []events.SQSMessage{}}
	for i, body := range bodies {
		batch.Records = append(batch.Records, events.SQSMessage{MessageId: fmt.Sprintf("m%d", i+1), Body: body, EventSource: "aws:sqs"})
	}
	event, err := json.Marshal(batch)
	must(f.tb, err)
	answer, err := f.handler().Handle(ctx, event)
	if err != nil {
		if answer != nil {
			f.tb.Errorf("an error comes with the answer %v", answer)
		}
		return nil, err
	}
	response, is := answer.(events.SQSEventResponse)
	if !is || response.BatchItemFailures == nil {
		f.tb.Fatalf("a batch is answered with %#v", answer)
	}
	var failed []string
	for _, failure := range response.BatchItemFailures {
		failed = append(failed, failure.ItemIdentifier)
	}
	return failed, nil
}

// reported is the sum of each metric since the last call.
func (f *function) reported() map[string]float64 {
	f.tb.Helper()
	out := map[string]float64{}
	for line := range strings.SplitSeq(strings.TrimSpace(f.metrics.String()), "\n") {
		if line == "" {
			continue
		}
		for name, values := range telemetrytest.Values(f.tb, line) {
			for _, value := range values {
				out[string(name)] += value
			}
		}
	}
	f.metrics.Reset()
	return out
}

// mustReport requires these metrics to have these values.
func mustReport(tb testing.TB, got, want map[string]float64) {
	tb.Helper()
	for name, value := range want {
		if has, reported := got[name]; !reported || has != value {
			tb.Errorf("%s is %v (reported: %t), want %v", name, has, reported, value)
		}
	}
}

// dueMessage is the message of the hold at its due time.
func (w *world) dueMessage(id ledger.HoldID) string {
	w.tb.Helper()
	dueAt, _ := w.read(id).DueAt()
	return w.messageAt(id, dueAt)
}

func (w *world) messageAt(id ledger.HoldID, dueAt time.Time) string {
	w.tb.Helper()
	body, err := due.Message{Hold: id, DueAt: dueAt}.Encode()
	must(w.tb, err)
	return body
}

// poison is a releaser that can't end some holds, for reasons of their own, and asks the
// world's for the others.
func (w *world) poison(bad ...ledger.HoldID) *releaserFunc {
	return &releaserFunc{do: func(ctx context.Context, id ledger.HoldID) (bool, error) {
		for _, other := range bad {
			if id == other {
				return false, &ledger.Error{Code: ledger.CodeInternal, Message: "the hold is not readable"}
			}
		}
		return w.commands.ExpireHold(ctx, id, "request_sweep")
	}}
}
