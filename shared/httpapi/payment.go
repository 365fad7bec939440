package httpapi

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/system"
)

// providerUnavailable is the answer when there is no provider to be asked, or one that tells
// no secret.
func providerUnavailable(cause string) error {
	return &ledger.Error{
		Code: ledger.CodePaymentUnavailable, Message: "the payment provider can't be asked now; ask again a little later",
		Cause: errors.New(cause),
	}
}

// StartPayment opens a payment attempt for the caller's hold. A provider that does not
// answer in time is no error: the attempt is recorded, and the answer has no secret.
func (a *API) StartPayment(_ http.ResponseWriter, r *http.Request, id HoldID, params StartPaymentParams) {
	x := exchangeOf(r)
	if a.payments == nil {
		x.fail(providerUnavailable("this API was built without a payment provider"))
		return
	}
	request, err := x.request("owner", params.IdempotencyKey, meaning{ID: id})
	if err != nil {
		x.fail(err)
		return
	}
	answer, secret, err := a.payments.Start(r.Context(), request, ledger.HoldID(id), renderReservation(http.StatusAccepted))
	if err != nil {
		x.fail(err)
		return
	}
	if answer.Unasked != nil {
		x.causes = append(x.causes, fmt.Errorf("the payment is begun, and its secret could not be had: %w", answer.Unasked))
	}
	if answer.Response.Body, err = withSecret(answer.Response.Body, secret); err != nil {
		x.fail(err)
		return
	}
	x.answerCommand(answer)
}

// OpenPaymentSession fetches the secret of the caller's open attempt.
func (a *API) OpenPaymentSession(_ http.ResponseWriter, r *http.Request, id ReservationID) {
	x := exchangeOf(r)
	if a.payments == nil {
		x.fail(providerUnavailable("this API was built without a payment provider"))
		return
	}
	reservation, hold, secret, err := a.payments.Session(r.Context(), x.caller.Principal.Subject, ledger.ReservationID(id))
	if err == nil && secret.Empty() {
		err = providerUnavailable("the provider tells no secret of the open attempt")
	}
	if err != nil {
		x.fail(err)
		return
	}
	body, err := json.Marshal(reservationAt(reservation, hold, system.Millisecond(a.clock)))
	if err == nil {
		body, err = withSecret(body, secret)
	}
	if err != nil {
		x.fail(fmt.Errorf("write the answer: %w", err))
		return
	}
	x.answer(http.StatusOK, body)
}

// withSecret puts the client secret at the end of a rendered reservation. What is rendered
// is kept to be answered again and must not have it; and what was kept is given again to
// the byte, with only the secret added. An empty secret adds nothing.
func withSecret(body []byte, secret payment.Secret) ([]byte, error) {
	if secret.Empty() {
		return body, nil
	}
	const end = '}'
	if len(body) < len("{}") || body[len(body)-1] != end {
		return nil, errors.New("a rendered reservation is no JSON object")
	}
	out := make([]byte, 0, len(body)+len(secret.Reveal())+len(`,"client_secret":""`))
	out = append(append(out, body[:len(body)-1]...), `,"client_secret":`...)
	out, err := jsontext.AppendQuote(out, secret.Reveal())
	if err != nil {
		return nil, errors.New("the provider's secret is no text") // the cause could repeat it
	}
	return append(out, end), nil
}
