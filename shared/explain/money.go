package explain

import (
	"fmt"
	"slices"

	"holdfast/shared/ledger"
)

// MoneyStep is one thing that happened to the money, in minor units, and the sums right after.
type MoneyStep struct {
	What  string   `json:"what"`
	After MoneySum `json:"after"`
}

// MoneySum is what a reservation's money adds up to, in minor units of Currency.
type MoneySum struct {
	Currency ledger.Currency `json:"currency"`
	// Captured was taken, Refunded given back, and Owed is to be given back still.
	Captured int64 `json:"captured_minor"`
	Refunded int64 `json:"refunded_minor"`
	Owed     int64 `json:"owed_minor"`
	// Kept is what is left when all that is owed is given back.
	Kept int64 `json:"kept_minor"`
}

// moneyBook follows reservations through their events.
type moneyBook map[ledger.ReservationID]ledger.Reservation

// take compares the reservation with how it was in its event before.
func (b moneyBook) take(now ledger.Reservation) []MoneyStep {
	was := b[now.ID]
	b[now.ID] = now
	var out []MoneyStep
	tell := func(format string, args ...any) {
		out = append(out, MoneyStep{fmt.Sprintf(format, args...), *b.sum()})
	}
	for _, a := range now.Attempts {
		var before ledger.Attempt
		if found := was.Attempt(a.Number); found != nil {
			before = *found
		}
		b.attempt(tell, before, a, now.Amount)
	}
	for _, refund := range now.Refunds {
		i := slices.IndexFunc(was.Refunds, func(r ledger.Refund) bool { return r.Number == refund.Number })
		switch {
		case i < 0:
			tell("refund %d of %s is owed for attempt %d: %s", refund.Number, amount(refund.AmountMinor, now.Amount.Currency), refund.Attempt, refund.Reason)
		case was.Refunds[i].State == refund.State:
			continue
		}
		switch refund.State {
		case ledger.RefundDone:
			tell("refund %d of %s was given back", refund.Number, amount(refund.AmountMinor, now.Amount.Currency))
		case ledger.RefundFailed:
			tell("refund %d of %s failed: a person must see to it", refund.Number, amount(refund.AmountMinor, now.Amount.Currency))
		case ledger.RefundOwed:
			if i >= 0 {
				tell("refund %d of %s is owed again", refund.Number, amount(refund.AmountMinor, now.Amount.Currency))
			}
		}
	}
	return out
}

// attempt tells what is new of one attempt.
func (moneyBook) attempt(tell func(string, ...any), was, is ledger.Attempt, of ledger.Money) {
	if was.Number == 0 {
		tell("attempt %d was opened for %s", is.Number, amount(of.AmountMinor, of.Currency))
	}
	if was.Payment != is.Payment && is.Payment != "" {
		tell("attempt %d is payment %s at the provider", is.Number, is.Payment)
	}
	if is.Unwanted && !was.Unwanted {
		tell("attempt %d is not wanted any more: its money must not stay", is.Number)
	}
	if was.State == is.State && was.CapturedMinor == is.CapturedMinor {
		return
	}
	switch is.State {
	case ledger.AttemptAuthorized:
		tell("attempt %d was authorized", is.Number)
	case ledger.AttemptCaptured:
		tell("attempt %d was captured: %s", is.Number, amount(is.CapturedMinor, of.Currency))
	case ledger.AttemptVoided:
		tell("attempt %d was voided: no money can come by it any more", is.Number)
	case ledger.AttemptOpen:
		if was.Number != 0 {
			tell("attempt %d may be paid again", is.Number)
		}
	}
}

// sum adds the reservations up; nil where there is none.
func (b moneyBook) sum() *MoneySum {
	if len(b) == 0 {
		return nil
	}
	total := MoneySum{}
	for _, r := range b {
		total = total.plus(moneyOf(r))
	}
	return &total
}

func (m MoneySum) plus(o MoneySum) MoneySum {
	return MoneySum{o.Currency, m.Captured + o.Captured, m.Refunded + o.Refunded, m.Owed + o.Owed, m.Kept + o.Kept}
}

// moneyOf is what one reservation adds up to as it is.
func moneyOf(r ledger.Reservation) MoneySum {
	sum := MoneySum{Currency: r.Amount.Currency, Owed: r.OwedMinor()}
	for _, a := range r.Attempts {
		sum.Captured += a.CapturedMinor
		sum.Refunded += r.RefundedMinor(a.Number, ledger.RefundDone)
	}
	sum.Kept = sum.Captured - sum.Refunded - sum.Owed
	return sum
}

// amount writes money in minor units, as the ledger counts it: how many of them make a unit is
// the currency's to say.
func amount(minor int64, currency ledger.Currency) string {
	return fmt.Sprintf("%d %s (minor units)", minor, currency)
}
