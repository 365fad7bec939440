package dynamo

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

const (
	attributeVersion     = "version"
	attributeStatus      = "status"
	attributeReleaseAtMs = "release_at_ms"
	attributeExpiresAtMs = "expires_at_ms"
	attributeAttemptOpen = "attempt_open"
	attributeReservation = "reservation_id"
)

// holdFields is a hold without its keys: the body of a hold item, and the copy of the
// hold in an event.
type holdFields struct {
	ID               ledger.HoldID           `dynamodbav:"hold_id"`
	Owner            ledger.OwnerID          `dynamodbav:"owner"`
	Status           ledger.Status           `dynamodbav:"status"`
	Lines            []lineFields            `dynamodbav:"lines"`
	CreatedAtMs      int64                   `dynamodbav:"created_at_ms"`
	ExpiresAtMs      int64                   `dynamodbav:"expires_at_ms"`
	ReleaseAtMs      int64                   `dynamodbav:"release_at_ms"`
	HoldMs           int64                   `dynamodbav:"hold_ms"`
	HoldMaxMs        int64                   `dynamodbav:"hold_max_ms"`
	GraceMs          int64                   `dynamodbav:"grace_ms"`
	Terms            paymentTermsFields      `dynamodbav:"terms"`
	Reservation      ledger.ReservationID    `dynamodbav:"reservation_id,omitempty"`
	AttemptOpen      ledger.AttemptNumber    `dynamodbav:"attempt_open,omitempty"`
	Reacquires       ledger.HoldID           `dynamodbav:"reacquires,omitempty"`
	PaymentReference ledger.PaymentReference `dynamodbav:"payment_reference,omitempty"`
	CountsIn         []ledger.QuotaKey       `dynamodbav:"counts_in,omitempty"`
	CountsExpiry     bool                    `dynamodbav:"counts_expiry,omitempty"`
	Scarce           bool                    `dynamodbav:"scarce,omitempty"`
	EndedAtMs        int64                   `dynamodbav:"ended_at_ms,omitempty"`
	Version          ledger.Version          `dynamodbav:"version"`
}

type lineFields struct {
	Slot          ledger.SlotID      `dynamodbav:"slot_id"`
	Quantity      ledger.Units       `dynamodbav:"quantity"`
	UnitAmount    int64              `dynamodbav:"unit_amount"`
	Currency      ledger.Currency    `dynamodbav:"currency"`
	Shards        []allocationFields `dynamodbav:"shards"`
	Returned      []allocationFields `dynamodbav:"returned,omitempty"`
	CancelUntilMs int64              `dynamodbav:"cancel_until_ms,omitempty"`
	OverAtMs      int64              `dynamodbav:"over_at_ms,omitempty"`
	NoRestock     bool               `dynamodbav:"no_restock,omitempty"`
	GrantTo       ledger.SlotID      `dynamodbav:"grant_to,omitempty"`
	CountsIn      []ledger.QuotaKey  `dynamodbav:"counts_in,omitempty"`
}

type allocationFields struct {
	Shard    ledger.Shard `dynamodbav:"shard"`
	Quantity ledger.Units `dynamodbav:"quantity"`
}

// holdRecord is a hold item. The due index lists it among the holds while it is HELD, and
// then for the archive, until it lies there.
type holdRecord struct {
	itemKey
	holdFields
	OwnerOrder string         `dynamodbav:"owner_order"`
	DueShard   string         `dynamodbav:"due_shard,omitempty"`
	DueAtMs    int64          `dynamodbav:"due_at_ms,omitempty"`
	ArchivedIn ledger.BatchID `dynamodbav:"archived_in,omitempty"`
}

func newHoldFields(h ledger.Hold) holdFields {
	f := holdFields{
		ID: h.ID, Owner: h.Owner, Status: h.Status, CreatedAtMs: milliseconds(h.CreatedAt),
		ExpiresAtMs: milliseconds(h.ExpiresAt), ReleaseAtMs: milliseconds(h.ReleaseAt),
		HoldMs: h.HoldFor.Milliseconds(), HoldMaxMs: h.HoldForMax.Milliseconds(), CountsIn: h.CountsIn, CountsExpiry: h.CountsExpiry, Scarce: h.Scarce,
		GraceMs: h.GraceFor.Milliseconds(), Terms: newPaymentTermsFields(h.Terms),
		Reservation: h.Reservation, AttemptOpen: h.AttemptOpen, Reacquires: h.Reacquires, PaymentReference: h.PaymentReference,
		EndedAtMs: milliseconds(h.EndedAt), Version: h.Version,
	}
	for _, l := range h.Lines {
		f.Lines = append(f.Lines, lineFields{
			Slot: l.Slot, Quantity: l.Quantity, UnitAmount: l.UnitPrice.AmountMinor, Currency: l.UnitPrice.Currency,
			Shards: newAllocationFields(l.Shards), Returned: newAllocationFields(l.Returned),
			CancelUntilMs: milliseconds(l.CancelUntil), OverAtMs: milliseconds(l.OverAt), NoRestock: l.NoRestock, GrantTo: l.GrantTo, CountsIn: l.CountsIn,
		})
	}
	return f
}

func (f holdFields) hold() ledger.Hold {
	h := ledger.Hold{
		ID: f.ID, Owner: f.Owner, Status: f.Status, CreatedAt: fromMilliseconds(f.CreatedAtMs),
		ExpiresAt: fromMilliseconds(f.ExpiresAtMs), ReleaseAt: fromMilliseconds(f.ReleaseAtMs),
		HoldFor: time.Duration(f.HoldMs) * time.Millisecond, HoldForMax: time.Duration(f.HoldMaxMs) * time.Millisecond,
		CountsIn: f.CountsIn, CountsExpiry: f.CountsExpiry, Scarce: f.Scarce,
		GraceFor: time.Duration(f.GraceMs) * time.Millisecond, Terms: f.Terms.paymentTerms(),
		Reservation: f.Reservation, AttemptOpen: f.AttemptOpen, Reacquires: f.Reacquires, PaymentReference: f.PaymentReference,
		EndedAt: fromMilliseconds(f.EndedAtMs), Version: f.Version,
	}
	for _, l := range f.Lines {
		h.Lines = append(h.Lines, ledger.Line{
			Slot: l.Slot, Quantity: l.Quantity, UnitPrice: ledger.Money{AmountMinor: l.UnitAmount, Currency: l.Currency},
			Shards: allocations(l.Shards), Returned: allocations(l.Returned),
			CancelUntil: fromMilliseconds(l.CancelUntilMs), OverAt: fromMilliseconds(l.OverAtMs), NoRestock: l.NoRestock, GrantTo: l.GrantTo, CountsIn: l.CountsIn,
		})
	}
	return h
}

func newAllocationFields(allocations []ledger.Allocation) []allocationFields {
	var out []allocationFields
	for _, a := range allocations {
		out = append(out, allocationFields{a.Shard, a.Quantity})
	}
	return out
}

func allocations(fields []allocationFields) []ledger.Allocation {
	var out []ledger.Allocation
	for _, f := range fields {
		out = append(out, ledger.Allocation{Shard: f.Shard, Quantity: f.Quantity})
	}
	return out
}

// newHoldRecord is the item of a hold that changed last at changedAt.
func newHoldRecord(h ledger.Hold, changedAt time.Time) holdRecord {
	r := holdRecord{itemKey: holdKey(h.ID), holdFields: newHoldFields(h), OwnerOrder: ownerOrder(kindHold, h.CreatedAt, string(h.ID))}
	if due, waiting := h.DueAt(); waiting {
		r.DueShard = dueShardKey(kindHold, ledger.DueShard(h.ID))
		r.DueAtMs = milliseconds(due)
	}
	if from, archivable := h.ArchiveFrom(changedAt); archivable {
		r.DueShard = dueShardKey(kindArchiveHold, ledger.DueShard(h.ID))
		r.DueAtMs = milliseconds(from)
	}
	return r
}

func decodeHold(item map[string]types.AttributeValue) (ledger.Hold, error) {
	var r holdRecord
	err := attributevalue.UnmarshalMap(item, &r)
	hold := r.hold()
	hold.ArchivedIn = r.ArchivedIn
	return hold, err
}

// holdLeg writes the next state of a hold under the rules of ledger.HoldWrite.
func holdLeg(w ledger.HoldWrite, at time.Time) (leg, error) {
	condition := notThere()
	if w.Replaces > 0 {
		condition = holdCondition(w, at)
	}
	return putLeg(newHoldRecord(w.Next, at), condition, refusedHold)
}

func refusedHold(item map[string]types.AttributeValue) (ledger.RefusedLeg, error) {
	refused := ledger.RefusedLeg{Kind: ledger.LegHold}
	if len(item) == 0 {
		return refused, nil
	}
	hold, err := decodeHold(item)
	refused.Hold = &hold
	return refused, err
}

// holdCondition is what must be true of the hold that w replaces.
func holdCondition(w ledger.HoldWrite, at time.Time) expression.ConditionBuilder {
	condition := expression.Name(attributeVersion).Equal(expression.Value(w.Replaces)).
		And(expression.Name(attributeStatus).Equal(expression.Value(w.Status()))).
		And(notArchived())
	release, expires := expression.Name(attributeReleaseAtMs), expression.Name(attributeExpiresAtMs)
	switch w.When {
	case ledger.BeforeRelease:
		condition = condition.And(release.GreaterThan(expression.Value(milliseconds(at))))
	case ledger.FromRelease:
		condition = condition.And(release.LessThanEqual(expression.Value(milliseconds(at.Add(-w.OverFor)))))
	case ledger.BeforeExpiry:
		condition = condition.And(expires.GreaterThan(expression.Value(milliseconds(at))))
	case ledger.AnyTime:
	}
	if w.NoOpenAttempt {
		condition = condition.And(expression.AttributeNotExists(expression.Name(attributeAttemptOpen)))
	}
	if w.Of != nil {
		condition = condition.And(holdOf(*w.Of))
	}
	return condition
}

// holdOf is the condition that the hold is of that reservation, or of none for "".
func holdOf(id ledger.ReservationID) expression.ConditionBuilder {
	reservation := expression.Name(attributeReservation)
	if id == "" {
		return expression.AttributeNotExists(reservation)
	}
	return reservation.Equal(expression.Value(id))
}
