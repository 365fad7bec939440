package httpapi

import (
	"strings"
	"time"

	"holdfast/shared/ledger"
)

// outcome is what has become of a reservation, in the words of its buyer: one answer about
// the units and one about the money. It follows from the reservation, its hold and the
// time alone.
type outcome struct {
	stock ReservationStock
	money ReservationMoney
	// capturedMinor is all money that was taken, refundedMinor what of it was given back,
	// and owedMinor what of it is still to be given back.
	capturedMinor, refundedMinor, owedMinor int64
	message                                 string
}

// outcomeOf tells what has become of r at now. h is the hold that shownHold names.
func outcomeOf(r ledger.Reservation, h ledger.Hold, now time.Time) outcome {
	var o outcome
	o.addMoney(r)
	o.stock = stockOf(r, h, now)
	o.money = o.moneyOf(r, h, now)
	o.message = o.messageOf(r)
	return o
}

// shownHold is the hold that tells what happened to the units: the one that was sold, or
// while there is none, the one that is paid for.
func shownHold(r ledger.Reservation) ledger.HoldID {
	if r.SoldHold != "" {
		return r.SoldHold
	}
	return r.Hold
}

// ofOneMoment reports whether r and h can have been true together. They are read one after
// the other, and the sale changes both in one step.
func ofOneMoment(r ledger.Reservation, h ledger.Hold) bool {
	sold := h.Status == ledger.StatusConfirmed || h.Status == ledger.StatusReturned
	switch r.Status {
	case ledger.ReservationPaymentPending, ledger.ReservationAuthorized:
		return !sold
	case ledger.ReservationConfirmed, ledger.ReservationCaptured, ledger.ReservationCompleted:
		return sold
	default:
		return true
	}
}

// addMoney adds up the money. All of an attempt that is not wanted is owed, also while no
// refund of it is recorded yet; of one that is wanted, the refunds that are not given.
func (o *outcome) addMoney(r ledger.Reservation) {
	for _, a := range r.Attempts {
		given := r.RefundedMinor(a.Number, ledger.RefundDone)
		o.capturedMinor += a.CapturedMinor
		o.refundedMinor += given
		if a.Unwanted || takenBack(r.Status) {
			o.owedMinor += a.CapturedMinor - given
		} else {
			o.owedMinor += r.RefundedMinor(a.Number, ledger.RefundOwed, ledger.RefundFailed)
		}
	}
}

// takenBack reports whether no money of a reservation of this status may stay.
func takenBack(s ledger.ReservationStatus) bool {
	return s == ledger.ReservationCompensating || s == ledger.ReservationRefundRequired
}

func (o outcome) keptMinor() int64 { return o.capturedMinor - o.refundedMinor - o.owedMinor }

// stockOf tells what happened to the units. Late money may still buy them after the hold
// has ended, so while the reservation is AUTHORIZED an ended hold is not the last word.
func stockOf(r ledger.Reservation, h ledger.Hold, now time.Time) ReservationStock {
	switch h.StatusAt(now) {
	case ledger.StatusHeld:
		return ReservationStockHeld
	case ledger.StatusPaymentChecking:
		return ReservationStockChecking
	case ledger.StatusConfirmed:
		for _, line := range h.Lines {
			if line.ReturnedQuantity() > 0 {
				return ReservationStockPartlyReturned
			}
		}
		return ReservationStockConfirmed
	case ledger.StatusReturned:
		return ReservationStockReturned
	default:
		if r.Status == ledger.ReservationAuthorized {
			return ReservationStockChecking
		}
		return ReservationStockReleased
	}
}

// moneyOf tells what happened to the money. What is owed comes before what is kept, and
// both before what may still come.
func (o outcome) moneyOf(r ledger.Reservation, h ledger.Hold, now time.Time) ReservationMoney {
	switch {
	case r.Status == ledger.ReservationRefundRequired, o.owedMinor > 0 && hasFailedRefund(r):
		return ReservationMoneyRefundNeedsHelp
	case o.owedMinor > 0:
		return ReservationMoneyRefundOnItsWay
	case o.keptMinor() > 0:
		return ReservationMoneyCaptured
	case hasAttempt(r, ledger.AttemptAuthorized):
		return ReservationMoneyAuthorized
	case r.Status == ledger.ReservationPaymentPending && h.StatusAt(now) == ledger.StatusHeld:
		return ReservationMoneyExpected
	case hasAttempt(r, ledger.AttemptOpen):
		return ReservationMoneyChecking
	case o.refundedMinor > 0:
		return ReservationMoneyRefunded
	}
	return ReservationMoneyNone
}

func hasFailedRefund(r ledger.Reservation) bool {
	for _, refund := range r.Refunds {
		if refund.State == ledger.RefundFailed {
			return true
		}
	}
	return false
}

func hasAttempt(r ledger.Reservation, s ledger.AttemptState) bool {
	for _, a := range r.Attempts {
		if a.State == s {
			return true
		}
	}
	return false
}

// reasonSentences tell why a reservation is not simply paid. What was returned is told by
// the sentence about the units.
var reasonSentences = map[ledger.Reason]string{
	ledger.ReasonDeclined:          "The payment was declined.",
	ledger.ReasonRefused:           "The payment could not be started.",
	ledger.ReasonExpired:           "The time was over before it was paid.",
	ledger.ReasonHoldCanceled:      "You gave the hold up.",
	ledger.ReasonOwnerCanceled:     "You cancelled the reservation.",
	ledger.ReasonOperatorCanceled:  "The seller cancelled the reservation.",
	ledger.ReasonPaymentUnknown:    "The payment could not be made sure of in time.",
	ledger.ReasonLate:              "The payment was received after the reservation was over.",
	ledger.ReasonSoldOut:           "The payment was received after the reservation was over and the units were gone.",
	ledger.ReasonMismatch:          "The payment was not the one that was asked for.",
	ledger.ReasonAuthorizationLost: "The money that was reserved could not be taken.",
	ledger.ReasonDeliveryFailed:    "What you bought could not be delivered.",
	ledger.ReasonSurplus:           "It was paid more than once.",
	ledger.ReasonReturned:          "",
}

// messageOf says it all in at most four sentences: why, the units, the money, what is next.
func (o outcome) messageOf(r ledger.Reservation) string {
	var sentences []string
	for _, s := range []string{o.why(r), o.unitsSentence(r), o.moneySentence(r), nextSentence(r)} {
		if s != "" {
			sentences = append(sentences, s)
		}
	}
	return strings.Join(sentences, " ")
}

// why tells what the buyer could wonder about.
func (o outcome) why(r ledger.Reservation) string {
	if r.Reason != "" {
		return reasonSentences[r.Reason]
	}
	switch r.Status {
	case ledger.ReservationCompensating:
		return "The reservation is being cancelled."
	case ledger.ReservationCanceled, ledger.ReservationRefunded, ledger.ReservationRefundRequired:
		return "The reservation was cancelled."
	default:
		return ""
	}
}

func (o outcome) unitsSentence(r ledger.Reservation) string {
	switch {
	case o.stock == ReservationStockReleased && r.Reason == ledger.ReasonSoldOut:
		return "" // the reason has said it
	case r.Status == ledger.ReservationCompensating && (o.stock == ReservationStockHeld || o.stock == ReservationStockChecking):
		return "The units are being released."
	case r.Status == ledger.ReservationCompensating && o.stock == ReservationStockConfirmed:
		return "The sale is being taken back."
	}
	switch o.stock {
	case ReservationStockHeld:
		return "The units are held for you."
	case ReservationStockChecking:
		return "Whether you get the units is being checked."
	case ReservationStockConfirmed:
		return "The units are yours."
	case ReservationStockPartlyReturned:
		return "A part of the units was given back, and the rest is yours."
	case ReservationStockReturned:
		return "All units were given back."
	case ReservationStockReleased:
		return "The units are no longer held for you."
	}
	return ""
}

func (o outcome) moneySentence(r ledger.Reservation) string {
	switch o.money {
	case ReservationMoneyNone:
		if r.Amount.AmountMinor == 0 {
			return "Nothing has to be paid."
		}
		return "No money was taken."
	case ReservationMoneyExpected:
		return "The payment has not been made yet."
	case ReservationMoneyChecking:
		if r.Status == ledger.ReservationCompensating {
			return "The payment is being stopped; if it succeeds all the same, the money is given back."
		}
		return "Whether the payment was made is being checked."
	case ReservationMoneyAuthorized:
		if r.Status == ledger.ReservationCompensating {
			return "The money is reserved, was not taken, and is being released."
		}
		return "The money is reserved and was not taken yet."
	case ReservationMoneyCaptured:
		if o.refundedMinor > 0 {
			return "The payment was taken, and a part of it was refunded."
		}
		return "The payment was taken."
	case ReservationMoneyRefundOnItsWay:
		if o.keptMinor() > 0 {
			return "The payment was taken, and a refund of a part of it is on its way."
		}
		return "A refund is on its way."
	case ReservationMoneyRefunded:
		return "All of the money was refunded."
	case ReservationMoneyRefundNeedsHelp:
		if o.owedMinor == 0 {
			return "The payment could not be stopped by itself; a person is taking care of it."
		}
		return "The refund could not be made by itself; a person is taking care of it."
	}
	return ""
}

func nextSentence(r ledger.Reservation) string {
	switch {
	case r.Status == ledger.ReservationCaptured && r.DeliveredAt.IsZero():
		return "What you bought is being delivered."
	case r.Status == ledger.ReservationReview:
		return "A person is looking at it and will decide."
	}
	return ""
}
