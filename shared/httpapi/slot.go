package httpapi

import (
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
)

// PutSlot defines a slot.
func (a *API) PutSlot(_ http.ResponseWriter, r *http.Request, id SlotID) {
	x := exchangeOf(r)
	var body SlotDefinition
	if err := decode(x.body, &body); err != nil {
		x.fail(err)
		return
	}
	if err := checkCurrency(body.Currency); err != nil {
		x.fail(err)
		return
	}
	definition, err := definitionOf(body)
	if err != nil {
		x.fail(err)
		return
	}
	// A PUT is repeatable by nature, so it has no key and no fingerprint.
	request := commands.Request{Actor: x.actor("catalog"), RequestID: x.caller.RequestID, Owner: x.caller.Principal.Subject}
	answer, err := a.commands.PutSlot(r.Context(), request, ledger.SlotID(id), definition, renderSlot)
	if err != nil {
		x.fail(err)
		return
	}
	x.answerCommand(answer)
}

// PatchSlot changes parts of a slot.
func (a *API) PatchSlot(_ http.ResponseWriter, r *http.Request, id SlotID, params PatchSlotParams) {
	x := exchangeOf(r)
	var body SlotPatch
	if err := decode(x.body, &body); err != nil {
		x.fail(err)
		return
	}
	if body.Currency != nil {
		if err := checkCurrency(*body.Currency); err != nil {
			x.fail(err)
			return
		}
	}
	patch, err := patchOf(body)
	if err != nil {
		x.fail(err)
		return
	}
	request, err := x.request("catalog", params.IdempotencyKey, meaning{ID: id, Body: body})
	if err != nil {
		x.fail(err)
		return
	}
	answer, err := a.commands.PatchSlot(r.Context(), request, ledger.SlotID(id), patch, renderSlot)
	if err != nil {
		x.fail(err)
		return
	}
	x.answerCommand(answer)
}

// GetSlot answers with a slot and its counters. The counters are all of one moment; a
// change between the two reads may have made them newer than the rest.
func (a *API) GetSlot(_ http.ResponseWriter, r *http.Request, id SlotID) {
	x := exchangeOf(r)
	slots, err := a.store.Slots(r.Context(), []ledger.SlotID{ledger.SlotID(id)})
	if err != nil {
		x.fail(err)
		return
	}
	if len(slots) == 0 {
		x.fail(ledger.SlotNotFound(ledger.SlotID(id)))
		return
	}
	stock, err := a.store.StockAtOneMoment(r.Context(), slots[0])
	if err != nil {
		x.fail(err)
		return
	}
	var counters ledger.Counters
	for _, s := range stock {
		counters = counters.Plus(s.Counters)
	}
	whole, err := a.commands.Resolved(r.Context(), slots)
	if err != nil {
		x.fail(err)
		return
	}
	x.answerJSON(http.StatusOK, slotOf(slots[0], whole[0].Policy, counters))
}

// definitionOf reads a definition. What it does not say of the policy is inherited.
func definitionOf(body SlotDefinition) (ledger.SlotDefinition, error) {
	policy, err := policyPatchOf("/policy", body.Policy)
	if err != nil {
		return ledger.SlotDefinition{}, err
	}
	layer := policy.Apply(ledger.InheritAll())
	shards := 1
	if body.Shards != nil {
		shards = int(*body.Shards)
	}
	return ledger.SlotDefinition{
		ResourceType: ledger.ResourceType(body.ResourceType), ResourceID: ledger.ResourceID(body.ResourceID),
		StartsAt: timeOrZero(body.StartsAt), EndsAt: timeOrZero(body.EndsAt),
		Attributes: attributesOf(body.Attributes),
		Terms: ledger.Terms{
			Open:   body.Open,
			Price:  ledger.Money{AmountMinor: body.UnitAmount, Currency: ledger.Currency(body.Currency)},
			Shards: shards,
		},
		Policy: layer.Policy, Inherits: layer.Inherits, Capacity: ledger.Units(body.Capacity),
	}, nil
}

// patchOf reads a patch, and puts its policy into its normal form.
func patchOf(body SlotPatch) (ledger.SlotPatch, error) {
	policy, err := policyPatchOf("/policy", body.Policy)
	if err != nil {
		return ledger.SlotPatch{}, err
	}
	patch := ledger.SlotPatch{
		Attributes: attributesOf(body.Attributes),
		UnitAmount: body.UnitAmount,
		Open:       body.Open,
		Policy:     policy,
		Currency:   converted[ledger.Currency](body.Currency),
		Capacity:   units(body.Capacity), CapacityDelta: units(body.CapacityDelta),
		AcceptOversold: body.AcceptOversold != nil && *body.AcceptOversold,
	}
	if body.Shards != nil {
		shards := int(*body.Shards)
		patch.Shards = &shards
	}
	if body.StartsAt != nil {
		startsAt := time.Time(*body.StartsAt)
		patch.StartsAt = &startsAt
	}
	if body.EndsAt != nil {
		endsAt := time.Time(*body.EndsAt)
		patch.EndsAt = &endsAt
	}
	return patch, nil
}

// attributesOf is nil for attributes that are not named, and empty for none.
func attributesOf(body *Attributes) map[string]string {
	if body == nil {
		return nil
	}
	return *body
}

func units(n *int64) *ledger.Units {
	if n == nil {
		return nil
	}
	out := ledger.Units(*n)
	return &out
}

func converted[To, From ~string](text *From) *To {
	if text == nil {
		return nil
	}
	out := To(*text)
	return &out
}

// negated is for what the contract and the ledger say the other way round.
func negated(statement *bool) *bool {
	if statement == nil {
		return nil
	}
	out := !*statement
	return &out
}

func duration(seconds *int64) *time.Duration {
	if seconds == nil {
		return nil
	}
	out := time.Duration(*seconds) * time.Second
	return &out
}

// renderSlot makes the answer that a command gives and keeps.
func renderSlot(slot ledger.Slot, whole ledger.Policy, counters ledger.Counters, created bool) (ledger.Response, error) {
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	body, err := json.Marshal(slotOf(slot, whole, counters), json.Deterministic(true))
	return ledger.Response{Status: status, Body: body}, err
}

// slotOf is the slot as it is stored, with the whole policy that it has.
func slotOf(s ledger.Slot, whole ledger.Policy, c ledger.Counters) Slot {
	out := Slot{
		SlotID: string(s.ID), ResourceType: string(s.ResourceType), ResourceID: string(s.ResourceID),
		StartsAt: timeOrNil(s.StartsAt), EndsAt: timeOrNil(s.EndsAt), Attributes: attributesOrNil(s.Attributes),
		Capacity: int64(c.Capacity), Available: int64(c.Available), Held: int64(c.Held), Confirmed: int64(c.Confirmed),
		UnitAmount: s.Terms.Price.AmountMinor, Currency: string(s.Terms.Price.Currency), Open: s.Terms.Open,
		Policy: policyOf(whole), PolicyInherits: partNames(s.Inherits),
		Shards:       int32(s.Terms.Shards),
		PriceVersion: int64(s.PriceVersion), Version: int64(s.Version),
		CreatedAt: Time(s.CreatedAt), UpdatedAt: Time(s.UpdatedAt),
	}
	if s.Oversold > 0 {
		missing := int64(s.Oversold)
		out.Oversold = &missing
	}
	return out
}

func attributesOrNil(attributes map[string]string) *Attributes {
	if len(attributes) == 0 {
		return nil
	}
	out := Attributes(attributes)
	return &out
}
