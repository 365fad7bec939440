package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"holdfast/shared/ledger"
	"holdfast/shared/outbox"
	"holdfast/shared/outbox/outboxtest"
)

// old is how old an event is that the tests' redrives take up.
const old = 10 * time.Minute

// index is the table's index of unpublished events in memory. What the marker has marked or
// quarantined is not in it, as after a moment on the real one.
type index struct {
	w      *world
	stored []ledger.StoredEvent
	lists  map[ledger.EventItem]int // the shard of each
	broken map[int]error            // by shard
	// stale keeps what was published in the lists.
	stale bool
	reads int
}

func newIndex(w *world) *index {
	return &index{w: w, lists: map[ledger.EventItem]int{}, broken: map[int]error{}}
}

// put stores an event that is listed in a shard.
func (x *index) put(shard int, e ledger.Event) {
	r := x.w.record(0, e)
	stored := ledger.StoredEvent{Event: e, Item: ledger.EventItem{PartitionKey: r.Change.Keys["pk"].String(), SortKey: r.Change.Keys["sk"].String()}}
	if e.Version > 1 {
		stored.Before = ledger.EventItem{PartitionKey: stored.Item.PartitionKey, SortKey: fmt.Sprintf("EVENT#%010d", e.Version-1)}
	}
	x.stored = append(x.stored, stored)
	x.lists[stored.Item] = shard
}

func (x *index) out(e ledger.StoredEvent) bool {
	_, aside := x.w.marker.quarantined[e.Item.String()]
	return aside || slices.Contains(x.w.marker.marked, e.Event.ID)
}

func (x *index) Unpublished(_ context.Context, shard int, before time.Time, page ledger.Page) ([]ledger.UnpublishedEvent, ledger.Cursor, error) {
	if err := x.broken[shard]; err != nil {
		return nil, "", err
	}
	var all []ledger.UnpublishedEvent
	for _, e := range x.stored {
		if x.lists[e.Item] == shard && e.Event.OccurredAt.Before(before) && (x.stale || !x.out(e)) {
			all = append(all, ledger.UnpublishedEvent{Item: e.Item, ID: e.Event.ID, OccurredAt: e.Event.OccurredAt})
		}
	}
	slices.SortStableFunc(all, func(a, b ledger.UnpublishedEvent) int { return a.OccurredAt.Compare(b.OccurredAt) })
	// The cursor names the last entry that was given, as on the real index.
	if page.After != "" {
		after := slices.IndexFunc(x.stored, func(e ledger.StoredEvent) bool { return e.Item.String() == string(page.After) })
		at := x.stored[after].Event.OccurredAt
		all = slices.DeleteFunc(all, func(e ledger.UnpublishedEvent) bool { return !e.OccurredAt.After(at) })
	}
	if len(all) <= page.Limit {
		return all, "", nil
	}
	return all[:page.Limit], ledger.Cursor(all[page.Limit-1].Item.String()), nil
}

func (x *index) UnpublishedEvents(_ context.Context, items []ledger.EventItem) ([]ledger.StoredEvent, error) {
	x.reads++
	var found []ledger.StoredEvent
	for _, item := range items {
		for _, e := range x.stored {
			if e.Item == item && !slices.Contains(x.w.marker.marked, e.Event.ID) {
				if reason, aside := x.w.marker.quarantined[item.String()]; aside {
					e.Quarantine = &ledger.Quarantine{Reason: reason, At: start}
				}
				found = append(found, e)
			}
		}
	}
	return found, nil
}

// before is an event of so long before start.
func before(age time.Duration, e ledger.Event) ledger.Event {
	e.OccurredAt = start.Add(-age)
	return e
}

func mustRedrive(ctx context.Context, t *testing.T, w *world, x *index) outbox.RedriveReport {
	t.Helper()
	report, err := outbox.NewRedrive(w.relay(w.ports()), x).Run(ctx, old, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// What is old enough goes out, the oldest first over all shards, with its wake-ups and due
// messages; what is younger is left to the stream, and counts for the lag all the same.
func TestRedrivePublishesWhatIsOld(t *testing.T) {
	w := newWorld(t)
	x := newIndex(w)
	authorized := before(30*time.Minute, reserved(1, 1, ledger.EventReservationAuthorized, ledger.ReservationAuthorized))
	held := before(20*time.Minute, waiting(1, 1, start.Add(time.Minute)))
	ended := before(40*time.Minute, waiting(2, 1, start.Add(-30*time.Minute))) // the sweep was there
	x.put(3, authorized)
	x.put(0, held)
	x.put(15, ended)
	x.put(3, before(old, event("hold_old", 1)))
	x.put(3, before(old-time.Millisecond, event("hold_young", 1)))
	report := mustRedrive(context.Background(), t, w, x)
	if want := (outbox.RedriveReport{Republished: 4, Lag: 40 * time.Minute, LagKnown: true}); report != want {
		t.Errorf("report %+v, want %+v", report, want)
	}
	if want := []ledger.EventID{ended.ID, authorized.ID, held.ID, "event_hold_old_1"}; !slices.Equal(w.delivered(), want) || !slices.Equal(w.marker.marked, want) {
		t.Errorf("published %v, marked %v", w.delivered(), w.marker.marked)
	}
	if due := w.queue.Due(); len(due) != 1 || due[0].Body != dueBody(1, start.Add(time.Minute)) || !slices.Equal(w.queue.Woken(), woken(1)) {
		t.Errorf("due messages %v, woken %v", due, w.queue.Woken())
	}
	again := mustRedrive(context.Background(), t, w, x)
	if want := (outbox.RedriveReport{Lag: old - time.Millisecond, LagKnown: true}); again != want {
		t.Errorf("the second run: %+v", again)
	}
	w.marker.marked = append(w.marker.marked, "event_hold_young_1")
	if empty := mustRedrive(context.Background(), t, w, x); empty != (outbox.RedriveReport{LagKnown: true}) {
		t.Errorf("with nothing unpublished: %+v", empty)
	}
}

// The index is in the order of times, and two events of one hold may have the same
// millisecond, or the times of two clocks: the versions decide. The version before may even
// be young, or on a later page.
func TestRedriveKeepsTheOrderOfVersions(t *testing.T) {
	for name, ages := range map[string][]time.Duration{ // of the versions 1, 2, 3, …
		"one millisecond":       {time.Hour, time.Hour, time.Hour},
		"a clock behind":        {time.Hour, time.Hour + 2*time.Second, time.Hour + time.Second},
		"all backwards":         {61 * time.Minute, 62 * time.Minute, 63 * time.Minute, 64 * time.Minute, 65 * time.Minute},
		"one that is too young": {time.Minute, time.Hour, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			x := newIndex(w)
			for i, age := range ages {
				x.put(15-i, before(age, event("hold_1", i+1))) // equal times come in the order of shards
			}
			for n := range 250 { // so that there are several chunks, most of them in between
				x.put(n%16, before(time.Hour-time.Duration(n)*time.Millisecond, event(fmt.Sprintf("hold_x%03d", n), 1)))
			}
			mustRedrive(context.Background(), t, w, x)
			var versions []ledger.Version
			for _, id := range w.delivered() {
				if e := w.images[string(id)]; e.Hold.ID == "hold_1" {
					versions = append(versions, e.Version)
				}
			}
			var want []ledger.Version
			for i := range ages {
				want = append(want, ledger.Version(i+1))
			}
			if !slices.Equal(versions, want) || len(w.delivered()) != 250+len(ages) {
				t.Errorf("published the versions %v of %d events", versions, len(w.delivered()))
			}
		})
	}
}

// A long row of versions that are listed backwards is not published out of order: what is
// not known to be in order waits.
func TestRedriveHoldsBackWhatItCannotOrder(t *testing.T) {
	w := newWorld(t)
	x := newIndex(w)
	const versions = 300
	for version := range versions {
		x.put(version%16, before(time.Hour+time.Duration(version)*time.Second, event("hold_1", version+1)))
	}
	report := mustRedrive(context.Background(), t, w, x)
	if len(w.delivered()) > 0 || report.Left != versions {
		t.Errorf("published %v, report %+v", w.delivered(), report)
	}
}

// Case I1: while an event fails, those of its hold wait for the next run; all others go
// out, and so does it in the end.
func TestCaseI1_RedriveHoldsBackOnlyTheThingThatFailed(t *testing.T) {
	w := newWorld(t)
	x := newIndex(w)
	for version := range 3 {
		for n := range 4 {
			x.put(n, before(time.Hour-time.Duration(version)*time.Minute, event(fmt.Sprintf("hold_%d", n), version+1)))
		}
	}
	broken := true
	w.bus.Refuse(func(e types.PutEventsRequestEntry) string {
		if broken && e.Resources[0] == "hold/hold_2" {
			return outboxtest.CodeThrottled
		}
		return ""
	})
	report := mustRedrive(context.Background(), t, w, x)
	if want := (outbox.RedriveReport{Republished: 9, Failed: 1, Left: 2, Lag: time.Hour, LagKnown: true}); report != want {
		t.Errorf("report %+v, want %+v", report, want)
	}
	broken = false
	if report = mustRedrive(context.Background(), t, w, x); report.Republished != 3 || report.Failed+report.Left > 0 {
		t.Errorf("the second run: %+v", report)
	}
	if got := w.delivered()[9:]; !slices.Equal(got, []ledger.EventID{"event_hold_2_1", "event_hold_2_2", "event_hold_2_3"}) {
		t.Errorf("published %v at last", got)
	}
}

// What can't be read, or published, goes into quarantine, and holds nobody up.
func TestRedriveQuarantinesPoison(t *testing.T) {
	w := newWorld(t)
	x := newIndex(w)
	for version := range 3 {
		x.put(0, before(time.Hour-time.Duration(version)*time.Second, event("hold_1", version+1)))
	}
	x.put(1, before(2*time.Hour, sized("seat", "x", outbox.CallBytesMaxDefault)))
	x.stored[1].Unreadable = errors.New("it lacks a part")
	x.stored[1].Event.Hold, x.stored[1].Before = nil, ledger.EventItem{}
	w.marker.failQuarantine = errors.New("throttled")
	if report := mustRedrive(context.Background(), t, w, x); report.Failed != 2 || report.Quarantined != 0 {
		t.Errorf("while nothing can be put into quarantine: %+v", report)
	}
	w.marker.failQuarantine = nil
	report := mustRedrive(context.Background(), t, w, x)
	if report.Quarantined != 2 || report.Failed+report.Left > 0 || !slices.Contains(w.marker.marked, "event_hold_1_3") {
		t.Errorf("report %+v, marked %v", report, w.marker.marked)
	}
	if got := w.marker.quarantined["HOLD#hold_1 EVENT#0000000002"]; got != outbox.ReasonUnreadable || len(w.marker.quarantined) != 2 {
		t.Errorf("quarantined %v", w.marker.quarantined)
	}
	x.stale = true // the index still lists them
	if again := mustRedrive(context.Background(), t, w, x); again.Quarantined+again.Republished+again.Failed+again.Left > 0 || len(w.delivered()) != 2 {
		t.Errorf("the next run: %+v, published %v", again, w.delivered())
	}
}

// A bus that is down is asked a few times and left alone. Nothing is marked, and the lag
// is told all the same.
func TestRedriveLeavesABusThatIsDownAlone(t *testing.T) {
	w := newWorld(t)
	x := newIndex(w)
	for n := range 150 {
		x.put(n%16, before(time.Hour, event(fmt.Sprintf("hold_%03d", n), 1)))
	}
	for version := range 150 { // of one hold, so that a chunk may be one call
		x.put(7, before(3*time.Hour-time.Duration(version)*time.Second, event("hold_first", version+1)))
	}
	w.bus.Down(true)
	calls := 0
	w.bus.BeforeCall(func() { calls++ })
	report := mustRedrive(context.Background(), t, w, x)
	if !report.Futile || report.Republished != 0 || !report.LagKnown || report.Lag != 3*time.Hour || len(w.marker.marked) > 0 {
		t.Errorf("report %+v, marked %v", report, w.marker.marked)
	}
	if want := 3 * outbox.TriesMax; calls != want {
		t.Errorf("%d calls, want %d", calls, want)
	}
	w.bus.Down(false)
	if report = mustRedrive(context.Background(), t, w, x); report.Republished != 300 || report.Futile {
		t.Errorf("after the outage: %+v", report)
	}
}

// A run ends before its deadline, or after the time that it is given, and the next one
// goes on where it stopped.
func TestRedriveEndsInTime(t *testing.T) {
	w := newWorld(t)
	x := newIndex(w)
	for version := range 20 {
		x.put(0, before(time.Hour-time.Duration(version)*time.Second, event("hold_1", version+1))) // one in a call
	}
	w.bus.BeforeCall(func() { w.clock.Advance(5 * time.Second) })
	report := mustRedrive(endsAt{context.Background(), start.Add(30 * time.Second)}, t, w, x)
	if !report.Truncated || report.Republished != 5 || report.Left != 15 || report.Failed > 0 {
		t.Errorf("before a deadline: %+v", report)
	}
	report, err := outbox.NewRedrive(w.relay(w.ports()), x).Run(context.Background(), old, 10*time.Second)
	if err != nil || !report.Truncated || report.Republished != 2 || report.Left != 13 {
		t.Errorf("for ten seconds: %+v, %v", report, err)
	}
	w.bus.BeforeCall(func() {})
	// One that has no time at all says that it knows nothing.
	report, err = outbox.NewRedrive(w.relay(w.ports()), x).Run(context.Background(), old, 0)
	if err != nil || report != (outbox.RedriveReport{Truncated: true}) {
		t.Errorf("without time: %+v, %v", report, err)
	}
	if report = mustRedrive(context.Background(), t, w, x); report.Republished != 13 || report.Truncated {
		t.Errorf("at last: %+v", report)
	}
}

// A shard that can't be read is an error, and makes the lag unknown; the others are
// published, and nothing overtakes what lies in the unreadable shard.
func TestRedriveWithAnUnreadableShard(t *testing.T) {
	w := newWorld(t)
	x := newIndex(w)
	x.put(3, before(2*time.Hour, event("hold_1", 1)))
	x.put(4, before(time.Hour, event("hold_1", 2)))
	x.put(5, before(time.Hour, event("hold_2", 1)))
	x.broken[3] = errors.New("throttled")
	report, err := outbox.NewRedrive(w.relay(w.ports()), x).Run(context.Background(), old, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "unpublished shard 3: throttled") || report.LagKnown {
		t.Errorf("report %+v, %v", report, err)
	}
	if got := w.delivered(); !slices.Equal(got, []ledger.EventID{"event_hold_1_1", "event_hold_2_1", "event_hold_1_2"}) {
		t.Errorf("published %v", got)
	}
}

// What was published after it was listed is not published again.
func TestRedriveGoesByTheEventAndNotByTheIndex(t *testing.T) {
	w := newWorld(t)
	x := newIndex(w)
	x.put(0, before(time.Hour, event("hold_1", 1)))
	mustRedrive(context.Background(), t, w, x)
	x.stale = true
	if report := mustRedrive(context.Background(), t, w, x); report.Republished != 0 || len(w.delivered()) != 1 || x.reads != 2 {
		t.Errorf("report %+v, published %v in %d reads", report, w.delivered(), x.reads)
	}
}

// Things that fail one by one, however many, are no bus that is down.
func TestRedriveGoesOnBehindSingleFailures(t *testing.T) {
	w := newWorld(t)
	x := newIndex(w)
	w.bytesMax = entryBytes(t, event("hold_sick_0", 1)) * 3 / 2 // one in a call
	for n := range 5 {
		x.put(n, before(2*time.Hour-time.Duration(n)*time.Minute, event(fmt.Sprintf("hold_sick_%d", n), 1)))
		x.put(n, before(2*time.Hour-time.Duration(n)*time.Minute-time.Second, event(fmt.Sprintf("hold_good_%d", n), 1)))
	}
	w.bus.Refuse(func(e types.PutEventsRequestEntry) string {
		if strings.HasPrefix(e.Resources[0], "hold/hold_sick") {
			return outboxtest.CodeThrottled
		}
		return ""
	})
	if report := mustRedrive(context.Background(), t, w, x); report.Futile || report.Republished != 5 || report.Failed != 5 {
		t.Errorf("report %+v", report)
	}
}

// What was read after a wake-up went out may have been written after it, so that it needs
// one of its own.
func TestEachChunkWakesAnew(t *testing.T) {
	w := newWorld(t)
	x := newIndex(w)
	for version := range 4 {
		e := reserved(1, version+1, ledger.EventReservationPaymentNoticed, ledger.ReservationPaymentPending)
		x.put(1, before(2*time.Hour-time.Duration(version)*30*time.Minute, e))
	}
	for n := range 150 { // between the second and the third
		x.put(2, before(75*time.Minute-time.Duration(n)*time.Millisecond, event(fmt.Sprintf("hold_%03d", n), 1)))
	}
	mustRedrive(context.Background(), t, w, x)
	if got := w.queue.Woken(); !slices.Equal(got, woken(1, 1)) || len(w.delivered()) != 154 {
		t.Errorf("woken %v, %d events published", got, len(w.delivered()))
	}
}
