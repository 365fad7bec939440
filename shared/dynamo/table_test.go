package dynamo_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
)

// freshTableName returns a client, and a name that no table has yet.
func freshTableName(t *testing.T) (*dynamodb.Client, string) {
	t.Helper()
	client, name := dynamotest.Engine(t).Client(), "table-"+rand.Text()
	t.Cleanup(func() {
		if _, err := client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
			t.Errorf("delete table %s: %v", name, err)
		}
	})
	return client, name
}

func mustDescribeTable(t *testing.T, client *dynamodb.Client, name string) *types.TableDescription {
	t.Helper()
	out, err := client.DescribeTable(context.Background(), &dynamodb.DescribeTableInput{TableName: &name})
	if err != nil {
		t.Fatal(err)
	}
	return out.Table
}

func mustTimeToLive(t *testing.T, client *dynamodb.Client, name string) string {
	t.Helper()
	out, err := client.DescribeTimeToLive(context.Background(), &dynamodb.DescribeTimeToLiveInput{TableName: &name})
	if err != nil {
		t.Fatal(err)
	}
	return string(out.TimeToLiveDescription.TimeToLiveStatus) + " " + aws.ToString(out.TimeToLiveDescription.AttributeName)
}

func TestCreateTableMakesTheTableOfTheDesign(t *testing.T) {
	client, name := freshTableName(t)
	if err := dynamo.CreateTable(context.Background(), client, name); err != nil {
		t.Fatal(err)
	}
	table := mustDescribeTable(t, client, name)
	if table.TableStatus != types.TableStatusActive {
		t.Errorf("the table is %s", table.TableStatus)
	}
	if table.BillingModeSummary == nil || table.BillingModeSummary.BillingMode != types.BillingModePayPerRequest {
		t.Errorf("billing: %+v, want on demand", table.BillingModeSummary)
	}
	if stream := table.StreamSpecification; stream == nil || !aws.ToBool(stream.StreamEnabled) || stream.StreamViewType != types.StreamViewTypeNewImage {
		t.Errorf("stream: %+v, want new images", stream)
	}
	if key := keyNames(table.KeySchema); key != "pk sk" {
		t.Errorf("key: %s, want pk sk", key)
	}
	want := map[string]string{
		"due":         "due_shard due_at_ms",
		"unpublished": "unpublished_shard unpublished_order",
		"owner":       "owner owner_order",
		"resource":    "resource resource_order",
		"review":      "review_list review_order",
	}
	if len(table.GlobalSecondaryIndexes) != len(want) {
		t.Errorf("%d indexes, want %d", len(table.GlobalSecondaryIndexes), len(want))
	}
	for _, index := range table.GlobalSecondaryIndexes {
		if key := keyNames(index.KeySchema); key != want[*index.IndexName] || index.Projection.ProjectionType != types.ProjectionTypeKeysOnly {
			t.Errorf("index %s: %s, %s; want %s, KEYS_ONLY", *index.IndexName, key, index.Projection.ProjectionType, want[*index.IndexName])
		}
	}
	for _, attribute := range table.AttributeDefinitions {
		wantType := types.ScalarAttributeTypeS
		if *attribute.AttributeName == "due_at_ms" {
			wantType = types.ScalarAttributeTypeN
		}
		if attribute.AttributeType != wantType {
			t.Errorf("%s has type %s, want %s", *attribute.AttributeName, attribute.AttributeType, wantType)
		}
	}
	if got := mustTimeToLive(t, client, name); got != "ENABLED ttl_at_seconds" {
		t.Errorf("time to live: %s", got)
	}
}

func keyNames(elements []types.KeySchemaElement) string {
	names := make([]string, len(elements))
	for i, element := range elements {
		names[i] = *element.AttributeName
	}
	return strings.Join(names, " ")
}

func TestCreateTableMayBeRepeated(t *testing.T) {
	client, name := freshTableName(t)
	for range 2 {
		if err := dynamo.CreateTable(context.Background(), client, name); err != nil {
			t.Fatal(err)
		}
	}
}

// A run that ended between the table and its time to live is completed by the next.
func TestCreateTableCompletesTheTimeToLive(t *testing.T) {
	client, name := freshTableName(t)
	stopped := errors.New("the process ended here")
	err := dynamo.CreateTable(context.Background(), &interceptedTableClient{TableClient: client, updateTimeToLive: stopped}, name)
	if !errors.Is(err, stopped) {
		t.Fatalf("got %v, want %v", err, stopped)
	}
	if got := mustTimeToLive(t, client, name); !strings.HasPrefix(got, "DISABLED") {
		t.Fatalf("time to live before the second run: %s", got)
	}
	if err := dynamo.CreateTable(context.Background(), client, name); err != nil {
		t.Fatal(err)
	}
	if got := mustTimeToLive(t, client, name); got != "ENABLED ttl_at_seconds" {
		t.Errorf("time to live: %s", got)
	}
}

// Working on a table of another schema would fail later, and further from the reason.
func TestCreateTableRefusesAnotherSchema(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*dynamodb.CreateTableInput)
		want   []string
	}{
		{"other stream", func(in *dynamodb.CreateTableInput) {
			in.StreamSpecification.StreamViewType = types.StreamViewTypeKeysOnly
		}, []string{`stream is "KEYS_ONLY", want "NEW_IMAGE"`}},
		{"no stream", func(in *dynamodb.CreateTableInput) { in.StreamSpecification = nil },
			[]string{`stream is "", want "NEW_IMAGE"`}},
		{"other projection", func(in *dynamodb.CreateTableInput) {
			in.GlobalSecondaryIndexes[0].Projection.ProjectionType = types.ProjectionTypeAll
		}, []string{`index due is "due_shard HASH, due_at_ms RANGE, ALL", want`}},
		{"other name of an index", func(in *dynamodb.CreateTableInput) {
			in.GlobalSecondaryIndexes[0].IndexName = aws.String("overdue")
		}, []string{`index due is "", want`, `index overdue is "due_shard`}},
		{"other type", func(in *dynamodb.CreateTableInput) {
			for i := range in.AttributeDefinitions {
				in.AttributeDefinitions[i].AttributeType = types.ScalarAttributeTypeS
			}
		}, []string{`type of due_at_ms is "S", want "N"`}},
		{"provisioned", func(in *dynamodb.CreateTableInput) {
			in.BillingMode = types.BillingModeProvisioned
			in.ProvisionedThroughput = &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(1), WriteCapacityUnits: aws.Int64(1)}
			for i := range in.GlobalSecondaryIndexes {
				in.GlobalSecondaryIndexes[i].ProvisionedThroughput = in.ProvisionedThroughput
			}
		}, []string{`want "PAY_PER_REQUEST"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, name := freshTableName(t)
			other := &interceptedTableClient{TableClient: client, createTable: test.change}
			if err := dynamo.CreateTable(context.Background(), other, name); !errors.Is(err, dynamo.ErrOtherSchema) {
				t.Fatalf("the other table: %v", err)
			}
			err := dynamo.CreateTable(context.Background(), client, name)
			if !errors.Is(err, dynamo.ErrOtherSchema) {
				t.Fatalf("got %v, want ErrOtherSchema", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not tell %q: %v", want, err)
				}
			}
			if got := mustTimeToLive(t, client, name); !strings.HasPrefix(got, "DISABLED") {
				t.Errorf("the other table was changed: time to live is %s", got)
			}
		})
	}
}

func TestCreateTableRefusesAnotherTimeToLive(t *testing.T) {
	client, name := freshTableName(t)
	if err := dynamo.CreateTable(context.Background(), &interceptedTableClient{TableClient: client, timeToLiveAttribute: "gone_at"}, name); err != nil {
		t.Fatal(err)
	}
	err := dynamo.CreateTable(context.Background(), client, name)
	if !errors.Is(err, dynamo.ErrOtherSchema) || !strings.Contains(err.Error(), `"gone_at", want "ttl_at_seconds"`) {
		t.Errorf("got %v, want ErrOtherSchema that tells the attribute", err)
	}
}

func TestCreateTableWaitsNoLongerThanItsContext(t *testing.T) {
	client, name := freshTableName(t)
	ctx, cancel := context.WithCancel(context.Background())
	creating := &interceptedTableClient{TableClient: client, describeTable: func(call int, table *types.TableDescription) {
		table.TableStatus = types.TableStatusCreating
		if call == 2 {
			cancel()
		}
	}}
	if err := dynamo.CreateTable(ctx, creating, name); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if creating.describeCalls != 2 {
		t.Errorf("looked %d times at the table, want 2", creating.describeCalls)
	}
}

// interceptedTableClient changes single calls of a real client.
type interceptedTableClient struct {
	dynamo.TableClient
	createTable         func(*dynamodb.CreateTableInput)
	describeTable       func(call int, table *types.TableDescription)
	describeCalls       int
	updateTimeToLive    error
	timeToLiveAttribute string
}

func (c *interceptedTableClient) CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, options ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	if c.createTable != nil {
		c.createTable(in)
	}
	return c.TableClient.CreateTable(ctx, in, options...)
}

func (c *interceptedTableClient) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, options ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	out, err := c.TableClient.DescribeTable(ctx, in, options...)
	c.describeCalls++
	if err == nil && c.describeTable != nil {
		c.describeTable(c.describeCalls, out.Table)
	}
	return out, err
}

func (c *interceptedTableClient) UpdateTimeToLive(ctx context.Context, in *dynamodb.UpdateTimeToLiveInput, options ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error) {
	if c.updateTimeToLive != nil {
		return nil, c.updateTimeToLive
	}
	if c.timeToLiveAttribute != "" {
		in.TimeToLiveSpecification.AttributeName = &c.timeToLiveAttribute
	}
	return c.TableClient.UpdateTimeToLive(ctx, in, options...)
}
