package reconcile_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
)

// shop is a ledger whose policies limit every owner in all ways, and are said in layers.
type shop struct {
	till
	owners []ledger.OwnerID
	scopes []ledger.PolicyScope
	serial uint64
}

func newShop(tb *testing.T) *shop {
	tb.Helper()
	s := &shop{till: till{T: tb, store: memory.New(), now: start}, owners: []ledger.OwnerID{"U-1", "U-2", "U-3"}}
	byType, byResource := ledger.InheritAll(), ledger.InheritAll()
	byType.Inherits &^= ledger.PartHoldsPerOwner | ledger.PartExpiries | ledger.PartCooldown
	byType.Policy.HoldsPerOwnerMax, byType.Policy.ExpiriesMax, byType.Policy.CooldownFor = 50, 1000, time.Minute
	byResource.Inherits &^= ledger.PartQuantityPerOwnerOfResource
	byResource.Policy.QuantityPerOwnerOfResourceMax = 200
	s.say(ledger.PolicyScope{ResourceType: "show"}, byType)
	s.say(ledger.PolicyScope{ResourceType: "show", ResourceID: "R-1"}, byResource)
	s.limited("S-1", 200)
	s.limited("S-2", 0)
	return s
}

// draw gives the bits of one more id.
func (s *shop) draw() [16]byte {
	s.serial++
	return [16]byte{byte(s.serial), byte(s.serial >> 8), byte(s.serial >> 16), 1}
}

func (s *shop) origin() ledger.Origin { return ledger.Origin{EventID: ledger.NewEventID(s.draw())} }

func (s *shop) say(scope ledger.PolicyScope, layer ledger.PolicyLayer) {
	s.Helper()
	stored, err := s.store.Policies(s.Context(), []ledger.PolicyScope{scope})
	if err != nil {
		s.Fatal(err)
	}
	var before ledger.ScopePolicy
	if len(stored) > 0 {
		before = stored[0]
	} else {
		s.scopes = append(s.scopes, scope)
	}
	s.commit(ledger.SetPolicy(scope, before, layer, s.origin(), s.now))
}

// limited makes a slot of 200 units on two shards, of which one owner may have so many, or
// any number with 0.
func (s *shop) limited(id ledger.SlotID, perOwner ledger.Units) {
	s.Helper()
	layer := ledger.InheritAll()
	if perOwner > 0 {
		layer.Inherits &^= ledger.PartQuantityPerOwner
		layer.Policy.QuantityPerOwnerMax = perOwner
	}
	s.slots = append(s.slots, id)
	s.commit(ledger.NewSlot(id, ledger.SlotDefinition{
		ResourceType: "show", ResourceID: "R-1", Capacity: 200, Policy: layer.Policy, Inherits: layer.Inherits,
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "USD"}, Shards: 2},
	}, s.origin(), s.now))
}

// resolved are the slots as a command decides by them.
func (s *shop) resolved() map[ledger.SlotID]ledger.Slot {
	s.Helper()
	slots, err := s.store.Slots(s.Context(), s.slots)
	if err != nil {
		s.Fatal(err)
	}
	policies, err := s.store.Policies(s.Context(), s.scopes)
	if err != nil {
		s.Fatal(err)
	}
	out := make(map[ledger.SlotID]ledger.Slot, len(slots))
	for _, slot := range slots {
		out[slot.ID] = slot.Resolve(policies)
	}
	return out
}

// take says from where so many units of the slot are taken, or nil if there are too few.
func (s *shop) take(slot ledger.Slot, units ledger.Units) []ledger.Allocation {
	s.Helper()
	stock, err := s.store.StockAtOneMoment(s.Context(), slot)
	if err != nil {
		s.Fatal(err)
	}
	var out []ledger.Allocation
	for _, item := range stock {
		if n := min(units, item.Counters.Available); n > 0 {
			out = append(out, ledger.Allocation{Shard: item.Shard, Quantity: n})
			units -= n
		}
	}
	if units > 0 {
		return nil
	}
	return out
}

func quotes(units map[ledger.SlotID]ledger.Units) []ledger.Quote {
	var out []ledger.Quote
	for _, id := range []ledger.SlotID{"S-1", "S-2"} {
		if units[id] > 0 {
			out = append(out, ledger.Quote{Slot: id, Quantity: units[id], UnitAmount: 500})
		}
	}
	return out
}

// tried writes a step, and reports whether there was one: what the ledger refuses is no
// failure.
func (s *shop) tried(c ledger.Change, err error) bool {
	s.Helper()
	if err != nil || c.Empty() {
		return false
	}
	if err := s.store.Commit(s.Context(), c); err != nil {
		s.Fatal(err)
	}
	return true
}

func (s *shop) hold(owner ledger.OwnerID, units map[ledger.SlotID]ledger.Units) ledger.HoldID {
	s.Helper()
	slots, allocations := s.resolved(), map[ledger.SlotID][]ledger.Allocation{}
	for id, n := range units {
		if allocations[id] = s.take(slots[id], n); allocations[id] == nil || !slots[id].Terms.Open {
			return ""
		}
	}
	id := ledger.NewHoldID(s.draw())
	if s.tried(ledger.NewHold(ledger.HoldPlan{ID: id, Owner: owner, Quotes: quotes(units), Slots: slots, Allocations: allocations}, s.origin(), s.now)) {
		s.holds = append(s.holds, id)
		return id
	}
	return ""
}

func (s *shop) read(id ledger.HoldID) ledger.Hold {
	s.Helper()
	hold, err := s.store.Hold(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	return hold
}

func (s *shop) edit(id ledger.HoldID, units map[ledger.SlotID]ledger.Units) bool {
	s.Helper()
	h, slots, allocations := s.read(id), s.resolved(), map[ledger.SlotID][]ledger.Allocation{}
	for _, q := range h.Growth(quotes(units)) {
		var has ledger.Units
		for _, line := range h.Lines {
			if line.Slot == q.Slot {
				has = line.Quantity
			}
		}
		if allocations[q.Slot] = s.take(slots[q.Slot], q.Quantity-has); allocations[q.Slot] == nil || !slots[q.Slot].Terms.Open {
			return false
		}
	}
	return s.tried(ledger.EditHold(h, ledger.HoldEdit{Quotes: quotes(units), Slots: slots, Allocations: allocations, ExtendFor: h.HoldFor}, s.origin(), s.now))
}

// archive marks an ended hold.
func (s *shop) archive(id ledger.HoldID) bool {
	s.Helper()
	events, err := s.store.HoldEvents(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	return s.tried(ledger.ArchiveHold(s.read(id), nil, events, theBatch, s.now.Add(time.Hour).Truncate(time.Second), s.now))
}

func (s *shop) patch(id ledger.SlotID, p ledger.SlotPatch) bool {
	s.Helper()
	slots, err := s.store.Slots(s.Context(), []ledger.SlotID{id})
	if err != nil {
		s.Fatal(err)
	}
	stock, err := s.store.StockAtOneMoment(s.Context(), slots[0])
	if err != nil {
		s.Fatal(err)
	}
	var capacity ledger.Units
	for _, item := range stock {
		capacity += item.Counters.Capacity
	}
	d, err := p.Apply(slots[0].Definition(capacity))
	if err != nil {
		return false
	}
	return s.tried(ledger.EditSlot(slots[0], stock, d, s.origin(), s.now))
}

// records reads all that is there, without the holds that are purged.
func (s *shop) records(purged map[ledger.HoldID]bool) ledger.Records {
	s.Helper()
	r := s.till.records()
	var err error
	if r.Policies, err = s.store.Policies(s.Context(), s.scopes); err != nil {
		s.Fatal(err)
	}
	for _, scope := range s.scopes {
		events, err := s.store.PolicyEvents(s.Context(), scope)
		if err != nil {
			s.Fatal(err)
		}
		r.Events = append(r.Events, events...)
	}
	for _, owner := range s.owners {
		quota, err := s.store.Quota(s.Context(), owner)
		if err != nil {
			s.Fatal(err)
		}
		if len(quota.Counts) > 0 || quota.Expired > 0 {
			r.Quotas = append(r.Quotas, quota)
		}
	}
	r.Holds = slices.DeleteFunc(r.Holds, func(h ledger.StoredHold) bool { return purged[h.Hold.ID] })
	r.Events = slices.DeleteFunc(r.Events, func(e ledger.Event) bool { return e.Hold != nil && purged[e.Hold.ID] })
	return r
}

// history is a random one of so many steps, of all that can be done with holds and slots
// beside paying. It says which holds were archived, and how often it did what.
func (s *shop) history(random *rand.Rand, steps int) (archived []ledger.HoldID, did map[string]int) {
	s.Helper()
	did = map[string]int{}
	for range steps {
		s.now = s.now.Add(time.Duration(random.IntN(90)) * time.Second)
		units := map[ledger.SlotID]ledger.Units{"S-1": ledger.Units(random.IntN(4)), "S-2": ledger.Units(1 + random.IntN(3))}
		if units["S-1"] == 0 {
			delete(units, "S-1")
		}
		if len(s.holds) == 0 || random.IntN(4) == 0 {
			if s.hold(s.owners[random.IntN(len(s.owners))], units) != "" {
				did["hold"]++
			}
			continue
		}
		id := s.holds[random.IntN(len(s.holds))]
		name, done := s.step(random, s.read(id), units)
		if !done {
			continue
		}
		if did[name]++; name == "archive" {
			archived = append(archived, id)
		}
	}
	return archived, did
}

// step tries one random step with the hold, or with a slot.
func (s *shop) step(random *rand.Rand, h ledger.Hold, units map[ledger.SlotID]ledger.Units) (name string, done bool) {
	s.Helper()
	slot := s.slots[random.IntN(len(s.slots))]
	part := []ledger.ReturnLine{{
		Slot: h.Lines[0].Slot, Quantity: 1, Restock: []ledger.Restock{ledger.RestockAlways, ledger.RestockNever}[random.IntN(2)],
	}}
	switch random.IntN(11) {
	case 0, 1:
		return "edit", s.edit(h.ID, units)
	case 2:
		return "cancel", s.tried(ledger.Cancel(h, s.origin(), s.now))
	case 3:
		return "expire", s.tried(ledger.Expire(h, s.origin(), s.now))
	case 4:
		return "confirm", s.tried(ledger.Confirm(h, "", s.origin(), s.now))
	case 5:
		return "confirm a part", s.tried(ledger.ConfirmPart(h, part, "", s.origin(), s.now))
	case 6:
		return "return", s.tried(ledger.ReturnUnpaid(h, nil, s.origin(), s.now))
	case 7:
		return "return a part", s.tried(ledger.ReturnUnpaid(h, part, s.origin(), s.now))
	case 8:
		return "archive", s.archive(h.ID)
	case 9:
		shards := 1 + random.IntN(4)
		return "reshard", s.patch(slot, ledger.SlotPatch{Shards: &shards})
	default:
		capacity, open := ledger.Units(200), true
		if random.IntN(4) == 0 {
			capacity = 1
			return "oversell", s.patch(slot, ledger.SlotPatch{Capacity: &capacity, AcceptOversold: true})
		}
		return "open again", s.patch(slot, ledger.SlotPatch{Capacity: &capacity, Open: &open})
	}
}
