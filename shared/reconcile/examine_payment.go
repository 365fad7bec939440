package reconcile

import (
	"context"
	"fmt"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
)

const (
	// PaymentsWithin is how far back the provider's payments are compared. Money that is
	// older was compared by an audit before; the reservation may have left the table.
	PaymentsWithin = 48 * time.Hour
	// PaymentSettledAfter is how old a payment must be to be judged: until then the answer of
	// its creation, or the news of its capture, may be on its way to us.
	PaymentSettledAfter = 15 * time.Minute
	// paymentPagesMax bounds the pages of the provider's list: five million payments.
	paymentPagesMax = 100_000
)

// attemptOf names an attempt.
type attemptOf struct {
	reservation ledger.ReservationID
	attempt     attemptRow
}

// payments compares the provider's payments with the attempts of reservations, both ways. What
// differs is looked at again: the reservation as it is now, and the provider's list anew.
func (e *Examiner) payments(ctx context.Context, t *Tally) ([]Finding, error) {
	first, err := e.listed(ctx, t.rows.At)
	if err != nil {
		return nil, err
	}
	differs := false
	known := map[ledger.PaymentID]bool{}
	for id, row := range t.rows.Reservations {
		for _, a := range row.Attempts {
			known[a.Payment] = true
			differs = differs || missingWords(t.rows.At, attemptOf{id, a}, first) != ""
		}
	}
	for id := range first {
		differs = differs || !known[id]
	}
	if !differs {
		return nil, nil
	}
	if err := e.Wait(ctx, LookPause); err != nil {
		return nil, err
	}
	second, err := e.listed(ctx, t.rows.At)
	if err != nil {
		return nil, err
	}
	found, err := e.missing(ctx, t, second)
	if err != nil {
		return nil, err
	}
	for id, p := range second {
		if known[id] || first[id].ID == "" {
			continue
		}
		f, err := e.unknown(ctx, p)
		if err != nil {
			return nil, err
		}
		found = append(found, f...)
	}
	return found, nil
}

// listed are the provider's payments that are old enough to be judged.
func (e *Examiner) listed(ctx context.Context, at time.Time) (map[ledger.PaymentID]payment.Listed, error) {
	all := map[ledger.PaymentID]payment.Listed{}
	var after ledger.Cursor
	for range paymentPagesMax {
		page, next, err := e.Payments.Payments(ctx, at.Add(-PaymentsWithin), after)
		if err != nil {
			return nil, err
		}
		for _, p := range page {
			if p.CreatedAt.Before(at.Add(-PaymentSettledAfter)) {
				all[p.ID] = p
			}
		}
		if after = next; after == "" {
			return all, nil
		}
	}
	return nil, fmt.Errorf("the provider's list has more than %d pages", paymentPagesMax)
}

// missingWords says how an attempt that has money differs from what the provider has, or "".
func missingWords(at time.Time, a attemptOf, listed map[ledger.PaymentID]payment.Listed) string {
	holds := a.attempt.State == ledger.AttemptCaptured || a.attempt.State == ledger.AttemptAuthorized
	judged := a.attempt.OpenedAt.After(at.Add(ClockSkewMax-PaymentsWithin)) && a.attempt.OpenedAt.Before(at.Add(-PaymentSettledAfter-ClockSkewMax))
	if !holds || !judged {
		return ""
	}
	p, found := listed[a.attempt.Payment]
	switch {
	case a.attempt.Payment == "":
		return fmt.Sprintf("attempt %d is %s, and has no payment", a.attempt.Number, a.attempt.State)
	case !found:
		return fmt.Sprintf("attempt %d is %s by payment %s, which the provider does not have", a.attempt.Number, a.attempt.State, a.attempt.Payment)
	case p.CapturedMinor < a.attempt.Captured:
		return fmt.Sprintf("attempt %d took %d by payment %s, of which the provider took %d", a.attempt.Number, a.attempt.Captured, a.attempt.Payment, p.CapturedMinor)
	}
	return ""
}

// missing are the attempts that have money which the provider does not have.
func (e *Examiner) missing(ctx context.Context, t *Tally, listed map[ledger.PaymentID]payment.Listed) ([]Finding, error) {
	var found []Finding
	for id, row := range t.rows.Reservations {
		for _, a := range row.Attempts {
			if missingWords(t.rows.At, attemptOf{id, a}, listed) == "" {
				continue
			}
			r, err := e.Store.Records(ctx, ledger.RecordsOf{Reservation: id})
			if err != nil {
				return nil, err
			}
			for _, stored := range r.Reservations {
				found = append(found, e.missingNow(t, stored.Reservation, a, listed)...)
			}
		}
	}
	return found, nil
}

func (e *Examiner) missingNow(t *Tally, r ledger.Reservation, a attemptRow, listed map[ledger.PaymentID]payment.Listed) []Finding {
	now := r.Attempt(a.Number)
	if now == nil {
		return nil
	}
	row := attemptRow{now.Number, now.State, now.Payment, now.CapturedMinor, now.OpenedAt}
	words := missingWords(t.rows.At, attemptOf{r.ID, row}, listed)
	if words == "" {
		return nil
	}
	return []Finding{{
		Kind: FindingPaymentMissing, Promise: "P8", Subject: "reservation " + string(r.ID), Reservation: r.ID, Payment: now.Payment, Evidence: words,
		Cause: "the reservation recorded money of a payment that is another one, or none", Proof: Proof{At: e.Clock.Now(), Version: r.Version},
	}}
}

// unknown is the finding of a payment that no reservation knows, if it has or had money, or can
// still get it.
func (e *Examiner) unknown(ctx context.Context, p payment.Listed) ([]Finding, error) {
	if p.Status == payment.StatusVoided {
		return nil, nil // no money can come of it
	}
	of := p.Reservation
	if claimed, is, err := e.Store.Claimed(ctx, ledger.UniqueProviderPayment, string(p.ID)); err != nil {
		return nil, err
	} else if is {
		of = claimed.Reservation
	}
	if of != "" {
		r, err := e.Store.Records(ctx, ledger.RecordsOf{Reservation: of})
		if err != nil {
			return nil, err
		}
		for _, stored := range r.Reservations {
			for _, a := range stored.Reservation.Attempts {
				// An attempt without a payment asks for it under its own key, and finds this one.
				if a.Payment == p.ID || a.Payment == "" && a.Number == p.Attempt {
					return nil, nil
				}
			}
		}
	}
	return []Finding{{
		Kind: FindingPaymentUnknown, Promise: "P8", Subject: "payment " + string(p.ID), Payment: p.ID,
		Evidence: fmt.Sprintf("the provider has it as %s since %s, with %d authorized, %d captured and %d refunded, for reservation %q, which does not know it",
			p.Status, p.CreatedAt.Format(time.RFC3339), p.AuthorizedMinor, p.CapturedMinor, p.RefundedMinor, p.Reservation),
		Cause: "it was begun by somebody else, or its reservation was lost", Proof: Proof{At: e.Clock.Now()},
	}}, nil
}
