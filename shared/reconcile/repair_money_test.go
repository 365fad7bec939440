package reconcile_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/reconcile"
)

// captured sells the hold to its reservation, and takes the money.
func (b *bazaar) captured(id ledger.HoldID) ledger.Reservation {
	b.Helper()
	r := b.pay(id, ledger.ReservationPaymentPending)
	step := func(status ledger.ReservationStatus, event ledger.EventType, with func(next *ledger.Reservation) ledger.Change) {
		next := r.Clone()
		next.Status, next.LookAt = status, b.now().Add(time.Minute)
		beside := with(&next)
		change := ledger.ReservationStep(r, next, event, nil, b.origin(), b.now())
		if !beside.Empty() {
			change = ledger.Together(beside, change)
		}
		b.check(b.store.Commit(b.Context(), change))
		r = change.Reservations[0].Next
	}
	step(ledger.ReservationAuthorized, ledger.EventReservationAuthorized, func(next *ledger.Reservation) ledger.Change {
		next.Attempts[0].State, next.Attempts[0].AuthorizedAt = ledger.AttemptAuthorized, b.now()
		return ledger.Change{}
	})
	step(ledger.ReservationConfirmed, ledger.EventReservationConfirmed, func(next *ledger.Reservation) ledger.Change {
		hold, err := b.store.Hold(b.Context(), id)
		b.check(err)
		sold, err := ledger.ConfirmPaid(hold, b.origin(), b.now())
		b.check(err)
		next.SoldHold = id
		return sold
	})
	step(ledger.ReservationCaptured, ledger.EventReservationCaptured, func(next *ledger.Reservation) ledger.Change {
		next.Attempts[0].State, next.Attempts[0].CapturedMinor = ledger.AttemptCaptured, next.Amount.AmountMinor
		return ledger.Change{}
	})
	return r
}

// hasty are the findings of an audit that takes everything for overdue: it knows of no
// payment, and of no step that was taken since it looked.
func (b *bazaar) hasty() []reconcile.Finding {
	b.Helper()
	var found []reconcile.Finding
	for _, id := range b.holds {
		hole := b.holeFinding(id)
		hole.Proof.Version--
		found = append(found, ghostFinding(id), hole)
	}
	for _, id := range b.reservations {
		r, err := b.store.Reservation(b.Context(), id)
		b.check(err)
		found = append(found, reconcile.Finding{
			Kind: reconcile.FindingTimeToLive, Subject: string(id), Reservation: id, Proof: reconcile.Proof{Version: r.Version + 1}, // of a table that was restored
		})
	}
	return found
}

// unwritten runs a repairer over hasty findings, and requires that it writes nothing.
func (b *bazaar) unwritten(t *testing.T) {
	t.Helper()
	report, err := b.repairer(guarded{b.store, func(c ledger.Change) error {
		t.Errorf("at %s it writes %+v", b.now(), c)
		return errDown
	}}).Run(t.Context(), b.hasty(), true)
	if err != nil || report.Written() != 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

// auditedBeside runs a whole audit with that provider, and requires that nothing comes of it.
func (b *bazaar) auditedBeside(t *testing.T, provider reconcile.Payments) {
	t.Helper()
	report, err := reconcile.Audit(t.Context(), reconcile.AuditPorts{
		Segments: b.store, Store: b.store, Payments: provider, Clock: b.clock,
		Wait: func(context.Context, time.Duration) error { return nil },
	})
	if err != nil || len(report.Findings) > 0 {
		t.Errorf("at %s the audit finds %v, %v", b.now(), report.Findings, err)
	}
	repaired, err := b.repairer(guarded{b.store, func(ledger.Change) error {
		t.Errorf("at %s the audit's repair writes", b.now())
		return errDown
	}}).Run(t.Context(), report.Findings, true)
	if err != nil || repaired.Written() > 0 {
		t.Errorf("%+v, %v", repaired, err)
	}
}

// Case M3: old orders disappeared although the customer had paid. What is paid, and what may
// be, is neither released nor touched before unknown_max, however wrong the audit is about it;
// afterwards the units are released, with the compensation recorded as owed.
func TestCaseM3_NothingUnknownIsRepaired(t *testing.T) {
	b := newBazaar(t, 21)
	b.slot("S-1", 10, 1, 10*time.Minute)
	paid := b.captured(b.mustHold("U-1", "S-1", 2))
	doubt := b.pay(b.mustHold("U-2", "S-1", 3), ledger.ReservationReview)
	hold, err := b.store.Hold(t.Context(), doubt.Hold)
	b.check(err)
	dueAt, _ := hold.DueAt()
	if !dueAt.After(hold.ReleaseAt) {
		t.Fatalf("the hold is released at %s, and due at %s", hold.ReleaseAt, dueAt)
	}
	states := func() string {
		var text string
		for _, r := range []ledger.Reservation{paid, doubt} {
			stored, err := b.store.Reservation(t.Context(), r.ID)
			b.check(err)
			h, err := b.store.Hold(t.Context(), r.Hold)
			b.check(err)
			text += fmt.Sprintf("%s, hold %s; ", stored.Status, h.Status)
		}
		return text
	}
	const before = "CAPTURED, hold CONFIRMED; REVIEW, hold HELD; "
	for now := b.now(); now.Before(dueAt); now = now.Add(30 * time.Second) {
		b.clock.Set(now)
		b.unwritten(t)
		b.auditedBeside(t, &unreachable{})
		if got := states(); got != before {
			t.Fatalf("at %s: %s", now, got)
		}
	}
	b.clock.Set(dueAt)
	report := b.repaired([]reconcile.Finding{ghostFinding(doubt.Hold)})
	outcomes(t, report, done)
	if _, stock := b.storedSlot("S-1"); stock[0].Counters != (ledger.Counters{Available: 8, Confirmed: 2, Capacity: 10}) {
		t.Errorf("the stock is %+v", stock[0].Counters)
	}
	stored, err := b.store.Reservation(t.Context(), doubt.ID)
	if err != nil || stored.LookAt.IsZero() || stored.AtRest() {
		t.Errorf("nobody works on the compensation: %+v, %v", stored, err)
	}
	b.balanced()
}

// unreachable is a provider that answers nothing.
type unreachable struct{ asked int }

func (u *unreachable) Payments(context.Context, time.Time, ledger.Cursor) ([]payment.Listed, ledger.Cursor, error) {
	u.asked++
	return nil, "", &payment.Error{Kind: payment.KindUnreachable, Code: "503", Cause: errDown}
}

// Case M7: during an outage of the provider all open payments landed with the operators. The
// audit may say every minute what it likes: nothing that is under way is touched, and nobody
// is asked.
func TestCaseM7_OpenPaymentsStayOpenThroughAnOutage(t *testing.T) {
	const payments, minutes = 200, 120
	b := newBazaar(t, 22)
	b.slot("S-1", payments, 4, 3*time.Hour)
	for n := range payments {
		b.pay(b.mustHold(ledger.OwnerID(fmt.Sprintf("U-%d", n)), "S-1", 1), ledger.ReservationPaymentPending)
	}
	provider := &unreachable{}
	for minute := range minutes {
		b.clock.Advance(time.Minute)
		b.unwritten(t)
		if minute%10 == 0 {
			b.auditedBeside(t, provider)
		}
	}
	if provider.asked == 0 {
		t.Error("the audit does not ask the provider")
	}
	for _, id := range b.reservations {
		if r, err := b.store.Reservation(t.Context(), id); err != nil || r.Status != ledger.ReservationPaymentPending || r.Version != 1 {
			t.Errorf("%s is %s at version %d, %v", id, r.Status, r.Version, err)
		}
	}
	if waiting, _, err := b.store.InReview(t.Context(), ledger.Page{Limit: 1}); err != nil || len(waiting) > 0 {
		t.Errorf("waiting are %v, %v", waiting, err)
	}
	b.balanced()
}
