package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	lambdaevents "github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

// AttributeArchivedIn is in every item that lies in the archive: the batch.
const AttributeArchivedIn = "archived_in"

const attributeHoldsArchived = "holds_archived"

// archiveItemsMax bounds the items of one subject: itself, and more events than any has.
const archiveItemsMax = 2 * ledger.PageItemsMax

// notArchived is the condition that an item does not lie in the archive.
func notArchived() expression.ConditionBuilder {
	return expression.AttributeNotExists(expression.Name(AttributeArchivedIn))
}

// holdsArchived is the condition that as many holds of the reservation are archived as r
// says. A mark that was made since r was read is not written over.
func holdsArchived(r ledger.Reservation) expression.ConditionBuilder {
	count := expression.Name(attributeHoldsArchived)
	if r.HoldsArchived == 0 {
		return expression.AttributeNotExists(count)
	}
	return count.Equal(expression.Value(r.HoldsArchived))
}

// purged reports whether the item's time to live is over. DynamoDB deletes it within days;
// until then code counts it as gone, so that all see it go at the same moment.
func (s *Store) purged(i item) bool {
	ttl := numberOf(i, AttributeTimeToLive)
	return ttl != 0 && ttl <= s.clock.Now().Unix()
}

// unpurged leaves out the items whose time to live is over.
func (s *Store) unpurged(items []item) []item {
	out := make([]item, 0, len(items))
	for _, i := range items {
		if !s.purged(i) {
			out = append(out, i)
		}
	}
	return out
}

// archiveMarkLeg marks a subject under the rules of ledger.ArchiveMark.
func archiveMarkLeg(m ledger.ArchiveMark) (leg, error) {
	condition := expression.Name(attributeVersion).Equal(expression.Value(m.Version)).And(notArchived())
	update := purgeUpdate(m.Batch, m.PurgeAt).
		Remove(expression.Name(AttributeDueShard)).Remove(expression.Name(AttributeDueAtMs))
	if m.Hold != "" {
		return updateLeg(holdKey(m.Hold), condition, update, refusedHold)
	}
	condition = condition.And(expression.AttributeNotExists(expression.Name(attributeLookAtMs)))
	return updateLeg(reservationKey(m.Reservation), condition, update, refusedReservation)
}

// purgeUpdate says in which batch an item lies, and when it leaves the table.
func purgeUpdate(batch ledger.BatchID, purgeAt time.Time) expression.UpdateBuilder {
	return expression.
		Set(expression.Name(AttributeArchivedIn), expression.Value(batch)).
		Set(expression.Name(AttributeTimeToLive), expression.Value(purgeAt.Unix()))
}

// atRestLeg requires that the reservation is as it was read, with nothing to do, and notes
// that one more of its holds is archived. After the last one the archive lists it.
func atRestLeg(r ledger.Reservation) (leg, error) {
	condition := expression.Name(attributeVersion).Equal(expression.Value(r.Version)).
		And(expression.Name(attributeStatus).Equal(expression.Value(r.Status))).
		And(expression.AttributeNotExists(expression.Name(attributeLookAtMs))).
		And(notArchived()).And(holdsArchived(r))
	r.HoldsArchived++
	update := expression.Set(expression.Name(attributeHoldsArchived), expression.Value(r.HoldsArchived))
	return updateLeg(reservationKey(r.ID), condition, archiveKeys(update, newReservationRecord(r)), refusedReservation)
}

// archiveKeys lists a reservation in the due index as its record says.
func archiveKeys(update expression.UpdateBuilder, record reservationRecord) expression.UpdateBuilder {
	dueShard, dueAt := expression.Name(AttributeDueShard), expression.Name(AttributeDueAtMs)
	if record.DueShard == "" {
		return update.Remove(dueShard).Remove(dueAt)
	}
	return update.Set(dueShard, expression.Value(record.DueShard)).Set(dueAt, expression.Value(record.DueAtMs))
}

// ownMark reports whether an archive mark of c is what refused c: an earlier try was
// applied, and its answer lost.
func ownMark(c ledger.Change, refused ledger.RefusedLeg) bool {
	for _, m := range c.Archives {
		if h := refused.Hold; h != nil && h.ID == m.Hold && h.ArchivedIn == m.Batch {
			return true
		}
		if r := refused.Reservation; r != nil && r.ID == m.Reservation && r.ArchivedIn == m.Batch {
			return true
		}
	}
	return false
}

// marked reads whether the first archive mark of c was made.
func (s *Store) marked(ctx context.Context, c ledger.Change) (bool, error) {
	key := subjectKey(c.Archives[0].Subject())
	found, err := s.get(ctx, key)
	return err == nil && stringOf(found, AttributeArchivedIn) == string(c.Archives[0].Batch), err
}

func subjectKey(subject ledger.ArchiveSubject) itemKey {
	if subject.Hold != "" {
		return holdKey(subject.Hold)
	}
	return reservationKey(subject.Reservation)
}

// Archivable lists the subjects of one kind and shard whose retention counts from before
// or earlier, the oldest first.
func (s *Store) Archivable(ctx context.Context, kind ledger.ArchiveKind, shard int, before time.Time, page ledger.Page) ([]ledger.ArchiveEntry, ledger.Cursor, error) {
	list, valid := kindArchiveReservation, ledger.ValidReservationID
	subject := func(id string) ledger.ArchiveSubject {
		return ledger.ArchiveSubject{Reservation: ledger.ReservationID(id)}
	}
	if kind == ledger.ArchiveHolds {
		list, valid = kindArchiveHold, ledger.ValidHoldID
		subject = func(id string) ledger.ArchiveSubject { return ledger.ArchiveSubject{Hold: ledger.HoldID(id)} }
	}
	entries, next, err := s.due(ctx, dueShardKey(list, shard), before, page, valid,
		func(id string) itemKey { return subjectKey(subject(id)) })
	if err != nil {
		return nil, "", err
	}
	out := make([]ledger.ArchiveEntry, len(entries))
	for i, entry := range entries {
		out[i] = ledger.ArchiveEntry{Subject: subject(entry.id), From: entry.dueAt}
	}
	return out, next, nil
}

// PutOff lists the subject for the archive at a later time, if the list still has it where
// the entry says. It changes no promise, so it is not a Change, and may be repeated.
func (s *Store) PutOff(ctx context.Context, entry ledger.ArchiveEntry, until time.Time) error {
	list := dueShardKey(kindArchiveReservation, ledger.ReservationDueShard(entry.Subject.Reservation))
	if entry.Subject.Hold != "" {
		list = dueShardKey(kindArchiveHold, ledger.DueShard(entry.Subject.Hold))
	}
	condition := expression.Name(AttributeDueShard).Equal(expression.Value(list)).
		And(expression.Name(AttributeDueAtMs).Equal(expression.Value(milliseconds(entry.From))))
	update := expression.Set(expression.Name(AttributeDueAtMs), expression.Value(milliseconds(until)))
	if _, err := s.updateIf(ctx, subjectKey(entry.Subject), condition, update); err != nil {
		return readFailed("putting off what the archive is to take", err)
	}
	return nil
}

// ArchiveItems reads all stored items of the subject, strongly consistent: its events, the
// oldest first, and itself. It is empty for a subject that is not in the table. More items
// than any subject has are a CodeInternal error.
func (s *Store) ArchiveItems(ctx context.Context, subject ledger.ArchiveSubject) ([]ledger.ArchiveItem, error) {
	stored, err := s.partition(ctx, subjectKey(subject))
	if err != nil {
		return nil, err
	}
	items := make([]ledger.ArchiveItem, 0, len(stored))
	for _, i := range stored {
		read, err := archiveItem(i)
		if err != nil {
			return nil, internal("reading "+stringOf(i, AttributePartitionKey)+" for the archive", err)
		}
		items = append(items, read)
	}
	return items, nil
}

// partition reads all items of one partition.
func (s *Store) partition(ctx context.Context, key itemKey) ([]item, error) {
	var items []item
	var start item
	for {
		page, err := s.query(ctx, queryOf{
			limit: ledger.PageItemsMax, start: start,
			condition: expression.Key(AttributePartitionKey).Equal(expression.Value(key.PartitionKey)),
		})
		if err != nil {
			return nil, err
		}
		items = append(items, s.unpurged(page.items)...)
		if len(items) > archiveItemsMax {
			return nil, internal("reading "+key.PartitionKey, fmt.Errorf("it has more than %d items", archiveItemsMax))
		}
		if start = page.last; len(start) == 0 {
			return items, nil
		}
	}
}

// archiveItem reads one item of a subject.
func archiveItem(i item) (ledger.ArchiveItem, error) {
	var out ledger.ArchiveItem
	var err error
	if out.Text, err = itemText(i); err != nil {
		return out, err
	}
	switch sort := stringOf(i, AttributeSortKey); {
	case sort == sortHold:
		hold, err := decodeHold(i)
		out.Hold = &hold
		return out, err
	case sort == sortReservation:
		reservation, err := decodeReservation(i)
		out.Reservation = &reservation
		return out, err
	case strings.HasPrefix(sort, sortEventPrefix):
		event, err := decodeEvent(i)
		if err == nil && !event.OfOne() {
			err = errors.New("the event is not of one thing")
		}
		out.Event, out.Unpublished = &event, stringOf(i, AttributeUnpublishedShard) != ""
		out.Publication = publicationOf(i)
		return out, err
	default:
		return out, fmt.Errorf("an item %q is neither a hold, nor a reservation, nor an event of one", sort)
	}
}

// DecodeArchiveItem reads an item from the text that ArchiveItems made of it. The error
// says what is wrong with the text.
func DecodeArchiveItem(text []byte) (ledger.ArchiveItem, error) {
	i, err := parseItem(text)
	if err != nil {
		return ledger.ArchiveItem{}, err
	}
	return archiveItem(i)
}

// PurgeEvents marks the subject's events as archived in the batch, and lets them leave the
// table after purgeAt. It changes no promise, so it is not a Change, and may be repeated.
// It returns CodeNotArchivable, and leaves the event, for one that is not published.
func (s *Store) PurgeEvents(ctx context.Context, subject ledger.ArchiveSubject, batch ledger.BatchID, purgeAt time.Time) error {
	stored, err := s.partition(ctx, subjectKey(subject))
	if err != nil {
		return err
	}
	for _, i := range stored {
		key := itemKey{stringOf(i, AttributePartitionKey), stringOf(i, AttributeSortKey)}
		done := stringOf(i, AttributeArchivedIn) == string(batch) && numberOf(i, AttributeTimeToLive) == purgeAt.Unix()
		if done || !strings.HasPrefix(key.SortKey, sortEventPrefix) {
			continue
		}
		condition := expression.AttributeExists(expression.Name(AttributePartitionKey)).
			And(expression.AttributeNotExists(expression.Name(AttributeUnpublishedShard)))
		marked, err := s.updateIf(ctx, key, condition, purgeUpdate(batch, purgeAt))
		if err != nil {
			return readFailed("marking an event of "+key.PartitionKey+" as archived", err)
		}
		if !marked {
			return &ledger.Error{Code: ledger.CodeNotArchivable, Message: "the event " + key.SortKey + " of " + key.PartitionKey + " is not published"}
		}
	}
	return nil
}

// RestoreItems puts items of the archive back into the table until purgeAt, and returns
// how many it put there: one that is in the table already stays as it is. They stay
// archived, so an audit goes on counting them so and nothing changes them, and no index
// lists them for work. It may be repeated.
func (s *Store) RestoreItems(ctx context.Context, items []ledger.ArchiveItem, batch ledger.BatchID, purgeAt time.Time) (int, error) {
	restored := 0
	for _, one := range items {
		i, err := parseItem(one.Text)
		if err != nil {
			return restored, &ledger.Error{Code: ledger.CodeInvalid, Message: "an item of the archive can't be read", Cause: err}
		}
		for _, name := range []string{AttributeDueShard, AttributeDueAtMs, AttributeUnpublishedShard, AttributeUnpublishedOrder} {
			delete(i, name)
		}
		i[AttributeArchivedIn], i[AttributeTimeToLive] = text(string(batch)), number(purgeAt.Unix())
		condition := notThere().Or(expression.Name(AttributeTimeToLive).LessThanEqual(expression.Value(s.clock.Now().Unix())))
		put, err := s.putIf(ctx, i, condition)
		if err != nil {
			return restored, readFailed("restoring "+stringOf(i, AttributePartitionKey), err)
		}
		if put {
			restored++
		}
	}
	return restored, nil
}

// putIf writes an item, and reports false when the condition was not true.
func (s *Store) putIf(ctx context.Context, i item, condition expression.ConditionBuilder) (bool, error) {
	built, err := expression.NewBuilder().WithCondition(condition).Build()
	if err != nil {
		return false, err
	}
	_, err = s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(s.table), Item: i, ConditionExpression: built.Condition(),
		ExpressionAttributeNames: built.Names(), ExpressionAttributeValues: built.Values(),
	})
	if refused := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &refused) {
		return false, nil
	}
	return err == nil, err
}

// itemText writes an item as JSON with the types of its attributes. Its keys are in order
// and its numbers as they are stored, so that the same item is always the same bytes.
func itemText(i item) ([]byte, error) {
	members, err := textMembers(i)
	if err != nil {
		return nil, err
	}
	return json.Marshal(members)
}

func textMembers(members map[string]types.AttributeValue) (map[string]any, error) {
	out := make(map[string]any, len(members))
	for name, value := range members {
		converted, err := textValue(value)
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", name, err)
		}
		out[name] = converted
	}
	return out, nil
}

// textValue converts one attribute value; only the kinds that the store writes occur.
func textValue(value types.AttributeValue) (map[string]any, error) {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": v.Value}, nil
	case *types.AttributeValueMemberN:
		return map[string]any{"N": v.Value}, nil
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": v.Value}, nil
	case *types.AttributeValueMemberL:
		list := make([]any, 0, len(v.Value))
		for _, element := range v.Value {
			converted, err := textValue(element)
			if err != nil {
				return nil, err
			}
			list = append(list, converted)
		}
		return map[string]any{"L": list}, nil
	case *types.AttributeValueMemberM:
		members, err := textMembers(v.Value)
		return map[string]any{"M": members}, err
	default:
		return nil, fmt.Errorf("a value of type %T is not written by the ledger", value)
	}
}

// parseItem reads the text of an item.
func parseItem(text []byte) (item, error) {
	var members map[string]lambdaevents.DynamoDBAttributeValue
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, fmt.Errorf("an item of the archive: %w", err)
	}
	i := make(item, len(members))
	for name, value := range maps.All(members) {
		converted, err := fromLambda(value)
		if err != nil {
			return nil, fmt.Errorf("an item of the archive: attribute %s: %w", name, err)
		}
		i[name] = converted
	}
	if stringOf(i, AttributePartitionKey) == "" || stringOf(i, AttributeSortKey) == "" {
		return nil, errors.New("an item of the archive lacks its key")
	}
	return i, nil
}
