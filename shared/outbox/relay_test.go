package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"holdfast/shared/ledger"
	"holdfast/shared/outbox"
	"holdfast/shared/outbox/outboxtest"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/telemetry"
)

func TestEventsArePublishedAndMarked(t *testing.T) {
	w := newWorld(t)
	list := distinct(23)
	if failed := mustHandle(context.Background(), t, w.relay(w.ports()), w.batch(list...)); failed != nil {
		t.Errorf("handed back %v", failed)
	}
	if got := w.delivered(); !slices.Equal(got, ids(list)) {
		t.Errorf("published %v", got)
	}
	if !slices.Equal(w.marker.marked, ids(list)) {
		t.Errorf("marked %v", w.marker.marked)
	}
	var sizes []int
	for _, call := range w.bus.Calls() {
		sizes = append(sizes, len(call))
	}
	if !slices.Equal(sizes, []int{10, 10, 3}) {
		t.Errorf("calls of %v entries", sizes)
	}
	entry := w.bus.Deliveries()[0].Entry
	if aws.ToString(entry.Source) != "holdfast" || aws.ToString(entry.DetailType) != "hold.created" || aws.ToString(entry.EventBusName) != "events" ||
		!entry.Time.Equal(list[0].OccurredAt) || !slices.Equal(entry.Resources, []string{"hold/hold_01"}) {
		t.Errorf("entry: %+v", entry)
	}
	want := map[string]float64{"published": 23, "failed": 0, "set_aside": 0, "truncated": 0, "due_unsent": 0, "lag_seconds_max": 1,
		"holds_created": 23, "holds_confirmed": 0, "holds_canceled": 0, "holds_expired": 0}
	if got := w.reported(); !maps.Equal(got, want) {
		t.Errorf("reported %v, want %v", got, want)
	}
}

// What is no new event is passed over, also when it could not be reported.
func TestOtherRecordsAreSkipped(t *testing.T) {
	w := newWorld(t)
	change := func(f func(*events.DynamoDBEventRecord)) events.DynamoDBEventRecord {
		r := w.record(1, event("hold_1", 1))
		f(&r)
		return r
	}
	batch := events.DynamoDBEvent{Records: []events.DynamoDBEventRecord{
		change(func(r *events.DynamoDBEventRecord) { r.EventName = "MODIFY" }), // the mark itself comes back so
		change(func(r *events.DynamoDBEventRecord) { r.EventName = "REMOVE" }),
		change(func(r *events.DynamoDBEventRecord) { // restored from the archive
			r.Change.NewImage["archived_in"] = events.NewStringAttribute("batch_1")
		}),
		change(func(r *events.DynamoDBEventRecord) { r.Change.Keys["sk"] = events.NewStringAttribute("HOLD") }),
		change(func(r *events.DynamoDBEventRecord) { r.Change.Keys["sk"] = events.NewNumberAttribute("7") }),
		change(func(r *events.DynamoDBEventRecord) { delete(r.Change.Keys, "sk"); r.Change.SequenceNumber = "" }),
	}}
	if failed := mustHandle(context.Background(), t, w.relay(w.ports()), batch); failed != nil || len(w.bus.Calls()) > 0 {
		t.Errorf("handed back %v after %d calls", failed, len(w.bus.Calls()))
	}
	if failed := mustHandle(context.Background(), t, w.relay(w.ports()), events.DynamoDBEvent{}); failed != nil {
		t.Errorf("an empty batch hands back %v", failed)
	}
}

// Case G14: record 4 of ten of one hold is throttled for a whole run. The answer names it
// alone, and nothing after it overtakes it.
func TestCaseG14_NothingOvertakesAFailedRecord(t *testing.T) {
	w := newWorld(t)
	var list []ledger.Event
	for version := range 10 {
		list = append(list, event("hold_1", version+1))
	}
	throttles := outbox.TriesMax
	w.bus.Refuse(func(e types.PutEventsRequestEntry) string {
		if throttles > 0 && strings.Contains(aws.ToString(e.Detail), `"event_id":"event_hold_1_4"`) {
			throttles--
			return outboxtest.CodeThrottled
		}
		return ""
	})
	relay, batch := w.relay(w.ports()), w.batch(list...)
	if failed := mustHandle(context.Background(), t, relay, batch); !slices.Equal(failed, []string{"104"}) {
		t.Fatalf("handed back %v, want 104 alone", failed)
	}
	if got := w.delivered(); !slices.Equal(got, ids(list[:3])) {
		t.Fatalf("published %v before record 4", got)
	}
	batch.Records = batch.Records[3:]
	if failed := mustHandle(context.Background(), t, relay, batch); failed != nil {
		t.Errorf("handed back %v", failed)
	}
	if got := w.delivered(); !slices.Equal(got, ids(list)) {
		t.Errorf("published %v, want all ten once and in order", got)
	}
	for _, call := range w.bus.Calls() {
		if len(call) != 1 {
			t.Errorf("%d events of one hold in one call", len(call))
		}
	}
}

// Case G14, second part: a record that could not be reported makes the whole batch come
// again, with nothing published.
func TestCaseG14_AnUnusableSequenceNumberFailsTheBatch(t *testing.T) {
	for _, number := range []string{"", " ", "12a", "-1"} {
		w := newWorld(t)
		batch := w.batch(distinct(3)...)
		batch.Records[1].Change.SequenceNumber = number
		response, err := w.relay(w.ports()).Handle(context.Background(), batch)
		if err == nil || len(response.BatchItemFailures) > 0 || len(w.bus.Calls()) > 0 {
			t.Errorf("%q: %+v, %v, %d calls", number, response, err, len(w.bus.Calls()))
		}
	}
}

// Case I1: the call succeeds as a whole; entry 3 is throttled and entry 7 is refused for
// good. Entry 3 is sent again until it is accepted, and its hold's next event waits for it.
// Entry 7 is quarantined, unmarked, and nothing else is lost or sent in vain.
func TestCaseI1_EachEntryOfACallCounts(t *testing.T) {
	w := newWorld(t)
	list := append(distinct(10), event("hold_03", 2))
	throttles := 2
	w.bus.Refuse(func(e types.PutEventsRequestEntry) string {
		switch {
		case e.Resources[0] == "hold/hold_07":
			return outboxtest.CodeInvalid
		case e.Resources[0] == "hold/hold_03" && throttles > 0:
			throttles--
			return outboxtest.CodeThrottled
		}
		return ""
	})
	relay, batch := w.relay(w.ports()), w.batch(list...)
	if failed := mustHandle(context.Background(), t, relay, batch); failed != nil {
		t.Fatalf("handed back %v; no retry can help", failed)
	}
	var sizes []int
	for _, call := range w.bus.Calls() {
		sizes = append(sizes, len(call))
	}
	if !slices.Equal(sizes, []int{10, 1, 1, 1}) {
		t.Errorf("calls of %v entries; only the throttled one is worth a retry", sizes)
	}
	if len(w.marker.marked) != 10 || slices.Contains(w.marker.marked, "event_hold_07_1") || !slices.Contains(w.marker.marked, "event_hold_03_1") {
		t.Errorf("marked %v", w.marker.marked)
	}
	if got := w.reported(); got["failed"] != 0 || got["set_aside"] != 1 || got["published"] != 10 {
		t.Errorf("reported %v", got)
	}
	if want := map[string]string{"HOLD#hold_07 EVENT#0000000001": "refused by the bus: " + outboxtest.CodeInvalid}; !maps.Equal(w.marker.quarantined, want) {
		t.Errorf("quarantined %v", w.marker.quarantined)
	}
	if !strings.Contains(w.logs.String(), `"level":"ERROR"`) || !strings.Contains(w.logs.String(), "event_hold_07_1") {
		t.Errorf("the log does not name the event: %s", w.logs.String())
	}
	if !slices.Contains(w.delivered(), "event_hold_03_2") {
		t.Error("the record after the bad one is lost")
	}
}

// Case I1, the order: while entry 3 is throttled for longer than a run, no later event
// of its hold goes out.
func TestCaseI1_LaterEventsOfAHoldWait(t *testing.T) {
	w := newWorld(t)
	w.bus.Refuse(func(e types.PutEventsRequestEntry) string {
		if e.Resources[0] == "hold/hold_03" {
			return outboxtest.CodeThrottled
		}
		return ""
	})
	batch := w.batch(append(distinct(3), event("hold_03", 2))...)
	for range 3 {
		if failed := mustHandle(context.Background(), t, w.relay(w.ports()), batch); !slices.Equal(failed, []string{"103"}) {
			t.Fatalf("handed back %v, want 103", failed)
		}
	}
	if slices.Contains(w.delivered(), "event_hold_03_2") {
		t.Error("version 2 was published without version 1")
	}
}

// A bus that is down costs a bounded number of attempts with growing pauses, and
// nothing is marked.
func TestABusThatIsDown(t *testing.T) {
	w := newWorld(t)
	w.bus.Down(true)
	calls := 0
	w.bus.BeforeCall(func() { calls++ })
	batch := w.batch(distinct(12)...)
	if failed := mustHandle(context.Background(), t, w.relay(w.ports()), batch); !slices.Equal(failed, []string{"101"}) {
		t.Errorf("handed back %v", failed)
	}
	sleeps := w.clock.Sleeps()
	if calls != outbox.TriesMax || len(sleeps) != outbox.TriesMax-1 || len(w.marker.marked) > 0 {
		t.Errorf("%d calls, pauses %v, marked %v", calls, sleeps, w.marker.marked)
	}
	for i, pause := range sleeps {
		if bound := 100 * time.Millisecond << i; pause < 0 || pause >= bound {
			t.Errorf("pause %d is %s, want less than %s", i, pause, bound)
		}
	}
	w.bus.Down(false)
	if givenUp := w.deliver(w.relay(w.ports()), batch, 1); givenUp != nil || len(w.marker.marked) != 12 {
		t.Errorf("after the outage: given up %v, marked %v", givenUp, w.marker.marked)
	}
}

// A mark that fails is a failed record: the event is published again rather than left
// unmarked. What else the bus has accepted in the call is marked.
func TestAFailedMarkIsAFailedRecord(t *testing.T) {
	w := newWorld(t)
	broken := true
	w.marker.fail = func(id ledger.EventID) error {
		if broken && id == "event_hold_02_1" {
			return errors.New("throttled")
		}
		return nil
	}
	batch := w.batch(append(distinct(3), event("hold_03", 2))...)
	if failed := mustHandle(context.Background(), t, w.relay(w.ports()), batch); !slices.Equal(failed, []string{"102"}) {
		t.Errorf("handed back %v, want 102", failed)
	}
	if !slices.Equal(w.marker.marked, []ledger.EventID{"event_hold_01_1", "event_hold_03_1"}) || slices.Contains(w.delivered(), "event_hold_03_2") {
		t.Errorf("marked %v, published %v", w.marker.marked, w.delivered())
	}
	broken = false
	batch.Records = batch.Records[1:]
	if failed := mustHandle(context.Background(), t, w.relay(w.ports()), batch); failed != nil || !slices.Contains(w.marker.marked, "event_hold_02_1") {
		t.Errorf("handed back %v, marked %v", failed, w.marker.marked)
	}
}

// No retry makes a record readable, so it is set aside: what is before and behind it is
// published, its event stays unmarked, and the log says where it is.
func TestARecordThatCannotBeReadIsSetAside(t *testing.T) {
	w := newWorld(t)
	list := distinct(5)
	batch := w.batch(list...)
	delete(w.images, "event_hold_03_1")
	relay := w.relay(w.ports())
	if failed := mustHandle(context.Background(), t, relay, batch); failed != nil {
		t.Fatalf("handed back %v", failed)
	}
	others := slices.Concat(ids(list[:2]), ids(list[3:]))
	if got := w.delivered(); !slices.Equal(got, others) || !slices.Equal(w.marker.marked, others) || w.marker.quarantined["HOLD#hold_03 EVENT#0000000001"] != outbox.ReasonUnreadable {
		t.Errorf("published %v, marked %v, quarantined %v", got, w.marker.marked, w.marker.quarantined)
	}
	if got := w.reported(); got["set_aside"] != 1 || got["failed"] != 0 || got["published"] != 4 {
		t.Errorf("reported %v", got)
	}
	if log := w.logs.String(); !strings.Contains(log, `"sequence_number":"103"`) || !strings.Contains(log, "HOLD#hold_03 EVENT#0000000001") {
		t.Errorf("the log does not say where the record is: %s", log)
	}
	// An event of no hold and no slot is none, whoever decoded it.
	w.images["event_hold_03_1"] = ledger.Event{ID: "event_hold_03_1"}
	if failed := mustHandle(context.Background(), t, relay, batch); failed != nil || w.reported()["set_aside"] != 1 {
		t.Errorf("an event without a hold or slot: handed back %v", failed)
	}
}

// Case I4: an answer is lost after the bus has accepted. The event comes under a second
// envelope id; a consumer that goes by event_id counts it once.
func TestCaseI4_OneEventUnderTwoEnvelopes(t *testing.T) {
	w := newWorld(t)
	w.bus.LoseAnswers(1)
	if failed := mustHandle(context.Background(), t, w.relay(w.ports()), w.batch(event("hold_1", 2))); failed != nil {
		t.Errorf("handed back %v", failed)
	}
	deliveries, counted := w.bus.Deliveries(), map[ledger.EventID]int{}
	if len(deliveries) != 2 || deliveries[0].EnvelopeID == deliveries[1].EnvelopeID {
		t.Fatalf("deliveries: %v", deliveries)
	}
	for _, id := range w.delivered() {
		counted[id]++
	}
	if len(counted) != 1 || aws.ToString(deliveries[0].Entry.Detail) != aws.ToString(deliveries[1].Entry.Detail) {
		t.Errorf("a consumer counts %v", counted)
	}
	if !slices.Equal(w.marker.marked, []ledger.EventID{"event_hold_1_2"}) {
		t.Errorf("marked %v", w.marker.marked)
	}
}

// Every call takes five seconds. A run of 30 begins its last one before the margin, and
// hands the rest back by its first record.
func TestARunEndsBeforeItsDeadline(t *testing.T) {
	w := newWorld(t)
	var list []ledger.Event
	for version := range 10 {
		list = append(list, event("hold_1", version+1)) // one in a call
	}
	w.bus.BeforeCall(func() { w.clock.Advance(5 * time.Second) })
	ctx := endsAt{context.Background(), start.Add(30 * time.Second)}
	if failed := mustHandle(ctx, t, w.relay(w.ports()), w.batch(list...)); !slices.Equal(failed, []string{"106"}) {
		t.Errorf("handed back %v, want 106", failed)
	}
	if got := w.delivered(); !slices.Equal(got, ids(list[:5])) || !slices.Equal(w.marker.marked, got) {
		t.Errorf("published %v, marked %v", got, w.marker.marked)
	}
	if got := w.reported(); got["truncated"] != 1 || got["failed"] != 0 || got["published"] != 5 {
		t.Errorf("reported %v", got)
	}
	// A bus that is down uses up the time of one run, not more.
	w = newWorld(t)
	calls := 0
	w.bus.BeforeCall(func() { calls++; w.clock.Advance(10 * time.Second) })
	w.bus.Down(true)
	ctx.at = start.Add(30 * time.Second)
	if failed := mustHandle(ctx, t, w.relay(w.ports()), w.batch(list...)); !slices.Equal(failed, []string{"101"}) || calls != 3 {
		t.Errorf("handed back %v after %d calls", failed, calls)
	}
}

// P7, with a bus that never fails and with one that does: whatever happens on the way,
// every event is published and marked, and the first publications of each hold are in
// the order of its versions.
func TestP7_EveryEventIsPublishedInOrder(t *testing.T) {
	for _, share := range []float64{0, 0.1, 0.6} {
		for seed := range uint64(5) {
			t.Run(fmt.Sprintf("share=%v/seed=%d", share, seed), func(t *testing.T) {
				w, random := newWorld(t), systemtest.NewRandom(seed)
				var list []ledger.Event
				versions := map[string]int{}
				for range 100 {
					hold := fmt.Sprintf("hold_%02d", random.Below(20))
					versions[hold]++
					list = append(list, event(hold, versions[hold]))
				}
				w.bus.FailShare(share, outboxtest.CodeThrottled, random)
				w.bus.BeforeCall(func() {
					if share > 0 && random.Below(10) == 0 {
						w.bus.LoseAnswers(1)
					}
				})
				w.marker.fail = func(ledger.EventID) error {
					if share > 0 && random.Below(20) == 0 {
						return errors.New("throttled")
					}
					return nil
				}
				if givenUp := w.deliver(w.relay(w.ports()), w.batch(list...), deliveriesMax); givenUp != nil {
					t.Errorf("given up %v", givenUp)
				}
				first, last := map[ledger.EventID]bool{}, map[ledger.HoldID]ledger.Version{}
				for _, id := range w.delivered() {
					if first[id] {
						continue
					}
					first[id] = true
					e := w.images[string(id)]
					if e.Version != last[e.Hold.ID]+1 {
						t.Errorf("version %d of %s comes after %d", e.Version, e.Hold.ID, last[e.Hold.ID])
					}
					last[e.Hold.ID] = e.Version
				}
				for _, e := range list {
					if !first[e.ID] || !slices.Contains(w.marker.marked, e.ID) {
						t.Errorf("%s was published: %t, marked: %t", e.ID, first[e.ID], slices.Contains(w.marker.marked, e.ID))
					}
				}
				if duplicates := len(w.delivered()) - len(list); share == 0 && duplicates != 0 {
					t.Errorf("%d events were published twice without any fault", duplicates)
				}
			})
		}
	}
}

// busFunc answers as the test says.
type busFunc func(*eventbridge.PutEventsInput) *eventbridge.PutEventsOutput

func (f busFunc) PutEvents(_ context.Context, input *eventbridge.PutEventsInput, _ ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error) {
	return f(input), nil
}

// An answer that does not account for every entry proves nothing about any of them.
func TestADoubtfulAnswerIsNoSuccess(t *testing.T) {
	accepted := types.PutEventsResultEntry{EventId: aws.String("envelope-1")}
	refused := types.PutEventsResultEntry{EventId: aws.String("envelope-1"), ErrorCode: aws.String(outboxtest.CodeThrottled)}
	answers := map[string]*eventbridge.PutEventsOutput{
		"no entries":        {},
		"too few entries":   {Entries: []types.PutEventsResultEntry{accepted}},
		"an id and a code":  {Entries: []types.PutEventsResultEntry{refused, refused}},
		"no id and no code": {Entries: []types.PutEventsResultEntry{{}, {}}},
		"an unnamed entry":  {FailedEntryCount: 1, Entries: []types.PutEventsResultEntry{accepted, accepted}},
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			w, calls := newWorld(t), 0
			ports := w.ports()
			ports.Publisher = busFunc(func(*eventbridge.PutEventsInput) *eventbridge.PutEventsOutput { calls++; return answer })
			if failed := mustHandle(context.Background(), t, w.relay(ports), w.batch(distinct(2)...)); !slices.Equal(failed, []string{"101"}) {
				t.Errorf("handed back %v", failed)
			}
			if len(w.marker.marked) > 0 || calls != outbox.TriesMax {
				t.Errorf("marked %v after %d calls", w.marker.marked, calls)
			}
		})
	}
}

type brokenMetrics struct{}

func (brokenMetrics) Emit(telemetry.Properties, ...telemetry.Measurement) error {
	return errors.New("broken pipe")
}

// A report that is lost is logged; failing the batch would publish everything again.
func TestALostReportIsLogged(t *testing.T) {
	w := newWorld(t)
	ports := w.ports()
	ports.Metrics = brokenMetrics{}
	if failed := mustHandle(context.Background(), t, w.relay(ports), w.batch(distinct(1)...)); failed != nil || !strings.Contains(w.logs.String(), "broken pipe") {
		t.Errorf("handed back %v, log %s", failed, w.logs.String())
	}
}

func TestSettingsAreChecked(t *testing.T) {
	good := outbox.Settings{Bus: "events", Stage: "dev", CallBytesMax: outbox.CallBytesMaxDefault, SagaQueueURL: sagaURL, DueQueueURL: dueURL}
	for name, change := range map[string]func(*outbox.Settings){
		"no bus":    func(s *outbox.Settings) { s.Bus = "" },
		"no queue":  func(s *outbox.Settings) { s.SagaQueueURL = "" },
		"no due":    func(s *outbox.Settings) { s.DueQueueURL = "" },
		"no stage":  func(s *outbox.Settings) { s.Stage = "" },
		"no bytes":  func(s *outbox.Settings) { s.CallBytesMax = 0 },
		"too large": func(s *outbox.Settings) { s.CallBytesMax = outbox.CallBytesLimit + 1 },
	} {
		settings := good
		change(&settings)
		if _, err := outbox.NewRelay(outbox.Ports{}, settings); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := outbox.NewRelay(outbox.Ports{}, good); err != nil {
		t.Errorf("good settings: %v", err)
	}
}
