package dynamo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

// layerFields are a policy, and which parts of it are those of the place above. They are
// kept by name, because the numbers of the parts are not.
type layerFields struct {
	HoldMs             int64              `dynamodbav:"hold_ms"`
	GraceMs            int64              `dynamodbav:"grace_ms"`
	HoldMaxMs          int64              `dynamodbav:"hold_max_ms"`
	QuantityPerHoldMax ledger.Units       `dynamodbav:"quantity_per_hold_max"`
	Payment            paymentTermsFields `dynamodbav:"payment"`
	CancelMs           int64              `dynamodbav:"cancel_ms,omitempty"`
	NoRestock          bool               `dynamodbav:"no_restock,omitempty"`
	GrantTo            string             `dynamodbav:"grant_to,omitempty"`

	QuantityPerOwnerMax           ledger.Units `dynamodbav:"quantity_per_owner_max,omitempty"`
	QuantityPerOwnerOfResourceMax ledger.Units `dynamodbav:"quantity_per_owner_of_resource_max,omitempty"`
	HoldsPerOwnerMax              ledger.Units `dynamodbav:"holds_per_owner_max,omitempty"`
	ExpiriesMax                   ledger.Units `dynamodbav:"expiries_max,omitempty"`
	CooldownMs                    int64        `dynamodbav:"cooldown_ms,omitempty"`
	HoldsPerSignalMax             ledger.Units `dynamodbav:"holds_per_signal_max,omitempty"`
	SaleFromMs                    int64        `dynamodbav:"sale_from_ms,omitempty"`
	SaleUntilMs                   int64        `dynamodbav:"sale_until_ms,omitempty"`
	SaleEnds                      bool         `dynamodbav:"sale_ends,omitempty"`
	SaleEndsMs                    int64        `dynamodbav:"sale_ends_ms,omitempty"`
	SaleTimeZone                  string       `dynamodbav:"sale_time_zone,omitempty"`
	Scarce                        bool         `dynamodbav:"scarce,omitempty"`

	Inherits []string `dynamodbav:"inherits,omitempty"`
}

func newLayerFields(l ledger.PolicyLayer) layerFields {
	p := l.Policy
	return layerFields{
		HoldMs: p.HoldFor.Milliseconds(), GraceMs: p.GraceFor.Milliseconds(), HoldMaxMs: p.HoldForMax.Milliseconds(),
		QuantityPerHoldMax: p.QuantityPerHoldMax, Payment: newPaymentTermsFields(p.Payment), CancelMs: p.CancelFor.Milliseconds(),
		NoRestock: p.NoRestock, GrantTo: p.GrantTo,
		QuantityPerOwnerMax: p.QuantityPerOwnerMax, QuantityPerOwnerOfResourceMax: p.QuantityPerOwnerOfResourceMax,
		HoldsPerOwnerMax: p.HoldsPerOwnerMax, ExpiriesMax: p.ExpiriesMax, CooldownMs: p.CooldownFor.Milliseconds(),
		HoldsPerSignalMax: p.HoldsPerSignalMax,
		SaleFromMs:        milliseconds(p.SaleFrom), SaleUntilMs: milliseconds(p.SaleUntil),
		SaleEnds: p.SaleEnds, SaleEndsMs: p.SaleEndsFor.Milliseconds(), SaleTimeZone: p.SaleTimeZone, Scarce: p.Scarce,
		Inherits: l.Inherits.Names(),
	}
}

// layer is the policy again.
func (f layerFields) layer() ledger.PolicyLayer {
	return ledger.PolicyLayer{
		Policy: ledger.Policy{
			HoldFor: time.Duration(f.HoldMs) * time.Millisecond, GraceFor: time.Duration(f.GraceMs) * time.Millisecond,
			HoldForMax: time.Duration(f.HoldMaxMs) * time.Millisecond, QuantityPerHoldMax: f.QuantityPerHoldMax,
			Payment: f.Payment.paymentTerms(), CancelFor: time.Duration(f.CancelMs) * time.Millisecond,
			NoRestock: f.NoRestock, GrantTo: f.GrantTo,
			QuantityPerOwnerMax: f.QuantityPerOwnerMax, QuantityPerOwnerOfResourceMax: f.QuantityPerOwnerOfResourceMax,
			HoldsPerOwnerMax: f.HoldsPerOwnerMax, ExpiriesMax: f.ExpiriesMax, CooldownFor: time.Duration(f.CooldownMs) * time.Millisecond,
			HoldsPerSignalMax: f.HoldsPerSignalMax,
			SaleFrom:          fromMilliseconds(f.SaleFromMs), SaleUntil: fromMilliseconds(f.SaleUntilMs),
			SaleEnds: f.SaleEnds, SaleEndsFor: time.Duration(f.SaleEndsMs) * time.Millisecond, SaleTimeZone: f.SaleTimeZone, Scarce: f.Scarce,
		},
		Inherits: partsNamed(f.Inherits),
	}
}

// partsNamed is the set of these parts. A name that this code does not know is of a part
// that a newer version has added, and is passed over: nothing here has that part. A slot is
// read often, so the names are looked up one by one only if there is such a name.
func partsNamed(names []string) ledger.PolicyParts {
	all, err := ledger.PolicyPartsNamed(names)
	if err == nil {
		return all
	}
	all = 0
	for _, name := range names {
		if one, err := ledger.PolicyPartsNamed([]string{name}); err == nil {
			all |= one
		}
	}
	return all
}

// policyFields are what is said for all slots of a scope: the body of a policy item, and
// the copy of it in an event.
type policyFields struct {
	ResourceType ledger.ResourceType `dynamodbav:"resource_type"`
	ResourceID   ledger.ResourceID   `dynamodbav:"resource_id,omitempty"`
	layerFields
	Version     ledger.Version `dynamodbav:"version"`
	CreatedAtMs int64          `dynamodbav:"created_at_ms"`
	UpdatedAtMs int64          `dynamodbav:"updated_at_ms"`
}

type policyRecord struct {
	itemKey
	policyFields
}

func newPolicyFields(p ledger.ScopePolicy) policyFields {
	return policyFields{
		ResourceType: p.Scope.ResourceType, ResourceID: p.Scope.ResourceID, layerFields: newLayerFields(p.Layer),
		Version: p.Version, CreatedAtMs: milliseconds(p.CreatedAt), UpdatedAtMs: milliseconds(p.UpdatedAt),
	}
}

func (f policyFields) policy() ledger.ScopePolicy {
	return ledger.ScopePolicy{
		Scope: ledger.PolicyScope{ResourceType: f.ResourceType, ResourceID: f.ResourceID}, Layer: f.layer(),
		Version: f.Version, CreatedAt: fromMilliseconds(f.CreatedAtMs), UpdatedAt: fromMilliseconds(f.UpdatedAtMs),
	}
}

func decodePolicy(item map[string]types.AttributeValue) (ledger.ScopePolicy, error) {
	var r policyRecord
	err := attributevalue.UnmarshalMap(item, &r)
	return r.policy(), err
}

func policyLeg(w ledger.PolicyWrite) (leg, error) {
	condition := notThere()
	if w.Replaces > 0 {
		condition = expression.Name(attributeVersion).Equal(expression.Value(w.Replaces))
	}
	record := policyRecord{itemKey: policyKey(w.Next.Scope), policyFields: newPolicyFields(w.Next)}
	return putLeg(record, condition, func(item map[string]types.AttributeValue) (ledger.RefusedLeg, error) {
		refused := ledger.RefusedLeg{Kind: ledger.LegPolicy}
		if len(item) == 0 {
			return refused, nil
		}
		stored, err := decodePolicy(item)
		refused.Policy = &stored
		return refused, err
	})
}

// Policies returns what is said for these scopes.
func (s *Store) Policies(ctx context.Context, scopes []ledger.PolicyScope) ([]ledger.ScopePolicy, error) {
	if len(scopes) > ledger.PageItemsMax {
		return nil, &ledger.Error{Code: ledger.CodeInvalid, Message: fmt.Sprintf("at most %d policies can be read at once", ledger.PageItemsMax)}
	}
	keys := make([]itemKey, 0, len(scopes))
	for _, scope := range scopes {
		if key := policyKey(scope); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	items, err := s.batchGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	return decodeAll(items, decodePolicy)
}
