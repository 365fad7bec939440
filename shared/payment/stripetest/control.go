package stripetest

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment/paymenttest"
)

// actions are what a buyer or a bank can do with a payment, by the last part of
// /_test/payments/{id}/{action}.
var actions = map[string]func(*paymenttest.Bank, string) (paymenttest.Payment, error){
	"pay":             (*paymenttest.Bank).Pay,
	"decline":         (*paymenttest.Bank).Decline,
	"require-action":  (*paymenttest.Bank).RequireAction,
	"complete-action": (*paymenttest.Bank).CompleteAction,
	"lapse":           (*paymenttest.Bank).Lapse,
	"late-authorization": func(b *paymenttest.Bank, id string) (paymenttest.Payment, error) {
		return b.LateSuccess(id, false)
	},
	"late-capture": func(b *paymenttest.Bank, id string) (paymenttest.Payment, error) {
		return b.LateSuccess(id, true)
	},
}

// control adds the routes for a person at a terminal. They need no key: the server
// listens on loopback and holds no real money.
func (s *Server) control(mux *http.ServeMux) {
	mux.HandleFunc("GET /_test/payments", func(w http.ResponseWriter, _ *http.Request) {
		all := []any{}
		for _, p := range s.bank.Payments() {
			all = append(all, view(p))
		}
		s.write(w, answer{status: http.StatusOK, body: all})
	})
	mux.HandleFunc("POST /_test/payments/{id}/{action}", func(w http.ResponseWriter, r *http.Request) {
		act, known := actions[r.PathValue("action")]
		if !known {
			s.write(w, errorAnswer(http.StatusNotFound, "invalid_request_error", "", "no such action"))
			return
		}
		p, err := act(s.bank, s.paymentNamed(r.PathValue("id")))
		s.writeAct(w, p, err)
	})
	mux.HandleFunc("POST /_test/refunds/{id}/fail", func(w http.ResponseWriter, r *http.Request) {
		p, err := s.bank.FailRefund(paymenttest.RefundID(r.PathValue("id")))
		s.writeAct(w, p, err)
	})
	mux.HandleFunc("POST /_test/scripts", s.controlScript)
	mux.HandleFunc("POST /_test/faults", s.controlFault)
	mux.HandleFunc("DELETE /_test/faults", func(w http.ResponseWriter, _ *http.Request) {
		s.ClearFaults()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /_test/webhooks", func(w http.ResponseWriter, _ *http.Request) {
		types := []string{}
		for _, waiting := range s.Queue() {
			types = append(types, waiting.Event.Type)
		}
		s.write(w, answer{status: http.StatusOK, body: map[string]any{"waiting": types, "given_up": s.GivenUp()}})
	})
	mux.HandleFunc("POST /_test/webhooks", func(w http.ResponseWriter, r *http.Request) {
		s.SetWebhookFaults(WebhookFaults{Never: yes(r, "never"), Twice: yes(r, "twice"), Paused: yes(r, "paused")})
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /_test/webhooks/deliver", s.controlDeliver)
}

// view is a payment without its secret.
func view(p paymenttest.Payment) map[string]any {
	return map[string]any{
		"id": string(p.ID), "reservation_id": string(p.Reservation), "attempt": int(p.Attempt), "status": string(p.Status),
		"amount_minor": p.Amount.AmountMinor, "currency": string(p.Amount.Currency), "authorized_minor": p.AuthorizedMinor,
		"captured_minor": p.CapturedMinor, "refunded_minor": p.RefundedMinor, "refunds": refundIDs(p),
	}
}

func refundIDs(p paymenttest.Payment) []string {
	ids := []string{}
	for _, r := range p.Refunds {
		ids = append(ids, string(r.ID))
	}
	return ids
}

// paymentNamed lets a person name a payment by its reservation: the last one of it.
func (s *Server) paymentNamed(name string) string {
	for _, p := range slices.Backward(s.bank.Payments()) {
		if string(p.Reservation) == name {
			return string(p.ID)
		}
	}
	return name
}

func (s *Server) writeAct(w http.ResponseWriter, p paymenttest.Payment, err error) {
	s.Collect()
	if err != nil {
		s.write(w, s.refusal(err, call{}))
		return
	}
	s.write(w, answer{status: http.StatusOK, body: view(p)})
}

func yes(r *http.Request, name string) bool { return r.FormValue(name) == "true" }

// whole reads an integer that may be missing, which is zero.
func whole(r *http.Request, name string) (int64, error) {
	if r.FormValue(name) == "" {
		return 0, nil
	}
	return strconv.ParseInt(r.FormValue(name), 10, 64)
}

func (s *Server) controlScript(w http.ResponseWriter, r *http.Request) {
	amount, err := whole(r, "amount_minor")
	attempt, err2 := whole(r, "attempt")
	if err != nil || err2 != nil {
		s.write(w, errorAnswer(http.StatusBadRequest, "invalid_request_error", "", "amount_minor and attempt are integers"))
		return
	}
	script := paymenttest.Script{
		AmountMinor: amount, Currency: ledger.Currency(r.FormValue("currency")), VoidLies: yes(r, "void_lies"),
		CreateRefused: yes(r, "create_refused"), CaptureRefused: yes(r, "capture_refused"), RefundRefused: yes(r, "refund_refused"),
	}
	if reservation := ledger.ReservationID(r.FormValue("reservation")); reservation != "" {
		s.bank.SetScript(reservation, ledger.AttemptNumber(attempt), script)
	} else {
		s.bank.SetDefaultScript(script)
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) controlFault(w http.ResponseWriter, r *http.Request) {
	calls, err := whole(r, "calls")
	delay, err2 := whole(r, "delay_ms")
	status, err3 := whole(r, "http_status")
	if err != nil || err2 != nil || err3 != nil {
		s.write(w, errorAnswer(http.StatusBadRequest, "invalid_request_error", "", "calls, delay_ms and http_status are integers"))
		return
	}
	outcome := Outcome(r.FormValue("outcome"))
	if outcome != "" && !slices.Contains([]Outcome{RequestLost, AnswerLost, ErrorInstead, ErrorAfter}, outcome) {
		s.write(w, errorAnswer(http.StatusBadRequest, "invalid_request_error", "", "no such outcome"))
		return
	}
	s.AddFault(Fault{
		Method: paymenttest.Method(r.FormValue("method")), Reservation: ledger.ReservationID(r.FormValue("reservation")),
		Calls: int(calls), Outcome: outcome, Delay: time.Duration(delay) * time.Millisecond,
		Error: ErrorAnswer{HTTPStatus: int(status), Type: r.FormValue("type"), Code: r.FormValue("code"), Message: r.FormValue("message")},
	})
	w.WriteHeader(http.StatusNoContent)
}

// controlDeliver delivers what is paused, in order or, with order=reversed, the newest
// first.
func (s *Server) controlDeliver(w http.ResponseWriter, r *http.Request) {
	answers := []int{}
	for range s.Queue() {
		place := 0
		if r.FormValue("order") == "reversed" {
			place = max(0, len(s.Queue())-1)
		}
		status, err := s.Deliver(r.Context(), place)
		if err != nil {
			s.write(w, errorAnswer(http.StatusBadGateway, "api_error", "", err.Error()))
			return
		}
		answers = append(answers, status)
	}
	s.write(w, answer{status: http.StatusOK, body: answers})
}
