package reconcile_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/reconcile"
)

// unlisted is a ledger whose due index has lost some holds.
type unlisted struct {
	*busy
	lost []ledger.HoldID
}

func (u unlisted) hide(r ledger.Records) ledger.Records {
	for i, h := range r.Holds {
		if slices.Contains(u.lost, h.Hold.ID) {
			r.Holds[i].Due = false
		}
	}
	return r
}

func (u unlisted) ScanSegment(ctx context.Context, segment, total int, after ledger.Cursor) (ledger.RecordsPage, error) {
	page, err := u.busy.ScanSegment(ctx, segment, total, after)
	page.Records = u.hide(page.Records)
	return page, err
}

func (u unlisted) Records(ctx context.Context, of ledger.RecordsOf) (ledger.Records, error) {
	r, err := u.busy.Records(ctx, of)
	return u.hide(r), err
}

// audit runs the audit of one process.
func (w *busy) audit(segments reconcile.Segments, store reconcile.Reader, payments reconcile.Payments) reconcile.Report {
	w.Helper()
	report, err := reconcile.Audit(w.Context(), reconcile.AuditPorts{
		Segments: segments, Store: store, Payments: payments, Clock: w.clock,
		Wait: func(_ context.Context, pause time.Duration) error {
			w.clock.Advance(pause)
			return nil
		},
	})
	w.check(err)
	return report
}

// B8: what the index lists and what the table has are compared by every audit, and each hold
// that differs is named.
func TestCaseB8_TheAuditComparesTheIndexWithTheTable(t *testing.T) {
	w := newBusy(t, 8, 3)
	var ids []ledger.HoldID
	for hour := range 24 {
		ids = append(ids, w.mustHold("owner-b8", "quiet", 1), w.mustHold("owner-b8", "quiet", 1))
		w.pay(ids[2*hour+1], ledger.ReservationPaymentPending)
	}
	if report := w.audit(w, w, nil); len(report.Findings) > 0 {
		t.Errorf("nothing is lost, and the audit finds %v", report.Findings)
	}
	u := unlisted{w, []ledger.HoldID{ids[4], ids[17]}}
	report := w.audit(u, u, nil)
	if len(report.Findings) != 2 {
		t.Errorf("two holds are lost, and the audit finds %v", report.Findings)
	}
	for _, f := range report.Findings {
		if f.Kind != reconcile.FindingDueIndexHole || !slices.Contains(u.lost, f.Hold) || reconcile.Plan(f).Do != reconcile.ActionRepairHold {
			t.Errorf("found %v", f)
		}
	}
}

// M3: what waits for a person, or for the provider, is nothing wrong, and nothing is to be done
// about it.
func TestCaseM3_TheAuditLeavesWhatWaitsAlone(t *testing.T) {
	w := newBusy(t, 9, 3)
	review := w.mustHold("owner-m3", "quiet", 2)
	w.pay(review, ledger.ReservationReview)
	w.pay(w.mustHold("owner-m3", "quiet", 2), ledger.ReservationPaymentPending)
	w.clock.Advance(10 * time.Minute)
	report := w.audit(w, w, nil)
	if len(report.Findings) > 0 {
		t.Errorf("the audit finds %v", report.Findings)
	}
	if held, err := w.Hold(t.Context(), review); err != nil || held.Status != ledger.StatusHeld {
		t.Errorf("the hold is %s, %v", held.Status, err)
	}
}

// A payment of the provider that no reservation knows is found, and so is money that only a
// reservation knows of; neither is while it is young, and none that agrees is.
func TestPaymentsAreComparedBothWays(t *testing.T) {
	w := newBusy(t, 10, 3)
	w.quiet = true
	bank := paymenttest.NewBank(w.clock.Now)
	provider := paymenttest.NewProvider(bank)
	known := w.pay(w.mustHold("owner-pay", "quiet", 1), ledger.ReservationPaymentPending)
	ghost := w.pay(w.mustHold("owner-pay", "quiet", 1), ledger.ReservationPaymentPending)
	made, err := provider.Create(t.Context(), payment.NewCreation(known.ID, 1, known.Amount))
	w.check(err)
	stranger, err := provider.Create(t.Context(), payment.NewCreation("rsv_stranger", 1, known.Amount))
	w.check(err)
	w.authorized(known, made.ID)
	w.authorized(ghost, "pi_of_nobody")
	if report := w.audit(w, w, provider); len(report.Findings) > 0 {
		t.Errorf("all is young, and the audit finds %v", report.Findings)
	}
	w.clock.Advance(reconcile.PaymentSettledAfter + 2*time.Minute)
	found := map[reconcile.FindingKind]reconcile.Finding{}
	for _, f := range w.audit(w, w, provider).Findings {
		found[f.Kind] = f
	}
	if len(found) != 2 || found[reconcile.FindingPaymentUnknown].Payment != stranger.ID || found[reconcile.FindingPaymentMissing].Reservation != ghost.ID {
		t.Errorf("found %v; want payment %s unknown, and the one of %s missing", found, stranger.ID, ghost.ID)
	}
}

// authorized records that the reservation's attempt has that payment, and its money.
func (b *bazaar) authorized(r ledger.Reservation, id ledger.PaymentID) {
	b.Helper()
	next := r.Clone()
	next.Status, next.Attempts[0].State, next.Attempts[0].Payment = ledger.ReservationAuthorized, ledger.AttemptAuthorized, id
	b.check(b.store.Commit(b.Context(), ledger.ReservationStep(r, next, ledger.EventReservationAuthorized, nil, b.origin(), b.clock.Now())))
}
