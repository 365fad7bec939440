package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/ledger/memory"
)

// TestPaidLifeAgreesWithTheModel gives random steps of payments to the ledger and to a
// dumb model of one slot, and compares every answer and, after every step, all holds,
// counters and the due index.
func TestPaidLifeAgreesWithTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &till{desk: newDesk(memory.New()), clock: noon.UnixMilli(), capacity: int64(rapid.IntRange(2, 12).Draw(t, "capacity"))}
		m.restock = rapid.Bool().Draw(t, "restock")
		err := m.putSlot("S", func(d *ledger.SlotDefinition) {
			d.Capacity, d.Terms.Shards = ledger.Units(m.capacity), rapid.IntRange(1, 3).Draw(t, "shards")
			d.Policy.HoldFor, d.Policy.GraceFor = tillLife*time.Millisecond, tillGrace*time.Millisecond
			d.Policy.Payment.UnknownFor, d.Policy.NoRestock = tillUnknown*time.Millisecond, !m.restock
		})
		if err != nil {
			t.Fatal(err)
		}
		// Nearly every step needs a hold. A run that draws only steps without one would end in
		// "can't find a valid action", which is no finding.
		m.buy(t, 1)
		actions := map[string]func(*rapid.T){
			"create": m.create, "start": m.start, "close": m.close, "confirmPaid": m.confirmPaid, "releaseUnpaid": m.releaseUnpaid,
			"expireUnknown": m.expireUnknown, "cancel": m.cancelOne, "expire": m.expireOne, "confirm": m.confirmOne,
			"return": m.giveBack, "reacquire": m.reacquire, "archive": m.archiveOne, "move": m.move, "": m.check,
		}
		for range stretches {
			t.Repeat(actions)
		}
	})
}

// The times of the model's slot, in milliseconds.
const (
	tillLife    = 5_000
	tillGrace   = 2_000
	tillUnknown = 3_000
)

// till is the ledger and a model of it: the holds of slot S, as plain numbers. What is
// left is counted anew each time.
type till struct {
	*desk
	clock, capacity int64
	restock         bool
	holds           []*tillHold
}

type tillHold struct {
	id                       ledger.HoldID
	status                   string
	units, returned          int64
	expires, release         int64
	attempt                  ledger.AttemptNumber
	reserved, reborn, isBorn bool
	archived                 bool
}

// notActive is the answer to a step that an ended hold has not.
func (h *tillHold) notActive() string {
	if h.archived {
		return "hold_archived"
	}
	return "hold_not_active"
}

func (m *till) free() int64 {
	free := m.capacity
	for _, h := range m.holds {
		switch {
		case h.status == "HELD":
			free -= h.units
		case h.status == "CONFIRMED" && m.restock, h.status == "RETURNED" && m.restock:
			free -= h.units - h.returned
		case h.status == "CONFIRMED", h.status == "RETURNED":
			free -= h.units
		}
	}
	return free
}

// one draws a hold of the model.
func (m *till) one(t *rapid.T) *tillHold {
	return rapid.SampledFrom(m.holds).Draw(t, "hold")
}

func (m *till) create(t *rapid.T) { m.buy(t, int64(rapid.IntRange(1, 4).Draw(t, "units"))) }

// buy asks for a hold of so many units.
func (m *till) buy(t *rapid.T, units int64) {
	id := holdID(fmt.Sprint(len(m.holds)))
	want := ""
	if units > m.free() {
		want = "insufficient_stock"
	}
	_, err := m.createHold(id, request{owner: "U-1"}, []ledger.Quote{{Slot: "S", Quantity: ledger.Units(units), UnitAmount: 500}})
	m.answered(t, "create", err, want)
	if want == "" {
		m.holds = append(m.holds, &tillHold{id: id, status: "HELD", units: units, expires: m.clock + tillLife, release: m.clock + tillLife})
	}
}

func (m *till) answered(t *rapid.T, what string, err error, want string) {
	t.Helper()
	if got := string(ledger.CodeOf(err)); got != want {
		t.Fatalf("%s at %d: answer is %v, the model says %q", what, m.clock, err, want)
	}
}

// take carries out a step of a hold, whose answer must be want.
func (m *till) take(t *rapid.T, what string, h *tillHold, want string, build func(ledger.Hold, ledger.Origin) (ledger.Change, error)) {
	t.Helper()
	hold, err := m.store.Hold(context.Background(), h.id)
	fatal(t, err)
	change, err := build(hold, m.origin(ledger.CommandDriveReservation, ledger.ActorSystem))
	if err == nil && !change.Empty() {
		err = m.store.Commit(context.Background(), change)
	}
	m.answered(t, what, err, want)
}

func (m *till) start(t *rapid.T) {
	h := m.one(t)
	next := h.attempt + 1
	want := ""
	switch {
	case h.status != "HELD" || m.clock >= h.expires:
		want = h.notActive()
	case h.attempt != 0:
		want = "payment_in_progress"
	}
	m.take(t, "start", h, want, func(hold ledger.Hold, o ledger.Origin) (ledger.Change, error) {
		return ledger.StartAttempt(hold, theReservation, next, o, m.now)
	})
	if want == "" {
		h.attempt, h.reserved, h.release = next, true, h.expires+tillGrace
	}
}

func (m *till) close(t *rapid.T) {
	h := m.one(t)
	if h.attempt == 0 {
		t.Skip("no attempt is open")
	}
	m.take(t, "close", h, "", func(hold ledger.Hold, o ledger.Origin) (ledger.Change, error) {
		return ledger.CloseAttempt(hold, o, m.now), nil
	})
	h.attempt = 0
}

func (h *tillHold) end(want, status string) {
	if want == "" {
		h.status, h.attempt = status, 0
	}
}

func (m *till) confirmPaid(t *rapid.T) {
	h := m.one(t)
	if !h.reserved {
		t.Skip("nobody pays for it")
	}
	want := ""
	if h.status != "HELD" || m.clock >= h.release {
		want = h.notActive()
	}
	m.take(t, "confirmPaid", h, want, func(hold ledger.Hold, o ledger.Origin) (ledger.Change, error) {
		return ledger.ConfirmPaid(hold, o, m.now)
	})
	h.end(want, "CONFIRMED")
}

func (m *till) releaseUnpaid(t *rapid.T) {
	h := m.one(t)
	want, status := "", "CANCELED"
	if h.status != "HELD" {
		want = h.notActive()
	}
	if m.clock >= h.release {
		status = "EXPIRED"
	}
	m.take(t, "releaseUnpaid", h, want, func(hold ledger.Hold, o ledger.Origin) (ledger.Change, error) {
		return ledger.ReleaseUnpaid(hold, o, m.now)
	})
	h.end(want, status)
}

func (m *till) expireUnknown(t *rapid.T) {
	h := m.one(t)
	want := ""
	switch {
	case h.status != "HELD":
		want = h.notActive()
	case m.clock < h.release+tillUnknown:
		want = "hold_not_due"
	}
	m.take(t, "expireUnknown", h, want, func(hold ledger.Hold, o ledger.Origin) (ledger.Change, error) {
		return ledger.ExpireUnknown(hold, o, m.now)
	})
	h.end(want, "EXPIRED")
}

func (m *till) cancelOne(t *rapid.T) {
	h := m.one(t)
	want := ""
	switch {
	case h.status != "HELD":
		want = h.notActive()
	case h.attempt != 0:
		want = "payment_in_progress"
	}
	_, err := m.cancel(h.id, request{})
	m.answered(t, "cancel", err, want)
	h.end(want, "CANCELED")
}

func (m *till) expireOne(t *rapid.T) {
	h := m.one(t)
	want := ""
	switch {
	case h.status != "HELD":
		want = "ended"
	case m.clock < h.release:
		want = "hold_not_due"
	case h.attempt != 0:
		want = "payment_in_progress"
	}
	_, err := m.expire(h.id)
	if want == "ended" {
		m.answered(t, "expire", err, "")
		return
	}
	m.answered(t, "expire", err, want)
	h.end(want, "EXPIRED")
}

// confirmOne is the confirm of a shop that charges on its own.
func (m *till) confirmOne(t *rapid.T) {
	h := m.one(t)
	want := ""
	switch {
	case h.status == "CONFIRMED":
		want = "sold"
	case h.status != "HELD" || m.clock >= h.release:
		want = h.notActive()
	case h.reserved:
		want = "payment_in_progress"
	}
	_, err := m.confirm(h.id, "", request{})
	if want == "sold" {
		m.answered(t, "confirm", err, "")
		return
	}
	m.answered(t, "confirm", err, want)
	h.end(want, "CONFIRMED")
}

func (m *till) giveBack(t *rapid.T) {
	h := m.one(t)
	units := int64(rapid.IntRange(0, 4).Draw(t, "units"))
	want := ""
	switch {
	case h.status != "CONFIRMED" || h.archived:
		want = h.notActive()
	case units < 1:
		want = "invalid_request"
	case units > h.units-h.returned:
		want = "return_over_sale"
	}
	m.take(t, "return", h, want, func(hold ledger.Hold, o ledger.Origin) (ledger.Change, error) {
		return ledger.Return(hold, []ledger.ReturnLine{{Slot: "S", Quantity: ledger.Units(units)}}, o, m.now)
	})
	if want == "" {
		if h.returned += units; h.returned == h.units {
			h.status = "RETURNED"
		}
	}
}

// reacquire sells a hold that is over, once. What is short is not tried: that is for the
// caller, who has read the stock.
func (m *till) reacquire(t *rapid.T) {
	h := m.one(t)
	want := ""
	switch {
	case h.status == "CONFIRMED" || h.status == "RETURNED":
		want = h.notActive()
	case h.status == "HELD" && m.clock < h.release:
		want = "hold_not_due"
	case h.status != "HELD" && h.units > m.free():
		t.Skip("the units are gone")
	}
	hold, err := m.store.Hold(context.Background(), h.id)
	fatal(t, err)
	slots, err := m.store.Slots(context.Background(), []ledger.SlotID{"S"})
	fatal(t, err)
	stock, err := m.store.StockAtOneMoment(context.Background(), slots[0])
	fatal(t, err)
	from, _ := ledger.Allocate(stock, ledger.Units(h.units), 0)
	change, err := ledger.Reacquire(hold, map[ledger.SlotID][]ledger.Allocation{"S": from}, m.origin(ledger.CommandDriveReservation, ledger.ActorSystem), m.now)
	if want != "" {
		m.answered(t, "reacquire", err, want)
		return
	}
	fatal(t, err)
	err = m.store.Commit(context.Background(), change)
	if h.reborn {
		if refused := (*ledger.Refused)(nil); !errors.As(err, &refused) {
			t.Fatalf("P3: a late payment made a second hold: %v", err)
		}
		return
	}
	fatal(t, err)
	if h.status == "HELD" {
		h.end("", "EXPIRED")
	}
	h.reborn = true
	m.holds = append(m.holds, &tillHold{
		id: ledger.ReacquiredID(hold), status: "CONFIRMED", units: h.units, expires: h.expires, release: h.release, reserved: h.reserved, isBorn: true,
	})
}

// archiveOne archives an ended hold once. One that was paid needs its reservation, which
// is no part of this model.
func (m *till) archiveOne(t *rapid.T) {
	h := m.one(t)
	want := ""
	switch {
	case h.archived:
		want = "hold_archived"
	case h.status == "HELD" || h.reserved:
		want = "not_archivable"
	}
	events, err := m.store.HoldEvents(context.Background(), h.id)
	fatal(t, err)
	m.take(t, "archive", h, want, func(hold ledger.Hold, _ ledger.Origin) (ledger.Change, error) {
		return ledger.ArchiveHold(hold, nil, events, "batch", m.now.Add(time.Hour).Truncate(time.Second), m.now)
	})
	h.archived = h.archived || want == ""
}

// move sets the clock on, often to just around a time that matters to a hold.
func (m *till) move(t *rapid.T) {
	to := m.clock + rapid.Int64Range(0, 2_000).Draw(t, "ms")
	if len(m.holds) > 0 && rapid.Bool().Draw(t, "to a boundary") {
		h := rapid.SampledFrom(m.holds).Draw(t, "hold")
		boundary := rapid.SampledFrom([]int64{h.expires, h.release, h.release + tillUnknown}).Draw(t, "boundary")
		to = boundary + rapid.Int64Range(-1, 1).Draw(t, "around")
	}
	m.clock = max(to, m.clock)
	m.now = time.UnixMilli(m.clock).UTC()
}

func (m *till) check(t *rapid.T) {
	var ids, due []ledger.HoldID
	var held, sold int64
	lost := int64(0)
	for _, want := range m.holds {
		ids = append(ids, want.id)
		got, err := m.store.Hold(context.Background(), want.id)
		fatal(t, err)
		returned := int64(got.Lines[0].ReturnedQuantity())
		if string(got.Status) != want.status || got.AttemptOpen != want.attempt || returned != want.returned || got.ReleaseAt.UnixMilli() != want.release || (got.Reacquires != "") != want.isBorn || (got.ArchivedIn != "") != want.archived {
			t.Fatalf("P3: hold is %+v, the model has %+v", got, *want)
		}
		m.checkShown(t, got, *want)
		over := want.release
		if want.attempt != 0 {
			over += tillUnknown
		}
		switch want.status {
		case "HELD":
			held += want.units
			if over <= m.clock {
				due = append(due, want.id)
			}
		case "CONFIRMED", "RETURNED":
			sold += want.units - want.returned
		}
		if !m.restock {
			lost += want.returned
		}
	}
	m.checkStock(t, held, sold, lost)
	slices.Sort(due)
	if got := (&machine{desk: m.desk}).due(t); !slices.Equal(got, due) {
		t.Fatalf("P9: due are %v, the model says %v", got, due)
	}
	ledgertest.CheckBooks(t, m.store, []ledger.SlotID{"S"}, ids)
}

// checkShown compares what a reader is shown of a HELD hold.
func (m *till) checkShown(t *rapid.T, got ledger.Hold, want tillHold) {
	t.Helper()
	shown := want.status
	if want.status == "HELD" && m.clock >= want.release {
		shown = "EXPIRED"
		if want.attempt != 0 {
			shown = "PAYMENT_CHECKING"
		}
	}
	if string(got.StatusAt(m.now)) != shown {
		t.Fatalf("P4: at %d the hold %+v reads as %s, the model says %s", m.clock, want, got.StatusAt(m.now), shown)
	}
}

func (m *till) checkStock(t *rapid.T, held, sold, lost int64) {
	t.Helper()
	slots, err := m.store.Slots(context.Background(), []ledger.SlotID{"S"})
	fatal(t, err)
	stock, err := m.store.StockAtOneMoment(context.Background(), slots[0])
	fatal(t, err)
	var sum ledger.Counters
	for _, s := range stock {
		sum = sum.Plus(s.Counters)
	}
	want := ledger.Counters{Available: ledger.Units(m.free()), Held: ledger.Units(held), Confirmed: ledger.Units(sold), Capacity: ledger.Units(m.capacity - lost)}
	if sum != want {
		t.Fatalf("P2: the slot has %+v, the model counts %+v", sum, want)
	}
}
