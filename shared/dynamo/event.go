package dynamo

import (
	"context"
	"fmt"
	"time"

	lambdaevents "github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

const attributePublishedAtMs = "published_at_ms"

// eventRecord is a ledger event. It is in the unpublished index until the outbox has
// marked it, so what a relay loses can be found again.
type eventRecord struct {
	itemKey
	ID               ledger.EventID     `dynamodbav:"event_id"`
	Type             ledger.EventType   `dynamodbav:"type"`
	Version          ledger.Version     `dynamodbav:"version"`
	OccurredAtMs     int64              `dynamodbav:"occurred_at_ms"`
	Actor            ledger.Actor       `dynamodbav:"actor"`
	Command          ledger.Command     `dynamodbav:"command"`
	RequestID        ledger.RequestID   `dynamodbav:"request_id"`
	Why              string             `dynamodbav:"why,omitempty"`
	Hold             *holdFields        `dynamodbav:"hold,omitempty"`
	Reservation      *reservationFields `dynamodbav:"reservation,omitempty"`
	Slot             *slotFields        `dynamodbav:"slot,omitempty"`
	Policy           *policyFields      `dynamodbav:"policy,omitempty"`
	Review           *reviewFields      `dynamodbav:"review,omitempty"`
	Movements        []movementFields   `dynamodbav:"movements,omitempty"`
	UnpublishedShard string             `dynamodbav:"unpublished_shard,omitempty"`
	UnpublishedOrder string             `dynamodbav:"unpublished_order,omitempty"`
}

type movementFields struct {
	Slot     ledger.SlotID `dynamodbav:"slot_id"`
	Shard    ledger.Shard  `dynamodbav:"shard"`
	From     ledger.Bucket `dynamodbav:"from"`
	To       ledger.Bucket `dynamodbav:"to"`
	Quantity ledger.Units  `dynamodbav:"quantity"`
}

func newEventRecord(e ledger.Event) eventRecord {
	r := eventRecord{
		itemKey: eventKey(e), ID: e.ID, Type: e.Type, Version: e.Version, OccurredAtMs: milliseconds(e.OccurredAt),
		Actor: e.Origin.Actor, Command: e.Origin.Command, RequestID: e.Origin.RequestID, Why: e.Origin.Why,
		UnpublishedShard: unpublishedShardKey(ledger.UnpublishedShard(e.ID)),
		UnpublishedOrder: e.OccurredAt.UTC().Format(orderTimeLayout) + separator + string(e.ID),
	}
	if e.Hold != nil {
		fields := newHoldFields(*e.Hold)
		r.Hold = &fields
	}
	if e.Reservation != nil {
		fields := newReservationFields(*e.Reservation)
		r.Reservation = &fields
	}
	if e.Slot != nil {
		fields := newSlotFields(*e.Slot)
		r.Slot = &fields
	}
	if e.Policy != nil {
		fields := newPolicyFields(*e.Policy)
		r.Policy = &fields
	}
	if e.Review != nil {
		fields := newReviewFields(*e.Review)
		r.Review = &fields
	}
	for _, m := range e.Movements {
		r.Movements = append(r.Movements, movementFields(m))
	}
	return r
}

func (r eventRecord) event() ledger.Event {
	e := ledger.Event{
		ID: r.ID, Type: r.Type, Version: r.Version, OccurredAt: fromMilliseconds(r.OccurredAtMs),
		Origin: ledger.Origin{Actor: r.Actor, Command: r.Command, RequestID: r.RequestID, EventID: r.ID, Why: r.Why},
	}
	if r.Hold != nil {
		hold := r.Hold.hold()
		e.Hold = &hold
	}
	if r.Reservation != nil {
		reservation := r.Reservation.reservation()
		e.Reservation = &reservation
	}
	if r.Slot != nil {
		slot := r.Slot.slot()
		e.Slot = &slot
	}
	if r.Policy != nil {
		policy := r.Policy.policy()
		e.Policy = &policy
	}
	if r.Review != nil {
		review := r.Review.review()
		e.Review = &review
	}
	for _, m := range r.Movements {
		e.Movements = append(e.Movements, ledger.Movement(m))
	}
	return e
}

func decodeEvent(item map[string]types.AttributeValue) (ledger.Event, error) {
	var r eventRecord
	if err := attributevalue.UnmarshalMap(item, &r); err != nil {
		return ledger.Event{}, err
	}
	return r.event(), nil
}

func eventLeg(e ledger.Event) (leg, error) {
	return putLeg(newEventRecord(e), notThere(), func(item map[string]types.AttributeValue) (ledger.RefusedLeg, error) {
		refused := ledger.RefusedLeg{Kind: ledger.LegEvent}
		if len(item) == 0 {
			return refused, nil
		}
		stored, err := decodeEvent(item)
		refused.Event = &stored
		return refused, err
	})
}

// DecodeEventImage turns the new image of a stream record, as Lambda delivers it, into
// the event. A number that must be whole and is not gives an error; it is never cut
// (case G18). So does an image that lacks its id, type or version, and one that
// is not of exactly one thing.
func DecodeEventImage(image map[string]lambdaevents.DynamoDBAttributeValue) (ledger.Event, error) {
	item := make(map[string]types.AttributeValue, len(image))
	for name, value := range image {
		converted, err := fromLambda(value)
		if err != nil {
			return ledger.Event{}, fmt.Errorf("stream image: attribute %s: %w", name, err)
		}
		item[name] = converted
	}
	event, err := decodeWholeEvent(item)
	if err != nil {
		return ledger.Event{}, fmt.Errorf("stream image: %w", err)
	}
	return event, nil
}

// decodeWholeEvent decodes an event that is to be published: no part may be missing.
func decodeWholeEvent(item map[string]types.AttributeValue) (ledger.Event, error) {
	event, err := decodeEvent(item)
	if err != nil {
		return ledger.Event{}, err
	}
	if event.ID == "" || event.Type == "" || event.Version < 1 || !event.OfOne() {
		return ledger.Event{}, fmt.Errorf("event %q lacks a part", event.ID)
	}
	return event, nil
}

// fromLambda converts one attribute value; only the kinds that the store writes occur.
func fromLambda(v lambdaevents.DynamoDBAttributeValue) (types.AttributeValue, error) {
	switch v.DataType() {
	case lambdaevents.DataTypeString:
		return &types.AttributeValueMemberS{Value: v.String()}, nil
	case lambdaevents.DataTypeNumber:
		return &types.AttributeValueMemberN{Value: v.Number()}, nil
	case lambdaevents.DataTypeBoolean:
		return &types.AttributeValueMemberBOOL{Value: v.Boolean()}, nil
	case lambdaevents.DataTypeList:
		list := make([]types.AttributeValue, 0, len(v.List()))
		for _, element := range v.List() {
			converted, err := fromLambda(element)
			if err != nil {
				return nil, err
			}
			list = append(list, converted)
		}
		return &types.AttributeValueMemberL{Value: list}, nil
	case lambdaevents.DataTypeMap:
		members := make(map[string]types.AttributeValue, len(v.Map()))
		for name, member := range v.Map() {
			converted, err := fromLambda(member)
			if err != nil {
				return nil, err
			}
			members[name] = converted
		}
		return &types.AttributeValueMemberM{Value: members}, nil
	default:
		return nil, fmt.Errorf("an attribute of data type %d is not written by the ledger", v.DataType())
	}
}

// MarkPublished takes the event out of the unpublished index, or the quarantine, and notes
// when it was published. It changes no promise of the ledger, so it is not a Change. It may be
// repeated; it never creates an event that is not there.
func (s *Store) MarkPublished(ctx context.Context, e ledger.Event, at time.Time) error {
	built, err := expression.NewBuilder().
		WithCondition(expression.AttributeExists(expression.Name(AttributePartitionKey))).
		WithUpdate(expression.
			Set(expression.Name(attributePublishedAtMs), expression.Value(milliseconds(at))).
			Remove(expression.Name(AttributeUnpublishedShard)).
			Remove(expression.Name(AttributeUnpublishedOrder)).
			Remove(expression.Name(attributeQuarantinedReason)).
			Remove(expression.Name(attributeQuarantinedAtMs))).
		Build()
	if err != nil {
		return internal("building the published mark", err)
	}
	err = s.update(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(s.table), Key: eventKey(e).attributes(),
		ConditionExpression: built.Condition(), UpdateExpression: built.Update(),
		ExpressionAttributeNames: built.Names(), ExpressionAttributeValues: built.Values(),
	})
	if err != nil {
		return unavailable("marking event "+string(e.ID)+" as published", err)
	}
	return nil
}
