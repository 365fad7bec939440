package outbox

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"holdfast/shared/ledger"
)

const (
	// PartitionKeyAttribute is the first part of the table's key.
	PartitionKeyAttribute = "pk"
	// SortKeyAttribute is the second part of the table's key.
	SortKeyAttribute = "sk"
	// ArchivedInAttribute is in an item that lies in the archive.
	ArchivedInAttribute = "archived_in"
	// EventSortKeyPrefix is how the sort key of an event begins, and of nothing else.
	EventSortKeyPrefix = "EVENT#"
	// eventNameInsert is the stream's word for a new item. An event is written once; the
	// later change that marks it as published is no news.
	eventNameInsert = string(events.DynamoDBOperationTypeInsert)
)

// errUndecodable is the reason of a record that cannot be turned into an event.
var errUndecodable = errors.New("not an event that can be read")

// errTooLarge is the reason of an event that no call to the bus can carry.
var errTooLarge = errors.New("larger than the bus takes")

// record is a new event on its way to the bus: of the stream, or of the table.
type record struct {
	sequenceNumber string           // in the stream; "" for an event that was read from the table
	item           ledger.EventItem // where the event is in the table
	event          ledger.Event
	entry          types.PutEventsRequestEntry
	bytes          int
	// wake is for the saga, and due for whoever ends the hold at its time; both may be none.
	wake, due message
	// dueErr is why there is no due message where there should be one.
	dueErr error
	// err is why the record cannot be published, now or ever.
	err error
}

// describesNewEvent reports whether the record is of an event that was just written.
// The mapping filters by sort key already; that it does is not relied on. An event that
// was restored from the archive is new to the table only: it was published long ago.
func describesNewEvent(r events.DynamoDBEventRecord) bool {
	if _, restored := r.Change.NewImage[ArchivedInAttribute]; restored {
		return false
	}
	return r.EventName == eventNameInsert && strings.HasPrefix(text(r.Change.Keys[SortKeyAttribute]), EventSortKeyPrefix)
}

// text is the text in v, or "" if it is something else.
func text(v events.DynamoDBAttributeValue) string {
	if v.DataType() != events.DataTypeString {
		return ""
	}
	return v.String()
}

// read turns the batch into records, in the order of the batch, which is the order of
// their sequence numbers. It returns an error when a record of an event has no usable
// sequence number: such a record could not be reported if it failed, so the whole batch
// must come again (case G14).
func (r *Relay) read(batch events.DynamoDBEvent) ([]record, error) {
	out := make([]record, 0, len(batch.Records))
	for i, raw := range batch.Records {
		if !describesNewEvent(raw) {
			continue
		}
		if !usableSequenceNumber(raw.Change.SequenceNumber) {
			return nil, fmt.Errorf("record %d of %d has the unusable sequence number %q", i+1, len(batch.Records), raw.Change.SequenceNumber)
		}
		out = append(out, r.readRecord(raw))
	}
	return out, nil
}

func (r *Relay) readRecord(raw events.DynamoDBEventRecord) record {
	keys := raw.Change.Keys
	event, err := r.ports.Decode(raw.Change.NewImage)
	out := r.newRecord(ledger.EventItem{PartitionKey: text(keys[PartitionKeyAttribute]), SortKey: text(keys[SortKeyAttribute])}, event, err)
	out.sequenceNumber = raw.Change.SequenceNumber
	return out
}

// newRecord is the record of an event, or of an item that can't be read as one.
func (r *Relay) newRecord(item ledger.EventItem, event ledger.Event, unreadable error) record {
	out := record{item: item}
	if unreadable != nil {
		out.err = fmt.Errorf("%w: %w", errUndecodable, unreadable)
		return out
	}
	if out.event = event; !event.OfOne() {
		out.err = fmt.Errorf("%w: it is not of one hold, reservation, slot, policy or case", errUndecodable)
		return out
	}
	if out.wake, out.err = r.wakeUp(event); out.err != nil {
		out.err = fmt.Errorf("%w: %w", errUndecodable, out.err)
		return out
	}
	out.due, out.dueErr = r.dueMessage(event)
	if out.entry, out.err = newEntry(event, r.settings.Bus, r.settings.Stage); out.err != nil {
		return out
	}
	out.bytes = entryBytes(out.entry)
	if out.bytes > r.settings.CallBytesMax {
		out.err = fmt.Errorf("%w: %d of %d bytes", errTooLarge, out.bytes, r.settings.CallBytesMax)
	}
	return out
}

func usableSequenceNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// nextCall is how many of the first records go out in one call: as many as fit by count
// and bytes, up to the first that cannot go out, and at most one of each hold,
// reservation or slot. When an entry of a call fails, the others may be accepted; so two
// of one hold in a call could arrive as the second without the first.
func (r *Relay) nextCall(records []record) int {
	bytes, seen := 0, make(map[string]bool, EntriesPerCallMax)
	for i, next := range records {
		if i == EntriesPerCallMax || next.err != nil {
			return i
		}
		of := next.event.Subject()
		bytes += next.bytes
		if bytes > r.settings.CallBytesMax || seen[of] {
			return i
		}
		seen[of] = true
	}
	return len(records)
}
