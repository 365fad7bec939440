package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/shared/ledger"
	"holdfast/shared/topology"
)

const (
	// triesMax bounds how often a client sends one request.
	triesMax = 6
	// gatewayGivesUpAfter is when a client without an answer gets the gateway's 503.
	gatewayGivesUpAfter = topology.IntegrationTimeout
	operatorGroup       = "ops"
	operatorSubject     = "operator"
	// keyInProgressFor is what a client waits that is told that its request is under way.
	keyInProgressFor = 10 * time.Second
)

// request is a planned request as it is sent, and all that came of it.
type request struct {
	plan
	name      string
	method    string
	path      string
	scope     topology.Scope
	subject   string
	body      string
	quoted    map[ledger.SlotID]int64
	about     ledger.HoldID        // the hold that it is about
	paid      ledger.ReservationID // the reservation that it is about
	groups    []string
	reference ledger.PaymentReference
	tries     []*try
}

// idempotency is what makes two requests meet: the owner, the operation and the key.
func (r *request) idempotency() string { return r.subject + "/" + string(r.kind) + "/" + r.key }

// try is one time that a request was sent.
type try struct {
	task       string // the call of the function that works on it
	begin, end time.Time
	answered   bool // by the function; otherwise the gateway said 503
	status     int
	headers    map[string]string
	body       string
	clock      *nodeClock // of the instance that answered
	answer     answer     // the body, as far as it is judged
	// had is what the hold of an edit had that was refused as short.
	had map[ledger.SlotID]ledger.Units
}

// play sends a planned request until it is answered, and judges every answer.
func (w *world) play(t *task, p plan) {
	if p.kind == askBuyer {
		w.buy(t, p)
		return
	}
	w.ask(t, p)
}

// ask sends a request until it is answered.
func (w *world) ask(t *task, p plan) {
	r, ready := w.prepare(p)
	if !ready {
		w.trace.add("%s: there is no hold", p)
		return
	}
	w.requests = append(w.requests, r)
	w.current[t.name] = r
	repeat := t.dice.chance(w.faults.ClientRepeats)
	for range triesMax {
		one := w.send(t, r)
		r.tries = append(r.tries, one)
		w.judge(r, one)
		underWay := one.answer.Code == ledger.CodeKeyInProgress
		answered := one.answered && one.status < http.StatusInternalServerError && !underWay
		if answered && !repeat {
			return
		}
		repeat = repeat && !answered
		pause := t.dice.between(100*time.Millisecond, 3*time.Second)
		if underWay {
			pause += keyInProgressFor
		}
		t.wait(pause)
	}
}

// prepare fills in what is known only now: the price that is shown, the hold's id.
func (w *world) prepare(p plan) (*request, bool) {
	r := &request{plan: p, name: p.String(), subject: p.client, method: http.MethodPost, scope: topology.ScopeHolds}
	if p.hold >= 0 {
		r.about = w.holdOf(p.hold)
		if r.about == "" {
			return nil, false
		}
	}
	switch p.kind {
	case askCreate:
		r.path = "/v1/holds"
		r.quoted = w.quote(p)
		r.body = createBody(p, r.quoted)
	case askConfirm, askReturn, askExtend, askEdit:
		w.prepareHold(r)
	case askCancel:
		r.path = "/v1/holds/" + string(r.about) + "/cancel"
	case askPay:
		r.path = "/v1/holds/" + string(r.about) + "/payment"
	case askSession, askReadPaid, askCancelPaid, askDelivery:
		return r, w.preparePaid(r)
	case askRead:
		r.method, r.path = http.MethodGet, "/v1/holds/"+string(r.about)
	case askList:
		r.method, r.path = http.MethodGet, "/v1/holds"
	case askBatch:
		r.path, r.scope, r.body = "/v1/slots/batch", topology.ScopeCatalog, batchBody(p)
	case askPolicy:
		r.method, r.path, r.scope = http.MethodPut, "/v1/policies/"+policyPath(p.policyScope()), topology.ScopeCatalog
		r.body = fmt.Sprintf(`{"hold_seconds":%d}`, int64(p.holdFor/time.Second))
	default:
		r.method, r.path, r.scope = http.MethodPatch, "/v1/slots/"+string(p.slot), topology.ScopeCatalog
		r.body = editBody(p)
	}
	return r, true
}

// quote is the price that the client has seen: today's, or the one of the beginning.
func (w *world) quote(p plan) map[ledger.SlotID]int64 {
	quoted := map[ledger.SlotID]int64{}
	for _, line := range p.lines {
		quoted[line.slot] = w.books.slots[line.slot].now.Terms.Price.AmountMinor
		if p.stalePrice {
			quoted[line.slot] = 500
		}
	}
	return quoted
}

func policyPath(scope ledger.PolicyScope) string {
	if scope.ResourceID == "" {
		return string(scope.ResourceType)
	}
	return string(scope.ResourceType) + "/" + string(scope.ResourceID)
}

func editBody(p plan) string {
	switch p.kind {
	case askCapacity:
		return fmt.Sprintf(`{"capacity_delta":%d}`, p.delta)
	case askPrice:
		return fmt.Sprintf(`{"unit_amount":%d}`, p.amount)
	case askShards:
		return fmt.Sprintf(`{"shards":%d}`, p.shards)
	case askOversold:
		return fmt.Sprintf(`{"capacity":%d,"accept_oversold":true}`, p.capacity)
	default:
		return fmt.Sprintf(`{"open":%t}`, p.open)
	}
}

// mustJSON writes values of our own, which can always be written.
func mustJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// event is the request as the gateway hands it to the function.
func (r *request) event() json.RawMessage {
	e := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "$default", RawPath: r.path, Body: r.body,
		Headers: map[string]string{"content-type": "application/json"},
	}
	if r.method != http.MethodGet && r.method != http.MethodPut && r.kind != askSession {
		e.Headers["idempotency-key"] = r.key
	}
	e.RequestContext.Stage = "$default"
	e.RequestContext.HTTP.Method = r.method
	e.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
		JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{
			Claims: map[string]string{"sub": r.subject, "scope": string(r.scope), "groups": strings.Join(r.groups, " ")},
		},
	}
	return json.RawMessage(mustJSON(e))
}

// send sends the request once, to either instance of the API.
func (w *world) send(t *task, r *request) *try {
	api := pick(t.dice, w.apis)
	name := fmt.Sprintf("%s try %d", t.name, len(r.tries)+1)
	one := &try{task: name + " in " + api.name, begin: w.kernel.now}
	w.current[one.task] = r
	w.trace.add("%s is sent to %s: %s %s %s", name, api.name, r.method, r.path, r.body)
	wake := t.waker()
	clock := api.clock
	api.invoke(name, func() {
		answer, err := api.api.Lambda(context.Background(), r.event())
		if err != nil {
			w.violated("answers", "%s ended in %v instead of an answer", name, err)
		}
		if !one.end.IsZero() {
			return
		}
		one.answered, one.status, one.headers, one.body, one.clock = true, answer.StatusCode, answer.Headers, answer.Body, clock
	}, func(bool) { wake() })
	w.kernel.after(gatewayGivesUpAfter, wake)
	t.pause()
	one.end = w.kernel.now
	w.learnSecret(one)
	if !one.answered {
		one.status = http.StatusServiceUnavailable
	}
	w.trace.add("%s is answered: %d %s", name, one.status, one.body)
	return one
}
