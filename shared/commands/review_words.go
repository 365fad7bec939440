package commands

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/shared/ledger"
)

// Fact is one thing that is known of what a case is about, for people.
type Fact struct {
	Name, Text string
}

// messageOf is what an error says to people, without its code.
func messageOf(err error) string {
	if e := (*ledger.Error)(nil); errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

// reviewReasons say why a reservation waits for a person.
var reviewReasons = map[ledger.Reason]string{
	ledger.ReasonLate:           "its payment came after the hold was over",
	ledger.ReasonMismatch:       "its payment is not what was asked for",
	ledger.ReasonDeliveryFailed: "it was paid, and what was bought could not be delivered",
}

// Summary says in one sentence why the case is there.
func (c Case) Summary() string {
	r := c.Reservation
	switch c.Review.Kind {
	case ledger.ReviewReservation:
		if why, known := reviewReasons[r.Reason]; known {
			return why
		}
		return "a person must decide"
	case ledger.ReviewRefund:
		if owed := c.leftMinor(); owed > 0 {
			return c.money(owed) + " are owed back, and the provider does not give them"
		}
		return "a payment could not be stopped, and may still take money"
	case ledger.ReviewExpiry:
		return fmt.Sprintf("the hold is over, and ending it has failed %d times", c.Failures.Count)
	case ledger.ReviewEvent:
		if c.Event.Quarantine != nil {
			return "the event can't be published as it is: " + c.Event.Quarantine.Reason
		}
		return "the event could not be published as it was"
	case ledger.ReviewFinding:
		return c.Review.Finding + ": " + c.Review.Subject
	}
	return ""
}

// settledText says how a case came to its end without a decision.
func (c Case) settledText() string {
	switch c.Review.Kind {
	case ledger.ReviewReservation, ledger.ReviewRefund:
		return "the reservation is " + string(c.Reservation.Status)
	case ledger.ReviewExpiry:
		return "the hold is not parked any more"
	case ledger.ReviewEvent:
		return "the event is not in quarantine any more"
	case ledger.ReviewFinding: // its own record says whether it waits
	}
	return "it has settled itself"
}

// Facts are what an operator needs to know to decide.
func (c Case) Facts() []Fact {
	var facts []Fact
	switch c.Review.Kind {
	case ledger.ReviewReservation, ledger.ReviewRefund:
		facts = append(c.moneyFacts(), c.holdFacts()...)
	case ledger.ReviewExpiry:
		facts = c.expiryFacts()
	case ledger.ReviewEvent:
		facts = c.eventFacts()
	case ledger.ReviewFinding:
		facts = []Fact{{"subject", c.Review.Subject}, {"finding", c.Review.Finding}, {"evidence", c.Review.Evidence}}
	}
	if d := c.Review; d.Decision != "" {
		facts = append(facts, Fact{"last decision", fmt.Sprintf("%s, by %s at %s: %s", d.Decision, d.DecidedBy, timeText(d.DecidedAt), d.Why)})
	}
	return facts
}

func (c Case) moneyFacts() []Fact {
	r := c.Reservation
	status := string(r.Status)
	if r.Reason != "" {
		status += ", because of " + string(r.Reason)
	}
	facts := []Fact{
		{"reservation", string(r.ID)}, {"owner", string(r.Owner)}, {"status", status + ", since " + timeText(r.UpdatedAt)},
		{"asked for", c.money(r.Amount.AmountMinor)},
	}
	var taken, given int64
	for _, a := range r.Attempts {
		taken += a.CapturedMinor
		given += r.RefundedMinor(a.Number, ledger.RefundDone)
	}
	facts = append(facts, Fact{"taken", c.money(taken)}, Fact{"given back", c.money(given)}, Fact{"owed back", c.money(c.leftMinor())})
	for _, a := range r.Attempts {
		facts = append(facts, Fact{fmt.Sprintf("payment %d", a.Number), attemptText(a)})
	}
	for _, refund := range r.Refunds {
		facts = append(facts, Fact{fmt.Sprintf("refund %d", refund.Number), c.refundText(refund)})
	}
	return facts
}

// leftMinor is what was taken and must not stay, and was not given back.
func (c Case) leftMinor() int64 {
	var left int64
	r := c.Reservation
	for _, a := range r.Attempts {
		if a.Unwanted || r.Status == ledger.ReservationRefundRequired || r.Status == ledger.ReservationCompensating {
			left += a.CapturedMinor - r.RefundedMinor(a.Number, ledger.RefundDone)
		} else {
			left += r.RefundedMinor(a.Number, ledger.RefundOwed, ledger.RefundFailed)
		}
	}
	return left
}

// money tells a sum in the smallest unit of its currency, as the whole API does.
func (c Case) money(minor int64) string {
	return fmt.Sprintf("%d %s", minor, c.Reservation.Amount.Currency)
}

func attemptText(a ledger.Attempt) string {
	text := string(a.State)
	if a.Payment != "" {
		text = string(a.Payment) + ", " + text
	} else {
		text += ", never answered by the provider"
	}
	if !a.AuthorizedAt.IsZero() {
		text += ", authorized at " + timeText(a.AuthorizedAt)
	}
	if a.Unwanted {
		text += "; its money must not stay"
	}
	return text
}

func (c Case) refundText(refund ledger.Refund) string {
	text := fmt.Sprintf("%s of payment %d, %s (%s), owed since %s", c.money(refund.AmountMinor), refund.Attempt, refund.State, refund.Reason, timeText(refund.OwedAt))
	if refund.Again > 0 {
		text += fmt.Sprintf(", asked for again %d times", refund.Again)
	}
	if refund.ByHand {
		text += ", by hand"
	}
	return text
}

func (c Case) holdFacts() []Fact {
	if c.HoldUnreadable != nil {
		return []Fact{{"hold is", "not readable: " + c.HoldUnreadable.Error()}}
	}
	h := c.Hold
	lines := make([]string, len(h.Lines))
	for i, line := range h.Lines {
		lines[i] = fmt.Sprintf("%d of %s", line.Quantity, line.Slot)
	}
	return []Fact{
		{"hold", string(h.ID)}, {"hold is", fmt.Sprintf("%s, its time is over at %s", h.Status, timeText(h.ReleaseAt))}, {"units", strings.Join(lines, ", ")},
	}
}

func (c Case) expiryFacts() []Fact {
	facts := c.holdFacts()
	if c.HoldUnreadable == nil {
		facts = append(facts, Fact{"owner", string(c.Hold.Owner)})
	}
	if !c.Failures.DueAt.IsZero() {
		facts = append(facts, Fact{"due since", timeText(c.Failures.DueAt)}, Fact{"failed", fmt.Sprintf("%d times", c.Failures.Count)})
	}
	if r := c.Reservation; r.ID != "" {
		facts = append(facts, Fact{"reservation", fmt.Sprintf("%s, %s, with an open payment", r.ID, r.Status)})
	}
	return facts
}

func (c Case) eventFacts() []Fact {
	e := c.Event
	facts := []Fact{{"event", c.Name}, {"stored at", e.Item.String()}}
	switch {
	case e.Unreadable != nil:
		facts = append(facts, Fact{"event is", "not readable: " + e.Unreadable.Error()})
	case e.Event.ID != "":
		facts = append(facts, Fact{"event is", fmt.Sprintf("%s of %s, version %d, at %s", e.Event.Type, e.Event.Subject(), e.Event.Version, timeText(e.Event.OccurredAt))})
	}
	if q := e.Quarantine; q != nil {
		facts = append(facts, Fact{"set aside", fmt.Sprintf("at %s: %s", timeText(q.At), q.Reason)})
	}
	return facts
}

// effectText says what the decision does.
func (c Case) effectText(d ledger.ReviewDecision) string {
	left := c.money(c.leftMinor())
	switch c.Review.Kind {
	case ledger.ReviewReservation:
		return c.reservationEffect(d)
	case ledger.ReviewRefund:
		if d == ledger.DecisionRetry {
			return "the provider is asked again, now, to give back or to stop all that is left: " + left
		}
		return left + " are noted as given back by hand, and the reservation ends; the provider is asked for nothing"
	case ledger.ReviewExpiry:
		if d == ledger.DecisionRetry {
			return "the hold is put back among those that are due, and the next sweep tries to end it"
		}
		return "the hold ends now, as EXPIRED, and its units are on sale again"
	case ledger.ReviewEvent:
		if d == ledger.DecisionRetry {
			return "the event is published by the next redrive, if what was wrong is mended"
		}
		return "the event stays in quarantine and is never published; the ledger keeps it"
	default:
		return "the case is closed as it is; the audit opens it again when it sees something else"
	}
}

func (c Case) reservationEffect(d ledger.ReviewDecision) string {
	sold := c.Hold.Status == ledger.StatusConfirmed
	end := "the hold is released"
	if sold {
		end = "the sale is taken back"
	}
	switch {
	case d == ledger.DecisionApprove && sold:
		return "the payment counts, and what was sold is delivered again"
	case d == ledger.DecisionApprove:
		return "the payment counts: it buys the units if both are still there, and is given back otherwise"
	case d == ledger.DecisionVoid:
		return "the reserved money is let go, and " + end
	default:
		return "all of its money is given back or let go, and " + end
	}
}

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339) }
