package alarmcheck_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/sim/table"
	"holdfast/shared/skew"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/topology"
)

// database is the table with its indexes and its stream, which obeys orders.
type database struct {
	clock  *systemtest.Clock
	table  *table.Table
	views  map[string]*table.IndexView
	stream []streamRecord
	taken  int // stream records so far
	// refuse may turn a call of a function away, or let time pass before it; nil lets all in.
	refuse func(by topology.FunctionName, call dbCall) error
	// ahead is how far the clocks of the functions are ahead of the database's.
	ahead time.Duration
}

// dbCall is what a function asks of the database.
type dbCall struct {
	operation string      // such as Query
	index     string      // of a Query
	keys      []table.Key // what a transaction is about, one for each action
}

// movesStock reports whether the call is a transaction that moves stock.
func (c dbCall) movesStock() bool {
	return slices.ContainsFunc(c.keys, func(key table.Key) bool { return strings.HasPrefix(key.Partition, "STOCK#") })
}

// streamRecord is the insert of an event, as the table's stream has it.
type streamRecord struct {
	at     time.Time
	record events.DynamoDBEventRecord
}

func newDatabase(tb testing.TB, clock *systemtest.Clock) *database {
	tb.Helper()
	schema := dynamo.TableSchema()
	d := &database{clock: clock, table: table.New(schema), views: map[string]*table.IndexView{}}
	for _, index := range schema.Indexes {
		view, err := d.table.NewView(index.Name)
		if err != nil {
			tb.Fatal(err)
		}
		d.views[index.Name] = view
	}
	return d
}

// applied spreads what was written to the indexes and the stream.
func (d *database) applied(mutations []table.Mutation) {
	for _, m := range mutations {
		for _, view := range d.views {
			view.Apply(m)
		}
		if m.Old == nil && strings.HasPrefix(m.Key.Sort, "EVENT#") {
			d.taken++
			d.stream = append(d.stream, streamRecord{d.clock.Now(), events.DynamoDBEventRecord{
				EventID: fmt.Sprintf("stream-%d", d.taken), EventName: "INSERT",
				Change: events.DynamoDBStreamRecord{
					ApproximateCreationDateTime: events.SecondsEpochTime{Time: d.clock.Now()},
					SequenceNumber:              fmt.Sprintf("%021d", d.taken), StreamViewType: "NEW_IMAGE",
					Keys: lambdaImage(keyAttributes(m.Key)), NewImage: lambdaImage(m.New),
				},
			}})
		}
	}
}

func keyAttributes(key table.Key) table.Item {
	return table.Item{
		dynamo.AttributePartitionKey: &types.AttributeValueMemberS{Value: key.Partition},
		dynamo.AttributeSortKey:      &types.AttributeValueMemberS{Value: key.Sort},
	}
}

// lambdaImage turns an item into what Lambda hands to a function.
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

// session is the database client of one function. Its gauge learns the time from the
// answers, as from the Date header of real ones.
type session struct {
	*database
	function topology.FunctionName
	gauge    *skew.Gauge
}

var (
	_ dynamo.Client     = session{}
	_ dynamo.ScanClient = session{}
)

func ask[T any](s session, call dbCall, do func() (T, error)) (T, error) {
	var none T
	sent := s.clock.Now()
	if s.refuse != nil {
		if err := s.refuse(s.function, call); err != nil {
			return none, err
		}
	}
	out, err := do()
	now := s.clock.Now()
	s.gauge.Observe(sent, now, now.Add(-s.ahead))
	return out, err
}

func write[T any](s session, call dbCall, do func() ([]table.Mutation, error)) (*T, error) {
	return ask(s, call, func() (*T, error) {
		mutations, err := do()
		s.applied(mutations)
		return new(T), err
	})
}

func (s session) TransactWriteItems(_ context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return write[dynamodb.TransactWriteItemsOutput](s, dbCall{operation: "TransactWriteItems", keys: s.table.Keys(in)}, func() ([]table.Mutation, error) { return s.table.WriteTransaction(in) })
}

func (s session) PutItem(_ context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return write[dynamodb.PutItemOutput](s, dbCall{operation: "PutItem"}, func() ([]table.Mutation, error) { return s.table.Put(in) })
}

func (s session) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return write[dynamodb.UpdateItemOutput](s, dbCall{operation: "UpdateItem"}, func() ([]table.Mutation, error) { return s.table.Update(in) })
}

func (s session) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return ask(s, dbCall{operation: "GetItem"}, func() (*dynamodb.GetItemOutput, error) { return s.table.Get(in) })
}

func (s session) BatchGetItem(_ context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return ask(s, dbCall{operation: "BatchGetItem"}, func() (*dynamodb.BatchGetItemOutput, error) { return s.table.BatchGet(in) })
}

func (s session) TransactGetItems(_ context.Context, in *dynamodb.TransactGetItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	return ask(s, dbCall{operation: "TransactGetItems"}, func() (*dynamodb.TransactGetItemsOutput, error) { return s.table.TransactGet(in) })
}

func (s session) Scan(_ context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return ask(s, dbCall{operation: "Scan"}, func() (*dynamodb.ScanOutput, error) { return s.table.Scan(in) })
}

func (s session) Query(_ context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if in.IndexName == nil {
		return ask(s, dbCall{operation: "Query"}, func() (*dynamodb.QueryOutput, error) { return s.table.Query(in) })
	}
	return ask(s, dbCall{operation: "Query", index: *in.IndexName}, func() (*dynamodb.QueryOutput, error) { return s.views[*in.IndexName].Query(in) })
}
