package stripetest

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
)

// The parameters of each route that this server knows.
var (
	createFields      = []string{"amount", "currency", "capture_method", "payment_method_types", "metadata", "expand"}
	lookUpFields      = []string{"expand", "client_secret"}
	listFields        = []string{"limit", "expand", "created", "starting_after"}
	confirmFields     = []string{"client_secret", "payment_method", "expand", "return_url"}
	captureFields     = []string{"amount_to_capture", "expand"}
	cancelFields      = []string{"cancellation_reason", "expand"}
	refundFields      = []string{"payment_intent", "amount", "metadata", "expand"}
	listRefundsFields = []string{"payment_intent", "limit", "expand"}
)

// The payment methods that a buyer may confirm with: Stripe's own test methods.
const (
	CardGood           = "pm_card_visa"
	CardDeclined       = "pm_card_chargeDeclined"
	CardRequiresAction = "pm_card_authenticationRequired"
)

var currencyPattern = regexp.MustCompile(`^[a-z]{3}$`)

func (s *Server) create(c call) answer {
	amount, err := strconv.ParseInt(c.form.Get("amount"), 10, 64)
	if err != nil {
		return errorAnswer(http.StatusBadRequest, "invalid_request_error", "parameter_invalid_integer", "Invalid integer: amount")
	}
	currency := c.form.Get("currency")
	if !currencyPattern.MatchString(currency) {
		return errorAnswer(http.StatusBadRequest, "invalid_request_error", "", "Invalid currency")
	}
	if c.form.Get("capture_method") != "manual" {
		return errorAnswer(http.StatusBadRequest, "invalid_request_error", "", "Only capture_method=manual is served here")
	}
	attempt, err := strconv.Atoi(c.form.Get("metadata[holdfast_attempt]"))
	if err != nil {
		return errorAnswer(http.StatusBadRequest, "invalid_request_error", "", "Only payments with a reference are served here")
	}
	made, err := s.bank.Create(payment.Creation{
		Key:         c.key,
		Amount:      ledger.Money{AmountMinor: amount, Currency: ledger.Currency(strings.ToUpper(currency))},
		Reservation: ledger.ReservationID(c.form.Get("metadata[holdfast_reservation]")),
		Attempt:     ledger.AttemptNumber(attempt),
	})
	return s.paymentAnswer(c, made, err)
}

func (s *Server) lookUp(c call) answer {
	found, err := s.bank.LookUp(ledger.PaymentID(c.id))
	return s.paymentAnswer(c, paymenttest.Answer{Payment: found}, err)
}

func (s *Server) capture(c call) answer {
	id := ledger.PaymentID(c.id)
	amount, err := strconv.ParseInt(c.form.Get("amount_to_capture"), 10, 64)
	if c.form.Has("amount_to_capture") && err != nil {
		return errorAnswer(http.StatusBadRequest, "invalid_request_error", "parameter_invalid_integer", "Invalid integer: amount_to_capture")
	}
	if !c.form.Has("amount_to_capture") {
		p, err := s.bank.LookUp(id)
		if err != nil {
			return s.refusal(err, c)
		}
		amount = p.AuthorizedMinor
	}
	captured, err := s.bank.Capture(c.key, id, amount)
	return s.paymentAnswer(c, captured, err)
}

func (s *Server) cancel(c call) answer {
	voided, err := s.bank.Void(c.key, ledger.PaymentID(c.id))
	return s.paymentAnswer(c, voided, err)
}

// confirm is the buyer's device. It knows the payment's secret, and the card that it pays
// with decides what happens.
func (s *Server) confirm(c call) answer {
	p, err := s.bank.LookUp(ledger.PaymentID(c.id))
	if err != nil {
		return s.refusal(err, c)
	}
	if secret := c.form.Get("client_secret"); secret != "" && secret != p.Secret.Reveal() {
		return errorAnswer(http.StatusBadRequest, "invalid_request_error", "payment_intent_invalid_parameter", "The client_secret is not this payment's")
	}
	switch c.form.Get("payment_method") {
	case CardDeclined:
		if p, err = s.bank.Decline(c.id); err == nil {
			a := errorAnswer(http.StatusPaymentRequired, "card_error", "card_declined", "Your card was declined.")
			withPayment(a, p)
			return a
		}
	case CardRequiresAction:
		p, err = s.bank.RequireAction(c.id)
	default:
		p, err = s.bank.Pay(c.id)
	}
	return s.paymentAnswer(c, paymenttest.Answer{Payment: p}, err)
}

// listPayments lists the newest first, as Stripe does, from the one after starting_after on.
func (s *Server) listPayments(c call) answer {
	all := s.bank.Payments()
	slices.Reverse(all)
	if after := c.form.Get("starting_after"); after != "" {
		i := slices.IndexFunc(all, func(p paymenttest.Payment) bool { return string(p.ID) == after })
		if i < 0 {
			return errorAnswer(http.StatusBadRequest, "invalid_request_error", paymenttest.CodeMissing, "No such payment_intent")
		}
		all = all[i+1:]
	}
	since, err := strconv.ParseInt(cmp.Or(c.form.Get("created[gte]"), "0"), 10, 64)
	if err != nil {
		return errorAnswer(http.StatusBadRequest, "invalid_request_error", "parameter_invalid_integer", "Invalid integer: created[gte]")
	}
	data := make([]any, 0, len(all))
	for _, p := range all {
		if p.CreatedAt.Unix() >= since {
			data = append(data, paymentJSON(p, expands(c.form, "data.latest_charge")))
		}
	}
	return list(c, "/v1/payment_intents", data)
}

// list cuts data to the limit that was asked for, ten if none was.
func list(c call, path string, data []any) answer {
	limit, err := strconv.Atoi(c.form.Get("limit"))
	if err != nil || limit < 1 {
		limit = 10
	}
	more := len(data) > limit
	if more {
		data = data[:limit]
	}
	return answer{status: http.StatusOK, body: map[string]any{"object": "list", "url": path, "has_more": more, "data": data}}
}

func (s *Server) paymentAnswer(c call, a paymenttest.Answer, err error) answer {
	if err != nil {
		r := s.refusal(err, c)
		r.replayed = a.Replayed
		return r
	}
	return answer{status: http.StatusOK, body: paymentJSON(a.Payment, expands(c.form, "latest_charge")), replayed: a.Replayed}
}

func expands(form url.Values, name string) bool {
	for field, values := range form {
		if strings.HasPrefix(field, "expand") && slices.Contains(values, name) {
			return true
		}
	}
	return false
}

// refusals are the bank's codes as Stripe answers them.
var refusals = map[string]struct {
	status int
	kind   string
}{
	paymenttest.CodeMissing:         {http.StatusNotFound, "invalid_request_error"},
	paymenttest.CodeUnexpectedState: {http.StatusBadRequest, "invalid_request_error"},
	paymenttest.CodeAlreadyRefunded: {http.StatusBadRequest, "invalid_request_error"},
	paymenttest.CodeAmountTooLarge:  {http.StatusBadRequest, "invalid_request_error"},
	paymenttest.CodeInvalidInteger:  {http.StatusBadRequest, "invalid_request_error"},
	paymenttest.CodeProcessing:      {http.StatusPaymentRequired, "card_error"},
}

func (s *Server) refusal(err error, c call) answer {
	var refused *payment.Error
	if !errors.As(err, &refused) {
		return errorAnswer(http.StatusInternalServerError, "api_error", "", err.Error())
	}
	if refused.Code == paymenttest.CodeIdempotency {
		return errorAnswer(http.StatusBadRequest, "idempotency_error", "", "Keys for idempotent requests can only be used with the same parameters they were first used with.")
	}
	how, known := refusals[refused.Code]
	if !known {
		return errorAnswer(http.StatusInternalServerError, "api_error", "", "no answer for "+refused.Code)
	}
	a := errorAnswer(how.status, how.kind, refused.Code, refused.Cause.Error())
	if p, err := s.bank.LookUp(ledger.PaymentID(c.id)); err == nil && refused.Code == paymenttest.CodeUnexpectedState {
		withPayment(a, p)
	}
	return a
}

// withPayment puts the whole payment into an error, its secret included, as Stripe does.
func withPayment(a answer, p paymenttest.Payment) {
	body, isError := a.body.(map[string]any)["error"].(map[string]any)
	if isError {
		body["payment_intent"] = paymentJSON(p, false)
	}
}

// statuses are the port's statuses in Stripe's words.
var statuses = map[payment.Status]string{
	payment.StatusPending: "requires_payment_method", payment.StatusDeclined: "requires_payment_method",
	payment.StatusRequiresAction: "requires_action", payment.StatusAuthorized: "requires_capture",
	payment.StatusCaptured: "succeeded", payment.StatusVoided: "canceled",
}

func paymentJSON(p paymenttest.Payment, withCharge bool) map[string]any {
	body := map[string]any{
		"id": string(p.ID), "object": "payment_intent", "amount": p.Amount.AmountMinor, "amount_capturable": int64(0),
		"amount_received": p.CapturedMinor, "canceled_at": nil, "cancellation_reason": nil, "capture_method": "manual",
		"client_secret": p.Secret.Reveal(), "confirmation_method": "automatic", "created": p.CreatedAt.Unix(),
		"currency": lower(p.Amount.Currency), "customer": nil, "description": nil, "last_payment_error": nil,
		"latest_charge": nil, "livemode": false, "metadata": metadata(p), "next_action": nil, "payment_method": nil,
		"payment_method_types": []string{"card"}, "status": statuses[p.Status],
	}
	switch p.Status {
	case payment.StatusAuthorized:
		body["amount_capturable"] = p.AuthorizedMinor
	case payment.StatusDeclined:
		body["last_payment_error"] = map[string]any{
			"type": "card_error", "code": "card_declined", "decline_code": "generic_decline", "message": "Your card was declined.",
			"payment_method": map[string]any{"id": "pm_1", "object": "payment_method", "type": "card", "card": map[string]any{"brand": "visa", "last4": "0002"}},
		}
	case payment.StatusRequiresAction:
		body["next_action"] = map[string]any{"type": "use_stripe_sdk"}
	case payment.StatusPending, payment.StatusCaptured, payment.StatusVoided:
	}
	charge := chargeJSON(p)
	switch {
	case charge == nil:
	case withCharge:
		body["latest_charge"] = charge
	default:
		body["latest_charge"] = charge["id"]
	}
	return body
}

// chargeJSON is the payment's last charge; nil if no bank was asked yet.
func chargeJSON(p paymenttest.Payment) map[string]any {
	reserved := !p.AuthorizedAt.IsZero()
	if !reserved && p.Declines == 0 {
		return nil
	}
	refunded, status, created := p.RefundedMinor, "succeeded", p.AuthorizedAt
	switch {
	case !reserved:
		status, created = "failed", p.CreatedAt
	case p.Status == payment.StatusVoided:
		// A cancelled authorization shows as refunded in full.
		refunded = p.Amount.AmountMinor
	}
	return map[string]any{
		"id": "ch_" + strings.TrimPrefix(string(p.ID), "pi_"), "object": "charge", "amount": p.Amount.AmountMinor,
		"amount_captured": p.CapturedMinor, "amount_refunded": refunded, "captured": p.Status == payment.StatusCaptured,
		"created": unix(created), "currency": lower(p.Amount.Currency), "metadata": metadata(p), "paid": reserved,
		"payment_intent": string(p.ID), "refunded": reserved && refunded == p.Amount.AmountMinor, "status": status,
	}
}

func metadata(p paymenttest.Payment) map[string]string {
	return map[string]string{
		"holdfast_reservation": string(p.Reservation),
		"holdfast_attempt":     strconv.Itoa(int(p.Attempt)),
	}
}

func lower(c ledger.Currency) string { return strings.ToLower(string(c)) }

func unix(t time.Time) int64 { return t.Unix() }

// reservationOf is which reservation a call is about, for faults; empty if it can't be
// told.
func (s *Server) reservationOf(r route, c call) ledger.ReservationID {
	if r.method == paymenttest.MethodCreate {
		return ledger.ReservationID(c.form.Get("metadata[holdfast_reservation]"))
	}
	id := c.id
	if id == "" {
		id = c.form.Get("payment_intent")
	}
	p, err := s.bank.LookUp(ledger.PaymentID(id))
	if err != nil {
		return ""
	}
	return p.Reservation
}
