package outbox_test

import (
	"context"
	"strings"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// train are the policies of a resource type and of a resource of it. Together they say
// every part, and each inherits some.
func train() (byType, byResource ledger.ScopePolicy) {
	byType.Scope = ledger.PolicyScope{ResourceType: "train"}
	byType.Layer = ledger.PolicyLayer{Policy: ledger.DefaultPolicy(), Inherits: ledger.PartGrantTo | ledger.PartSaleUntil}
	p := &byType.Layer.Policy
	p.HoldsPerOwnerMax, p.ExpiriesMax, p.CooldownFor, p.HoldsPerSignalMax = 5, 3, 30*time.Minute, 20
	p.SaleFrom, p.SaleEnds, p.SaleEndsFor, p.SaleTimeZone = start.Add(-time.Hour), true, 15*time.Minute, "Asia/Seoul"
	byResource.Scope = ledger.PolicyScope{ResourceType: "train", ResourceID: "KTX-101"}
	byResource.Layer = ledger.InheritAll()
	own := ledger.PartQuantityPerOwner | ledger.PartQuantityPerOwnerOfResource | ledger.PartScarce | ledger.PartSaleUntil
	byResource.Layer.Inherits &^= own
	p = &byResource.Layer.Policy
	p.QuantityPerOwnerMax, p.QuantityPerOwnerOfResourceMax, p.Scarce = 6, 8, true
	p.SaleUntil = start.Add(300 * 24 * time.Hour)
	return byType, byResource
}

// decided writes what a command decides, as the command that it is.
func (l *lifeCycle) decided(actor string, command ledger.Command, decide func(o ledger.Origin, now time.Time) (ledger.Change, error)) ledger.Change {
	l.tb.Helper()
	request := l.request(actor)
	origin := ledger.Origin{
		Actor: request.Actor, Command: command, RequestID: request.RequestID, EventID: ledger.NewEventID(l.random.Bits128()),
	}
	change, err := decide(origin, system.Millisecond(l.clock))
	l.check(err)
	l.check(l.store.Commit(context.Background(), change))
	return change
}

// trainSlots are two classes of a train, whose policies are said above them.
func (l *lifeCycle) trainSlots() (slots []ledger.SlotID, policies []ledger.PolicyScope) {
	l.tb.Helper()
	byType, byResource := train()
	for _, p := range []ledger.ScopePolicy{byType, byResource} {
		policies = append(policies, p.Scope)
		l.decided("operator:lee", ledger.CommandPutPolicy, func(o ledger.Origin, now time.Time) (ledger.Change, error) {
			return ledger.SetPolicy(p.Scope, ledger.ScopePolicy{}, p.Layer, o, now)
		})
	}
	departure := start.Add(200 * 24 * time.Hour)
	definition := ledger.SlotDefinition{
		ResourceType: byResource.Scope.ResourceType, ResourceID: byResource.Scope.ResourceID,
		StartsAt: departure, EndsAt: departure.Add(3 * time.Hour), Capacity: 20,
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 59000, Currency: "KRW"}, Shards: 2},
	}
	layer := ledger.InheritAll()
	definition.Policy, definition.Inherits = layer.Policy, layer.Inherits
	for _, id := range []ledger.SlotID{"KTX-101-FIRST", "KTX-101-SECOND"} {
		_, err := l.commands.PutSlot(context.Background(), l.request("service:catalog"), id, definition, renderSlot)
		l.check(err)
		slots = append(slots, id)
	}
	return slots, policies
}

// resolved are the slots as a command decides by them.
func (l *lifeCycle) resolved(ids []ledger.SlotID, scopes []ledger.PolicyScope) map[ledger.SlotID]ledger.Slot {
	l.tb.Helper()
	policies, err := l.store.Policies(context.Background(), scopes)
	l.check(err)
	slots, err := l.store.Slots(context.Background(), ids)
	l.check(err)
	out := make(map[ledger.SlotID]ledger.Slot, len(slots))
	for _, s := range slots {
		out[s.ID] = s.Resolve(policies)
	}
	return out
}

// edits is everything that its owner and the shop can do with a hold beside paying for it:
// it grows, is exchanged, lives longer, is sold in part, and given back. Then its slot gets
// other shards, and is oversold.
func (l *lifeCycle) edits() (slots []ledger.SlotID, holds []ledger.HoldID, policies []ledger.PolicyScope) {
	l.tb.Helper()
	slots, policies = l.trainSlots()
	first, second := slots[0], slots[1]
	resolved := l.resolved(slots, policies)
	quote := func(id ledger.SlotID, quantity ledger.Units) ledger.Quote {
		return ledger.Quote{Slot: id, Quantity: quantity, UnitAmount: 59000}
	}
	from := func(id ledger.SlotID, shard ledger.Shard, units ledger.Units) map[ledger.SlotID][]ledger.Allocation {
		return map[ledger.SlotID][]ledger.Allocation{id: {{Shard: shard, Quantity: units}}}
	}
	var hold ledger.Hold
	step := func(actor string, command ledger.Command, decide func(o ledger.Origin, now time.Time) (ledger.Change, error)) {
		hold = l.decided(actor, command, decide).Holds[0].Next
	}
	edit := func(command ledger.Command, e ledger.HoldEdit) {
		e.Slots = resolved
		step("owner:U-17", command, func(o ledger.Origin, now time.Time) (ledger.Change, error) { return ledger.EditHold(hold, e, o, now) })
	}
	step("owner:U-17", ledger.CommandCreateHold, func(o ledger.Origin, now time.Time) (ledger.Change, error) {
		return ledger.NewHold(ledger.HoldPlan{
			ID: ledger.NewHoldID(l.random.Bits128()), Owner: "U-17", Quotes: []ledger.Quote{quote(first, 3)}, Slots: resolved,
			Allocations: from(first, 0, 3), Signals: []ledger.Signal{{Kind: ledger.SignalDevice, Hash: strings.Repeat("5e884898", 8)}},
		}, o, now)
	})
	edit(ledger.CommandEditHold, ledger.HoldEdit{Quotes: []ledger.Quote{quote(first, 1), quote(second, 4)}, Allocations: from(second, 1, 4)})
	edit(ledger.CommandExtendHold, ledger.HoldEdit{ExtendFor: hold.HoldFor})
	step("service:shop", ledger.CommandConfirmHold, func(o ledger.Origin, now time.Time) (ledger.Change, error) {
		return ledger.ConfirmPart(hold, []ledger.ReturnLine{{Slot: second, Quantity: 3}}, "shop-payment-4712", o, now)
	})
	step("service:shop", ledger.CommandReturnHold, func(o ledger.Origin, now time.Time) (ledger.Change, error) {
		return ledger.ReturnUnpaid(hold, []ledger.ReturnLine{{Slot: second, Quantity: 1, Restock: ledger.RestockNever}}, o, now)
	})
	more, fewer, capacity := 3, 1, ledger.Units(1)
	for _, patch := range []ledger.SlotPatch{{Shards: &more}, {Shards: &fewer}, {Capacity: &capacity, AcceptOversold: true}} {
		_, err := l.commands.PatchSlot(context.Background(), l.request("operator:lee"), second, patch, renderSlot)
		l.check(err)
	}
	return slots, []ledger.HoldID{hold.ID}, policies
}
