package ledger

import (
	"maps"
	"time"
)

// Limits of a slot.
const (
	// CapacityMax bounds the units of one slot.
	CapacityMax = 1_000_000_000
	// ShardsMax bounds the shards of one slot: all of them are read in one
	// TransactGetItems, whose limit is 100 items, and written in one transaction.
	ShardsMax = 64
	// AttributesMax and AttributeCharactersMax bound a slot's free attributes.
	AttributesMax          = 20
	AttributeCharactersMax = 256
)

// Slot is the smallest thing that is sold. Its numbers are on its stock items.
type Slot struct {
	ID           SlotID
	ResourceType ResourceType
	ResourceID   ResourceID
	StartsAt     time.Time // zero when the slot has no time
	EndsAt       time.Time // zero when the slot has no end
	Attributes   map[string]string
	Terms        Terms
	PriceVersion Version // counts the changes of the price, from 1
	// Policy is how the slot is promised, as far as it says so itself: the parts of Inherits
	// are its resource's. Resolve fills them in.
	Policy   Policy
	Inherits PolicyParts
	// Oversold is by how many units the capacity of its stock is more than there really is,
	// as an operator has marked it when so many were held or confirmed; zero for a slot that
	// keeps what it promised. An oversold slot is closed.
	Oversold  Units
	Version   Version
	CreatedAt time.Time
	UpdatedAt time.Time
}

// SlotDefinition is what the catalogue says of a slot.
type SlotDefinition struct {
	ResourceType ResourceType
	ResourceID   ResourceID
	StartsAt     time.Time
	EndsAt       time.Time
	Attributes   map[string]string
	Terms        Terms // Retired is left to the ledger
	Policy       Policy
	Inherits     PolicyParts // the parts of Policy that are its resource's
	Capacity     Units
	// KeepCapacity says that Capacity is only what was read: whoever asks has no wish about it.
	KeepCapacity bool
	// AcceptOversold lets Capacity be less than is held and confirmed. The slot is then
	// closed, and marked with what is missing.
	AcceptOversold bool
}

// Validate returns a CodeInvalid error that names the first part that cannot be.
func (d SlotDefinition) Validate() error {
	switch {
	case !ValidName(string(d.ResourceType)):
		return errorf(CodeInvalid, "resource_type must be 1 to %d characters of A-Z a-z 0-9 . _ : -", NameCharactersMax)
	case !ValidName(string(d.ResourceID)):
		return errorf(CodeInvalid, "resource_id must be 1 to %d characters of A-Z a-z 0-9 . _ : -", NameCharactersMax)
	case d.Capacity < 0 || d.Capacity > CapacityMax:
		return errorf(CodeInvalid, "capacity must be 0 to %d", CapacityMax)
	case !d.Terms.Price.Valid():
		return errorf(CodeInvalid, "unit_amount must be 0 to %d in minor units, with an ISO 4217 currency", int64(AmountMinorMax))
	case d.Terms.Shards < 1 || d.Terms.Shards > ShardsMax:
		return errorf(CodeInvalid, "shards must be 1 to %d", ShardsMax)
	case !d.EndsAt.IsZero() && (d.StartsAt.IsZero() || d.EndsAt.Before(d.StartsAt)):
		return errorf(CodeInvalid, "ends_at needs a starts_at that is not later")
	case !d.StartsAt.Equal(d.StartsAt.Truncate(time.Millisecond)) || !d.EndsAt.Equal(d.EndsAt.Truncate(time.Millisecond)):
		// A store keeps milliseconds. A finer time would differ from what is stored, and
		// every repeated PUT would be a change.
		return errorf(CodeInvalid, "starts_at and ends_at must be in whole milliseconds")
	case len(d.Attributes) > AttributesMax:
		return errorf(CodeInvalid, "attributes must be at most %d", AttributesMax)
	}
	for name, value := range d.Attributes {
		if name == "" || len(name) > AttributeCharactersMax || len(value) > AttributeCharactersMax {
			return errorf(CodeInvalid, "an attribute's name and value must each be at most %d characters", AttributeCharactersMax)
		}
	}
	return PolicyLayer{d.Policy, d.Inherits}.Validate()
}

// cancelUntil is when a sold unit of the slot can be given back for the last time.
func (s Slot) cancelUntil() time.Time {
	if s.StartsAt.IsZero() {
		return time.Time{}
	}
	return s.StartsAt.Add(-s.Policy.CancelFor)
}

// overAt is when the slot is over: when it ends, or when it starts if it has no end.
func (s Slot) overAt() time.Time {
	if s.EndsAt.IsZero() {
		return s.StartsAt
	}
	return s.EndsAt
}

// Definition gives the slot's definition back. Capacity is what its stock has; what the slot
// is oversold by is no part of the definition's, which says how many units there are.
func (s Slot) Definition(capacity Units) SlotDefinition {
	return SlotDefinition{
		ResourceType: s.ResourceType, ResourceID: s.ResourceID,
		StartsAt: s.StartsAt, EndsAt: s.EndsAt, Attributes: s.Attributes,
		Terms: s.Terms, Policy: s.Policy, Inherits: s.Inherits, Capacity: s.unitsOf(capacity), KeepCapacity: true,
	}
}

// unitsOf is how many units there are where the slot's stock has that capacity: what was
// promised without being there is left aside.
func (s Slot) unitsOf(capacity Units) Units { return max(0, capacity-s.Oversold) }

// NewSlot defines a slot that does not exist yet, with its stock spread evenly over
// its shards. Committed a second time it is refused by the slot's leg.
func NewSlot(id SlotID, d SlotDefinition, origin Origin, now time.Time) (Change, error) {
	if !ValidName(string(id)) {
		return Change{}, errorf(CodeInvalid, "slot_id must be 1 to %d characters of A-Z a-z 0-9 . _ : -", NameCharactersMax)
	}
	if err := d.Validate(); err != nil {
		return Change{}, err
	}
	layer := PolicyLayer{d.Policy, d.Inherits}.normalized()
	slot := Slot{
		ID: id, ResourceType: d.ResourceType, ResourceID: d.ResourceID,
		StartsAt: d.StartsAt, EndsAt: d.EndsAt, Attributes: maps.Clone(d.Attributes),
		Terms: d.Terms, PriceVersion: 1, Policy: layer.Policy, Inherits: layer.Inherits,
		Version: 1, CreatedAt: now, UpdatedAt: now,
	}
	slot.Terms.Retired = 0
	change := Change{At: now, Slots: []SlotWrite{{Next: slot}}}
	event := slotEvent(EventSlotCreated, slot, origin, now)
	for shard, units := range spreadEvenly(d.Capacity, d.Terms.Shards) {
		change.NewStock = append(change.NewStock, Stock{
			Slot: id, Shard: Shard(shard), Terms: slot.Terms, Version: 1,
			Counters: Counters{Available: units, Capacity: units},
		})
		if units > 0 {
			event.Movements = append(event.Movements, Movement{id, Shard(shard), BucketOutside, BucketAvailable, units})
		}
	}
	change.Events = []Event{event}
	return change, nil
}

// spreadEvenly divides units over shards; the first shards get what is left over.
func spreadEvenly(units Units, shards int) []Units {
	out := make([]Units, shards)
	for i := range out {
		out[i] = units / Units(shards)
		if Units(i) < units%Units(shards) {
			out[i]++
		}
	}
	return out
}
