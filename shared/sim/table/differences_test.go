package table_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// engineDifferences are the requests which the engine and the table answer differently,
// and why the table's answer stands. The generator makes none of them. The engine is
// checked against AWS by a public suite, so the list is short; each entry is asked below,
// and goes when the engine has changed.
var engineDifferences = []struct {
	name, reason   string
	input          func(tableName *string) any
	engine, answer string
}{
	{
		"bounds of two types in a transaction",
		"AWS refuses them for the request's sake, as the engine does for a single write; in a transaction the engine compares",
		func(tableName *string) any {
			return check(tableName, "note BETWEEN :low AND :high", item{":low": number("1"), ":high": text("a")})
		},
		"canceled\nConditionalCheckFailed none", "ValidationException",
	},
	{
		"a literal without an order, where one is needed",
		"AWS: Incorrect operand type for operator or function; the engine finds the comparison false",
		func(tableName *string) any {
			return check(tableName, "note < :flag", item{":flag": &types.AttributeValueMemberBOOL{Value: true}})
		},
		"canceled\nConditionalCheckFailed none", "ValidationException",
	},
	{
		"an update of the key in a transaction",
		"AWS: Cannot update attribute, it is part of the key; the engine checks that for a single write only",
		func(tableName *string) any {
			return &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Update: &types.Update{
				TableName: tableName, Key: proper(), UpdateExpression: aws.String("REMOVE pk"),
			}}}}
		},
		"done", "canceled\nValidationError none",
	},
	{
		"a value that an update in a transaction does not have",
		"AWS refuses an undefined value with the whole request, as the engine does for a condition; for an update the engine gives a reason",
		func(tableName *string) any {
			return &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Update: &types.Update{
				TableName: tableName, Key: proper(), UpdateExpression: aws.String("SET note = :missing"),
			}}}}
		},
		"canceled\nValidationError none", "ValidationException",
	},
	{
		"a value that a filter does not have",
		"AWS refuses an undefined value with the whole request; the engine evaluates a filter from the left and stops early",
		func(tableName *string) any {
			return &dynamodb.ScanInput{
				TableName: tableName, FilterExpression: aws.String("attribute_exists(nothing) AND release_at_ms = :missing"),
			}
		},
		"\ncount 0 of 0", "ValidationException",
	},
	{
		"bounds in the wrong order that differ in the nineteenth digit",
		"AWS compares numbers exactly; the engine takes the two for equal and finds nothing between them",
		func(tableName *string) any {
			return &dynamodb.QueryInput{
				TableName: tableName, IndexName: aws.String("due"),
				KeyConditionExpression: aws.String("due_shard = :shard AND due_at_ms BETWEEN :low AND :high"),
				ExpressionAttributeValues: item{
					":shard": text("00"), ":low": number("9223372036854775808"), ":high": number("9223372036854775807"),
				},
			}
		},
		"\ncount 0 of 0, last none", "ValidationException",
	},
	{
		"an empty value for an index key in a key condition",
		"what AWS says is not known; the table refuses it as it does for its own key, so that a store that asks it is noticed",
		func(tableName *string) any {
			return &dynamodb.QueryInput{
				TableName: tableName, IndexName: aws.String("due"),
				KeyConditionExpression: aws.String("due_shard = :shard"), ExpressionAttributeValues: item{":shard": text("")},
			}
		},
		"\ncount 0 of 0, last none", "ValidationException",
	},
	{
		"an empty index key in a start key",
		"no entry of an index can have it, so no page has given it; the engine looks at the table's own keys only",
		func(tableName *string) any {
			start := proper()
			start["owner"], start["owner_order"] = text("00"), text("")
			return &dynamodb.QueryInput{
				TableName: tableName, IndexName: aws.String("owner"), ExclusiveStartKey: start,
				KeyConditionExpression:   aws.String("#owner = :owner"),
				ExpressionAttributeNames: map[string]string{"#owner": "owner"}, ExpressionAttributeValues: item{":owner": text("00")},
			}
		},
		"\ncount 0 of 0, last none", "ValidationException",
	},
}

func proper() item { return item{"pk": text("P"), "sk": text("A")} }

func check(tableName *string, condition string, values item) any {
	return &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{ConditionCheck: &types.ConditionCheck{
		TableName: tableName, Key: proper(), ConditionExpression: &condition, ExpressionAttributeValues: values,
	}}}}
}

func TestDifferencesFromTheEngineAreThoseThatAreKnown(t *testing.T) {
	for _, difference := range engineDifferences {
		t.Run(difference.name, func(t *testing.T) {
			p := mustPair(t)
			input := difference.input(&p.tableName)
			if got := answerOf(t.Context(), p.engine, input); got != difference.engine {
				t.Errorf("the engine answers %q, not %q any more", got, difference.engine)
			}
			if got := answerOf(t.Context(), p.simulated, input); got != difference.answer {
				t.Errorf("the table answers %q, want %q: %s", got, difference.answer, difference.reason)
			}
		})
	}
}
