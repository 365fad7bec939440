package saga_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/saga"
)

// policy is the part of a hold's terms on which a decision may rest.
type policy struct {
	onDecline      ledger.OnDecline
	latePayment    ledger.LatePayment
	lateByProvider bool
}

// policies are all of them.
func policies() []policy {
	var all []policy
	for _, decline := range []ledger.OnDecline{ledger.OnDeclineRelease, ledger.OnDeclineKeep} {
		for _, late := range []ledger.LatePayment{ledger.LatePaymentReacquire, ledger.LatePaymentRefund, ledger.LatePaymentReview} {
			all = append(all, policy{decline, late, false}, policy{decline, late, true})
		}
	}
	return all
}

// Which policies a line of the table is for.
func anyPolicy(policy) bool       { return true }
func release(p policy) bool       { return p.onDecline == ledger.OnDeclineRelease }
func keep(p policy) bool          { return p.onDecline == ledger.OnDeclineKeep }
func lateRefund(p policy) bool    { return p.latePayment == ledger.LatePaymentRefund }
func lateReview(p policy) bool    { return p.latePayment == ledger.LatePaymentReview }
func lateReacquire(p policy) bool { return p.latePayment == ledger.LatePaymentReacquire }

// boughtInTime is late money that buys, if the provider's time is in time.
func boughtInTime(p policy) bool { return lateReacquire(p) || lateRefund(p) && p.lateByProvider }
func refundedLate(p policy) bool { return lateRefund(p) && !p.lateByProvider }

// cellCase is one line of the table: a situation, and exactly what is decided.
type cellCase struct {
	stage     string
	only      func(policy) bool
	situation func(*cellDesk)
	want      string
}

// cellEntry is a cell: its cases, or why it can't occur.
type cellEntry struct {
	cell       saga.Cell
	impossible string
	cases      []cellCase
}

// cellDesk sets a situation up: a hold of one unit at 10.00, one attempt, one minute
// after its beginning.
type cellDesk struct{ s saga.Situation }

const (
	cellSlot    ledger.SlotID    = "A"
	cellPayment ledger.PaymentID = "pi-1"
)

func newCellDesk(t *testing.T, p policy) *cellDesk {
	t.Helper()
	must := func(c ledger.Change, err error) ledger.Change {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	origin := ledger.Origin{Actor: "owner", EventID: ledger.NewEventID([16]byte{1})}
	slot := ledger.Slot{
		ID: cellSlot, ResourceType: "show", ResourceID: "hamlet", Policy: ledger.DefaultPolicy(),
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 1000, Currency: "USD"}, Shards: 1},
	}
	slot.Policy.Payment = ledger.PaymentTerms{
		OnDecline: p.onDecline, LatePayment: p.latePayment, LateByProvider: p.lateByProvider,
		UnknownFor: ledger.UnknownForDefault, Delivery: ledger.DeliveryNone,
	}
	hold := must(ledger.NewHold(ledger.HoldPlan{
		ID: ledger.NewHoldID([16]byte{1}), Owner: "U-1", Slots: map[ledger.SlotID]ledger.Slot{cellSlot: slot},
		Quotes:      []ledger.Quote{{Slot: cellSlot, Quantity: 1, UnitAmount: 1000}},
		Allocations: map[ledger.SlotID][]ledger.Allocation{cellSlot: {{Shard: 0, Quantity: 1}}},
	}, origin, tenOClock)).Holds[0].Next
	begun := must(ledger.StartReservation(ledger.NewReservationID([16]byte{1}), hold, origin, tenOClock))
	hold, reservation := begun.Holds[0].Next, begun.Reservations[0].Next
	reservation = ledger.PaymentCreated(reservation, 1, cellPayment, origin, tenOClock).Reservations[0].Next
	return &cellDesk{saga.Situation{
		Reservation: reservation, Hold: hold, Sold: hold, Sightings: map[ledger.AttemptNumber]saga.Sighting{},
		Origin: ledger.Origin{Actor: ledger.ActorSystem, EventID: ledger.NewEventID([16]byte{2})}, Now: tenOClock.Add(time.Minute),
	}}
}

// over puts the time to the hold's release time.
func (d *cellDesk) over() { d.s.Now = d.s.Hold.ReleaseAt }

// expired is a hold that was given up for want of an answer, with so many units free.
func (d *cellDesk) expired(status ledger.ReservationStatus, available ledger.Units) {
	d.s.Now = d.s.Hold.ReleaseAt.Add(ledger.UnknownForDefault + time.Minute)
	d.s.Hold.Status, d.s.Hold.AttemptOpen, d.s.Hold.EndedAt = ledger.StatusExpired, 0, d.s.Now.Add(-time.Minute)
	d.s.Hold.Version++
	d.s.Reservation.Status = status
	if status == ledger.ReservationCompensating {
		d.s.Reservation.Reason = ledger.ReasonPaymentUnknown
	}
	d.s.Stock = []ledger.Stock{{
		Slot: cellSlot, Counters: ledger.Counters{Available: available, Confirmed: 1 - available, Capacity: 1},
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 1000, Currency: "USD"}, Shards: 1},
	}}
}

// sold is a hold that was sold to its reservation, one minute ago.
func (d *cellDesk) sold(status ledger.ReservationStatus) {
	d.s.Hold.Status, d.s.Hold.AttemptOpen, d.s.Hold.EndedAt = ledger.StatusConfirmed, 0, tenOClock
	d.s.Hold.Version++
	d.s.Sold = d.s.Hold
	d.s.Reservation.Status, d.s.Reservation.SoldHold = status, d.s.Hold.ID
	d.s.Reservation.Attempts[0].State = ledger.AttemptAuthorized
}

// unwanted is a reservation whose money is to go back.
func (d *cellDesk) unwanted(reason ledger.Reason) {
	d.s.Reservation.Status, d.s.Reservation.Reason = ledger.ReservationCompensating, reason
	for i := range d.s.Reservation.Attempts {
		d.s.Reservation.Attempts[i].Unwanted = true
	}
}

// second is another attempt after the first one, which was voided.
func (d *cellDesk) second() {
	d.s.Reservation.Attempts[0].State = ledger.AttemptVoided
	d.s.Reservation.Attempts = append(d.s.Reservation.Attempts, ledger.Attempt{Number: 2, Payment: "pi-2", State: ledger.AttemptOpen, OpenedAt: tenOClock})
	if d.s.Hold.AttemptOpen != 0 {
		d.s.Hold.AttemptOpen = 2
	}
}

// saw is what the provider says of an attempt's payment.
func (d *cellDesk) saw(n ledger.AttemptNumber, status payment.Status, change ...func(*payment.Payment)) {
	p := payment.Payment{
		ID: ledger.PaymentID(fmt.Sprintf("pi-%d", n)), Status: status, Amount: ledger.Money{AmountMinor: 1000, Currency: "USD"},
		Reservation: d.s.Reservation.ID, Attempt: n,
	}
	switch status {
	case payment.StatusAuthorized:
		p.AuthorizedMinor, p.AuthorizedAt = 1000, d.s.Hold.ReleaseAt
	case payment.StatusCaptured:
		p.AuthorizedMinor, p.CapturedMinor, p.AuthorizedAt = 1000, 1000, d.s.Hold.ReleaseAt
	default:
	}
	for _, c := range change {
		c(&p)
	}
	d.s.Sightings[n] = saga.Sighting{Seen: true, Payment: p}
}

// inTime is an authorization of before the release time, by the provider's clock.
func inTime(p *payment.Payment)   { p.AuthorizedAt = tenOClock.Add(time.Minute) }
func refunded(p *payment.Payment) { p.RefundedMinor = p.CapturedMinor }

func (d *cellDesk) told(n ledger.AttemptNumber) {
	d.s.Notice = &payment.Notice{
		ID: "evt-1", Type: "t", Payment: ledger.PaymentID(fmt.Sprintf("pi-%d", n)), Reservation: d.s.Reservation.ID, Attempt: n,
		OccurredAt: tenOClock, AmountMinor: 1000, Currency: "USD", Status: payment.StatusVoided,
	}
}

// text is all of a decision that matters.
func (d *cellDesk) text(decision saga.Decision) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	for _, w := range decision.Change.Reservations {
		add("%s → %s %q", w.From, w.Next.Status, w.Next.Reason)
		for _, a := range w.Next.Attempts {
			if before := d.s.Reservation.Attempt(a.Number); before.State != a.State || before.Unwanted != a.Unwanted {
				add("attempt %d %s unwanted %t", a.Number, a.State, a.Unwanted)
			}
		}
		for i, r := range w.Next.Refunds {
			if i >= len(d.s.Reservation.Refunds) || d.s.Reservation.Refunds[i].State != r.State {
				add("refund %d of attempt %d: %d %s %s", r.Number, r.Attempt, r.AmountMinor, r.Reason, r.State)
			}
		}
	}
	for _, w := range decision.Change.Holds {
		switch before := w.Status(); {
		case w.Replaces == 0:
			add("new hold %s in place of %t", w.Next.Status, w.Next.Reacquires == d.s.Hold.ID)
		case before == w.Next.Status:
			add("hold %s, open attempt %d → %d", before, d.s.Hold.AttemptOpen, w.Next.AttemptOpen)
		default:
			add("hold %s → %s", before, w.Next.Status)
		}
	}
	for _, w := range decision.Change.Stock {
		add("stock a%+d h%+d c%+d", w.Delta.Available, w.Delta.Held, w.Delta.Confirmed)
	}
	for _, u := range decision.Change.Uniqueness {
		add("claims %s %s", u.Kind, u.Value)
	}
	if e := decision.Effect; e.Kind != "" {
		add("do %s of attempt %d, %d", e.Kind, e.Attempt.Number, e.AmountMinor)
	}
	if decision.Retry {
		add("ask again, answered %t", decision.Answered)
	}
	if !decision.LookAt.IsZero() {
		add("look after %s", decision.LookAt.Sub(d.s.Now))
	}
	return strings.Join(parts, "; ")
}

// Every cell of the table in DESIGN.md is decided as it says, under every policy.
func TestEveryCellIsDecidedAsTheTableSays(t *testing.T) {
	for _, entry := range cells() {
		if entry.impossible != "" {
			continue
		}
		for _, c := range entry.cases {
			for _, p := range policies() {
				if !c.only(p) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s/%+v", entry.cell.Row, entry.cell.Column, c.stage, p), func(t *testing.T) {
					desk := newCellDesk(t, p)
					c.situation(desk)
					before := desk.clone()
					decision := saga.Decide(desk.s)
					if got := desk.text(decision); got != c.want {
						t.Errorf("decided\n%s\nwant\n%s", got, c.want)
					}
					if decision.Cell != entry.cell {
						t.Errorf("it is told as cell %+v", decision.Cell)
					}
					if !decision.Change.Empty() {
						if err := decision.Change.Validate(); err != nil {
							t.Error(err)
						}
					}
					if again := saga.Decide(desk.s); !reflect.DeepEqual(again, decision) {
						t.Errorf("decided a second time it is\n%+v\nand was\n%+v", again, decision)
					}
					if !reflect.DeepEqual(before, desk.s) {
						t.Errorf("deciding has changed the situation from\n%+v\nto\n%+v", before, desk.s)
					}
				})
			}
		}
	}
}

func (d *cellDesk) clone() saga.Situation {
	s := d.s
	s.Reservation = s.Reservation.Clone()
	s.Sightings, s.Stock = maps.Clone(s.Sightings), slices.Clone(s.Stock)
	s.Hold.Lines, s.Sold.Lines = slices.Clone(s.Hold.Lines), slices.Clone(s.Sold.Lines)
	return s
}

// No cell is forgotten: each is here once, with cases for every policy or with the reason
// why it can't occur.
func TestEveryCellHasCases(t *testing.T) {
	if cells := len(saga.Rows()) * len(saga.Columns()); cells != 30 {
		t.Errorf("the table has %d cells, and DESIGN.md tells of 30", cells)
	}
	there := map[saga.Cell]int{}
	for _, entry := range cells() {
		there[entry.cell]++
		if (entry.impossible == "") == (len(entry.cases) == 0) {
			t.Errorf("%+v has %d cases and the reason %q", entry.cell, len(entry.cases), entry.impossible)
		}
		decided := map[string]int{}
		for _, c := range entry.cases {
			for _, p := range policies() {
				if c.only(p) {
					decided[fmt.Sprintf("%s under %+v", c.stage, p)]++
				}
			}
		}
		for _, c := range entry.cases {
			for _, p := range policies() {
				if key := fmt.Sprintf("%s under %+v", c.stage, p); decided[key] != 1 {
					t.Errorf("%+v: %s is decided %d times", entry.cell, key, decided[key])
				}
			}
		}
	}
	for _, row := range saga.Rows() {
		for _, column := range saga.Columns() {
			cell := saga.Cell{Row: row, Column: column}
			if there[cell] != 1 {
				t.Errorf("%+v is in the table %d times", cell, there[cell])
			}
			delete(there, cell)
		}
	}
	for cell := range there {
		t.Errorf("%+v is no cell of the table", cell)
	}
}

func cells() []cellEntry {
	return withApproved(slices.Concat(cellsOfMoney(), cellsOfLateNews(), cellsWithoutMoney(), cellsWithoutAnswer(), cellsOfOtherAttempts()))
}

// withApproved adds what is decided of late money that a person has let count: no policy has
// a say any more, and the provider is heard before anything is sold for it.
func withApproved(all []cellEntry) []cellEntry {
	approved := func(when func(*cellDesk), saw func(*cellDesk)) func(*cellDesk) {
		return func(d *cellDesk) {
			when(d)
			d.s.Reservation.Status, d.s.Reservation.ApprovedAt = ledger.ReservationAuthorized, d.s.Now.Add(-time.Minute)
			d.s.Reservation.Attempts[0].State = ledger.AttemptAuthorized
			saw(d)
		}
	}
	over, free := (*cellDesk).over, func(d *cellDesk) { d.expired(ledger.ReservationAuthorized, 1) }
	soldOut := func(d *cellDesk) { d.expired(ledger.ReservationAuthorized, 0) }
	waited := func(d *cellDesk) {
		d.over()
		d.s.Now = d.s.Now.Add(ledger.UnknownForDefault)
	}
	saw := func(status payment.Status, change ...func(*payment.Payment)) func(*cellDesk) {
		return func(d *cellDesk) { d.saw(1, status, change...) }
	}
	silent := func(s saga.Sighting) func(*cellDesk) { return func(d *cellDesk) { d.s.Sightings[1] = s } }
	const lost = `AUTHORIZED → COMPENSATING "authorization_lost"; attempt 1 authorized unwanted true`
	cases := map[saga.Cell][]cellCase{
		{Row: saga.RowAuthorized, Column: saga.ColumnStockThere}: {
			{"approved, still held", anyPolicy, approved(over, saw(payment.StatusAuthorized)),
				`AUTHORIZED → CONFIRMED ""; hold HELD → EXPIRED; new hold CONFIRMED in place of true; stock a+0 h-1 c+1`},
			{"approved, free again", anyPolicy, approved(free, saw(payment.StatusCaptured)),
				`AUTHORIZED → CONFIRMED ""; new hold CONFIRMED in place of true; stock a-1 h+0 c+1`},
			{"approved, given back since", anyPolicy, approved(free, saw(payment.StatusCaptured, refunded)), lost},
		},
		{Row: saga.RowLateNews, Column: saga.ColumnStockThere}: {
			{"approved, free again", anyPolicy, approved(free, saw(payment.StatusAuthorized, inTime)),
				`AUTHORIZED → CONFIRMED ""; new hold CONFIRMED in place of true; stock a-1 h+0 c+1`},
		},
		{Row: saga.RowAuthorized, Column: saga.ColumnSoldOut}: {
			{"approved", anyPolicy, approved(soldOut, saw(payment.StatusAuthorized)),
				`AUTHORIZED → COMPENSATING "sold_out"; attempt 1 authorized unwanted true`},
		},
		{Row: saga.RowMismatch, Column: saga.ColumnStockThere}: {
			{"approved, and less since", anyPolicy, approved(free, saw(payment.StatusCaptured, func(p *payment.Payment) { p.CapturedMinor = 999 })),
				`AUTHORIZED → REVIEW "payment_mismatch"; attempt 1 captured unwanted true`},
		},
		{Row: saga.RowVoided, Column: saga.ColumnStockThere}:   {{"approved, voided since", anyPolicy, approved(over, saw(payment.StatusVoided)), lost}},
		{Row: saga.RowDeclined, Column: saga.ColumnStockThere}: {{"approved, declined since", anyPolicy, approved(over, saw(payment.StatusDeclined)), lost}},
		{Row: saga.RowUnreachable, Column: saga.ColumnStockThere}: {
			{"approved, unreachable", anyPolicy, approved(over, silent(saga.Sighting{Unreachable: true})), `ask again, answered false`},
			{"approved, not found", anyPolicy, approved(free, silent(saga.Sighting{NotFound: true})), `ask again, answered true`},
			{"approved, unreachable for unknown_max", anyPolicy, approved(waited, silent(saga.Sighting{Unreachable: true})),
				`AUTHORIZED → COMPENSATING "payment_unknown"; hold HELD → EXPIRED; stock a+1 h-1 c+0`},
		},
	}
	for i := range all {
		all[i].cases = append(all[i].cases, cases[all[i].cell]...)
	}
	return all
}

func cellsOfMoney() []cellEntry {
	return []cellEntry{
		{cell: saga.Cell{Row: saga.RowAuthorized, Column: saga.ColumnLive}, cases: []cellCase{
			{"first news, authorized", anyPolicy, func(d *cellDesk) { d.saw(1, payment.StatusAuthorized, inTime) },
				`PAYMENT_PENDING → AUTHORIZED ""; attempt 1 authorized unwanted false`},
			{"first news, captured", anyPolicy, func(d *cellDesk) { d.saw(1, payment.StatusCaptured, inTime) },
				`PAYMENT_PENDING → AUTHORIZED ""; attempt 1 captured unwanted false`},
			{"the millisecond before release", anyPolicy, func(d *cellDesk) {
				d.over()
				d.s.Now = d.s.Now.Add(-time.Millisecond)
				d.s.Reservation.Status = ledger.ReservationAuthorized
				d.saw(1, payment.StatusAuthorized, inTime)
			}, `AUTHORIZED → CONFIRMED ""; hold HELD → CONFIRMED; stock a+0 h-1 c+1`},
			{"given up by its owner", anyPolicy, func(d *cellDesk) {
				d.unwanted(ledger.ReasonOwnerCanceled)
				d.saw(1, payment.StatusAuthorized, inTime)
			}, `do void of attempt 1, 0`},
			{"given up by its owner, captured", anyPolicy, func(d *cellDesk) {
				d.unwanted(ledger.ReasonOwnerCanceled)
				d.saw(1, payment.StatusCaptured, inTime)
			}, `COMPENSATING → COMPENSATING "owner_canceled"; attempt 1 captured unwanted true; refund 1 of attempt 1: 1000 owner_canceled owed`},
		}},
		{cell: saga.Cell{Row: saga.RowAuthorized, Column: saga.ColumnStockThere}, cases: slices.Concat([]cellCase{
			{"first news, after release", anyPolicy, func(d *cellDesk) {
				d.over()
				d.saw(1, payment.StatusAuthorized)
			}, `PAYMENT_PENDING → AUTHORIZED ""; attempt 1 authorized unwanted false`},
			{"first news, after it was given up", anyPolicy, func(d *cellDesk) {
				d.expired(ledger.ReservationCompensating, 1)
				d.saw(1, payment.StatusAuthorized)
			}, `COMPENSATING → AUTHORIZED ""; attempt 1 authorized unwanted false`},
		}, lateCases("still held", func(d *cellDesk) {
			d.over()
			d.s.Reservation.Status = ledger.ReservationAuthorized
			d.saw(1, payment.StatusAuthorized)
		}, lateReacquire, lateRefund, `AUTHORIZED → CONFIRMED ""; hold HELD → EXPIRED; new hold CONFIRMED in place of true; stock a+0 h-1 c+1`, ""),
			lateCases("free again, not read", func(d *cellDesk) {
				d.expired(ledger.ReservationAuthorized, 1)
				d.s.Stock = nil
				d.saw(1, payment.StatusAuthorized)
			}, lateReacquire, lateRefund, `do read_stock of attempt 0, 0`, ""),
			lateCases("free again", func(d *cellDesk) {
				d.expired(ledger.ReservationAuthorized, 1)
				d.saw(1, payment.StatusAuthorized)
			}, lateReacquire, lateRefund, `AUTHORIZED → CONFIRMED ""; new hold CONFIRMED in place of true; stock a-1 h+0 c+1`, ""),
			[]cellCase{
				{"sold, authorized", anyPolicy, func(d *cellDesk) {
					d.sold(ledger.ReservationConfirmed)
					d.saw(1, payment.StatusAuthorized)
				}, `do capture of attempt 1, 1000`},
				{"sold, captured", anyPolicy, func(d *cellDesk) {
					d.sold(ledger.ReservationConfirmed)
					d.saw(1, payment.StatusCaptured)
				}, `CONFIRMED → CAPTURED ""; attempt 1 captured unwanted false`},
				{"sold, capture refused", anyPolicy, func(d *cellDesk) {
					d.sold(ledger.ReservationConfirmed)
					d.saw(1, payment.StatusAuthorized)
					d.refuse(1, saga.EffectCapture)
				}, `CONFIRMED → COMPENSATING "authorization_lost"; attempt 1 authorized unwanted true; hold CONFIRMED → RETURNED; stock a+1 h+0 c-1`},
				{"captured, nothing to deliver", anyPolicy, func(d *cellDesk) {
					d.sold(ledger.ReservationCaptured)
					d.saw(1, payment.StatusCaptured)
				}, `CAPTURED → COMPLETED ""`},
				{"captured, others deliver", anyPolicy, func(d *cellDesk) {
					d.sold(ledger.ReservationCaptured)
					d.s.Sold.Terms.Delivery = ledger.DeliveryEvent
					d.saw(1, payment.StatusCaptured)
				}, `look after 1h0m0s`},
				{"completed", anyPolicy, func(d *cellDesk) {
					d.sold(ledger.ReservationCompleted)
					d.saw(1, payment.StatusCaptured)
				}, ``},
			}),
		},
		{cell: saga.Cell{Row: saga.RowAuthorized, Column: saga.ColumnSoldOut}, cases: slices.Concat([]cellCase{
			{"first news", anyPolicy, func(d *cellDesk) {
				d.expired(ledger.ReservationCompensating, 0)
				d.saw(1, payment.StatusAuthorized)
			}, `COMPENSATING → AUTHORIZED ""; attempt 1 authorized unwanted false`},
			{"to go back, authorized", anyPolicy, func(d *cellDesk) {
				d.expired(ledger.ReservationCompensating, 0)
				d.unwanted(ledger.ReasonSoldOut)
				d.saw(1, payment.StatusAuthorized)
			}, `do void of attempt 1, 0`},
			{"to go back, captured", anyPolicy, func(d *cellDesk) {
				d.expired(ledger.ReservationCompensating, 0)
				d.unwanted(ledger.ReasonSoldOut)
				d.saw(1, payment.StatusCaptured)
			}, `COMPENSATING → COMPENSATING "sold_out"; attempt 1 captured unwanted true; refund 1 of attempt 1: 1000 sold_out owed`},
			{"owed", anyPolicy, func(d *cellDesk) {
				d.owed()
				d.saw(1, payment.StatusCaptured)
			}, `do refund of attempt 1, 1000`},
			{"owed, and the bank will not", anyPolicy, func(d *cellDesk) {
				d.owed()
				d.saw(1, payment.StatusCaptured)
				d.refuse(1, saga.EffectRefund)
			}, `COMPENSATING → REFUND_REQUIRED "sold_out"; refund 1 of attempt 1: 1000 sold_out failed`},
			{"a part of it failed, the rest is still given", anyPolicy, func(d *cellDesk) {
				d.owed()
				d.s.Reservation.Refunds[0].AmountMinor, d.s.Reservation.Refunds[0].State = 400, ledger.RefundFailed
				d.s.Reservation.Owe(1, 600, ledger.ReasonSoldOut, tenOClock)
				d.saw(1, payment.StatusCaptured)
			}, `do refund of attempt 1, 600`},
			{"just carried out, while an earlier one fell back", anyPolicy, func(d *cellDesk) {
				d.owed()
				d.s.Reservation.Refunds[0].AmountMinor, d.s.Reservation.Refunds[0].State = 400, ledger.RefundDone
				d.s.Reservation.Owe(1, 600, ledger.ReasonSoldOut, tenOClock)
				d.saw(1, payment.StatusCaptured, func(p *payment.Payment) { p.RefundedMinor = 600 })
				seen := d.s.Sightings[1]
				seen.Refunded = 2
				d.s.Sightings[1] = seen
			}, `COMPENSATING → COMPENSATING "sold_out"; refund 2 of attempt 1: 600 sold_out done`},
			{"one that was done has failed since", anyPolicy, func(d *cellDesk) {
				d.owed()
				d.s.Reservation.Refunds[0].State = ledger.RefundDone
				d.saw(1, payment.StatusCaptured)
			}, `COMPENSATING → REFUND_REQUIRED "sold_out"; refund 1 of attempt 1: 1000 sold_out failed`},
			{"given back", anyPolicy, func(d *cellDesk) {
				d.owed()
				d.saw(1, payment.StatusCaptured, refunded)
			}, `COMPENSATING → COMPENSATING "sold_out"; refund 1 of attempt 1: 1000 sold_out done`},
			{"given back and written down", anyPolicy, func(d *cellDesk) {
				d.owed()
				d.s.Reservation.Refunds[0].State = ledger.RefundDone
				d.saw(1, payment.StatusCaptured, refunded)
			}, `COMPENSATING → REFUNDED "sold_out"`},
		}, lateCases("authorized", func(d *cellDesk) {
			d.expired(ledger.ReservationAuthorized, 0)
			d.saw(1, payment.StatusAuthorized)
		}, lateReacquire, lateRefund, `AUTHORIZED → COMPENSATING "sold_out"; attempt 1 open unwanted true`, ""),
			lateCases("the slot is closed", func(d *cellDesk) {
				d.over()
				d.s.Reservation.Status, d.s.Closed = ledger.ReservationAuthorized, true
				d.saw(1, payment.StatusAuthorized)
			}, lateReacquire, lateRefund, `AUTHORIZED → COMPENSATING "sold_out"; attempt 1 open unwanted true`, "")),
		},
		{cell: saga.Cell{Row: saga.RowMismatch, Column: saga.ColumnLive}, cases: mismatches(func(*cellDesk) {})},
		{cell: saga.Cell{Row: saga.RowMismatch, Column: saga.ColumnStockThere}, cases: append(mismatches((*cellDesk).over),
			cellCase{"sold, other money captured", anyPolicy, func(d *cellDesk) {
				d.sold(ledger.ReservationConfirmed)
				d.saw(1, payment.StatusCaptured, func(p *payment.Payment) { p.CapturedMinor = 999 })
			}, `CONFIRMED → REVIEW "payment_mismatch"; attempt 1 captured unwanted true`})},
		{cell: saga.Cell{Row: saga.RowMismatch, Column: saga.ColumnSoldOut}, cases: []cellCase{
			{"given up, authorized", anyPolicy, func(d *cellDesk) {
				d.expired(ledger.ReservationCompensating, 0)
				d.saw(1, payment.StatusAuthorized, func(p *payment.Payment) { p.Amount.Currency = "JPY" })
			}, `do void of attempt 1, 0`},
			{"given up, captured", anyPolicy, func(d *cellDesk) {
				d.expired(ledger.ReservationCompensating, 0)
				d.saw(1, payment.StatusCaptured, func(p *payment.Payment) { p.CapturedMinor = 999 })
			}, `COMPENSATING → COMPENSATING "payment_unknown"; attempt 1 captured unwanted true; refund 1 of attempt 1: 999 payment_unknown owed`},
		}},
	}
}

// lateCases are the three ways of what is authorized late: buys says under which policies
// it is sold if it can be, refunds under which it goes back, and the rest is left to a
// person.
func lateCases(stage string, situation func(*cellDesk), buys, refunds func(policy) bool, sold, late string) []cellCase {
	if late == "" {
		late = `AUTHORIZED → COMPENSATING "late"; attempt 1 open unwanted true`
	}
	return []cellCase{
		{stage, buys, situation, sold},
		{stage, refunds, situation, late},
		{stage, lateReview, situation, `AUTHORIZED → REVIEW "late"`},
	}
}

func mismatches(when func(*cellDesk)) []cellCase {
	var cases []cellCase
	for _, wrong := range []struct {
		name   string
		change func(*payment.Payment)
	}{
		{"less", func(p *payment.Payment) { p.AuthorizedMinor = 999 }},
		{"more", func(p *payment.Payment) { p.AuthorizedMinor = 1001 }},
		{"asked for another", func(p *payment.Payment) { p.Amount.AmountMinor = 1001 }},
		{"another currency", func(p *payment.Payment) { p.Amount.Currency = "JPY" }},
		{"of another reservation", func(p *payment.Payment) { p.Reservation = "rsv_other" }},
		{"of another attempt", func(p *payment.Payment) { p.Attempt = 2 }},
		{"of no reservation known", func(p *payment.Payment) { p.Reservation = "" }},
	} {
		cases = append(cases, cellCase{"first news: " + wrong.name, anyPolicy, func(d *cellDesk) {
			when(d)
			d.saw(1, payment.StatusAuthorized, wrong.change)
		}, `PAYMENT_PENDING → REVIEW "payment_mismatch"; attempt 1 authorized unwanted true`})
	}
	return append(cases,
		cellCase{"a signed notice tells of other money", anyPolicy, func(d *cellDesk) {
			when(d)
			d.saw(1, payment.StatusAuthorized)
			d.told(1)
			d.s.Notice.Status, d.s.Notice.AmountMinor = payment.StatusAuthorized, 999
		}, `PAYMENT_PENDING → REVIEW "payment_mismatch"; attempt 1 authorized unwanted true; claims provider_event evt-1`},
		cellCase{"in review, authorized", anyPolicy, func(d *cellDesk) {
			when(d)
			d.inReview()
			d.saw(1, payment.StatusAuthorized, func(p *payment.Payment) { p.AuthorizedMinor = 999 })
		}, `do void of attempt 1, 0`},
		cellCase{"in review, captured", anyPolicy, func(d *cellDesk) {
			when(d)
			d.inReview()
			d.saw(1, payment.StatusCaptured, func(p *payment.Payment) { p.CapturedMinor = 999 })
		}, `REVIEW → REVIEW "payment_mismatch"; attempt 1 captured unwanted true; refund 1 of attempt 1: 999 payment_mismatch owed`},
	)
}

func (d *cellDesk) inReview() {
	d.unwanted(ledger.ReasonMismatch)
	d.s.Reservation.Status, d.s.Reservation.Attempts[0].State = ledger.ReservationReview, ledger.AttemptAuthorized
}

// owed is a captured payment whose refund is written down.
func (d *cellDesk) owed() {
	d.expired(ledger.ReservationCompensating, 0)
	d.unwanted(ledger.ReasonSoldOut)
	d.s.Reservation.Attempts[0].State, d.s.Reservation.Attempts[0].CapturedMinor = ledger.AttemptCaptured, 1000
	d.s.Reservation.Owe(1, 1000, ledger.ReasonSoldOut, tenOClock)
}

func (d *cellDesk) refuse(n ledger.AttemptNumber, effect saga.EffectKind) {
	s := d.s.Sightings[n]
	s.Refused = effect
	d.s.Sightings[n] = s
}

func cellsOfLateNews() []cellEntry {
	return []cellEntry{
		{cell: saga.Cell{Row: saga.RowLateNews, Column: saga.ColumnLive},
			impossible: "news that comes while the hold lives is not late: it is in the row of what is authorized"},
		{cell: saga.Cell{Row: saga.RowLateNews, Column: saga.ColumnStockThere}, cases: slices.Concat([]cellCase{
			{"first news", anyPolicy, func(d *cellDesk) {
				d.over()
				d.saw(1, payment.StatusAuthorized, inTime)
			}, `PAYMENT_PENDING → AUTHORIZED ""; attempt 1 authorized unwanted false`},
		}, lateCases("still held", func(d *cellDesk) {
			d.over()
			d.authorizedInTime()
		}, boughtInTime, refundedLate, `AUTHORIZED → CONFIRMED ""; hold HELD → EXPIRED; new hold CONFIRMED in place of true; stock a+0 h-1 c+1`,
			`AUTHORIZED → COMPENSATING "late"; attempt 1 authorized unwanted true`),
			lateCases("free again", func(d *cellDesk) {
				d.expired(ledger.ReservationAuthorized, 1)
				d.authorizedInTime()
			}, boughtInTime, refundedLate, `AUTHORIZED → CONFIRMED ""; new hold CONFIRMED in place of true; stock a-1 h+0 c+1`,
				`AUTHORIZED → COMPENSATING "late"; attempt 1 authorized unwanted true`)),
		},
		{cell: saga.Cell{Row: saga.RowLateNews, Column: saga.ColumnSoldOut}, cases: lateCases("authorized", func(d *cellDesk) {
			d.expired(ledger.ReservationAuthorized, 0)
			d.authorizedInTime()
		}, boughtInTime, refundedLate, `AUTHORIZED → COMPENSATING "sold_out"; attempt 1 authorized unwanted true`,
			`AUTHORIZED → COMPENSATING "late"; attempt 1 authorized unwanted true`)},
	}
}

func (d *cellDesk) authorizedInTime() {
	d.saw(1, payment.StatusAuthorized, inTime)
	d.s.Reservation.Status = ledger.ReservationAuthorized
	d.s.Reservation.Attempts[0].State, d.s.Reservation.Attempts[0].AuthorizedAt = ledger.AttemptAuthorized, tenOClock.Add(time.Minute)
}

func cellsWithoutMoney() []cellEntry {
	waits := func(status payment.Status) []cellCase {
		return []cellCase{
			{string(status) + ", a minute after the last step", anyPolicy, func(d *cellDesk) { d.saw(1, status) }, `look after 1m0s`},
			{string(status) + ", just after the last step", anyPolicy, func(d *cellDesk) {
				d.s.Now = tenOClock.Add(time.Second)
				d.saw(1, status)
			}, `look after 5s`},
			{string(status) + ", just before release", anyPolicy, func(d *cellDesk) {
				d.over()
				d.s.Now = d.s.Now.Add(-time.Second)
				d.saw(1, status)
			}, `look after 1s`},
		}
	}
	voidsWhenOver := func(status payment.Status) cellCase {
		return cellCase{string(status), anyPolicy, func(d *cellDesk) {
			d.over()
			d.saw(1, status)
		}, `do void of attempt 1, 0`}
	}
	voidsWhenGivenUp := func(status payment.Status) cellCase {
		return cellCase{string(status), anyPolicy, func(d *cellDesk) {
			d.expired(ledger.ReservationCompensating, 0)
			d.saw(1, status)
		}, `do void of attempt 1, 0`}
	}
	return []cellEntry{
		{cell: saga.Cell{Row: saga.RowDeclined, Column: saga.ColumnLive}, cases: []cellCase{
			{"declined", release, func(d *cellDesk) { d.saw(1, payment.StatusDeclined) }, `do void of attempt 1, 0`},
			{"declined", keep, func(d *cellDesk) { d.saw(1, payment.StatusDeclined) }, `look after 1m0s`},
		}},
		{cell: saga.Cell{Row: saga.RowDeclined, Column: saga.ColumnStockThere}, cases: []cellCase{voidsWhenOver(payment.StatusDeclined)}},
		{cell: saga.Cell{Row: saga.RowDeclined, Column: saga.ColumnSoldOut}, cases: []cellCase{voidsWhenGivenUp(payment.StatusDeclined)}},
		{cell: saga.Cell{Row: saga.RowPending, Column: saga.ColumnLive}, cases: append(waits(payment.StatusPending), waits(payment.StatusRequiresAction)...)},
		{cell: saga.Cell{Row: saga.RowPending, Column: saga.ColumnStockThere}, cases: []cellCase{
			voidsWhenOver(payment.StatusPending), voidsWhenOver(payment.StatusRequiresAction),
		}},
		{cell: saga.Cell{Row: saga.RowPending, Column: saga.ColumnSoldOut}, cases: []cellCase{
			voidsWhenGivenUp(payment.StatusPending), voidsWhenGivenUp(payment.StatusRequiresAction),
		}},
		{cell: saga.Cell{Row: saga.RowVoided, Column: saga.ColumnLive}, cases: []cellCase{
			{"the attempt", release, func(d *cellDesk) { d.saw(1, payment.StatusVoided) },
				`PAYMENT_PENDING → CANCELED "declined"; attempt 1 voided unwanted false; hold HELD → CANCELED; stock a+1 h-1 c+0`},
			{"the attempt", keep, func(d *cellDesk) { d.saw(1, payment.StatusVoided) },
				`PAYMENT_PENDING → PAYMENT_PENDING ""; attempt 1 voided unwanted false; hold HELD, open attempt 1 → 0`},
			{"given up by its owner", anyPolicy, func(d *cellDesk) {
				d.unwanted(ledger.ReasonOwnerCanceled)
				d.saw(1, payment.StatusVoided)
			}, `COMPENSATING → COMPENSATING "owner_canceled"; attempt 1 voided unwanted true`},
			{"given up by its owner, and written down", anyPolicy, func(d *cellDesk) {
				d.unwanted(ledger.ReasonOwnerCanceled)
				d.s.Reservation.Attempts[0].State = ledger.AttemptVoided
				d.saw(1, payment.StatusVoided)
			}, `COMPENSATING → CANCELED "owner_canceled"; hold HELD → CANCELED; stock a+1 h-1 c+0`},
		}},
		{cell: saga.Cell{Row: saga.RowVoided, Column: saga.ColumnStockThere}, cases: []cellCase{
			{"the attempt", anyPolicy, func(d *cellDesk) {
				d.over()
				d.saw(1, payment.StatusVoided)
			}, `PAYMENT_PENDING → CANCELED "expired"; attempt 1 voided unwanted false; hold HELD → EXPIRED; stock a+1 h-1 c+0`},
			{"the authorization of what is sold", anyPolicy, func(d *cellDesk) {
				d.sold(ledger.ReservationConfirmed)
				d.saw(1, payment.StatusVoided)
			}, `CONFIRMED → COMPENSATING "authorization_lost"; attempt 1 voided unwanted true; hold CONFIRMED → RETURNED; stock a+1 h+0 c-1`},
		}},
		{cell: saga.Cell{Row: saga.RowVoided, Column: saga.ColumnSoldOut}, cases: []cellCase{
			{"given up", anyPolicy, func(d *cellDesk) {
				d.expired(ledger.ReservationCompensating, 0)
				d.saw(1, payment.StatusVoided)
			}, `COMPENSATING → COMPENSATING "payment_unknown"; attempt 1 voided unwanted true`},
			{"given up, and written down", anyPolicy, func(d *cellDesk) {
				d.expired(ledger.ReservationCompensating, 0)
				d.s.Reservation.Attempts[0].State = ledger.AttemptVoided
				d.saw(1, payment.StatusVoided)
			}, `COMPENSATING → CANCELED "payment_unknown"`},
		}},
	}
}

func cellsWithoutAnswer() []cellEntry {
	refused := func(when func(*cellDesk), also ...func(*cellDesk)) func(*cellDesk) {
		return func(d *cellDesk) {
			when(d)
			for _, a := range also {
				a(d)
			}
			d.refuse(1, saga.EffectVoid)
		}
	}
	live := func(*cellDesk) {}
	givenUp := func(d *cellDesk) { d.expired(ledger.ReservationCompensating, 0) }
	silent := func(when func(*cellDesk), s saga.Sighting) func(*cellDesk) {
		return func(d *cellDesk) {
			when(d)
			d.s.Sightings[1] = s
		}
	}
	unreachable, notFound := saga.Sighting{Unreachable: true}, saga.Sighting{NotFound: true}
	waited := func(d *cellDesk) {
		d.over()
		d.s.Now = d.s.Now.Add(ledger.UnknownForDefault)
	}
	almost := func(d *cellDesk) {
		waited(d)
		d.s.Now = d.s.Now.Add(-time.Millisecond)
	}
	tried := func(d *cellDesk) {
		givenUp(d)
		d.s.Reservation.Tries = saga.TriesMax
	}
	const released = `PAYMENT_PENDING → COMPENSATING "payment_unknown"; hold HELD → EXPIRED; stock a+1 h-1 c+0`
	return []cellEntry{
		{cell: saga.Cell{Row: saga.RowVoidNotAnswered, Column: saga.ColumnLive}, cases: []cellCase{
			{"refused", anyPolicy, refused(live), `do look_up of attempt 1, 0`},
			{"refused, and it has succeeded", anyPolicy, refused(live, func(d *cellDesk) { d.saw(1, payment.StatusAuthorized, inTime) }),
				`PAYMENT_PENDING → AUTHORIZED ""; attempt 1 authorized unwanted false`},
			{"refused, and it is still declined", release, refused(live, func(d *cellDesk) { d.saw(1, payment.StatusDeclined) }), `ask again, answered true`},
			{"refused, and it is still declined", keep, refused(live, func(d *cellDesk) { d.saw(1, payment.StatusDeclined) }), `look after 1m0s`},
		}},
		{cell: saga.Cell{Row: saga.RowVoidNotAnswered, Column: saga.ColumnStockThere}, cases: []cellCase{
			{"refused", anyPolicy, refused((*cellDesk).over), `do look_up of attempt 1, 0`},
			{"refused, and it is still pending", anyPolicy, refused((*cellDesk).over, func(d *cellDesk) { d.saw(1, payment.StatusPending) }), `ask again, answered true`},
			{"refused for as long as is waited", anyPolicy, refused(waited, func(d *cellDesk) { d.saw(1, payment.StatusPending) }), released},
		}},
		{cell: saga.Cell{Row: saga.RowVoidNotAnswered, Column: saga.ColumnSoldOut}, cases: []cellCase{
			{"refused", anyPolicy, refused(givenUp), `do look_up of attempt 1, 0`},
			{"refused too often", anyPolicy, refused(tried, func(d *cellDesk) { d.saw(1, payment.StatusPending) }),
				`COMPENSATING → REFUND_REQUIRED "payment_unknown"`},
		}},
		{cell: saga.Cell{Row: saga.RowUnreachable, Column: saga.ColumnLive}, cases: []cellCase{
			{"unreachable", anyPolicy, silent(live, unreachable), `ask again, answered false`},
			{"not found", anyPolicy, silent(live, notFound), `ask again, answered true`},
		}},
		{cell: saga.Cell{Row: saga.RowUnreachable, Column: saga.ColumnStockThere}, cases: []cellCase{
			{"unreachable", anyPolicy, silent((*cellDesk).over, unreachable), `ask again, answered false`},
			{"unreachable, just before unknown_max", anyPolicy, silent(almost, unreachable), `ask again, answered false`},
			{"unreachable for unknown_max", anyPolicy, silent(waited, unreachable), released},
			{"not found for unknown_max", anyPolicy, silent(waited, notFound), released},
			{"unreachable, what is sold is to be captured", anyPolicy, func(d *cellDesk) {
				d.sold(ledger.ReservationConfirmed)
				d.s.Sightings[1] = unreachable
			}, `ask again, answered false`},
		}},
		{cell: saga.Cell{Row: saga.RowUnreachable, Column: saga.ColumnSoldOut}, cases: []cellCase{
			{"unreachable", anyPolicy, silent(givenUp, unreachable), `ask again, answered false`},
			{"unreachable, however often", anyPolicy, silent(tried, unreachable), `ask again, answered false`},
			{"not found", anyPolicy, silent(givenUp, notFound), `ask again, answered true`},
			{"not found too often", anyPolicy, silent(tried, notFound), `COMPENSATING → REFUND_REQUIRED "payment_unknown"`},
		}},
	}
}

func cellsOfOtherAttempts() []cellEntry {
	news := func(when func(*cellDesk)) func(*cellDesk) {
		return func(d *cellDesk) {
			d.second()
			when(d)
			d.told(1)
		}
	}
	live := func(*cellDesk) {}
	completed := func(d *cellDesk) {
		d.sold(ledger.ReservationCompleted)
		d.second()
		d.s.Reservation.Attempts[1].State, d.s.Reservation.Attempts[1].CapturedMinor = ledger.AttemptCaptured, 1000
		d.saw(2, payment.StatusCaptured)
	}
	ended := func(d *cellDesk) {
		d.second()
		d.expired(ledger.ReservationCanceled, 0)
		d.s.Reservation.Reason, d.s.Reservation.Attempts[1].State = ledger.ReasonExpired, ledger.AttemptVoided
		d.saw(2, payment.StatusVoided)
	}
	both := func(when func(*cellDesk), second payment.Status) func(*cellDesk) {
		return news(func(d *cellDesk) {
			when(d)
			d.saw(1, payment.StatusVoided)
			d.saw(2, second)
		})
	}
	return []cellEntry{
		{cell: saga.Cell{Row: saga.RowOtherAttempt, Column: saga.ColumnLive}, cases: []cellCase{
			{"not looked up", anyPolicy, news(live), `do look_up of attempt 1, 0`},
			{"voided, the current one is pending", anyPolicy, both(live, payment.StatusPending),
				`PAYMENT_PENDING → PAYMENT_PENDING ""; claims provider_event evt-1; look after 1m0s`},
			{"voided, the current one has the money", anyPolicy, both(live, payment.StatusAuthorized),
				`PAYMENT_PENDING → AUTHORIZED ""; attempt 2 authorized unwanted false; claims provider_event evt-1`},
		}},
		{cell: saga.Cell{Row: saga.RowOtherAttempt, Column: saga.ColumnStockThere}, cases: []cellCase{
			{"not looked up", anyPolicy, news((*cellDesk).over), `do look_up of attempt 1, 0`},
			{"voided, the current one is pending", anyPolicy, both((*cellDesk).over, payment.StatusPending), `do void of attempt 2, 0`},
			{"voided, what the current one paid is sold", anyPolicy, func(d *cellDesk) {
				completed(d)
				d.told(1)
				d.saw(1, payment.StatusVoided)
				d.s.Reservation.UpdatedAt = d.s.Now.Add(-time.Hour)
			}, `COMPLETED → COMPLETED ""; claims provider_event evt-1`},
		}},
		{cell: saga.Cell{Row: saga.RowOtherAttempt, Column: saga.ColumnSoldOut}, cases: []cellCase{
			{"not looked up", anyPolicy, func(d *cellDesk) {
				ended(d)
				d.told(1)
			}, `do look_up of attempt 1, 0`},
			{"voided, all has ended", anyPolicy, func(d *cellDesk) {
				ended(d)
				d.told(1)
				d.saw(1, payment.StatusVoided)
			}, `CANCELED → CANCELED "expired"; claims provider_event evt-1`},
		}},
		{cell: saga.Cell{Row: saga.RowSecondPayment, Column: saga.ColumnLive}, cases: []cellCase{
			{"authorized, the current one is pending", anyPolicy, func(d *cellDesk) {
				d.second()
				d.saw(1, payment.StatusAuthorized, inTime)
				d.saw(2, payment.StatusPending)
			}, `do void of attempt 1, 0`},
			{"captured, the current one is pending", anyPolicy, func(d *cellDesk) {
				d.second()
				d.saw(1, payment.StatusCaptured, inTime)
				d.saw(2, payment.StatusPending)
			}, `PAYMENT_PENDING → PAYMENT_PENDING ""; attempt 1 captured unwanted true; refund 1 of attempt 1: 1000 surplus owed`},
		}},
		{cell: saga.Cell{Row: saga.RowSecondPayment, Column: saga.ColumnStockThere}, cases: []cellCase{
			{"authorized, the current one has bought", anyPolicy, func(d *cellDesk) {
				completed(d)
				d.saw(1, payment.StatusAuthorized)
			}, `do void of attempt 1, 0`},
			{"captured, the current one has bought", anyPolicy, func(d *cellDesk) {
				completed(d)
				d.saw(1, payment.StatusCaptured)
			}, `COMPLETED → COMPLETED ""; attempt 1 captured unwanted true; refund 1 of attempt 1: 1000 surplus owed`},
			{"owed, the current one has bought", anyPolicy, func(d *cellDesk) {
				completed(d)
				d.s.Reservation.Attempts[0].State, d.s.Reservation.Attempts[0].CapturedMinor = ledger.AttemptCaptured, 1000
				d.s.Reservation.Owe(1, 1000, ledger.ReasonSurplus, tenOClock)
				d.saw(1, payment.StatusCaptured)
			}, `do refund of attempt 1, 1000`},
		}},
		{cell: saga.Cell{Row: saga.RowSecondPayment, Column: saga.ColumnSoldOut}, cases: []cellCase{
			{"authorized, all has ended", anyPolicy, func(d *cellDesk) {
				ended(d)
				d.saw(1, payment.StatusAuthorized)
			}, `do void of attempt 1, 0`},
			{"captured, all has ended", anyPolicy, func(d *cellDesk) {
				ended(d)
				d.saw(1, payment.StatusCaptured)
			}, `CANCELED → CANCELED "expired"; attempt 1 captured unwanted true; refund 1 of attempt 1: 1000 expired owed`},
		}},
	}
}
