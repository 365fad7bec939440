package expiry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/topology"
)

// endsWithin is the published bound of promise P9: two ticks of the schedule, because one
// of them may be lost.
const endsWithin = 2 * time.Minute

// P9: every hold ends, at most two minutes after it is due. For an hour holds are made at
// odd moments, and every other tick of the schedule goes wrong in a way of its own.
func TestP9_EveryHoldEndsWithinTwoMinutes(t *testing.T) {
	expiryFunction, _ := topology.FunctionNamed(topology.FunctionExpiry)
	every := expiryFunction.Schedule.Every
	if endsWithin != 2*every {
		t.Fatalf("the schedule ticks every %s, so the bound of %s does not hold", every, endsWithin)
	}
	const holdsMadeFor, between = time.Hour, 7 * time.Second
	w := newWorld(t, 1_000)
	next := start
	// No tick falls on the moment at which a hold is due, so each hold waits for its tick.
	for tick := start.Add(every / 3); tick.Before(start.Add(holdsMadeFor + holdFor + 3*every)); tick = tick.Add(every) {
		for ; next.Before(tick) && next.Before(start.Add(holdsMadeFor)); next = next.Add(between) {
			w.clock.Set(next)
			w.hold(1)
		}
		w.clock.Set(tick)
		for _, id := range w.ids {
			if hold := w.read(id); hold.Status == ledger.StatusHeld && tick.After(hold.ReleaseAt.Add(endsWithin)) {
				t.Fatalf("at %s hold %s is HELD, due since %s", tick, id, hold.ReleaseAt)
			}
		}
		if n := int(tick.Sub(start) / every); n%2 == 1 {
			w.badTick(n)
		} else {
			mustRun(t, w.sweep(nil, nil, 100))
		}
	}
	if len(w.ids) != int(holdsMadeFor/between)+1 {
		t.Errorf("%d holds were made", len(w.ids))
	}
	for _, id := range w.ids {
		if hold := w.read(id); hold.EndedAt.Sub(hold.ReleaseAt) > endsWithin {
			t.Errorf("hold %s ended %s after it was due", id, hold.EndedAt.Sub(hold.ReleaseAt))
		}
	}
	w.mustBeExpired()
}

// badTick is a tick that releases nothing: it never came, the index could not be read, or
// no write went through.
func (w *world) badTick(n int) {
	down := errors.New("the table is down")
	switch n % 3 {
	case 1:
		blind := storeFunc{w.store, func(int, time.Time, ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
			return nil, "", down
		}}
		if report, err := w.sweep(blind, nil, 100).Run(context.Background(), "request_blind"); err == nil || report.LagKnown {
			w.tb.Errorf("a blind sweep says %+v", report)
		}
	case 2:
		stuck := &releaserFunc{do: func(context.Context, ledger.HoldID) (bool, error) { return false, down }}
		report, _ := w.sweep(nil, stuck, 100).Run(context.Background(), "request_stuck")
		if report.Released != 0 {
			w.tb.Errorf("a stuck sweep says %+v", report)
		}
	}
}

// Case B5: a hold lasted up to twice its promised time. It is over at its release, to
// the millisecond, and its unit is free after the next sweep.
func TestCaseB5_TheNextSweepFreesTheUnit(t *testing.T) {
	w := newWorld(t, 1)
	id := w.hold(1)
	w.clock.Set(start.Add(15*time.Minute + time.Millisecond))
	_, err := w.commands.ConfirmHold(context.Background(), commands.Request{Actor: "shop", RequestID: "request_c"}, id, "", nil, renderHold)
	if ledger.CodeOf(err) != ledger.CodeHoldNotActive {
		t.Errorf("the confirm says %v", err)
	}
	if got := w.read(id).Status; got != ledger.StatusHeld {
		t.Errorf("the confirm made the hold %s", got)
	}
	w.clock.Set(start.Add(17 * time.Minute))
	if report := mustRun(t, w.sweep(nil, nil, 100)); report.Released != 1 {
		t.Errorf("report = %+v", report)
	}
	w.mustBeExpired()
	made := ledger.HoldID("")
	_, err = w.commands.CreateHold(context.Background(), commands.Request{Actor: "owner:U-2", Owner: "U-2", RequestID: "request_2"},
		commands.HoldWish{Quotes: []ledger.Quote{{Slot: slotID, Quantity: 1, UnitAmount: 5000}}},
		func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
			made = h.ID
			return ledger.Response{Status: 201}, nil
		})
	if err != nil || made == id {
		t.Errorf("another owner gets %s, %v", made, err)
	}
	if got, want := w.counters(), (ledger.Counters{Held: 1, Capacity: 1}); got != want {
		t.Errorf("counters %+v, want %+v", got, want)
	}
}
