package stripetest

import (
	"net/http"
	"slices"
	"strconv"

	"holdfast/shared/ledger"
	"holdfast/shared/payment/paymenttest"
)

func (s *Server) refund(c call) answer {
	amount, err := strconv.ParseInt(c.form.Get("amount"), 10, 64)
	if err != nil {
		return errorAnswer(http.StatusBadRequest, "invalid_request_error", "parameter_invalid_integer", "Invalid integer: amount")
	}
	if p, err := s.bank.LookUp(ledger.PaymentID(c.form.Get("payment_intent"))); err == nil && !carriesReference(c, p) {
		return errorAnswer(http.StatusBadRequest, "invalid_request_error", "", "Only refunds that carry their reference and key are served here")
	}
	made, err := s.bank.Refund(c.key, ledger.PaymentID(c.form.Get("payment_intent")), amount)
	if err != nil {
		c.id = c.form.Get("payment_intent")
		a := s.refusal(err, c)
		a.replayed = made.Replayed
		return a
	}
	return answer{status: http.StatusOK, body: refundJSON(made.Payment, made.Refund), replayed: made.Replayed}
}

func (s *Server) listRefunds(c call) answer {
	found, err := s.bank.LookUp(ledger.PaymentID(c.form.Get("payment_intent")))
	if err != nil {
		return s.refusal(err, c)
	}
	slices.Reverse(found.Refunds) // Stripe lists the newest first
	data := make([]any, 0, len(found.Refunds))
	for _, r := range found.Refunds {
		data = append(data, refundJSON(found, r))
	}
	return list(c, "/v1/refunds", data)
}

// carriesReference reports whether the metadata of a refund is what refundJSON shows.
// Stripe shows what was sent; the bank keeps only the key, so anything else is refused.
func carriesReference(c call, p paymenttest.Payment) bool {
	for name, value := range metadata(p) {
		if c.form.Get("metadata["+name+"]") != value {
			return false
		}
	}
	return c.form.Get("metadata[holdfast_key]") == string(c.key)
}

func refundJSON(p paymenttest.Payment, r paymenttest.Refund) map[string]any {
	marks := metadata(p)
	marks["holdfast_key"] = string(r.Key)
	body := map[string]any{
		"id": string(r.ID), "object": "refund", "amount": r.AmountMinor, "charge": chargeJSON(p)["id"], "created": unix(r.CreatedAt),
		"currency": lower(p.Amount.Currency), "metadata": marks, "payment_intent": string(p.ID), "reason": nil, "status": string(r.Status),
	}
	if r.Status == paymenttest.RefundFailed {
		body["failure_reason"] = "expired_or_canceled_card"
	}
	return body
}
