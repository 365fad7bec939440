package expiry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/due"
	"holdfast/shared/expiry"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/system/systemtest"
)

// run delivers what the due queue has ready, every second until a time.
func (f *function) run(until time.Time) {
	f.tb.Helper()
	for ; !f.clock.Now().After(until); f.clock.Advance(time.Second) {
		for _, body := range f.queue.take() {
			if failed := f.batch(body); failed != nil {
				f.tb.Errorf("%s comes again", body)
			}
		}
	}
}

// send sends the hold's due message now, as the outbox does after a step.
func (f *function) send(id ledger.HoldID) {
	f.tb.Helper()
	dueAt, _ := f.read(id).DueAt()
	must(f.tb, f.queue.Send(context.Background(), f.messageAt(id, dueAt), due.Message{Hold: id, DueAt: dueAt}.Delay(f.clock.Now())))
}

// A hold that is due in 40 minutes is beyond what a queue keeps back. Its message takes
// three hops, the last one ends the hold within a second of its time, and nothing is left
// in the queue.
func TestAMessageThatIsDueIn40MinutesHops(t *testing.T) {
	w := newWorldOf(t, 1, 40*time.Minute)
	f := w.function()
	f.clock.Set(start.Add(250 * time.Millisecond))
	id := f.hold(1)
	dueAt := f.read(id).ReleaseAt
	f.clock.Advance(30 * time.Millisecond)
	f.send(id)
	f.run(dueAt.Add(5 * time.Second))
	if want := []time.Duration{900 * time.Second, 900 * time.Second, 599 * time.Second}; len(f.queue.delays) != 3 ||
		f.queue.delays[0] != want[0] || f.queue.delays[1] != want[1] || f.queue.delays[2] < want[2] {
		t.Errorf("kept back for %v, want about %v", f.queue.delays, want)
	}
	if hold := f.read(id); hold.Status != ledger.StatusExpired || hold.EndedAt.Sub(dueAt) > 2*time.Second || hold.EndedAt.Before(dueAt) {
		t.Errorf("the hold is %s, ended %s after it was due", hold.Status, hold.EndedAt.Sub(dueAt))
	}
	if len(f.queue.kept) > 0 {
		t.Errorf("the queue still has %v", f.queue.kept)
	}
	f.mustBeExpired()
}

func TestABatchIsReportedAndEndsWhatIsDue(t *testing.T) {
	f := newWorld(t, 10).function()
	over, ended := f.hold(1), f.hold(1)
	f.clock.Set(start.Add(holdFor + 700*time.Millisecond))
	young := f.hold(1)
	if _, err := f.commands.ExpireHold(context.Background(), ended, "request_end"); err != nil {
		t.Fatal(err)
	}
	unknown := ledger.HoldID("hold_00000000000000000000000000")
	failed := f.batch(f.dueMessage(over), f.messageAt(ended, start.Add(holdFor)), f.dueMessage(young), f.messageAt(unknown, start))
	if failed != nil {
		t.Errorf("handed back %v", failed)
	}
	want := map[string]float64{
		"due_released": 1, "due_ended": 2, "due_forwarded": 1, "due_failed": 0, "expiry_release_delay_seconds_p95": 0.7,
	}
	if got := f.reported(); !maps.Equal(got, want) {
		t.Errorf("reported %v, want %v", got, want)
	}
	if !slices.Equal(f.queue.delays, []time.Duration{holdFor}) || f.queue.kept[0].body != f.dueMessage(young) {
		t.Errorf("sent on %v after %v", f.queue.kept, f.queue.delays)
	}
	if failed := f.batch(); failed != nil {
		t.Errorf("an empty batch hands back %v", failed)
	}
	if got := f.reported(); !maps.Equal(got, map[string]float64{"due_released": 0, "due_ended": 0, "due_forwarded": 0, "due_failed": 0}) {
		t.Errorf("an empty batch reports %v", got)
	}
}

// Messages come twice, in any order, and after the sweep. Each hold ends once.
func TestDuplicatesAndDisorderEndEachHoldOnce(t *testing.T) {
	f := newWorld(t, 10).function()
	f.holds(8, time.Second)
	f.clock.Advance(holdFor)
	var bodies []string
	for _, id := range f.ids {
		bodies = append(bodies, f.dueMessage(id), f.dueMessage(id))
	}
	slices.Reverse(bodies)
	first := f.batch(bodies[:7]...)
	f.mustTick()
	if again := f.batch(bodies...); first != nil || again != nil {
		t.Errorf("handed back %v and %v", first, again)
	}
	f.mustBeExpired()
	for _, id := range f.ids {
		if n := f.endings(id); n != 1 {
			t.Errorf("hold %s has ended %d times", id, n)
		}
	}
}

// A hold whose payment has begun is due later than its first message says, and one whose
// payment was closed earlier than its second. Messages may overtake each other: one for a
// time that does not hold any more ends nothing, and leaves nothing for later undone.
func TestAMessageThatWasOvertakenEndsNothingTooEarly(t *testing.T) {
	f := newWorld(t, 1).function()
	id := f.hold(1)
	created := f.dueMessage(id)
	f.pay(id)
	paying := f.dueMessage(id)
	dueAt, _ := f.read(id).DueAt()
	f.clock.Set(start.Add(holdFor))
	if failed := f.batch(paying, created); failed != nil { // the younger one first
		t.Errorf("handed back %v", failed)
	}
	mustReport(t, f.reported(), map[string]float64{"due_forwarded": 1, "due_ended": 1, "due_released": 0})
	if got := f.read(id).Status; got != ledger.StatusHeld {
		t.Fatalf("the hold is %s while its payment is open", got)
	}
	f.clock.Set(start.Add(holdFor + time.Minute))
	f.closeAttempt(id)
	closed := f.dueMessage(id)
	f.clock.Set(f.read(id).ReleaseAt)
	if failed := f.batch(closed); failed != nil {
		t.Errorf("handed back %v", failed)
	}
	f.clock.Set(dueAt)
	if failed := f.batch(f.queue.take()...); failed != nil {
		t.Errorf("handed back %v", failed)
	}
	mustReport(t, f.reported(), map[string]float64{"due_released": 1, "due_ended": 1})
	if got := f.read(id).Status; got != ledger.StatusExpired {
		t.Errorf("the hold is %s", got)
	}
}

// Whatever is wrong with a message, it alone comes again, and what can't be read is not
// repeated in the log (P12).
func TestAFailedMessageComesAgainAlone(t *testing.T) {
	f := newWorld(t, 10).function()
	f.holds(4, 0)
	f.clock.Advance(holdFor)
	f.releaser = &releaserFunc{do: func(ctx context.Context, id ledger.HoldID) (bool, error) {
		switch id {
		case f.ids[1]:
			return false, &ledger.Error{Code: ledger.CodeUnavailable, Message: "throttled"}
		case f.ids[2]:
			panic("no such line")
		}
		return f.commands.ExpireHold(ctx, id, "request_end")
	}}
	failed := f.batch(
		f.dueMessage(f.ids[0]), f.dueMessage(f.ids[1]), `{"hold_id":"canary"}`, f.dueMessage(f.ids[2]), `canary`,
		`{"sweep":"canary"}`, `{"hold_id":"`+strings.Repeat("canary", 1000)+`"}`, f.dueMessage(f.ids[3]))
	if want := []string{"m2", "m3", "m4", "m5", "m6", "m7"}; !slices.Equal(failed, want) {
		t.Errorf("handed back %v, want %v", failed, want)
	}
	mustReport(t, f.reported(), map[string]float64{"due_released": 2, "due_failed": 6})
	if strings.Contains(f.logs.String(), "canary") {
		t.Errorf("the log repeats a message: %s", f.logs.String())
	}
}

// A message whose hold is parked need not come again: from then on the sweep has its times.
func TestAMessageWhoseHoldIsParkedIsDone(t *testing.T) {
	f := newWorld(t, 1).function()
	id := f.hold(1)
	f.clock.Advance(holdFor)
	f.releaser = f.poison(id)
	for try, want := range []int{1, 1, 0, 1} { // the last one comes late, and counts nothing
		if failed := f.batch(f.dueMessage(id)); len(failed) != want {
			t.Errorf("try %d: handed back %v", try+1, failed)
		}
	}
	mustReport(t, f.reported(), map[string]float64{"due_failed": 4})
	report := f.look()
	if known, err := f.world.store.Failures(context.Background(), id); err != nil || known.Count != 3 || report.Count != 1 {
		t.Errorf("known %+v, %v; parked %+v", known, err, report)
	}
}

// A message before its time that can't be sent on comes again; nothing is lost.
func TestAMessageThatCannotBeSentOnComesAgain(t *testing.T) {
	f := newWorld(t, 2).function()
	over := f.hold(1)
	f.clock.Advance(holdFor)
	young := f.hold(1)
	f.queue.broken = errors.New("throttled")
	if failed := f.batch(f.dueMessage(young), f.dueMessage(over)); !slices.Equal(failed, []string{"m1"}) {
		t.Errorf("handed back %v", failed)
	}
	mustReport(t, f.reported(), map[string]float64{"due_released": 1, "due_forwarded": 0, "due_failed": 1})
}

// What is left when the time is over comes again.
func TestABatchStopsBeforeItsDeadline(t *testing.T) {
	f := newWorld(t, 3).function()
	f.holds(3, 0)
	f.clock.Advance(holdFor)
	f.releaser = &releaserFunc{do: func(ctx context.Context, id ledger.HoldID) (bool, error) {
		f.clock.Advance(3 * time.Second)
		return f.commands.ExpireHold(ctx, id, "request_end")
	}}
	ctx := endsAt{context.Background(), f.clock.Now().Add(expiry.MarginBeforeDeadline + 4*time.Second)}
	failed, err := f.batchIn(ctx, f.dueMessage(f.ids[0]), f.dueMessage(f.ids[1]), f.dueMessage(f.ids[2]))
	if err != nil || !slices.Equal(failed, []string{"m3"}) {
		t.Errorf("handed back %v, %v", failed, err)
	}
	mustReport(t, f.reported(), map[string]float64{"due_released": 2, "due_failed": 1})
}

func TestAMessageWithoutAnIDFailsTheBatch(t *testing.T) {
	f := newWorld(t, 1).function()
	id := f.hold(1)
	f.clock.Advance(holdFor)
	body, err := json.Marshal(f.dueMessage(id))
	must(t, err)
	answer, err := f.handler().Handle(context.Background(),
		json.RawMessage(fmt.Sprintf(`{"Records":[{"messageId":"m1","body":%s},{"body":"x"}]}`, body)))
	if err == nil || answer != nil || f.read(id).Status != ledger.StatusHeld {
		t.Errorf("%v, %v; the hold is %s", answer, err, f.read(id).Status)
	}
}

// answers counts the reads, each of which tells the gauge a little.
type answers struct {
	expiry.Parking
	gauge *gauge
	reads int
	err   error
}

func (a *answers) Failures(ctx context.Context, id ledger.HoldID) (ledger.EndFailures, error) {
	a.reads++
	a.gauge.needs--
	if a.err != nil {
		return ledger.EndFailures{}, a.err
	}
	return a.Parking.Failures(ctx, id)
}

func (a *answers) Parked(ctx context.Context, shard int, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
	a.reads++
	a.gauge.needs--
	return a.Parking.Parked(ctx, shard, page)
}

// A process of whose clock nothing is known makes some reads before it ends anything, and
// then ends nothing if the clock is wrong. One that knows makes none.
func TestABatchLearnsOfTheClockFirst(t *testing.T) {
	for name, test := range map[string]struct {
		needs, reads int
		skew         time.Duration
		err          error
		unreliable   bool
	}{
		"known":                 {0, 0, 0, nil, false},
		"right":                 {3, 3, 0, nil, false},
		"wrong":                 {3, 3, time.Minute, nil, true},
		"never known":           {100, 3, time.Minute, nil, false},
		"reads that fail count": {2, 2, time.Minute, errors.New("throttled"), true},
	} {
		f := newWorld(t, 1).function()
		id := f.hold(1)
		f.clock.Advance(holdFor)
		f.gauge = gauge{needs: test.needs, skew: test.skew}
		reads := &answers{Parking: f.world.store, gauge: &f.gauge, err: test.err}
		f.parking = reads
		_, err := f.batchIn(context.Background(), `{"sweep":0}`, f.dueMessage(id))
		if errors.Is(err, expiry.ErrClockUnreliable) != test.unreliable || reads.reads != test.reads {
			t.Errorf("%s: %v after %d reads", name, err, reads.reads)
		}
		if held := f.read(id).Status == ledger.StatusHeld; held != test.unreliable {
			t.Errorf("%s: the hold is %s", name, f.read(id).Status)
		}
	}
}

// While no read is answered nothing is known of the clock, and the batch comes again: the
// message may be older than an extension, and a clock that is far ahead would end by it a
// hold that its owner has just made longer.
func TestABatchWithoutAnAnswerEndsNothing(t *testing.T) {
	f := newWorld(t, 1).function()
	id := f.hold(1)
	f.clock.Advance(holdFor)
	f.gauge = gauge{needs: 100, skew: time.Minute}
	lost := errors.New("request timed out")
	reads := &answers{Parking: f.world.store, gauge: &f.gauge, err: lost}
	f.parking = reads
	if _, err := f.batchIn(context.Background(), f.dueMessage(id)); !errors.Is(err, lost) || reads.reads != 3 {
		t.Errorf("%v after %d reads", err, reads.reads)
	}
	if got := f.read(id).Status; got != ledger.StatusHeld {
		t.Errorf("the hold is %s", got)
	}
	reads.err, f.gauge = nil, gauge{}
	if _, err := f.batchIn(context.Background(), f.dueMessage(id)); err != nil {
		t.Error(err)
	}
	if got := f.read(id).Status; got != ledger.StatusExpired {
		t.Errorf("after an answer the hold is %s", got)
	}
}

// A call for help alone is enough to learn of the clock: its sweep ends holds by it.
func TestACallForHelpLearnsOfTheClockFirst(t *testing.T) {
	f := newWorld(t, 1).function()
	id := f.hold(1)
	f.clock.Advance(holdFor)
	f.gauge = gauge{needs: 3, skew: time.Minute}
	reads := &answers{Parking: f.world.store, gauge: &f.gauge}
	f.parking = reads
	if _, err := f.batchIn(context.Background(), expiry.SweepCall); !errors.Is(err, expiry.ErrClockUnreliable) || reads.reads != 3 {
		t.Errorf("%v after %d reads", err, reads.reads)
	}
	if got := f.read(id).Status; got != ledger.StatusHeld {
		t.Errorf("the hold is %s", got)
	}
}

// A call for help sweeps after the messages of its batch, once, and is never handed back.
// Others that came with it go on to workers of their own.
func TestACallForHelpSweeps(t *testing.T) {
	f := newWorld(t, 10).function()
	f.holds(3, 0)
	f.clock.Advance(holdFor)
	if failed := f.batch(expiry.SweepCall, f.dueMessage(f.ids[0]), expiry.SweepCall, expiry.SweepCall); failed != nil {
		t.Errorf("handed back %v", failed)
	}
	mustReport(t, f.reported(), map[string]float64{"due_released": 1, "due_failed": 0, "expiry_released": 2, "expiry_heartbeat": 1})
	f.mustBeExpired()
	if got := f.queue.take(); !slices.Equal(got, []string{expiry.SweepCall, expiry.SweepCall}) {
		t.Errorf("sent on %v", got)
	}
	// Neither a sweep that fails, nor a queue that takes no calls, makes a message come again.
	f.queue.broken = errors.New("the queue is down")
	f.store = storeFunc{f.world.store, func(int, time.Time, ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
		return nil, "", errors.New("the table is down")
	}}
	if failed := f.batch(expiry.SweepCall, expiry.SweepCall); failed != nil {
		t.Errorf("handed back %v", failed)
	}
	mustReport(t, f.reported(), map[string]float64{"expiry_heartbeat": 0})
	if logged := f.logs.String(); !strings.Contains(logged, "the table is down") || !strings.Contains(logged, "the queue is down") {
		t.Errorf("logged %s", logged)
	}
}

// The messages of a batch are worked on at the same time, so that one that hangs makes no
// other late.
func TestABatchIsWorkedOnAtOnce(t *testing.T) {
	f := newWorld(t, expiry.MessagesAtOnceMax).function()
	f.holds(expiry.MessagesAtOnceMax, 0)
	f.clock.Advance(holdFor)
	f.parallel = system.RealParallel{}
	var all sync.WaitGroup
	all.Add(expiry.MessagesAtOnceMax)
	f.releaser = &releaserFunc{do: func(ctx context.Context, id ledger.HoldID) (bool, error) {
		all.Done()
		all.Wait() // each waits for all others to have begun
		return f.commands.ExpireHold(ctx, id, "request_end")
	}}
	var bodies []string
	for _, id := range f.ids {
		bodies = append(bodies, f.dueMessage(id))
	}
	if failed := f.batch(bodies...); failed != nil {
		t.Errorf("handed back %v", failed)
	}
	mustReport(t, f.reported(), map[string]float64{"due_released": expiry.MessagesAtOnceMax})
	f.mustBeExpired()
}

// Case B2: whatever becomes of messages and of the queue, the tick does not need them.
func TestCaseB2_ALostQueueStopsNothing(t *testing.T) {
	f := newWorld(t, 10).function()
	f.holds(10, 0)
	f.clock.Set(start.Add(holdFor + time.Minute))
	f.queue.broken = errors.New("the queue is gone")
	f.failed = &unsent{down: true}
	mustReport(t, f.mustTick(), map[string]float64{"expiry_released": 10, "expiry_heartbeat": 1})
	f.mustBeExpired()
}

// Case B1: the function runs, says success and ends nothing. Its ghosts stay for as long
// as the lag grows, so that both tell.
func TestCaseB1_WhatIsLeftHeldIsCounted(t *testing.T) {
	f := newWorld(t, 25).function()
	f.holds(25, 0)
	f.releaser = &releaserFunc{do: func(context.Context, ledger.HoldID) (bool, error) {
		return false, &ledger.Error{Code: ledger.CodeUnavailable, Message: "down"}
	}}
	for _, overdue := range []time.Duration{time.Minute, 2 * time.Minute, 6 * time.Minute} {
		f.clock.Set(start.Add(holdFor + overdue))
		mustReport(t, f.mustTick(), map[string]float64{
			"expiry_heartbeat": 1, "expiry_lag_seconds_max": overdue.Seconds(), "expiry_ghosts": 25, "expiry_released": 0,
		})
	}
	f.releaser = f.poison(f.ids...)
	for minute := 7; minute < 60; minute++ {
		f.clock.Set(start.Add(holdFor + time.Duration(minute)*time.Minute))
		mustReport(t, f.mustTick(), map[string]float64{
			"expiry_heartbeat": 1, "expiry_lag_seconds_max": float64(minute * 60), "expiry_ghosts": 25, "expiry_released": 0,
		})
	}
	f.releaser = f.commands
	f.clock.Set(start.Add(holdFor + 80*time.Minute))
	mustReport(t, f.mustTick(), map[string]float64{"expiry_ghosts": 0, "expiry_released": 25})
	f.mustBeExpired()
	mustReport(t, f.mustTick(), map[string]float64{"expiry_ghosts": 0, "expiry_lag_seconds_max": 0})
}

// Case B11: a hold of 4 units whose payment has failed gives back all 4, whichever way it
// ends: by a message, by a sweep, or after it was parked.
func TestCaseB11_EveryWayGivesAllUnitsBack(t *testing.T) {
	for name, end := range map[string]func(*function, ledger.HoldID){
		"a message": func(f *function, id ledger.HoldID) { f.batch(f.dueMessage(id)) },
		"a sweep":   func(f *function, _ ledger.HoldID) { f.mustTick() },
		"a try of a parked hold": func(f *function, id ledger.HoldID) {
			f.park(id, f.clock.Now())
			f.mustTick()
		},
	} {
		f := newWorld(t, 10).function()
		id := f.hold(4)
		f.pay(id)
		f.closeAttempt(id)
		f.clock.Set(f.read(id).ReleaseAt)
		end(f, id)
		if got := f.counters(); got != (ledger.Counters{Available: 10, Capacity: 10}) || f.read(id).Status != ledger.StatusExpired {
			t.Errorf("%s: %+v, the hold is %s", name, got, f.read(id).Status)
		}
	}
}

// Case C6: many due messages, a sweep and readers meet one hold. It ends once.
func TestCaseC6_MessagesAndSweepsAtOnceReleaseOnce(t *testing.T) {
	w := newWorld(t, 5)
	id := w.hold(2)
	w.clock.Advance(holdFor)
	var all sync.WaitGroup
	body := w.dueMessage(id)
	for i := range 20 {
		f := w.function()
		f.parallel = system.RealParallel{}
		all.Go(func() {
			if i%4 == 0 {
				f.mustTick()
				return
			}
			if failed := f.batch(body, body, body); failed != nil {
				t.Errorf("handed back %v", failed)
			}
		})
		all.Go(func() {
			if got := w.read(id).StatusAt(w.clock.Now()); got != ledger.StatusExpired {
				t.Errorf("a reader sees %s", got)
			}
		})
	}
	all.Wait()
	w.mustBeExpired()
	if n := w.endings(id); n != 1 {
		t.Errorf("the hold has ended %d times", n)
	}
}

// Case J4: the worker of a due message has a clock that is 2 s fast, and a confirm one that
// is 2 s slow. They meet at the limit, and the condition of the write decides.
func TestCaseJ4_AMessageAndAConfirmAtTheLimit(t *testing.T) {
	const skew = 2 * time.Second
	for round := range 200 {
		w := newWorld(t, 1)
		id := w.hold(1)
		limit := w.read(id).ReleaseAt
		body := w.dueMessage(id)
		w.clock.Set(limit.Add(skew - time.Second))
		f := w.function()
		confirm := commands.New(w.store, systemtest.NewClock(limit.Add(-skew)), systemtest.NewRandom(uint64(round)+1000))
		var confirmErr error
		var both sync.WaitGroup
		both.Go(func() {
			if failed := f.batch(body); failed != nil {
				t.Errorf("round %d: handed back %v", round, failed)
			}
		})
		both.Go(func() {
			_, confirmErr = confirm.ConfirmHold(context.Background(), commands.Request{Actor: "shop", RequestID: "request_b"}, id, "", nil, renderHold)
		})
		both.Wait()
		got := fmt.Sprintf("%s %s %+v released=%v", w.read(id).Status, ledger.CodeOf(confirmErr), w.counters(), f.reported()["due_released"])
		sold := fmt.Sprintf("CONFIRMED  %+v released=0", ledger.Counters{Confirmed: 1, Capacity: 1})
		back := fmt.Sprintf("EXPIRED hold_not_active %+v released=1", ledger.Counters{Available: 1, Capacity: 1})
		if got != sold && got != back || w.endings(id) != 1 {
			t.Errorf("round %d: %s with %d endings", round, got, w.endings(id))
		}
	}
}
