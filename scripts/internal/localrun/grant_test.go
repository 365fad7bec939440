package localrun_test

import (
	"cmp"
	"net/http"
	"slices"
	"testing"

	"holdfast/scripts/internal/localrun"
	"holdfast/shared/ledger"
	"holdfast/shared/topology"
)

// coolDown is a policy under which a hold checks what is counted of its owner, and changes
// nothing of it.
const coolDown = `,"policy":{"hold_seconds":1,"expiries_max":9,"cooldown_seconds":60}`

// What each function really calls is what its role allows: nothing is missing, and nothing
// is granted that is not used. The calls are those that its binary makes while all of its
// work is done once.
func TestCallsAreTheGrants(t *testing.T) {
	p := newPayingWorld(t)
	w := p.world
	w.everyKind()
	p.everyPayment()
	p.everyOldRecord()
	w.everyAudit()
	w.everyDueMessage()
	slot, owner := w.slot(1, shortHold), w.owner()
	hold := w.mustHold(owner, slot, 1)
	w.mustHold(owner, w.slot(1, coolDown), 1)
	w.ask(w.owner(), slot, 1).wantProblem(http.StatusConflict, "insufficient_stock")
	operator := w.caller("olga", topology.ScopeOperate)
	for _, read := range []struct {
		caller *localrun.Caller
		path   string
	}{
		{owner, "/v1/availability?slot_ids=" + slot},
		{owner, "/v1/availability?resource_type=test&resource_id=" + slot},
		{operator, "/v1/slots/" + slot},
		{owner, "/v1/holds"},
		{owner, "/v1/holds/" + hold},
		{owner, "/v1/reservations"},
		{operator, "/v1/reviews"},
	} {
		w.do(read.caller, localrun.Request{Method: http.MethodGet, Path: read.path}).want(http.StatusOK)
	}
	w.untilOver(hold)
	w.sweep()
	w.untilPublished()
	for _, function := range topology.Functions() {
		var want []granted
		for _, grant := range function.Grants {
			if grant.Caller != topology.CallerCode {
				continue
			}
			for _, action := range grant.Actions {
				want = append(want, granted{grant.Resource, action})
			}
		}
		got := w.observer.called(function.Name)
		for _, call := range []*[]granted{&got, &want} {
			slices.SortFunc(*call, func(a, b granted) int {
				return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.action, b.action))
			})
		}
		for _, call := range got {
			if !slices.Contains(want, call) {
				t.Errorf("%s calls %s on the %s, which its role does not allow", function.Name, call.action, call.resource)
			}
		}
		for _, call := range want {
			if !slices.Contains(got, call) {
				t.Errorf("%s never calls %s on the %s, which its role allows", function.Name, call.action, call.resource)
			}
		}
	}
}

// everyPayment makes the functions do all that they do for money: a sale that the provider
// tells of, units given back, and money that comes too late, for which the stock is read.
func (p *payingWorld) everyPayment() {
	p.t.Helper()
	sold := p.purchase(p.slot(1, ""), 1)
	sold.complete()
	p.post(sold.owner, "/v1/reservations/"+string(sold.reservation)+"/cancel", newName("key"), "").want(http.StatusOK)
	sold.until(ledger.ReservationRefunded)
	sold.wantMoney(unitAmount, unitAmount)
	late := p.lateMoney(p.slot(1, lateHold("reacquire")))
	late.until(ledger.ReservationCompleted)
}
