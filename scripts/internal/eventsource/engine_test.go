package eventsource_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"holdfast/scripts/internal/eventsource"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/dynamo/engine"
	"holdfast/shared/system"
	"holdfast/shared/topology"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

// endingClock is the machine's clock. It ends the run at a pause, which is when all that
// was delivered has been checkpointed too.
type endingClock struct {
	system.RealClock
	done func() bool
	end  context.CancelFunc
}

func (c endingClock) Sleep(ctx context.Context, duration time.Duration) error {
	if c.done() {
		c.end()
	}
	return c.RealClock.Sleep(ctx, duration)
}

// The real engine's stream: what is written arrives in order, exactly once over two
// runs, with its numbers as they were.
func TestStreamOfTheEngine(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	described, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(table)})
	if err != nil {
		t.Fatal(err)
	}
	put := func(sortKeys ...string) {
		t.Helper()
		for _, sortKey := range sortKeys {
			_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: map[string]types.AttributeValue{
				"pk": &types.AttributeValueMemberS{Value: "HOLD#1"}, "sk": &types.AttributeValueMemberS{Value: sortKey},
				"large": &types.AttributeValueMemberN{Value: "1570726625494837001"},
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "checkpoints.json")
	// receive runs a poller until it has delivered count records.
	receive := func(count int) (sortKeys []string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		poller, err := eventsource.New(eventsource.Config{
			Streams:   dynamodbstreams.NewFromConfig(engine.AWSConfig(dynamotest.Engine(t).Endpoint())),
			StreamARN: aws.ToString(described.Table.LatestStreamArn), SortKey: "sk", FunctionARN: "arn:function",
			Trigger: topology.StreamTrigger{BatchRecordsMax: 2, RecordAgeMax: time.Hour, SortKeyPrefixFilters: []string{"EVENT#"}},
			Invoke: func(_ context.Context, payload []byte) ([]byte, error) {
				var event events.DynamoDBEvent
				if err := json.Unmarshal(payload, &event); err != nil {
					return nil, err
				}
				for _, record := range event.Records {
					image := record.Change.NewImage
					sortKeys = append(sortKeys, image["sk"].String())
					if record.EventName != "INSERT" || image["large"].Number() != "1570726625494837001" {
						t.Errorf("record = %+v", record)
					}
				}
				return []byte(`{"batchItemFailures":[]}`), nil
			},
			GiveUp: func(_ context.Context, failure eventsource.Failure) error {
				t.Errorf("given up: %+v", failure)
				return nil
			},
			CheckpointFile: file, Clock: endingClock{done: func() bool { return len(sortKeys) >= count }, end: cancel}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := poller.Run(ctx); err != nil {
			t.Fatal(err)
		}
		return sortKeys
	}
	put("HOLD", "EVENT#1", "EVENT#2", "IDEM", "EVENT#3")
	if got, want := receive(3), []string{"EVENT#1", "EVENT#2", "EVENT#3"}; !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
	put("EVENT#4")
	if got, want := receive(1), []string{"EVENT#4"}; !slices.Equal(got, want) {
		t.Errorf("received after a restart %q, want %q", got, want)
	}
}
