package sim

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/sim/table"
)

const (
	// streamShards is the number of the stream's shards. Changes of one item stay in
	// order; changes of items in different shards do not.
	streamShards = 2
	// batchRecordsMax is small, so that a history has many batches.
	batchRecordsMax = 10
	// streamDelayMin is how long a change takes to the stream at the least.
	streamDelayMin   = 20 * time.Millisecond
	eventIDAttribute = "event_id"
	// retryDelay is how long the mapping waits before it hands a failed batch over again.
	retryDelay = 500 * time.Millisecond
)

// streamShard is one shard of the table's stream with the mapping that reads it: in
// order, at least once, and again from the first record that failed. A record that is too
// old is given up; who publishes from the unpublished index makes that good.
type streamShard struct {
	world   *world
	number  int
	records []streamRecord
	busy    bool
	batches int
}

// streamRecord is a change on its way to the relay.
type streamRecord struct {
	at     time.Time // of the commit
	event  ledger.EventID
	record events.DynamoDBEventRecord
}

// put appends a change. Only new images are in the stream, and only inserts of events are
// delivered, as the mapping's filter says; the filter sees the sort key.
func (s *streamShard) put(m table.Mutation, sequence int) {
	record := events.DynamoDBEventRecord{
		EventID: "stream-" + strconv.Itoa(sequence), EventName: "INSERT",
		Change: events.DynamoDBStreamRecord{
			SequenceNumber: fmt.Sprintf("%021d", sequence), StreamViewType: "NEW_IMAGE",
			Keys: lambdaImage(keyAttributes(m.Key)), NewImage: lambdaImage(m.New),
		},
	}
	if m.Old != nil {
		record.EventName = "MODIFY"
	}
	id := ledger.EventID(record.Change.NewImage[eventIDAttribute].String())
	s.records = append(s.records, streamRecord{s.world.kernel.now, id, record})
	delay := streamDelayMin
	if s.world.faults.StreamLagMax > 0 {
		delay += s.world.dice(fmt.Sprintf("stream lag %d", sequence)).between(0, s.world.faults.StreamLagMax)
	}
	s.world.kernel.after(delay, s.poll)
}

// giveUp drops the records that are older than the stream keeps them.
func (s *streamShard) giveUp() {
	w := s.world
	for w.faults.StreamKeepsFor > 0 && len(s.records) > 0 && w.kernel.now.Sub(s.records[0].at) > w.faults.StreamKeepsFor {
		w.books.givenUp(s.records[0].event)
		s.records = s.records[1:]
	}
}

// poll hands the next batch to the outbox, unless one is under way, or no batch reaches it.
func (s *streamShard) poll() {
	if s.busy {
		return
	}
	s.giveUp()
	if len(s.records) == 0 {
		return
	}
	if w := s.world; w.relayOutage.covers(w.kernel.now) {
		w.kernel.at(w.relayOutage.to, s.poll)
		return
	}
	s.busy = true
	s.batches++
	batch := make([]events.DynamoDBEventRecord, min(len(s.records), batchRecordsMax))
	for i := range batch {
		batch[i] = s.records[i].record
	}
	name := fmt.Sprintf("batch %d of stream shard %d", s.batches, s.number)
	s.world.trace.add("%s: %d records", name, len(batch))
	response, err := events.DynamoDBEventResponse{}, error(nil)
	relay := s.world.outbox
	relay.invoke(name, func() {
		response, err = relay.outbox.Handle(context.Background(), events.DynamoDBEvent{Records: batch})
	}, func(completed bool) { s.settle(name, batch, completed && err == nil, response) })
}

// settle moves on behind what was handled.
func (s *streamShard) settle(name string, batch []events.DynamoDBEventRecord, handled bool, response events.DynamoDBEventResponse) {
	s.busy = false
	done := len(batch)
	if !handled {
		done = 0
	}
	for _, failure := range response.BatchItemFailures {
		for i, record := range batch {
			if record.Change.SequenceNumber == failure.ItemIdentifier {
				done = min(done, i)
			}
		}
	}
	if done == len(batch) && s.world.dice("after "+name).chance(s.world.faults.StreamDoubled) {
		s.world.trace.add("%s comes again", name)
		done = 0
	}
	s.records = s.records[done:]
	s.world.trace.add("%s: %d of %d records done", name, done, len(batch))
	s.world.kernel.after(retryDelay, s.poll)
}

func keyAttributes(key table.Key) table.Item {
	return table.Item{
		dynamo.AttributePartitionKey: &types.AttributeValueMemberS{Value: key.Partition},
		dynamo.AttributeSortKey:      &types.AttributeValueMemberS{Value: key.Sort},
	}
}

// lambdaImage turns an item into what Lambda hands to the function. Only the kinds of
// values that the store writes occur.
func lambdaImage(item table.Item) map[string]events.DynamoDBAttributeValue {
	image := make(map[string]events.DynamoDBAttributeValue, len(item))
	for name, value := range item {
		image[name] = lambdaValue(value)
	}
	return image
}

func lambdaValue(value types.AttributeValue) events.DynamoDBAttributeValue {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return events.NewStringAttribute(v.Value)
	case *types.AttributeValueMemberN:
		return events.NewNumberAttribute(v.Value)
	case *types.AttributeValueMemberBOOL:
		return events.NewBooleanAttribute(v.Value)
	case *types.AttributeValueMemberL:
		list := make([]events.DynamoDBAttributeValue, len(v.Value))
		for i, element := range v.Value {
			list[i] = lambdaValue(element)
		}
		return events.NewListAttribute(list)
	case *types.AttributeValueMemberM:
		return events.NewMapAttribute(lambdaImage(v.Value))
	default:
		return events.NewNullAttribute()
	}
}
