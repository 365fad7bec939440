package dynamo

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

// tracedEventsMax bounds the events of one subject that are read for its story. A slot has
// one for each change of its price, its units or its policy.
const tracedEventsMax = 100_000

// TracedHoldEvents returns all events of the hold, the oldest first, with how far each is on
// its way to consumers. More than tracedEventsMax are a CodeInternal error.
func (s *Store) TracedHoldEvents(ctx context.Context, id ledger.HoldID) ([]ledger.TracedEvent, error) {
	return s.tracedEvents(ctx, holdKey(id))
}

// TracedReservationEvents is TracedHoldEvents of a reservation.
func (s *Store) TracedReservationEvents(ctx context.Context, id ledger.ReservationID) ([]ledger.TracedEvent, error) {
	return s.tracedEvents(ctx, reservationKey(id))
}

// TracedSlotEvents is TracedHoldEvents of a slot. What holds moved of it is in their own
// events: see ScanSlotStory.
func (s *Store) TracedSlotEvents(ctx context.Context, id ledger.SlotID) ([]ledger.TracedEvent, error) {
	return s.tracedEvents(ctx, slotKey(id))
}

func (s *Store) tracedEvents(ctx context.Context, subject itemKey) ([]ledger.TracedEvent, error) {
	var events []ledger.TracedEvent
	var start item
	for {
		found, err := s.query(ctx, queryOf{
			limit: ledger.PageItemsMax, start: start,
			condition: expression.Key(AttributePartitionKey).Equal(expression.Value(subject.PartitionKey)).
				And(expression.Key(AttributeSortKey).BeginsWith(sortEventPrefix)),
		})
		if err != nil {
			return nil, err
		}
		page, err := decodeAll(s.unpurged(found.items), decodeTracedEvent)
		if err != nil {
			return nil, err
		}
		events = append(events, page...)
		if len(events) > tracedEventsMax {
			return nil, internal("reading "+subject.PartitionKey, fmt.Errorf("it has more than %d events", tracedEventsMax))
		}
		if start = found.last; len(start) == 0 {
			return events, nil
		}
	}
}

func decodeTracedEvent(i map[string]types.AttributeValue) (ledger.TracedEvent, error) {
	event, err := decodeEvent(i)
	return ledger.TracedEvent{Event: event, Publication: publicationOf(i), ArchivedIn: ledger.BatchID(stringOf(i, AttributeArchivedIn))}, err
}

// publicationOf is what the item of an event says of its way to consumers.
func publicationOf(i item) ledger.Publication {
	p := ledger.Publication{At: fromMilliseconds(numberOf(i, attributePublishedAtMs))}
	if reason := stringOf(i, attributeQuarantinedReason); reason != "" {
		p.Quarantine = &ledger.Quarantine{Reason: reason, At: fromMilliseconds(numberOf(i, attributeQuarantinedAtMs))}
	}
	return p
}

// SlotStory is what one page of the table has of a slot's story.
type SlotStory struct {
	// Events are those of holds and reservations that moved units of the slot.
	Events []ledger.TracedEvent
	// Holds and Reservations are those that have the slot among their lines or grants.
	Holds        []ledger.Hold
	Reservations []ledger.Reservation
}

// ScanSlotStory reads one page of one of total segments of the table, strongly consistent, and
// returns what it has of the slot's story. A page may be empty and not be the last. There is no
// index from a slot to its holds: a story is asked for seldom, and such an index would be
// written with each hold.
func (s *Scan) ScanSlotStory(ctx context.Context, slot ledger.SlotID, segment, total int, after ledger.Cursor) (SlotStory, ledger.Cursor, error) {
	var story SlotStory
	start, err := scanStart(after)
	if err != nil {
		return story, "", err
	}
	sortKey := expression.Name(AttributeSortKey)
	built, err := expression.NewBuilder().WithFilter(sortKey.BeginsWith(sortEventPrefix).
		Or(sortKey.In(expression.Value(sortHold), expression.Value(sortReservation)))).Build()
	if err != nil {
		return story, "", internal("building a scan", err)
	}
	out, err := s.client.Scan(ctx, &dynamodb.ScanInput{
		TableName: aws.String(s.table), Segment: aws.Int32(int32(segment)), TotalSegments: aws.Int32(int32(total)),
		FilterExpression: built.Filter(), ExpressionAttributeNames: built.Names(), ExpressionAttributeValues: built.Values(),
		ExclusiveStartKey: start, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return story, "", readFailed(fmt.Sprintf("scanning segment %d of %d", segment, total), err)
	}
	for _, i := range out.Items {
		if err := story.take(i, string(slot)); err != nil {
			return story, "", internal("decoding "+stringOf(i, AttributePartitionKey), err)
		}
	}
	return story, scanNext(out.LastEvaluatedKey), nil
}

// take decodes the item if it is about the slot. The slot's own events are read elsewhere.
func (s *SlotStory) take(i item, slot string) error {
	switch sort := stringOf(i, AttributeSortKey); {
	case sort == sortHold && lists(i, "lines", slot):
		hold, err := decodeHold(i)
		s.Holds = append(s.Holds, hold)
		return err
	case sort == sortReservation && lists(i, "grants", slot):
		reservation, err := decodeReservation(i)
		s.Reservations = append(s.Reservations, reservation)
		return err
	case strings.HasPrefix(sort, sortEventPrefix) && lists(i, "movements", slot) && !strings.HasPrefix(stringOf(i, AttributePartitionKey), prefixSlot):
		event, err := decodeTracedEvent(i)
		s.Events = append(s.Events, event)
		return err
	}
	return nil
}

// lists reports whether a member of the item's list names the slot. It looks at the item as it
// came, because most items of a table are about other slots.
func lists(i item, attribute, slot string) bool {
	list, is := i[attribute].(*types.AttributeValueMemberL)
	if !is {
		return false
	}
	for _, member := range list.Value {
		if m, is := member.(*types.AttributeValueMemberM); is && stringOf(m.Value, "slot_id") == slot {
			return true
		}
	}
	return false
}
