package dynamo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TableActiveWithin bounds the wait for a new table. AWS needs some ten seconds for a
// table with indexes, the local engine none.
const TableActiveWithin = 2 * time.Minute

// The pause between two looks at a table that is being created, growing from the
// first to the second.
const (
	tablePollDelayMin = 50 * time.Millisecond
	tablePollDelayMax = 2 * time.Second
)

// ErrOtherSchema is returned by CreateTable when a table of the name exists, and is not
// the one of TableSchema. The error's text lists every difference.
var ErrOtherSchema = errors.New("the table exists with another schema")

// TableClient is the part of the DynamoDB client that creates the table. On AWS the CDK
// stack does that, so only the local runner, the tests and the benchmark need it.
type TableClient interface {
	CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, options ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, options ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(ctx context.Context, in *dynamodb.DescribeTimeToLiveInput, options ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
	UpdateTimeToLive(ctx context.Context, in *dynamodb.UpdateTimeToLiveInput, options ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
}

// CreateTable creates the table of TableSchema: on demand, with the stream, the indexes
// and the time to live. It returns once the table can be used, or an error after
// TableActiveWithin.
//
// It may be repeated: a table that is already there with the same schema is success, and
// a missing time to live is switched on. It returns ErrOtherSchema, and changes nothing,
// when the table there is a different one.
func CreateTable(ctx context.Context, client TableClient, tableName string) error {
	schema := TableSchema()
	_, err := client.CreateTable(ctx, createTableInput(schema, tableName))
	var inUse *types.ResourceInUseException
	if err != nil && !errors.As(err, &inUse) {
		return fmt.Errorf("create table %s: %w", tableName, err)
	}
	waiter := dynamodb.NewTableExistsWaiter(client, func(options *dynamodb.TableExistsWaiterOptions) {
		options.MinDelay = tablePollDelayMin
		options.MaxDelay = tablePollDelayMax
	})
	described, err := waiter.WaitForOutput(ctx, &dynamodb.DescribeTableInput{TableName: &tableName}, TableActiveWithin)
	if err != nil {
		return fmt.Errorf("wait until table %s is active: %w", tableName, err)
	}
	if differences := schemaDifferences(schema, described.Table); len(differences) > 0 {
		return fmt.Errorf("table %s: %w: %s", tableName, ErrOtherSchema, strings.Join(differences, "; "))
	}
	return enableTimeToLive(ctx, client, tableName, schema.TimeToLiveAttribute)
}

// enableTimeToLive looks before it switches on, because DynamoDB refuses to enable
// what is enabled already.
func enableTimeToLive(ctx context.Context, client TableClient, tableName, attribute string) error {
	described, err := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &tableName})
	if err != nil {
		return fmt.Errorf("describe the time to live of table %s: %w", tableName, err)
	}
	if current := described.TimeToLiveDescription; current != nil {
		switch current.TimeToLiveStatus {
		case types.TimeToLiveStatusEnabled, types.TimeToLiveStatusEnabling:
			if has := aws.ToString(current.AttributeName); has != attribute {
				return fmt.Errorf("table %s: %w: time to live is on %q, want %q", tableName, ErrOtherSchema, has, attribute)
			}
			return nil
		case types.TimeToLiveStatusDisabled, types.TimeToLiveStatusDisabling:
		}
	}
	_, err = client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: &tableName,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: &attribute,
			Enabled:       aws.Bool(true),
		},
	})
	if err != nil {
		return fmt.Errorf("enable the time to live of table %s: %w", tableName, err)
	}
	return nil
}

func createTableInput(schema Schema, tableName string) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{
		TableName:   &tableName,
		BillingMode: types.BillingModePayPerRequest,
		KeySchema:   keySchema(schema.PartitionKey, schema.SortKey),
		StreamSpecification: &types.StreamSpecification{
			StreamEnabled:  aws.Bool(true),
			StreamViewType: types.StreamViewType(schema.StreamView),
		},
	}
	for _, index := range schema.Indexes {
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName:  aws.String(index.Name),
			KeySchema:  keySchema(index.PartitionKey, index.SortKey),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		})
	}
	keyTypes := keyTypes(schema)
	for _, attribute := range slices.Sorted(maps.Keys(keyTypes)) {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: aws.String(attribute),
			AttributeType: types.ScalarAttributeType(keyTypes[attribute]),
		})
	}
	return in
}

func keySchema(partition, sort Key) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: aws.String(partition.Attribute), KeyType: types.KeyTypeHash},
		{AttributeName: aws.String(sort.Attribute), KeyType: types.KeyTypeRange},
	}
}

// keyTypes gives the type of each key attribute, once: DynamoDB refuses an attribute
// that is defined twice or not used by any key.
func keyTypes(schema Schema) map[string]string {
	byAttribute := map[string]string{
		schema.PartitionKey.Attribute: schema.PartitionKey.Type,
		schema.SortKey.Attribute:      schema.SortKey.Type,
	}
	for _, index := range schema.Indexes {
		byAttribute[index.PartitionKey.Attribute] = index.PartitionKey.Type
		byAttribute[index.SortKey.Attribute] = index.SortKey.Type
	}
	return byAttribute
}

// schemaDifferences compares what the schema asks for with what the table has, as one
// line of text per property, so that a difference can be read by a person.
func schemaDifferences(schema Schema, table *types.TableDescription) []string {
	want := wantedProperties(schema)
	has := actualProperties(table)
	names := slices.Concat(slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(has)))
	slices.Sort(names)
	var differences []string
	for _, name := range slices.Compact(names) {
		if want[name] != has[name] {
			differences = append(differences, fmt.Sprintf("%s is %q, want %q", name, has[name], want[name]))
		}
	}
	return differences
}

func wantedProperties(schema Schema) map[string]string {
	in := createTableInput(schema, "")
	properties := map[string]string{
		"billing": string(in.BillingMode),
		"key":     keyText(in.KeySchema),
		"stream":  string(in.StreamSpecification.StreamViewType),
	}
	addAttributeProperties(properties, in.AttributeDefinitions)
	for _, index := range in.GlobalSecondaryIndexes {
		properties["index "+*index.IndexName] = keyText(index.KeySchema) + ", " + string(index.Projection.ProjectionType)
	}
	return properties
}

func actualProperties(table *types.TableDescription) map[string]string {
	properties := map[string]string{"key": keyText(table.KeySchema)}
	if table.BillingModeSummary != nil {
		properties["billing"] = string(table.BillingModeSummary.BillingMode)
	}
	if stream := table.StreamSpecification; stream != nil && aws.ToBool(stream.StreamEnabled) {
		properties["stream"] = string(stream.StreamViewType)
	}
	addAttributeProperties(properties, table.AttributeDefinitions)
	for _, index := range table.GlobalSecondaryIndexes {
		text := keyText(index.KeySchema)
		if index.Projection != nil {
			text += ", " + string(index.Projection.ProjectionType)
		}
		properties["index "+aws.ToString(index.IndexName)] = text
	}
	for _, index := range table.LocalSecondaryIndexes {
		properties["local index "+aws.ToString(index.IndexName)] = keyText(index.KeySchema)
	}
	return properties
}

func addAttributeProperties(properties map[string]string, definitions []types.AttributeDefinition) {
	for _, definition := range definitions {
		properties["type of "+aws.ToString(definition.AttributeName)] = string(definition.AttributeType)
	}
}

func keyText(elements []types.KeySchemaElement) string {
	parts := make([]string, len(elements))
	for i, element := range elements {
		parts[i] = aws.ToString(element.AttributeName) + " " + string(element.KeyType)
	}
	return strings.Join(parts, ", ")
}
