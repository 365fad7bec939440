package commands_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/saga"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/telemetry"
)

// sagaStore is the bench's store as a saga sees it.
type sagaStore struct {
	*hooks
	inner *memory.Store
}

func (s sagaStore) Postpone(ctx context.Context, id ledger.ReservationID, v ledger.Version, at time.Time, tries int) error {
	return s.inner.Postpone(ctx, id, v, at, tries)
}

type noMetrics struct{}

func (noMetrics) Emit(telemetry.Properties, ...telemetry.Measurement) error { return nil }

var errStopped = errors.New("the saga stops here")

// drive takes the reservation on until it has the status, or as far as it goes with "".
func (b *till) drive(id ledger.ReservationID, until ledger.ReservationStatus) {
	b.t.Helper()
	b.store.beforeCommit = func(_ int, c ledger.Change) error {
		if until != "" && len(c.Reservations) > 0 && c.Reservations[0].From == until {
			return errStopped
		}
		return nil
	}
	defer func() { b.store.beforeCommit = nil }()
	driver := saga.NewDriver(saga.Ports{
		Store: sagaStore{b.store, b.inner}, Provider: b.provider, Clock: b.clock, Random: b.dice,
		Metrics: noMetrics{}, Dwells: &telemetry.Spread{}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err := driver.Drive(b.t.Context(), id, nil, "drive"); err != nil && !errors.Is(err, errStopped) {
		b.t.Fatal(err)
	}
}

// reservationIn makes a reservation of two units with that status.
func reservationIn(t testing.TB, status ledger.ReservationStatus, policy func(*ledger.Policy)) (*till, ledger.Hold, ledger.ReservationID) {
	t.Helper()
	b := newTill(t)
	d := definition(2, 1)
	if policy != nil {
		policy(&d.Policy)
	}
	b.define("S", d)
	hold := b.mustHold("S", 2)
	_, secret := b.mustStart(request("start"), hold.ID)
	id := b.reservationOf(hold.ID).ID
	switch status {
	case ledger.ReservationPaymentPending:
		return b, hold, id
	case ledger.ReservationCanceled:
		b.clock.Set(b.storedHold(hold.ID).ReleaseAt)
		b.drive(id, "")
	case ledger.ReservationReview:
		b.bank.SetDefaultScript(paymenttest.Script{AmountMinor: 1999})
		b.mustPay(secret)
		b.drive(id, "")
	case ledger.ReservationAuthorized, ledger.ReservationConfirmed, ledger.ReservationCaptured:
		b.mustPay(secret)
		b.drive(id, status)
	case ledger.ReservationCompleted, ledger.ReservationCompensating, ledger.ReservationRefunded, ledger.ReservationRefundRequired:
		b.mustPay(secret)
		b.drive(id, "")
	}
	switch status {
	case ledger.ReservationCompensating:
		b.mustCancel(id, commands.CancelByOwner)
	case ledger.ReservationRefunded:
		b.mustCancel(id, commands.CancelByOperator)
		b.drive(id, "")
	case ledger.ReservationRefundRequired:
		b.bank.SetDefaultScript(paymenttest.Script{RefundRefused: true})
		b.mustCancel(id, commands.CancelByOwner)
		b.drive(id, "")
	default:
	}
	if got := b.reservationOf(hold.ID).Status; got != status {
		t.Fatalf("the reservation is %s, want %s", got, status)
	}
	return b, hold, id
}

func (b *till) mustPay(secret payment.Secret) {
	b.t.Helper()
	if _, err := b.bank.Pay(secret.Reveal()); err != nil {
		b.t.Fatal(err)
	}
}

func (b *till) storedHold(id ledger.HoldID) ledger.Hold {
	b.t.Helper()
	h, err := b.inner.Hold(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	return h
}

func (b *till) cancel(r commands.Request, id ledger.ReservationID, by commands.CancelBy, lines ...ledger.ReturnLine) (commands.Answer, error) {
	return b.commands.CancelReservation(b.t.Context(), r, id, lines, by, renderReservation)
}

func (b *till) mustCancel(id ledger.ReservationID, by commands.CancelBy, lines ...ledger.ReturnLine) {
	b.t.Helper()
	if _, err := b.cancel(request(""), id, by, lines...); err != nil {
		b.t.Fatal(err)
	}
}

// paidBooks audits the slots, the holds and the reservations, and requires that the bank
// has what the reservations say: nothing but what was sold and not returned.
func (b *till) paidBooks() {
	b.t.Helper()
	var reservations []ledger.ReservationID
	for _, id := range b.holds {
		h := b.storedHold(id)
		if h.Reservation == "" {
			continue
		}
		reservations = append(reservations, h.Reservation)
		var sold int64
		if h.Status == ledger.StatusConfirmed {
			for _, left := range h.Unreturned() {
				sold += 1000 * int64(left.Quantity)
			}
		}
		if book := b.bank.Book(h.Reservation, "KRW"); book.CapturedMinor-book.RefundedMinor != sold || book.AuthorizedMinor != 0 {
			b.t.Errorf("P8: the bank has %+v, and %d is sold", book, sold)
		}
	}
	ledgertest.CheckBooks(b.t, b.inner, b.slots, b.holds, reservations...)
}

var oneUnit = ledger.ReturnLine{Slot: "S", Quantity: 1}

// betweenReads is a store in which something happens once, just before a hold is read.
type betweenReads struct {
	ledger.Store
	happens func()
}

func (s *betweenReads) Hold(ctx context.Context, id ledger.HoldID) (ledger.Hold, error) {
	if happens := s.happens; happens != nil {
		s.happens = nil
		happens()
	}
	return s.Store.Hold(ctx, id)
}

// A reservation and its hold are read one after the other. Of two wishes to cancel the whole
// the second is told what the first has done, also when that came between its two reads;
// and a part is refused in the reservation's words.
func TestCancelWhileTheSaleIsTakenBack(t *testing.T) {
	for _, status := range []ledger.ReservationStatus{ledger.ReservationConfirmed, ledger.ReservationCaptured, ledger.ReservationCompleted} {
		for _, lines := range [][]ledger.ReturnLine{nil, {oneUnit}} {
			b, _, id := reservationIn(t, status, nil)
			store := &betweenReads{Store: b.inner, happens: func() { b.mustCancel(id, commands.CancelByOwner) }}
			second := commands.New(store, b.clock, systemtest.NewRandom(4))
			_, err := second.CancelReservation(t.Context(), request("second"), id, lines, commands.CancelByOwner, renderReservation)
			if lines == nil && err != nil {
				t.Errorf("%s: the second wish is refused: %v", status, err)
			}
			if lines != nil {
				b.wantCode(err, ledger.CodeReservationNotActive)
			}
			b.drive(id, "")
			b.paidBooks()
		}
	}
}

// Each status of a reservation answers each kind of cancellation: by its owner or an
// operator, of the whole or of a part. What is refused changes nothing, and what is not
// leads to balanced books.
func TestCancelReservationInEachStatus(t *testing.T) {
	type want struct {
		code   ledger.Code // of a refusal
		status ledger.ReservationStatus
		hold   ledger.Status
	}
	refused := func(code ledger.Code) want { return want{code: code} }
	ended := refused(ledger.CodeReservationNotActive)
	nothing := want{}
	unsold := want{status: ledger.ReservationCompensating, hold: ledger.StatusHeld}
	returned := want{status: ledger.ReservationCompensating, hold: ledger.StatusReturned}
	part := func(s ledger.ReservationStatus) want { return want{status: s, hold: ledger.StatusConfirmed} }
	tests := []struct {
		status                      ledger.ReservationStatus
		owner, operator, partOfSale want
	}{
		{ledger.ReservationPaymentPending, unsold, unsold, refused(ledger.CodeInvalid)},
		{ledger.ReservationAuthorized, unsold, unsold, refused(ledger.CodeInvalid)},
		{ledger.ReservationReview, unsold, unsold, refused(ledger.CodeInvalid)},
		{ledger.ReservationConfirmed, returned, returned, refused(ledger.CodePaymentInProgress)},
		{ledger.ReservationCaptured, returned, returned, part(ledger.ReservationCaptured)},
		{ledger.ReservationCompleted, returned, returned, part(ledger.ReservationCompleted)},
		{ledger.ReservationCompensating, nothing, ended, ended}, // the owner has cancelled it
		{ledger.ReservationCanceled, ended, ended, ended},
		{ledger.ReservationRefunded, ended, nothing, ended}, // an operator has
		{ledger.ReservationRefundRequired, nothing, ended, ended},
	}
	for _, test := range tests {
		kinds := []struct {
			name  string
			by    commands.CancelBy
			lines []ledger.ReturnLine
			want  want
		}{
			{"whole by owner", commands.CancelByOwner, nil, test.owner},
			{"whole by operator", commands.CancelByOperator, nil, test.operator},
			{"part by owner", commands.CancelByOwner, []ledger.ReturnLine{oneUnit}, test.partOfSale},
			{"part by operator", commands.CancelByOperator, []ledger.ReturnLine{oneUnit}, test.partOfSale},
		}
		for _, kind := range kinds {
			t.Run(string(test.status)+"/"+kind.name, func(t *testing.T) {
				b, hold, id := reservationIn(t, test.status, nil)
				before, heldBefore := b.reservationOf(hold.ID), b.storedHold(hold.ID)
				_, err := b.cancel(request(""), id, kind.by, kind.lines...)
				b.wantCode(err, kind.want.code)
				after, heldAfter := b.reservationOf(hold.ID), b.storedHold(hold.ID)
				if kind.want.status == "" {
					if after.Version != before.Version || heldAfter.Version != heldBefore.Version {
						t.Errorf("%+v became %+v", before, after)
					}
				} else if after.Status != kind.want.status || heldAfter.Status != kind.want.hold || after.Version != before.Version+1 || after.LookAt.IsZero() {
					t.Errorf("the reservation is %+v, the hold %s", after, heldAfter.Status)
				}
				b.bank.SetDefaultScript(paymenttest.Script{})
				b.drive(id, "")
				if test.status != ledger.ReservationRefundRequired { // it waits for a person
					b.paidBooks()
				}
			})
		}
	}
}

// A sale that waits for a person, because it can't be delivered, is taken back as a whole:
// its units come back with its money.
func TestASaleInReviewIsTakenBack(t *testing.T) {
	for _, by := range []commands.CancelBy{commands.CancelByOwner, commands.CancelByOperator} {
		b, hold, id := undeliverable(t)
		_, err := b.cancel(request(""), id, by, oneUnit)
		b.wantCode(err, ledger.CodeInvalid)
		b.mustCancel(id, by)
		b.drive(id, "")
		if r, h := b.reservationOf(hold.ID), b.storedHold(hold.ID); r.Status != ledger.ReservationRefunded || h.Status != ledger.StatusReturned {
			t.Errorf("the reservation is %+v, the hold %s", r, h.Status)
		}
		b.wantCounters("S", 2, 0, 0)
		b.paidBooks()
	}
}

// undeliverable is a paid sale whose grant goes to a slot that is not there.
func undeliverable(t testing.TB) (*till, ledger.Hold, ledger.ReservationID) {
	b := newTill(t)
	d := definition(2, 1)
	d.Policy.GrantTo = "balance:{owner}"
	b.define("S", d)
	hold := b.mustHold("S", 2)
	_, secret := b.mustStart(request("start"), hold.ID)
	b.mustPay(secret)
	id := b.reservationOf(hold.ID).ID
	b.drive(id, "")
	if r := b.reservationOf(hold.ID); r.Status != ledger.ReservationReview || r.Reason != ledger.ReasonDeliveryFailed {
		t.Fatalf("the reservation is %+v", r)
	}
	return b, hold, id
}

// The policy's time binds the owner to the millisecond, and the operator not at all.
func TestTooLateToCancel(t *testing.T) {
	starts := noon.Add(48 * time.Hour)
	until := starts.Add(-24 * time.Hour)
	tests := []struct {
		at   time.Time
		by   commands.CancelBy
		code ledger.Code
	}{
		{until.Add(-time.Millisecond), commands.CancelByOwner, ""},
		{until, commands.CancelByOwner, ledger.CodeTooLateToCancel},
		{starts.Add(time.Hour), commands.CancelByOwner, ledger.CodeTooLateToCancel},
		{until, commands.CancelByOperator, ""},
		{starts.Add(time.Hour), commands.CancelByOperator, ""},
	}
	for _, lines := range [][]ledger.ReturnLine{nil, {oneUnit}} {
		for _, test := range tests {
			b := newTill(t)
			d := definition(2, 1)
			d.StartsAt, d.Policy.CancelFor = starts, 24*time.Hour
			b.define("S", d)
			hold := b.mustHold("S", 2)
			_, secret := b.mustStart(request("start"), hold.ID)
			b.mustPay(secret)
			id := b.reservationOf(hold.ID).ID
			b.drive(id, "")
			b.clock.Set(test.at)
			_, err := b.cancel(request(""), id, test.by, lines...)
			b.wantCode(err, test.code)
			var refusal *ledger.Error
			if test.code != "" && (!errors.As(err, &refusal) || len(refusal.Slots) != 1 || refusal.Slots[0] != "S") {
				t.Errorf("the refusal names no slot: %+v", refusal)
			}
			b.drive(id, "")
			b.paidBooks()
		}
	}
}

// A part that was given back can't be given back again.
func TestReturnOverSale(t *testing.T) {
	b, hold, id := reservationIn(t, ledger.ReservationCompleted, nil)
	three := ledger.ReturnLine{Slot: "S", Quantity: 3}
	for _, step := range []struct {
		lines []ledger.ReturnLine
		code  ledger.Code
	}{
		{[]ledger.ReturnLine{three}, ledger.CodeReturnOverSale},
		{[]ledger.ReturnLine{{Slot: "other", Quantity: 1}}, ledger.CodeInvalid},
		{[]ledger.ReturnLine{oneUnit, oneUnit}, ledger.CodeInvalid},
		{[]ledger.ReturnLine{{Slot: "S", Quantity: 0}}, ledger.CodeInvalid},
		{[]ledger.ReturnLine{oneUnit}, ""},
		{[]ledger.ReturnLine{{Slot: "S", Quantity: 2}}, ledger.CodeReturnOverSale},
		{[]ledger.ReturnLine{oneUnit}, ""},
		{[]ledger.ReturnLine{oneUnit}, ledger.CodeReservationNotActive},
	} {
		_, err := b.cancel(request(""), id, commands.CancelByOwner, step.lines...)
		b.wantCode(err, step.code)
	}
	b.drive(id, "")
	if r, h := b.reservationOf(hold.ID), b.storedHold(hold.ID); r.Status != ledger.ReservationRefunded || h.Status != ledger.StatusReturned {
		t.Errorf("the reservation is %+v, the hold %s", r, h.Status)
	}
	if book := b.bank.Book(id, "KRW"); book.CapturedMinor != 2000 || book.RefundedMinor != 2000 {
		t.Errorf("the bank's book is %+v", book)
	}
	b.paidBooks()
}

// grantedTwo is a till at which two units of slot S were bought, which have granted two of
// the slot balance:U.
func grantedTwo(t *testing.T) (*till, ledger.ReservationID) {
	t.Helper()
	b := newTill(t)
	sold := definition(5, 1)
	sold.Policy.GrantTo = "balance:{owner}"
	b.define("S", sold)
	b.define("balance:U", definition(0, 1))
	hold := b.mustHold("S", 2)
	_, secret := b.mustStart(request("start"), hold.ID)
	b.mustPay(secret)
	id := b.reservationOf(hold.ID).ID
	b.drive(id, "")
	return b, id
}

// What a delivery granted may lie elsewhere by the time that it is taken back: a reshard has
// moved it. It is used only where all of the slot has too little.
func TestGrantedUnitsAreTakenBackFromWhereTheyAre(t *testing.T) {
	b, id := grantedTwo(t)
	three := 3
	b.patch("balance:U", ledger.SlotPatch{Shards: &three})
	b.wantCounters("balance:U", 2, 0, 0)
	if _, err := b.cancel(request("cancel"), id, commands.CancelByOperator); err != nil {
		t.Fatalf("two units on two shards: %v", err)
	}
	b.wantCounters("balance:U", 0, 0, 0)
}

// What a delivery granted and is used can't be taken back, and the refusal names it.
func TestAlreadyUsed(t *testing.T) {
	b, id := grantedTwo(t)
	b.wantCounters("balance:U", 2, 0, 0)
	used := b.mustHold("balance:U", 1)
	_, err := b.cancel(request("cancel"), id, commands.CancelByOperator)
	b.wantCode(err, ledger.CodeAlreadyUsed)
	var refusal *ledger.Error
	if !errors.As(err, &refusal) || len(refusal.Slots) != 1 || refusal.Slots[0] != "balance:U" {
		t.Errorf("the refusal names %+v", refusal)
	}
	if _, err := b.commands.CancelHold(t.Context(), request(""), used.ID, b.render); err != nil {
		t.Fatal(err)
	}
	// A refusal is not remembered: the same request goes through when the units are there.
	if answer, err := b.cancel(request("cancel"), id, commands.CancelByOperator); err != nil || answer.Replayed {
		t.Errorf("the answer is %+v, %v", answer, err)
	}
	b.drive(id, "")
	b.wantCounters("balance:U", 0, 0, 0)
	b.wantCounters("S", 5, 0, 0)
	b.paidBooks()
}

// A repeated cancellation has one effect, with its key and without one.
func TestP6_ARepeatedCancellation(t *testing.T) {
	for _, key := range []string{"cancel", ""} {
		b, hold, id := reservationIn(t, ledger.ReservationCompleted, nil)
		first, err := b.cancel(request(key), id, commands.CancelByOwner)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			b.clock.Advance(time.Second)
			again, err := b.cancel(request(key), id, commands.CancelByOwner)
			if err != nil || again.Replayed != (key != "") {
				t.Errorf("key %q: %+v, %v", key, again, err)
			}
			if key != "" && string(again.Response.Body) != string(first.Response.Body) {
				t.Errorf("the answers are %s and %s", first.Response.Body, again.Response.Body)
			}
			b.drive(id, "")
		}
		if book := b.bank.Book(id, "KRW"); book.RefundedMinor != 2000 || len(b.reservationOf(hold.ID).Refunds) != 1 {
			t.Errorf("the bank's book is %+v", book)
		}
		b.paidBooks()
	}
}

// P6: a part that is given back under one key is given back once; under another key it is
// another unit.
func TestP6_ARepeatedReturnOfAPart(t *testing.T) {
	b, hold, id := reservationIn(t, ledger.ReservationCompleted, nil)
	for range 3 {
		if _, err := b.cancel(request("part"), id, commands.CancelByOwner, oneUnit); err != nil {
			t.Fatal(err)
		}
		b.drive(id, "")
	}
	if left := b.storedHold(hold.ID).Unreturned(); len(left) != 1 || left[0].Quantity != 1 {
		t.Errorf("%+v is left", left)
	}
	other := request("part")
	other.Fingerprint = "other"
	_, err := b.cancel(other, id, commands.CancelByOwner, oneUnit)
	b.wantCode(err, ledger.CodeKeyReused)
	b.paidBooks()
}

// P11: another owner's reservation is cancelled by nobody but an operator, and is answered
// as an unknown one.
func TestP11_AForeignReservationIsUnknown(t *testing.T) {
	b, hold, id := reservationIn(t, ledger.ReservationCompleted, nil)
	foreign := request("")
	foreign.Owner = "V"
	_, err := b.cancel(foreign, id, commands.CancelByOwner)
	_, unknown := b.cancel(foreign, "rsv_unknown", commands.CancelByOwner)
	b.wantCode(err, ledger.CodeReservationNotFound)
	if err.Error() != unknown.Error() {
		t.Errorf("told apart: %v and %v", err, unknown)
	}
	if r := b.reservationOf(hold.ID); r.Status != ledger.ReservationCompleted {
		t.Errorf("the reservation is %s", r.Status)
	}
	operator := foreign
	operator.Owner = "operator"
	if _, err := b.cancel(operator, id, commands.CancelByOperator); err != nil {
		t.Error(err)
	}
}

func deliveredByOthers(p *ledger.Policy) { p.Payment.Delivery = ledger.DeliveryEvent }

func (b *till) deliver(id ledger.ReservationID, delivered bool) error {
	_, err := b.commands.DeliverReservation(b.t.Context(), request(""), id, delivered, renderReservation)
	return err
}

// A delivery by others is told once it is waited for, may be told again, and is then not
// taken back by the other word.
func TestDeliverReservation(t *testing.T) {
	t.Run("delivered", func(t *testing.T) {
		b, hold, id := reservationIn(t, ledger.ReservationCaptured, deliveredByOthers)
		for range 2 {
			if err := b.deliver(id, true); err != nil {
				t.Fatal(err)
			}
		}
		b.wantCode(b.deliver(id, false), ledger.CodeReservationNotActive)
		b.drive(id, "")
		if r := b.reservationOf(hold.ID); r.Status != ledger.ReservationCompleted || r.DeliveredAt.IsZero() {
			t.Errorf("the reservation is %+v", r)
		}
		if err := b.deliver(id, true); err != nil {
			t.Error(err)
		}
		b.wantCode(b.deliver(id, false), ledger.CodeReservationNotActive)
		b.paidBooks()
	})
	t.Run("failed", func(t *testing.T) {
		b, hold, id := reservationIn(t, ledger.ReservationCaptured, deliveredByOthers)
		for range 2 {
			if err := b.deliver(id, false); err != nil {
				t.Fatal(err)
			}
			b.drive(id, "")
		}
		b.wantCode(b.deliver(id, true), ledger.CodeReservationNotActive)
		if r, h := b.reservationOf(hold.ID), b.storedHold(hold.ID); r.Status != ledger.ReservationRefunded || r.Reason != ledger.ReasonDeliveryFailed || h.Status != ledger.StatusReturned {
			t.Errorf("the reservation is %+v, the hold %s", r, h.Status)
		}
		b.paidBooks()
	})
	for _, status := range []ledger.ReservationStatus{
		ledger.ReservationPaymentPending, ledger.ReservationAuthorized, ledger.ReservationConfirmed, ledger.ReservationReview,
		ledger.ReservationCanceled,
	} {
		t.Run("not waited for/"+string(status), func(t *testing.T) {
			b, hold, id := reservationIn(t, status, deliveredByOthers)
			before := b.reservationOf(hold.ID)
			for _, delivered := range []bool{true, false} {
				b.wantCode(b.deliver(id, delivered), ledger.CodeReservationNotActive)
			}
			if after := b.reservationOf(hold.ID); after.Version != before.Version {
				t.Errorf("%+v became %+v", before, after)
			}
		})
	}
	t.Run("not of this kind", func(t *testing.T) {
		b, _, id := reservationIn(t, ledger.ReservationCaptured, nil)
		b.wantCode(b.deliver(id, false), ledger.CodeReservationNotActive)
		b.wantCode(b.deliver("rsv_unknown", true), ledger.CodeReservationNotFound)
	})
}

// P9: a hold whose payment attempt is open ends after unknown_max and not before, together
// with the record that its money is to be given back.
func TestP9_AHoldWithAnOpenAttemptEnds(t *testing.T) {
	b, hold, id := reservationIn(t, ledger.ReservationPaymentPending, nil)
	over := b.storedHold(hold.ID).ReleaseAt
	for _, at := range []time.Time{hold.ExpiresAt, over, over.Add(ledger.UnknownForDefault - time.Millisecond)} {
		b.clock.Set(at)
		released, err := b.commands.ExpireHold(t.Context(), hold.ID, "sweep")
		b.wantCode(err, ledger.CodeHoldNotDue)
		if released || b.storedHold(hold.ID).Status != ledger.StatusHeld {
			t.Errorf("at %s the hold is %+v", at, b.storedHold(hold.ID))
		}
	}
	b.clock.Set(over.Add(ledger.UnknownForDefault))
	for try := range 3 {
		released, err := b.commands.ExpireHold(t.Context(), hold.ID, "sweep")
		if err != nil || released != (try == 0) {
			t.Errorf("try %d: released %t, %v", try, released, err)
		}
	}
	r := b.reservationOf(hold.ID)
	if b.storedHold(hold.ID).Status != ledger.StatusExpired || r.Status != ledger.ReservationCompensating || r.Reason != ledger.ReasonPaymentUnknown || r.LookAt.IsZero() {
		t.Errorf("the reservation is %+v, the hold %s", r, b.storedHold(hold.ID).Status)
	}
	b.wantCounters("S", 2, 0, 0)
	b.drive(id, "")
	if r := b.reservationOf(hold.ID); r.Status != ledger.ReservationCanceled {
		t.Errorf("the reservation is %+v", r)
	}
	b.paidBooks()
}

// Two cancellations of different parts at once are both carried out, one after the other.
func TestTwoReturnsMeet(t *testing.T) {
	b, hold, id := reservationIn(t, ledger.ReservationCompleted, nil)
	met := false
	b.store.beforeCommit = func(int, ledger.Change) error {
		if met {
			return nil
		}
		met = true
		_, err := b.others.CancelReservation(t.Context(), request(""), id, []ledger.ReturnLine{oneUnit}, commands.CancelByOperator, renderReservation)
		return err
	}
	b.mustCancel(id, commands.CancelByOwner, oneUnit)
	b.store.beforeCommit = nil
	b.drive(id, "")
	if h := b.storedHold(hold.ID); !met || h.Status != ledger.StatusReturned {
		t.Errorf("the hold is %+v", h)
	}
	if book := b.bank.Book(id, "KRW"); book.RefundedMinor != 2000 {
		t.Errorf("the bank's book is %+v", book)
	}
	b.paidBooks()
}
