package sim

import (
	"fmt"
	"net/http"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/topology"
)

const (
	// buyerActsMin and buyerActsMax are how long a buyer's device takes to the provider.
	buyerActsMin, buyerActsMax = 5 * time.Millisecond, 200 * time.Millisecond
	// buyerThinksMax is how long a buyer takes between two acts at most.
	buyerThinksMax = 15 * time.Second
)

// preparePaid fills in a request about a reservation, and reports whether there is one.
func (w *world) preparePaid(r *request) bool {
	r.paid = w.books.holds[r.about].now.Reservation
	if r.paid == "" {
		return false
	}
	path := "/v1/reservations/" + string(r.paid)
	switch r.kind {
	case askSession:
		r.path = path + "/payment-session"
	case askReadPaid:
		r.method, r.path = http.MethodGet, path
	case askDelivery:
		r.path, r.scope, r.body = path+"/delivery", topology.ScopeConfirm, fmt.Sprintf(`{"delivered":%t}`, r.delivered)
	default:
		r.path, r.body = path+"/cancel", returnBody(r.lines)
		if r.client == operatorSubject {
			r.scope, r.groups = topology.ScopeOperate, []string{operatorGroup}
		}
	}
	return true
}

func returnBody(lines []wish) string {
	type line struct {
		Slot     ledger.SlotID `json:"slot_id"`
		Quantity ledger.Units  `json:"quantity"`
	}
	if len(lines) == 0 {
		return `{}`
	}
	var back []line
	for _, wanted := range lines {
		back = append(back, line{wanted.slot, wanted.quantity})
	}
	return mustJSON(map[string]any{"lines": back})
}

// learnSecret keeps what the answer lets the buyer's device pay with.
func (w *world) learnSecret(t *try) {
	if !t.answered || t.status >= http.StatusBadRequest {
		return
	}
	if secret := secretOf(t.body); secret != "" {
		w.secrets[reservationOf(t.body)] = secret
	}
}

// buy lets a buyer act with the secret that the shop's page has, or asks for it first.
func (w *world) buy(t *task, p plan) {
	hold := w.books.holds[w.holdOf(p.hold)]
	if hold == nil || hold.now.Reservation == "" {
		w.trace.add("%s: there is nothing to pay", p)
		return
	}
	id := hold.now.Reservation
	if w.secrets[id] == "" {
		session := p
		session.kind = askSession
		w.ask(t, session)
	}
	secret := w.secrets[id]
	if secret == "" {
		w.trace.add("%s: the buyer has no secret", p)
		return
	}
	t.wait(t.dice.between(buyerActsMin, buyerActsMax))
	act := func(name string, do func(string) (paymenttest.Payment, error)) bool {
		_, err := w.bank.act(fmt.Sprintf("%s: %s", p, name), func() (paymenttest.Payment, error) { return do(secret) })
		return err == nil
	}
	bank := w.bank.real
	switch p.act {
	case buyerPays:
		act("pay", bank.Pay)
	case buyerPaysTwice:
		act("pay", bank.Pay)
		t.wait(t.dice.between(0, time.Second))
		act("pay", bank.Pay)
	case buyerDeclined:
		act("decline", bank.Decline)
	case buyerDeclinedPays:
		act("decline", bank.Decline)
		t.wait(t.dice.between(0, buyerThinksMax))
		act("pay", bank.Pay)
	case buyerAskedNeverDoes:
		act("ask for a proof", bank.RequireAction)
	case buyerProves:
		act("ask for a proof", bank.RequireAction)
		t.wait(t.dice.between(0, buyerThinksMax))
		act("prove", bank.CompleteAction)
	}
}
