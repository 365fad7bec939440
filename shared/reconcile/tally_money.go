package reconcile

import "holdfast/shared/ledger"

// Money is a sum over all payment attempts and refunds of one currency, in minor units.
type Money struct {
	Captured int64 `json:"captured"` // taken from buyers
	Refunded int64 `json:"refunded"` // given back
	Owed     int64 `json:"owed"`     // to be given back, and not given back yet
}

func (m Money) plus(n Money) Money {
	return Money{m.Captured + n.Captured, m.Refunded + n.Refunded, m.Owed + n.Owed}
}

// moneyOf adds up the money of one reservation.
func moneyOf(r ledger.Reservation) Money {
	var sum Money
	for _, refund := range r.Refunds {
		switch refund.State {
		case ledger.RefundDone:
			sum.Refunded += refund.AmountMinor
		case ledger.RefundOwed, ledger.RefundFailed:
			sum.Owed += refund.AmountMinor
		}
	}
	for _, a := range r.Attempts {
		sum.Captured += a.CapturedMinor
	}
	return sum
}

// moneyFlaws require that what was taken is what was asked for, or is on its way back.
func moneyFlaws(r ledger.Reservation) []flaw {
	var flaws []flaw
	add := func(format string, args ...any) {
		flaws = append(flaws, flawed(FindingMoneyMismatch, "P8", "a step recorded another amount than it took or gave", format, args...))
	}
	sum := moneyOf(r)
	var kept int64 // of attempts whose money is wanted
	wanted := 0
	for _, a := range r.Attempts {
		back := refundsOf(r, a.Number)
		if back > a.CapturedMinor {
			add("attempt %d took %d and has refunds of %d", a.Number, a.CapturedMinor, back)
		}
		if a.State == ledger.AttemptCaptured && !a.Unwanted {
			wanted++
			kept = a.CapturedMinor
		} else if ended(r.Status) && r.Status != ledger.ReservationReview && back != a.CapturedMinor {
			add("it is %s, and attempt %d took %d that is not wanted, with refunds of %d", r.Status, a.Number, a.CapturedMinor, back)
		}
	}
	switch r.Status {
	case ledger.ReservationCaptured, ledger.ReservationCompleted:
		if r.Amount.AmountMinor > 0 && (wanted != 1 || kept != r.Amount.AmountMinor) {
			add("it is %s, and %d captures took %d where %d was quoted", r.Status, wanted, kept, r.Amount.AmountMinor)
		}
	case ledger.ReservationCanceled, ledger.ReservationRefunded:
		if sum.Captured != sum.Refunded {
			add("it is %s, and %d was taken and %d given back", r.Status, sum.Captured, sum.Refunded)
		}
	case ledger.ReservationPaymentPending, ledger.ReservationAuthorized, ledger.ReservationConfirmed,
		ledger.ReservationCompensating, ledger.ReservationRefundRequired, ledger.ReservationReview:
	}
	return flaws
}

// refundsOf adds up the refunds of one attempt, whatever became of them.
func refundsOf(r ledger.Reservation, n ledger.AttemptNumber) int64 {
	var total int64
	for _, refund := range r.Refunds {
		if refund.Attempt == n {
			total += refund.AmountMinor
		}
	}
	return total
}
