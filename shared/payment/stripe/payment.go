package stripe

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
)

var (
	errNotUnderstood = errors.New("the answer is not understood")
	errReference     = errors.New("the reference can't be read")
)

// understood makes an answer of Stripe a payment of the port. An answer without an id or
// with a status that is not known says nothing.
func understood(intent *stripe.PaymentIntent, err error) (payment.Payment, error) {
	if err != nil {
		return payment.Payment{}, meaning(err)
	}
	status, known := statusOf(string(intent.Status), intent.LastPaymentError != nil)
	if !known || intent.ID == "" {
		return payment.Payment{}, &payment.Error{Kind: payment.KindUnreachable, Cause: errNotUnderstood}
	}
	reservation, attempt, err := referenceOf(intent.Metadata)
	if err != nil {
		// Somebody wrote over it. The caller compares the reference and finds it wrong.
		reservation, attempt = "", 0
	}
	p := payment.Payment{
		ID: ledger.PaymentID(intent.ID), Status: status,
		Amount:        ledger.Money{AmountMinor: intent.Amount, Currency: currencyOf(string(intent.Currency))},
		CapturedMinor: intent.AmountReceived,
		Reservation:   reservation, Attempt: attempt, Secret: payment.NewSecret(intent.ClientSecret),
	}
	charge := intent.LatestCharge
	charged := charge != nil && charge.Status == stripe.ChargeStatusSucceeded
	switch status {
	case payment.StatusAuthorized:
		p.AuthorizedMinor = intent.AmountCapturable
	case payment.StatusCaptured:
		p.AuthorizedMinor = intent.AmountReceived
		if charged {
			p.AuthorizedMinor, p.RefundedMinor = charge.Amount, charge.AmountRefunded
		}
	case payment.StatusPending, payment.StatusRequiresAction, payment.StatusDeclined, payment.StatusVoided:
		// A voided authorization shows as refunded at its charge. Nothing was captured, so
		// nothing was refunded.
	}
	if charged && charge.Created > 0 {
		p.AuthorizedAt = time.Unix(charge.Created, 0).UTC()
	}
	return p, nil
}

// statusOf is Stripe's status in the port's words. A payment that waits for a payment
// method is new, or was declined if Stripe remembers an error.
func statusOf(status string, failed bool) (payment.Status, bool) {
	switch stripe.PaymentIntentStatus(status) {
	case stripe.PaymentIntentStatusRequiresPaymentMethod:
		if failed {
			return payment.StatusDeclined, true
		}
		return payment.StatusPending, true
	case stripe.PaymentIntentStatusRequiresConfirmation, stripe.PaymentIntentStatusProcessing:
		return payment.StatusPending, true
	case stripe.PaymentIntentStatusRequiresAction:
		return payment.StatusRequiresAction, true
	case stripe.PaymentIntentStatusRequiresCapture:
		return payment.StatusAuthorized, true
	case stripe.PaymentIntentStatusSucceeded:
		return payment.StatusCaptured, true
	case stripe.PaymentIntentStatusCanceled:
		return payment.StatusVoided, true
	}
	return "", false
}

func currencyOf(code string) ledger.Currency { return ledger.Currency(strings.ToUpper(code)) }

// referenceOf reads what we wrote on a payment or refund. Both are empty when there is
// nothing of ours.
func referenceOf(metadata map[string]string) (ledger.ReservationID, ledger.AttemptNumber, error) {
	reservation, ours := metadata[metadataReservation]
	if !ours {
		return "", 0, nil
	}
	attempt, err := strconv.ParseInt(metadata[metadataAttempt], 10, 32)
	if err != nil || attempt < 1 || !ledger.ValidName(reservation) {
		return "", 0, errReference
	}
	return ledger.ReservationID(reservation), ledger.AttemptNumber(attempt), nil
}
