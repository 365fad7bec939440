package dynamo

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

const (
	attributeLookAtMs = "look_at_ms"
	attributeTries    = "tries"
)

// reservationFields is a reservation without its keys: the body of a reservation item,
// and the copy of the reservation in an event.
type reservationFields struct {
	ID            ledger.ReservationID     `dynamodbav:"reservation_id"`
	Owner         ledger.OwnerID           `dynamodbav:"owner"`
	Hold          ledger.HoldID            `dynamodbav:"hold_id"`
	SoldHold      ledger.HoldID            `dynamodbav:"sold_hold_id,omitempty"`
	Status        ledger.ReservationStatus `dynamodbav:"status"`
	Reason        ledger.Reason            `dynamodbav:"reason,omitempty"`
	AmountMinor   int64                    `dynamodbav:"amount_minor"`
	Currency      ledger.Currency          `dynamodbav:"currency"`
	Attempts      []attemptFields          `dynamodbav:"attempts,omitempty"`
	Refunds       []refundFields           `dynamodbav:"refunds,omitempty"`
	Grants        []grantFields            `dynamodbav:"grants,omitempty"`
	CreatedAtMs   int64                    `dynamodbav:"created_at_ms"`
	UpdatedAtMs   int64                    `dynamodbav:"updated_at_ms"`
	StatusSinceMs int64                    `dynamodbav:"status_since_ms,omitempty"` // absent in older records
	DeliveredAtMs int64                    `dynamodbav:"delivered_at_ms,omitempty"`
	ApprovedAtMs  int64                    `dynamodbav:"approved_at_ms,omitempty"`
	LookAtMs      int64                    `dynamodbav:"look_at_ms,omitempty"`
	Tries         int                      `dynamodbav:"tries,omitempty"`
	HoldsArchived int                      `dynamodbav:"holds_archived,omitempty"`
	Version       ledger.Version           `dynamodbav:"version"`
}

type attemptFields struct {
	Number         ledger.AttemptNumber `dynamodbav:"number"`
	Payment        ledger.PaymentID     `dynamodbav:"payment_id,omitempty"`
	State          ledger.AttemptState  `dynamodbav:"state"`
	Unwanted       bool                 `dynamodbav:"unwanted,omitempty"`
	CapturedMinor  int64                `dynamodbav:"captured_minor,omitempty"`
	OpenedAtMs     int64                `dynamodbav:"opened_at_ms"`
	AuthorizedAtMs int64                `dynamodbav:"authorized_at_ms,omitempty"`
}

type refundFields struct {
	Number      int                  `dynamodbav:"number"`
	Attempt     ledger.AttemptNumber `dynamodbav:"attempt"`
	AmountMinor int64                `dynamodbav:"amount_minor"`
	Reason      ledger.Reason        `dynamodbav:"reason"`
	State       ledger.RefundState   `dynamodbav:"state"`
	OwedAtMs    int64                `dynamodbav:"owed_at_ms"`
	EndedAtMs   int64                `dynamodbav:"ended_at_ms,omitempty"`
	Again       int                  `dynamodbav:"again,omitempty"`
	ByHand      bool                 `dynamodbav:"by_hand,omitempty"`
}

type grantFields struct {
	Slot     ledger.SlotID `dynamodbav:"slot_id"`
	Shard    ledger.Shard  `dynamodbav:"shard"`
	Quantity ledger.Units  `dynamodbav:"quantity"`
}

// reservationRecord is a reservation item. The due index lists it while it is to be looked
// at again, and for the archive once its holds lie there, until it does itself.
type reservationRecord struct {
	itemKey
	reservationFields
	OwnerOrder string         `dynamodbav:"owner_order"`
	DueShard   string         `dynamodbav:"due_shard,omitempty"`
	DueAtMs    int64          `dynamodbav:"due_at_ms,omitempty"`
	ArchivedIn ledger.BatchID `dynamodbav:"archived_in,omitempty"`
	reviewKeys
}

func newReservationFields(r ledger.Reservation) reservationFields {
	f := reservationFields{
		ID: r.ID, Owner: r.Owner, Hold: r.Hold, SoldHold: r.SoldHold, Status: r.Status, Reason: r.Reason,
		AmountMinor: r.Amount.AmountMinor, Currency: r.Amount.Currency,
		CreatedAtMs: milliseconds(r.CreatedAt), UpdatedAtMs: milliseconds(r.UpdatedAt),
		StatusSinceMs: milliseconds(r.StatusSince), DeliveredAtMs: milliseconds(r.DeliveredAt), ApprovedAtMs: milliseconds(r.ApprovedAt),
		LookAtMs: milliseconds(r.LookAt),
		Tries:    r.Tries, HoldsArchived: r.HoldsArchived, Version: r.Version,
	}
	for _, a := range r.Attempts {
		f.Attempts = append(f.Attempts, attemptFields{
			a.Number, a.Payment, a.State, a.Unwanted, a.CapturedMinor, milliseconds(a.OpenedAt), milliseconds(a.AuthorizedAt),
		})
	}
	for _, r := range r.Refunds {
		f.Refunds = append(f.Refunds, refundFields{
			r.Number, r.Attempt, r.AmountMinor, r.Reason, r.State, milliseconds(r.OwedAt), milliseconds(r.EndedAt), r.Again, r.ByHand,
		})
	}
	for _, g := range r.Grants {
		f.Grants = append(f.Grants, grantFields(g))
	}
	return f
}

func (f reservationFields) reservation() ledger.Reservation {
	r := ledger.Reservation{
		ID: f.ID, Owner: f.Owner, Hold: f.Hold, SoldHold: f.SoldHold, Status: f.Status, Reason: f.Reason,
		Amount:    ledger.Money{AmountMinor: f.AmountMinor, Currency: f.Currency},
		CreatedAt: fromMilliseconds(f.CreatedAtMs), UpdatedAt: fromMilliseconds(f.UpdatedAtMs),
		StatusSince: fromMilliseconds(f.StatusSinceMs), DeliveredAt: fromMilliseconds(f.DeliveredAtMs), ApprovedAt: fromMilliseconds(f.ApprovedAtMs),
		LookAt: fromMilliseconds(f.LookAtMs),
		Tries:  f.Tries, HoldsArchived: f.HoldsArchived, Version: f.Version,
	}
	for _, a := range f.Attempts {
		r.Attempts = append(r.Attempts, ledger.Attempt{
			Number: a.Number, Payment: a.Payment, State: a.State, Unwanted: a.Unwanted, CapturedMinor: a.CapturedMinor,
			OpenedAt: fromMilliseconds(a.OpenedAtMs), AuthorizedAt: fromMilliseconds(a.AuthorizedAtMs),
		})
	}
	for _, refund := range f.Refunds {
		r.Refunds = append(r.Refunds, ledger.Refund{
			Number: refund.Number, Attempt: refund.Attempt, AmountMinor: refund.AmountMinor, Reason: refund.Reason,
			State: refund.State, OwedAt: fromMilliseconds(refund.OwedAtMs), EndedAt: fromMilliseconds(refund.EndedAtMs),
			Again: refund.Again, ByHand: refund.ByHand,
		})
	}
	for _, g := range f.Grants {
		r.Grants = append(r.Grants, ledger.Grant(g))
	}
	return r
}

func newReservationRecord(r ledger.Reservation) reservationRecord {
	record := reservationRecord{
		itemKey: reservationKey(r.ID), reservationFields: newReservationFields(r),
		OwnerOrder: ownerOrder(kindReservation, r.CreatedAt, string(r.ID)),
	}
	since, waits := r.InReviewSince()
	record.reviewKeys = newReviewKeys(since, waits, string(r.ID))
	if !r.LookAt.IsZero() {
		record.DueShard = dueShardKey(kindReservation, ledger.ReservationDueShard(r.ID))
		record.DueAtMs = milliseconds(r.LookAt)
	}
	if from, archivable := r.ArchiveFrom(); archivable {
		record.DueShard = dueShardKey(kindArchiveReservation, ledger.ReservationDueShard(r.ID))
		record.DueAtMs = milliseconds(from)
	}
	return record
}

func decodeReservation(item map[string]types.AttributeValue) (ledger.Reservation, error) {
	var r reservationRecord
	err := attributevalue.UnmarshalMap(item, &r)
	reservation := r.reservation()
	reservation.ArchivedIn = r.ArchivedIn
	return reservation, err
}

// reservationLeg writes the next state of a reservation under the rules of
// ledger.ReservationWrite.
func reservationLeg(w ledger.ReservationWrite) (leg, error) {
	condition := notThere()
	if w.Replaces > 0 {
		condition = expression.Name(attributeVersion).Equal(expression.Value(w.Replaces)).
			And(expression.Name(attributeStatus).Equal(expression.Value(w.From))).
			And(notArchived()).And(holdsArchived(w.Next))
	}
	return putLeg(newReservationRecord(w.Next), condition, refusedReservation)
}

func refusedReservation(item map[string]types.AttributeValue) (ledger.RefusedLeg, error) {
	refused := ledger.RefusedLeg{Kind: ledger.LegReservation}
	if len(item) == 0 {
		return refused, nil
	}
	stored, err := decodeReservation(item)
	refused.Reservation = &stored
	return refused, err
}

// Postpone notes when the reservation is looked at again, and how often it was looked at
// since its last step; the zero time takes it out of the due index. It does nothing to a
// reservation that has gone on to another version, and may be repeated. It changes no
// promise, so it is not a Change.
func (s *Store) Postpone(ctx context.Context, id ledger.ReservationID, version ledger.Version, lookAt time.Time, tries int) error {
	update := expression.Set(expression.Name(attributeTries), expression.Value(tries))
	condition := expression.Name(attributeVersion).Equal(expression.Value(version)).And(notArchived())
	look, dueShard, dueAt := expression.Name(attributeLookAtMs), expression.Name(AttributeDueShard), expression.Name(AttributeDueAtMs)
	if lookAt.IsZero() {
		// One whose hold lies in the archive may be at rest now, and is listed there.
		condition = condition.And(expression.AttributeNotExists(expression.Name(attributeHoldsArchived)))
		update = update.Remove(look).Remove(dueShard).Remove(dueAt)
	} else {
		update = update.
			Set(look, expression.Value(milliseconds(lookAt))).
			Set(dueShard, expression.Value(dueShardKey(kindReservation, ledger.ReservationDueShard(id)))).
			Set(dueAt, expression.Value(milliseconds(lookAt)))
	}
	postponed, err := s.updateIf(ctx, reservationKey(id), condition, update)
	if err != nil {
		return readFailed("postponing reservation "+string(id), err)
	}
	if !postponed && lookAt.IsZero() {
		return s.rest(ctx, id, version, tries)
	}
	return nil
}

// rest takes a reservation whose hold lies in the archive out of the list of those that
// are looked at, as Postpone does, and into the archive's if it is at rest now.
func (s *Store) rest(ctx context.Context, id ledger.ReservationID, version ledger.Version, tries int) error {
	reservation, err := s.Reservation(ctx, id)
	if ledger.CodeOf(err) == ledger.CodeReservationNotFound || (err == nil && (reservation.Version != version || reservation.ArchivedIn != "")) {
		return nil
	}
	if err != nil {
		return err
	}
	condition := expression.Name(attributeVersion).Equal(expression.Value(version)).And(notArchived()).And(holdsArchived(reservation))
	reservation.LookAt, reservation.Tries = time.Time{}, tries
	update := expression.Set(expression.Name(attributeTries), expression.Value(tries)).Remove(expression.Name(attributeLookAtMs))
	_, err = s.updateIf(ctx, reservationKey(id), condition, archiveKeys(update, newReservationRecord(reservation)))
	if err != nil {
		return readFailed("postponing reservation "+string(id), err)
	}
	return nil
}

// updateIf changes an item, and reports false when the condition was not true.
func (s *Store) updateIf(ctx context.Context, key itemKey, condition expression.ConditionBuilder, update expression.UpdateBuilder) (bool, error) {
	built, err := expression.NewBuilder().WithCondition(condition).WithUpdate(update).Build()
	if err != nil {
		return false, err
	}
	err = s.update(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(s.table), Key: key.attributes(),
		ConditionExpression: built.Condition(), UpdateExpression: built.Update(),
		ExpressionAttributeNames: built.Names(), ExpressionAttributeValues: built.Values(),
	})
	if refused := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &refused) {
		return false, nil
	}
	return err == nil, err
}
