package ledger

import "time"

// SlotPatch names the parts of a slot to change; nil leaves a part as it is.
type SlotPatch struct {
	StartsAt      *time.Time
	EndsAt        *time.Time
	Attributes    map[string]string // nil leaves them; otherwise replaces all
	UnitAmount    *int64
	Currency      *Currency
	Open          *bool
	Shards        *int
	Policy        PolicyPatch
	Capacity      *Units
	CapacityDelta *Units // added to the units that there are at the write
	// AcceptOversold lets Capacity be less than is held and confirmed.
	AcceptOversold bool
}

// Apply returns d with the named parts changed. It returns CodeInvalid when capacity
// and capacity_delta are both named, or the delta leads out of bounds; other parts are
// checked by SlotDefinition.Validate.
func (p SlotPatch) Apply(d SlotDefinition) (SlotDefinition, error) {
	if p.Capacity != nil && p.CapacityDelta != nil {
		return d, errorf(CodeInvalid, "name capacity or capacity_delta, not both")
	}
	replace(&d.StartsAt, p.StartsAt)
	replace(&d.EndsAt, p.EndsAt)
	if p.Attributes != nil {
		d.Attributes = p.Attributes
	}
	replace(&d.Terms.Price.AmountMinor, p.UnitAmount)
	replace(&d.Terms.Price.Currency, p.Currency)
	replace(&d.Terms.Open, p.Open)
	replace(&d.Terms.Shards, p.Shards)
	replace(&d.Capacity, p.Capacity)
	d.KeepCapacity = d.KeepCapacity && p.Capacity == nil && p.CapacityDelta == nil
	d.AcceptOversold = p.AcceptOversold
	if p.CapacityDelta != nil {
		if *p.CapacityDelta < -CapacityMax || *p.CapacityDelta > CapacityMax {
			return d, errorf(CodeInvalid, "capacity_delta must be -%d to %d", CapacityMax, CapacityMax)
		}
		d.Capacity += *p.CapacityDelta
		if d.Capacity < 0 {
			return d, errorf(CodeCapacityInUse, "the capacity would fall below zero")
		}
	}
	layer := p.Policy.Apply(PolicyLayer{d.Policy, d.Inherits})
	d.Policy, d.Inherits = layer.Policy, layer.Inherits
	return d, nil
}

// replace reports whether there is a value to put in.
func replace[T any](target *T, value *T) bool {
	if value != nil {
		*target = *value
	}
	return value != nil
}
