package outbox

import "holdfast/shared/ledger"

// slotDetail is a slot as consumers get it. Its policy is what the slot says itself: the
// parts that it inherits are told by the events of its resource and of its resource type,
// and a copy of them here would be out of date with the first of those.
type slotDetail struct {
	ID           ledger.SlotID       `json:"slot_id"`
	ResourceType ledger.ResourceType `json:"resource_type"`
	ResourceID   ledger.ResourceID   `json:"resource_id"`
	StartsAt     string              `json:"starts_at,omitempty"`
	EndsAt       string              `json:"ends_at,omitempty"`
	Attributes   map[string]string   `json:"attributes,omitempty"`
	Open         bool                `json:"open"`
	UnitAmount   int64               `json:"unit_amount"`
	Currency     ledger.Currency     `json:"currency"`
	// Shards and ShardsRetired are how many stock items movements may be of, together.
	Shards        int            `json:"shards"`
	ShardsRetired int            `json:"shards_retired"`
	PriceVersion  ledger.Version `json:"price_version"`
	Oversold      ledger.Units   `json:"oversold"`
	Policy        policyDetail   `json:"policy"`
	Version       ledger.Version `json:"version"`
	CreatedAt     string         `json:"created_at"`
	UpdatedAt     string         `json:"updated_at"`
}

func newSlotDetail(s ledger.Slot) *slotDetail {
	return &slotDetail{
		ID: s.ID, ResourceType: s.ResourceType, ResourceID: s.ResourceID,
		StartsAt: formatTime(s.StartsAt), EndsAt: formatTime(s.EndsAt), Attributes: s.Attributes,
		Open: s.Terms.Open, UnitAmount: s.Terms.Price.AmountMinor, Currency: s.Terms.Price.Currency,
		Shards: s.Terms.Shards, ShardsRetired: s.Terms.Retired, PriceVersion: s.PriceVersion, Oversold: s.Oversold,
		Policy:  newPolicyDetail(ledger.PolicyLayer{Policy: s.Policy, Inherits: s.Inherits}),
		Version: s.Version, CreatedAt: formatTime(s.CreatedAt), UpdatedAt: formatTime(s.UpdatedAt),
	}
}
