package commands_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
)

func renderPolicy(p ledger.ScopePolicy, created bool) (ledger.Response, error) {
	return ledger.Response{Status: 200, Body: fmt.Appendf(nil, "v%d %s %t", p.Version, p.Layer.Policy.HoldFor, created)}, nil
}

func lives(life time.Duration) ledger.PolicyLayer {
	return ledger.PolicyPatch{HoldFor: &life}.Apply(ledger.InheritAll())
}

// inheriting is a slot that says nothing itself.
func inheriting() ledger.SlotDefinition {
	d := definition(50, 1)
	layer := ledger.InheritAll()
	d.Policy, d.Inherits = layer.Policy, layer.Inherits
	return d
}

var flights = ledger.PolicyScope{ResourceType: "flight"}

func (b *bench) say(by *commands.Commands, scope ledger.PolicyScope, layer ledger.PolicyLayer) string {
	b.t.Helper()
	answer, err := by.PutPolicy(b.t.Context(), catalogue(""), scope, layer, renderPolicy)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(answer.Response.Body)
}

// A policy of a scope is made, kept where it says the same again, and changed.
func TestAPolicyIsPut(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		life time.Duration
		want string
	}{{time.Minute, "v1 1m0s true"}, {time.Minute, "v1 1m0s false"}, {time.Hour, "v2 1h0m0s false"}} {
		if got := b.say(b.commands, flights, lives(c.life)); got != c.want {
			t.Errorf("answer %s, want %s", got, c.want)
		}
	}
	if b.store.commits != 2 {
		t.Errorf("%d commits for two policies", b.store.commits)
	}
	_, err := b.commands.PutPolicy(t.Context(), catalogue(""), flights, lives(-time.Second), renderPolicy)
	b.wantCode(err, ledger.CodeInvalid)
}

// Two who put a policy at once both take effect, one after the other.
func TestPoliciesThatMeet(t *testing.T) {
	b := newBench(t)
	b.store.beforeCommit = func(try int, _ ledger.Change) error {
		if try == 1 {
			b.say(b.others, flights, lives(time.Minute))
		}
		return nil
	}
	if got := b.say(b.commands, flights, lives(time.Hour)); got != "v2 1h0m0s false" {
		t.Errorf("answer %s", got)
	}
}

// New holds go by a policy at once in the process that has put it, and in every other
// after twice the time of the cache. Holds that are there stay as they are.
func TestNewHoldsGoByThePolicy(t *testing.T) {
	life := func(b *bench, by *commands.Commands) time.Duration {
		b.t.Helper()
		if _, err := b.create(by, request(""), quote("S", 1)); err != nil {
			b.t.Fatal(err)
		}
		h := b.last()
		return h.ExpiresAt.Sub(h.CreatedAt)
	}
	b := newBench(t)
	b.define("S", inheriting())
	if got := life(b, b.commands); got != ledger.HoldForDefault {
		t.Errorf("a hold lives %s before anything is said", got)
	}
	old := b.last()
	b.say(b.commands, flights, lives(time.Minute))
	if got := life(b, b.commands); got != time.Minute {
		t.Errorf("a hold lives %s by the process that has put the policy", got)
	}
	b.say(b.others, ledger.PolicyScope{ResourceType: "flight", ResourceID: "KE0901"}, lives(2*time.Minute))
	b.clock.Advance(10 * time.Second)
	if got := life(b, b.commands); got != 2*time.Minute {
		t.Errorf("a hold lives %s by another process, ten seconds later", got)
	}
	if now := b.hold(old.ID); !now.ExpiresAt.Equal(old.ExpiresAt) {
		t.Errorf("the old hold lives until %s now", now.ExpiresAt)
	}
	b.balanced()
}

// Who shows a slot gets it as it is stored, and the whole policy beside it.
func TestASlotIsShownWithItsWholePolicy(t *testing.T) {
	b := newBench(t)
	b.say(b.commands, flights, lives(time.Minute))
	var shown []string
	render := func(slot ledger.Slot, whole ledger.Policy, _ ledger.Counters, created bool) (ledger.Response, error) {
		shown = append(shown, fmt.Sprint(slot.Inherits == ledger.AllPolicyParts, whole.HoldFor, created))
		return ledger.Response{Status: 200}, nil
	}
	if _, err := b.commands.PutSlot(t.Context(), catalogue(""), "S", inheriting(), render); err != nil {
		t.Fatal(err)
	}
	patch := ledger.SlotPatch{CapacityDelta: pointer(ledger.Units(1))}
	if _, err := b.commands.PatchSlot(t.Context(), catalogue("K"), "S", patch, render); err != nil {
		t.Fatal(err)
	}
	if want := "[true 1m0s true true 1m0s false]"; fmt.Sprint(shown) != want {
		t.Errorf("shown %v, want %s", shown, want)
	}
	slots, err := b.store.Slots(t.Context(), []ledger.SlotID{"S"})
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := b.commands.Resolved(t.Context(), slots)
	if err != nil || len(resolved) != 1 || resolved[0].Policy.HoldFor != time.Minute {
		t.Errorf("resolved %+v, %v", resolved, err)
	}
}
