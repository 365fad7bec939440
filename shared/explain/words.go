package explain

import (
	"fmt"
	"strings"

	"holdfast/shared/ledger"
)

// what says in words what the event is, beside what it moved and what it did to the money.
// before is the event before of the same subject, the zero one for the first.
func what(e, before ledger.TracedEvent) string {
	switch {
	case e.Type == ledger.EventAuditRepaired:
		return "the audit put right how it is stored"
	case e.Hold != nil:
		return whatHold(e, before)
	case e.Reservation != nil:
		return whatReservation(*e.Reservation, e.Type)
	case e.Slot != nil:
		return whatSlot(*e.Slot, before.Slot)
	}
	return string(e.Type)
}

func whatHold(e, before ledger.TracedEvent) string {
	h := *e.Hold
	switch e.Type {
	case ledger.EventHoldCreated:
		return fmt.Sprintf("%s holds %s, until %s", owner(h.Owner), lines(h), clock(h.ExpiresAt))
	case ledger.EventHoldChanged:
		return changedHold(h, before.Hold)
	case ledger.EventHoldPaymentStarted:
		return fmt.Sprintf("payment attempt %d of %s began; the hold is kept until %s for it", h.AttemptOpen, h.Reservation, clock(h.ReleaseAt))
	case ledger.EventHoldPaymentClosed:
		return "no payment attempt is open any more"
	case ledger.EventHoldConfirmed:
		return "what was held is sold: " + lines(h)
	case ledger.EventHoldCanceled:
		return "the hold was given up: its units are available again"
	case ledger.EventHoldExpired:
		if len(e.Movements) == 0 {
			return "the hold is over; its units go to the sale that its late payment makes"
		}
		return "the hold is over: its units are available again"
	case ledger.EventHoldReacquired:
		return fmt.Sprintf("a late payment of hold %s was let count: %s sold after all", h.Reacquires, lines(h))
	case ledger.EventHoldReturned:
		return returned(h, before.Hold)
	default:
		return string(e.Type)
	}
}

// changedHold says what an edit changed.
func changedHold(h ledger.Hold, before *ledger.Hold) string {
	var parts []string
	if before == nil || lines(h) != lines(*before) {
		parts = append(parts, "it holds "+lines(h)+" now")
		if before != nil {
			parts[0] += ", in place of " + lines(*before)
		}
	}
	if before == nil || !h.ExpiresAt.Equal(before.ExpiresAt) {
		parts = append(parts, "it lives until "+clock(h.ExpiresAt)+" now")
	}
	if len(parts) == 0 {
		return "the hold was changed in no line and no time"
	}
	return strings.Join(parts, "; ")
}

// returned says how much of each line is given back, over all times.
func returned(h ledger.Hold, before *ledger.Hold) string {
	var parts []string
	for i, line := range h.Lines {
		was := ledger.Units(0)
		if before != nil && i < len(before.Lines) {
			was = before.Lines[i].ReturnedQuantity()
		}
		if now := line.ReturnedQuantity() - was; now > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s", now, line.Slot))
		}
	}
	left := "nothing of the sale is left"
	if h.Status == ledger.StatusConfirmed {
		left = "the rest stays sold"
	}
	return strings.Join(parts, ", ") + " were given back after the sale; " + left
}

// lines are what the hold is of: "2 of seat at 1000 KRW".
func lines(h ledger.Hold) string {
	parts := make([]string, len(h.Lines))
	for i, line := range h.Lines {
		parts[i] = fmt.Sprintf("%d of %s at %d %s", line.Quantity, line.Slot, line.UnitPrice.AmountMinor, line.UnitPrice.Currency)
	}
	return strings.Join(parts, ", ")
}

func owner(id ledger.OwnerID) string { return "owner " + string(id) }

func whatReservation(r ledger.Reservation, t ledger.EventType) string {
	switch t {
	case ledger.EventReservationPaymentStarted:
		return fmt.Sprintf("the buyer may pay %s for hold %s", amount(r.Amount.AmountMinor, r.Amount.Currency), r.Hold)
	case ledger.EventReservationPaymentCreated:
		return "the provider has begun the payment"
	case ledger.EventReservationPaymentClosed:
		return "a payment attempt can't succeed any more"
	case ledger.EventReservationPaymentNoticed:
		return "the provider told of something that changes nothing"
	case ledger.EventReservationAuthorized:
		return "the money is there" + because(r.Reason)
	case ledger.EventReservationConfirmed:
		return "hold " + string(r.SoldHold) + " is sold to it; the money is to be captured"
	case ledger.EventReservationCaptured:
		return "the money is taken; what was bought is to be delivered"
	case ledger.EventReservationDelivered:
		return "another system has delivered"
	case ledger.EventReservationCompleted:
		return "captured and delivered"
	case ledger.EventReservationCompensating:
		return "it is being taken back: no money may stay" + because(r.Reason)
	case ledger.EventReservationCanceled:
		return "ended without money" + because(r.Reason)
	case ledger.EventReservationRefundOwed:
		return "money is to be given back"
	case ledger.EventReservationRefundEnded:
		return "the provider has answered about a refund"
	case ledger.EventReservationRefunded:
		return "ended; all money was given back" + because(r.Reason)
	case ledger.EventReservationRefundRequired:
		return "money is owed, and the provider will not give it back by itself: a person must see to it"
	case ledger.EventReservationReview:
		return "a person must decide" + because(r.Reason)
	default:
		return string(t)
	}
}

// because is the reason, in the words of the API.
func because(reason ledger.Reason) string {
	if reason == "" {
		return ""
	}
	return " (" + string(reason) + ")"
}

// whatSlot says what the slot is, or what changed.
func whatSlot(s ledger.Slot, before *ledger.Slot) string {
	if before == nil {
		return fmt.Sprintf("the slot was defined: %s %s, %d %s each, %s, over %d shards",
			s.ResourceType, s.ResourceID, s.Terms.Price.AmountMinor, s.Terms.Price.Currency, openWord(s.Terms.Open), s.Terms.Shards)
	}
	var parts []string
	if s.Terms.Open != before.Terms.Open {
		parts = append(parts, "it is "+openWord(s.Terms.Open)+" now")
	}
	if s.Terms.Price != before.Terms.Price {
		parts = append(parts, fmt.Sprintf("its price is %d %s, and was %d %s", s.Terms.Price.AmountMinor, s.Terms.Price.Currency, before.Terms.Price.AmountMinor, before.Terms.Price.Currency))
	}
	if s.Terms.Shards != before.Terms.Shards || s.Terms.Retired != before.Terms.Retired {
		parts = append(parts, fmt.Sprintf("its stock is spread over %d shards, with %d retired, and was over %d, with %d", s.Terms.Shards, s.Terms.Retired, before.Terms.Shards, before.Terms.Retired))
	}
	if s.Oversold != before.Oversold {
		parts = append(parts, fmt.Sprintf("%d units of it are oversold, and %d were", s.Oversold, before.Oversold))
	}
	if len(parts) == 0 {
		return "its units, its times, its attributes or its policy changed"
	}
	return strings.Join(parts, "; ")
}

func openWord(open bool) string {
	if open {
		return "open"
	}
	return "closed"
}
