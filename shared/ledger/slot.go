package ledger

import (
	"maps"
	"strings"
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
	// HoldForDefault is how long a hold lives when its slot does not say.
	HoldForDefault = 10 * time.Minute
	// GraceForDefault is how much longer a started payment may take.
	GraceForDefault = 2 * time.Minute
	// HoldForMaxDefault is the longest total life of a hold when its slot does not say.
	HoldForMaxDefault = time.Hour
	// HoldForLimit bounds every time of a policy.
	HoldForLimit = 7 * 24 * time.Hour
	// QuantityPerLineMax bounds the quantity of one slot in one hold.
	QuantityPerLineMax Units = 10_000
	// CancelForLimit bounds how long before a start the last return is.
	CancelForLimit = 366 * 24 * time.Hour
	// ownerPlaceholder stands for the buyer in Policy.GrantTo.
	ownerPlaceholder = "{owner}"
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
	Policy       Policy
	Version      Version
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// Policy is how a slot is promised. Changes apply to new holds only.
type Policy struct {
	HoldFor            time.Duration // from creation to expires_at
	GraceFor           time.Duration // added once when a payment starts
	HoldForMax         time.Duration // the longest total life
	QuantityPerHoldMax Units
	Payment            PaymentTerms
	// CancelFor is how long before the slot's start a sold unit can be given back for the
	// last time. It means nothing for a slot without a start.
	CancelFor time.Duration
	// NoRestock says that a unit that is given back after the sale is not sold again.
	NoRestock bool
	// GrantTo names the slot whose stock grows by what is sold here, once it is paid. The
	// text {owner} in it stands for the buyer. It is "" for no grant. The catalogue says
	// it and never the buyer, who could otherwise make stock of anything.
	GrantTo string
}

// DefaultPolicy is the policy of a slot that names none.
func DefaultPolicy() Policy {
	return Policy{
		HoldFor: HoldForDefault, GraceFor: GraceForDefault, HoldForMax: HoldForMaxDefault,
		QuantityPerHoldMax: QuantityPerLineMax, Payment: DefaultPaymentTerms(),
	}
}

// SlotDefinition is what the catalogue says of a slot.
type SlotDefinition struct {
	ResourceType ResourceType
	ResourceID   ResourceID
	StartsAt     time.Time
	EndsAt       time.Time
	Attributes   map[string]string
	Terms        Terms
	Policy       Policy
	Capacity     Units
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
	return d.Policy.validate()
}

func (p Policy) validate() error {
	switch {
	case p.HoldFor < time.Second || p.HoldFor > HoldForLimit:
		return errorf(CodeInvalid, "hold_seconds must be 1 to %d", int(HoldForLimit.Seconds()))
	case p.GraceFor < 0 || p.GraceFor > HoldForLimit:
		return errorf(CodeInvalid, "grace_seconds must be 0 to %d", int(HoldForLimit.Seconds()))
	case p.HoldForMax < p.HoldFor || p.HoldForMax > HoldForLimit:
		return errorf(CodeInvalid, "hold_max_seconds must be hold_seconds to %d", int(HoldForLimit.Seconds()))
	case p.QuantityPerHoldMax < 1 || p.QuantityPerHoldMax > QuantityPerLineMax:
		return errorf(CodeInvalid, "quantity_max_per_hold must be 1 to %d", QuantityPerLineMax)
	case p.CancelFor < 0 || p.CancelFor > CancelForLimit:
		return errorf(CodeInvalid, "cancel_until_seconds must be 0 to %d", int(CancelForLimit.Seconds()))
	}
	if _, err := p.grantTo("owner"); err != nil {
		return err
	}
	return p.Payment.validate()
}

// grantTo is the slot that a sale to the owner credits, or "" for none.
func (p Policy) grantTo(owner OwnerID) (SlotID, error) {
	if p.GrantTo == "" {
		return "", nil
	}
	id := strings.ReplaceAll(p.GrantTo, ownerPlaceholder, string(owner))
	if !ValidName(id) {
		return "", errorf(CodeInvalid, "grant_to_slot_id must make a slot id of 1 to %d characters of A-Z a-z 0-9 . _ : - for this owner", NameCharactersMax)
	}
	return SlotID(id), nil
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

// Definition gives the slot's definition back, with the capacity that its stock has.
func (s Slot) Definition(capacity Units) SlotDefinition {
	return SlotDefinition{
		ResourceType: s.ResourceType, ResourceID: s.ResourceID,
		StartsAt: s.StartsAt, EndsAt: s.EndsAt, Attributes: s.Attributes,
		Terms: s.Terms, Policy: s.Policy, Capacity: capacity,
	}
}

// NewSlot defines a slot that does not exist yet, with its stock spread evenly over
// its shards. Committed a second time it is refused by the slot's leg.
func NewSlot(id SlotID, d SlotDefinition, origin Origin, now time.Time) (Change, error) {
	if !ValidName(string(id)) {
		return Change{}, errorf(CodeInvalid, "slot_id must be 1 to %d characters of A-Z a-z 0-9 . _ : -", NameCharactersMax)
	}
	if err := d.Validate(); err != nil {
		return Change{}, err
	}
	slot := Slot{
		ID: id, ResourceType: d.ResourceType, ResourceID: d.ResourceID,
		StartsAt: d.StartsAt, EndsAt: d.EndsAt, Attributes: maps.Clone(d.Attributes),
		Terms: d.Terms, PriceVersion: 1, Policy: d.Policy,
		Version: 1, CreatedAt: now, UpdatedAt: now,
	}
	change := Change{At: now, Slots: []SlotWrite{{Next: slot}}}
	event := slotEvent(EventSlotCreated, slot, origin, now)
	for shard, units := range spreadEvenly(d.Capacity, d.Terms.Shards) {
		change.NewStock = append(change.NewStock, Stock{
			Slot: id, Shard: Shard(shard), Terms: d.Terms, Version: 1,
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

// EditSlot turns the slot, whose stock was read as given, into what d says. A capacity
// that differs moves units in or out of available; it is refused with
// CodeCapacityInUse when too few are available. Resource and shards are fixed. An edit
// that changes nothing returns an empty Change, so a repeated PUT writes nothing.
func EditSlot(slot Slot, stock []Stock, d SlotDefinition, origin Origin, now time.Time) (Change, error) {
	if err := d.Validate(); err != nil {
		return Change{}, err
	}
	if d.ResourceType != slot.ResourceType || d.ResourceID != slot.ResourceID || d.Terms.Shards != slot.Terms.Shards {
		return Change{}, &Error{Code: CodeSlotFixed, Slots: []SlotID{slot.ID},
			Message: "resource_type, resource_id and shards of a slot can't be changed; define another slot"}
	}
	var capacity Counters
	for _, s := range stock {
		capacity = capacity.Plus(s.Counters)
	}
	deltas, ok := spreadCapacity(stock, d.Capacity-capacity.Capacity)
	if !ok {
		return Change{}, &Error{Code: CodeCapacityInUse, Slots: []SlotID{slot.ID},
			Message: "the capacity would fall below what is held and confirmed; close the slot or choose a larger capacity"}
	}
	next := editedSlot(slot, d, now)
	if d.Capacity == capacity.Capacity && slotsEqual(slot, next) {
		return Change{}, nil
	}
	event := slotEvent(EventSlotChanged, next, origin, now)
	event.Movements = capacityMovements(slot.ID, deltas)
	change := Change{At: now, Slots: []SlotWrite{{Next: next, Replaces: slot.Version}}, Events: []Event{event}}
	change.Stock = stockWrites(event.Movements, nil)
	if next.Terms != slot.Terms {
		change.Stock = setTerms(change.Stock, slot.ID, next.Terms)
	}
	return change, nil
}

func editedSlot(slot Slot, d SlotDefinition, now time.Time) Slot {
	next := slot
	next.StartsAt, next.EndsAt = d.StartsAt, d.EndsAt
	next.Attributes = maps.Clone(d.Attributes)
	next.Terms, next.Policy = d.Terms, d.Policy
	if d.Terms.Price != slot.Terms.Price {
		next.PriceVersion++
	}
	next.Version++
	next.UpdatedAt = now
	return next
}

// slotsEqual reports whether b says the same as a, its version and time left aside.
func slotsEqual(a, b Slot) bool {
	return a.StartsAt.Equal(b.StartsAt) && a.EndsAt.Equal(b.EndsAt) && maps.Equal(a.Attributes, b.Attributes) &&
		a.Terms == b.Terms && a.Policy == b.Policy
}

// spreadCapacity divides a change of capacity over the shards: growth evenly, loss
// from what is available, as a hold would take it. It reports false when too few
// units are available.
func spreadCapacity(stock []Stock, delta Units) ([]Units, bool) {
	if delta >= 0 {
		return spreadEvenly(delta, len(stock)), true
	}
	wanted, found := Allocate(stock, -delta, 0)
	if !found {
		return nil, false
	}
	out := make([]Units, len(stock))
	for _, a := range wanted {
		out[a.Shard] = -a.Quantity
	}
	return out, true
}

func capacityMovements(id SlotID, deltas []Units) []Movement {
	var out []Movement
	for shard, delta := range deltas {
		switch {
		case delta > 0:
			out = append(out, Movement{id, Shard(shard), BucketOutside, BucketAvailable, delta})
		case delta < 0:
			out = append(out, Movement{id, Shard(shard), BucketAvailable, BucketOutside, -delta})
		}
	}
	return out
}
