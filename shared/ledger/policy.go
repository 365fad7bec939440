package ledger

import (
	"slices"
	"strings"
	"time"
)

// Limits of a policy.
const (
	// HoldForDefault is how long a hold lives when nothing says otherwise.
	HoldForDefault = 10 * time.Minute
	// GraceForDefault is how much longer a started payment may take.
	GraceForDefault = 2 * time.Minute
	// HoldForMaxDefault is the longest total life of a hold when nothing says otherwise.
	HoldForMaxDefault = time.Hour
	// HoldForLimit bounds every time of a policy.
	HoldForLimit = 7 * 24 * time.Hour
	// QuantityPerLineMax bounds the quantity of one slot in one hold.
	QuantityPerLineMax Units = 10_000
	// CancelForLimit bounds how long before a start the last return is, and the sale ends.
	CancelForLimit = 366 * 24 * time.Hour
	// OwnerLimitMax bounds every limit that a policy sets to one owner.
	OwnerLimitMax Units = 1_000_000
	// TimeZoneCharactersMax bounds the name of a time zone.
	TimeZoneCharactersMax = 64
	// ownerPlaceholder stands for the buyer in Policy.GrantTo.
	ownerPlaceholder = "{owner}"
)

// Policy is how a slot is promised. Changes apply to new holds only. A limit of zero is no
// limit.
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

	// QuantityPerOwnerMax bounds the units of the slot that one owner has in HELD holds and
	// has bought and not given back.
	QuantityPerOwnerMax Units
	// QuantityPerOwnerOfResourceMax bounds the same over all slots of the resource.
	QuantityPerOwnerOfResourceMax Units
	// HoldsPerOwnerMax bounds how many HELD holds an owner has who makes one with the slot.
	// Only holds of slots with such a limit are counted.
	HoldsPerOwnerMax Units
	// ExpiriesMax is how many holds with such slots an owner may let expire, one after the
	// other without buying in between, before CooldownFor begins with the last of them.
	ExpiriesMax Units
	CooldownFor time.Duration
	// HoldsPerSignalMax bounds how many holds are made in one SignalWindow from one device,
	// and with one means of payment, as far as the caller tells them apart.
	HoldsPerSignalMax Units

	// SaleFrom and SaleUntil bound when a hold can be made; zero is no bound.
	SaleFrom, SaleUntil time.Time
	// SaleEndsFor is how long before the slot's start the sale ends. It counts only where
	// SaleEnds is set, and means nothing for a slot without a start.
	SaleEnds    bool
	SaleEndsFor time.Duration
	// SaleTimeZone is the IANA name of the zone in which people read those times; "" for UTC.
	SaleTimeZone string
	// Scarce marks what is hard to get: a hold of it that is stuck is worth waking somebody.
	Scarce bool
}

// DefaultPolicy is the policy where nothing says otherwise.
func DefaultPolicy() Policy {
	return Policy{
		HoldFor: HoldForDefault, GraceFor: GraceForDefault, HoldForMax: HoldForMaxDefault,
		QuantityPerHoldMax: QuantityPerLineMax, Payment: DefaultPaymentTerms(),
	}
}

// Equal reports whether p and q say the same. Policies have times, which == compares by
// their form and not by their moment.
func (p Policy) Equal(q Policy) bool {
	if !p.SaleFrom.Equal(q.SaleFrom) || !p.SaleUntil.Equal(q.SaleUntil) {
		return false
	}
	p.SaleFrom, p.SaleUntil, q.SaleFrom, q.SaleUntil = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return p == q
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
	if err := p.validateLimits(); err != nil {
		return err
	}
	if err := p.validateSale(); err != nil {
		return err
	}
	return p.Payment.validate()
}

func (p Policy) validateLimits() error {
	for name, limit := range map[string]Units{
		"quantity_max_per_owner": p.QuantityPerOwnerMax, "quantity_max_per_owner_of_resource": p.QuantityPerOwnerOfResourceMax,
		"holds_max_per_owner": p.HoldsPerOwnerMax, "expiries_max": p.ExpiriesMax, "holds_max_per_signal": p.HoldsPerSignalMax,
	} {
		if limit < 0 || limit > OwnerLimitMax {
			return errorf(CodeInvalid, "%s must be 0 to %d; 0 is no limit", name, OwnerLimitMax)
		}
	}
	switch {
	case p.CooldownFor < 0 || p.CooldownFor > HoldForLimit:
		return errorf(CodeInvalid, "cooldown_seconds must be 0 to %d", int(HoldForLimit.Seconds()))
	case p.ExpiriesMax > 0 && p.CooldownFor == 0:
		return errorf(CodeInvalid, "expiries_max needs a cooldown_seconds of 1 or more")
	}
	return nil
}

func (p Policy) validateSale() error {
	whole := func(t time.Time) bool { return t.Equal(t.Truncate(time.Millisecond)) }
	switch {
	case !p.SaleFrom.IsZero() && !p.SaleUntil.IsZero() && !p.SaleFrom.Before(p.SaleUntil):
		return errorf(CodeInvalid, "sale_until must be later than sale_from")
	case !whole(p.SaleFrom) || !whole(p.SaleUntil):
		return errorf(CodeInvalid, "sale_from and sale_until must be in whole milliseconds")
	case p.SaleEndsFor < 0 || p.SaleEndsFor > CancelForLimit:
		return errorf(CodeInvalid, "sale_ends_seconds_before_start must be 0 to %d", int(CancelForLimit.Seconds()))
	case len(p.SaleTimeZone) > TimeZoneCharactersMax:
		return errorf(CodeInvalid, "sale_time_zone must be at most %d characters", TimeZoneCharactersMax)
	}
	return nil
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

// PolicyParts is a set of parts of a policy.
type PolicyParts uint32

// The parts. They are stored by name, so that their numbers may change.
const (
	PartHold PolicyParts = 1 << iota
	PartGrace
	PartHoldMax
	PartQuantityPerHold
	PartOnDecline
	PartLatePayment
	PartLateByProvider
	PartUnknown
	PartDelivery
	PartCancel
	PartRestock
	PartGrantTo
	PartQuantityPerOwner
	PartQuantityPerOwnerOfResource
	PartHoldsPerOwner
	PartExpiries
	PartCooldown
	PartHoldsPerSignal
	PartSaleFrom
	PartSaleUntil
	PartSaleEnds
	PartSaleTimeZone
	PartScarce
	partsEnd
	// AllPolicyParts is the set of all parts.
	AllPolicyParts = partsEnd - 1
)

// policyPart is one part: its name, which is that of the API, and how it is copied.
type policyPart struct {
	part PolicyParts
	name string
	copy func(to, from *Policy)
}

// policyParts lists the parts in the order of their numbers.
func policyParts() []policyPart {
	return []policyPart{
		{PartHold, "hold_seconds", func(to, from *Policy) { to.HoldFor = from.HoldFor }},
		{PartGrace, "grace_seconds", func(to, from *Policy) { to.GraceFor = from.GraceFor }},
		{PartHoldMax, "hold_max_seconds", func(to, from *Policy) { to.HoldForMax = from.HoldForMax }},
		{PartQuantityPerHold, "quantity_max_per_hold", func(to, from *Policy) { to.QuantityPerHoldMax = from.QuantityPerHoldMax }},
		{PartOnDecline, "on_decline", func(to, from *Policy) { to.Payment.OnDecline = from.Payment.OnDecline }},
		{PartLatePayment, "late_payment", func(to, from *Policy) { to.Payment.LatePayment = from.Payment.LatePayment }},
		{PartLateByProvider, "late_payment_by_provider", func(to, from *Policy) { to.Payment.LateByProvider = from.Payment.LateByProvider }},
		{PartUnknown, "unknown_max_seconds", func(to, from *Policy) { to.Payment.UnknownFor = from.Payment.UnknownFor }},
		{PartDelivery, "delivery", func(to, from *Policy) { to.Payment.Delivery = from.Payment.Delivery }},
		{PartCancel, "cancel_until_seconds", func(to, from *Policy) { to.CancelFor = from.CancelFor }},
		{PartRestock, "restock", func(to, from *Policy) { to.NoRestock = from.NoRestock }},
		{PartGrantTo, "grant_to_slot_id", func(to, from *Policy) { to.GrantTo = from.GrantTo }},
		{PartQuantityPerOwner, "quantity_max_per_owner", func(to, from *Policy) { to.QuantityPerOwnerMax = from.QuantityPerOwnerMax }},
		{PartQuantityPerOwnerOfResource, "quantity_max_per_owner_of_resource", func(to, from *Policy) { to.QuantityPerOwnerOfResourceMax = from.QuantityPerOwnerOfResourceMax }},
		{PartHoldsPerOwner, "holds_max_per_owner", func(to, from *Policy) { to.HoldsPerOwnerMax = from.HoldsPerOwnerMax }},
		{PartExpiries, "expiries_max", func(to, from *Policy) { to.ExpiriesMax = from.ExpiriesMax }},
		{PartCooldown, "cooldown_seconds", func(to, from *Policy) { to.CooldownFor = from.CooldownFor }},
		{PartHoldsPerSignal, "holds_max_per_signal", func(to, from *Policy) { to.HoldsPerSignalMax = from.HoldsPerSignalMax }},
		{PartSaleFrom, "sale_from", func(to, from *Policy) { to.SaleFrom = from.SaleFrom }},
		{PartSaleUntil, "sale_until", func(to, from *Policy) { to.SaleUntil = from.SaleUntil }},
		{PartSaleEnds, "sale_ends_seconds_before_start", func(to, from *Policy) { to.SaleEnds, to.SaleEndsFor = from.SaleEnds, from.SaleEndsFor }},
		{PartSaleTimeZone, "sale_time_zone", func(to, from *Policy) { to.SaleTimeZone = from.SaleTimeZone }},
		{PartScarce, "scarce", func(to, from *Policy) { to.Scarce = from.Scarce }},
	}
}

// Names are the names of the parts, in a fixed order: those of the API.
func (p PolicyParts) Names() []string {
	var out []string
	for _, part := range policyParts() {
		if p&part.part != 0 {
			out = append(out, part.name)
		}
	}
	return out
}

// PolicyPartsNamed is the set of the parts of these names. A name that no part has is a
// CodeInvalid error.
func PolicyPartsNamed(names []string) (PolicyParts, error) {
	var out PolicyParts
	all := policyParts()
	for _, name := range names {
		i := slices.IndexFunc(all, func(p policyPart) bool { return p.name == name })
		if i < 0 {
			return 0, errorf(CodeInvalid, "a policy has no part %q; the parts are %s", name, strings.Join(AllPolicyParts.Names(), ", "))
		}
		out |= all[i].part
	}
	return out, nil
}

// PolicyLayer is what one place says of a policy: everything but the parts that it
// inherits from the place above it.
type PolicyLayer struct {
	Policy   Policy
	Inherits PolicyParts
}

// Validate returns a CodeInvalid error for a part that can't be. The parts that are
// inherited are not looked at.
func (l PolicyLayer) Validate() error {
	if l.Inherits&^AllPolicyParts != 0 {
		return errorf(CodeInvalid, "the policy inherits parts that no policy has")
	}
	return l.over(DefaultPolicy()).validate()
}

// over is what holds where l stands on base. A life that the layer names is not bounded by
// a longest life that it does not name, and the other way round: the one that is named
// moves the one that is not.
func (l PolicyLayer) over(base Policy) Policy {
	out := base
	for _, part := range policyParts() {
		if l.Inherits&part.part == 0 {
			part.copy(&out, &l.Policy)
		}
	}
	switch {
	case l.Inherits&PartHold != 0 && l.Inherits&PartHoldMax == 0:
		out.HoldFor = min(out.HoldFor, out.HoldForMax)
	case l.Inherits&PartHoldMax != 0:
		out.HoldForMax = max(out.HoldForMax, out.HoldFor)
	}
	if out.ExpiriesMax > 0 && out.CooldownFor == 0 {
		out.ExpiriesMax = 0 // a cool-down of no time is none
	}
	if !out.SaleFrom.IsZero() && !out.SaleUntil.IsZero() && !out.SaleFrom.Before(out.SaleUntil) && l.Inherits&PartSaleUntil != 0 {
		out.SaleUntil = time.Time{} // the window of the layer begins after the one above has ended
	}
	return out
}

// PolicyScope is what a policy is of: all slots of a resource type, or with ResourceID set
// those of one resource.
type PolicyScope struct {
	ResourceType ResourceType
	ResourceID   ResourceID
}

// Scopes are the scopes above a slot of the resource, the widest first.
func Scopes(t ResourceType, id ResourceID) []PolicyScope {
	return []PolicyScope{{ResourceType: t}, {ResourceType: t, ResourceID: id}}
}

// ScopePolicy is what is said for all slots of a scope.
type ScopePolicy struct {
	Scope     PolicyScope
	Layer     PolicyLayer
	Version   Version
	CreatedAt time.Time
	UpdatedAt time.Time
}

// PolicyWrite puts Next in place of the policy of its scope at version Replaces, or
// creates it.
type PolicyWrite struct {
	Next     ScopePolicy
	Replaces Version
}

// SetPolicy says layer for all slots of the scope. Stored is what is said so far, zero for
// nothing. Saying the same again returns an empty Change.
func SetPolicy(scope PolicyScope, stored ScopePolicy, layer PolicyLayer, origin Origin, now time.Time) (Change, error) {
	switch {
	case !ValidName(string(scope.ResourceType)):
		return Change{}, errorf(CodeInvalid, "resource_type must be 1 to %d characters of A-Z a-z 0-9 . _ : -", NameCharactersMax)
	case scope.ResourceID != "" && !ValidName(string(scope.ResourceID)):
		return Change{}, errorf(CodeInvalid, "resource_id must be 1 to %d characters of A-Z a-z 0-9 . _ : -", NameCharactersMax)
	}
	if err := layer.Validate(); err != nil {
		return Change{}, err
	}
	if stored.Version > 0 && stored.Layer.Inherits == layer.Inherits && stored.Layer.Policy.Equal(layer.Policy) {
		return Change{}, nil
	}
	next := ScopePolicy{Scope: scope, Layer: layer, Version: stored.Version + 1, CreatedAt: stored.CreatedAt, UpdatedAt: now}
	if stored.Version == 0 {
		next.CreatedAt = now
	}
	return Change{
		At: now, Policies: []PolicyWrite{{Next: next, Replaces: stored.Version}},
		Events: []Event{{
			ID: origin.EventID, Type: EventPolicyChanged, Version: next.Version, OccurredAt: now, Origin: origin, Policy: &next,
		}},
	}, nil
}

// Resolve is the slot with the whole of its policy: its own parts over those of its
// resource, over those of its resource type, over the default. Policies of other scopes
// are ignored.
func (s Slot) Resolve(policies []ScopePolicy) Slot {
	whole := DefaultPolicy()
	for _, scope := range Scopes(s.ResourceType, s.ResourceID) {
		if i := slices.IndexFunc(policies, func(p ScopePolicy) bool { return p.Scope == scope }); i >= 0 {
			whole = policies[i].Layer.over(whole)
		}
	}
	s.Policy = PolicyLayer{s.Policy, s.Inherits}.over(whole)
	s.Inherits = 0
	return s
}

// OnSale returns CodeSaleNotOpen or CodeSaleOver where no hold of s can be made at now.
// The slot must be resolved.
func (s Slot) OnSale(now time.Time) error {
	from, until := s.Policy.SaleFrom, s.Policy.SaleUntil
	if s.Policy.SaleEnds && !s.StartsAt.IsZero() {
		if ends := s.StartsAt.Add(-s.Policy.SaleEndsFor); until.IsZero() || ends.Before(until) {
			until = ends
		}
	}
	switch {
	case !from.IsZero() && now.Before(from):
		return &Error{Code: CodeSaleNotOpen, Slots: []SlotID{s.ID}, RetryAfter: from.Sub(now), OpensAt: from,
			Message: "the sale begins at " + from.UTC().Format(time.RFC3339)}
	case !until.IsZero() && !now.Before(until):
		return &Error{Code: CodeSaleOver, Slots: []SlotID{s.ID}, Message: "the sale ended at " + until.UTC().Format(time.RFC3339) + "; choose another slot"}
	}
	return nil
}
