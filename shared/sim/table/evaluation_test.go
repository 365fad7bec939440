package table_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/sim/table"
)

// The rules of the expression language, one by one. The random test finds a wrong one
// too, but only after a while, and does not name it. The engine is asked the same.
func TestConditionsOneByOne(t *testing.T) {
	p := mustPair(t)
	stored := proper()
	for name, value := range (item{
		"n5": number("5.0"), "words": text("abc"), "emoji": text("a😀"), "flagged": &types.AttributeValueMemberBOOL{Value: true},
		"entries": &types.AttributeValueMemberL{Value: []types.AttributeValue{number("1"), text("a")}},
		"doc":     &types.AttributeValueMemberM{Value: item{"n5": number("5")}},
		"labels":  &types.AttributeValueMemberSS{Value: []string{"a", "b"}},
	}) {
		stored[name] = value
	}
	p.ask("the item", &dynamodb.PutItemInput{TableName: &p.tableName, Item: stored})
	for _, rule := range []struct {
		condition string
		value     types.AttributeValue
		want      bool
	}{
		{"n5 = :v", number("5"), true},
		{"n5 = :v", number("0.5e1"), true},
		{"n5 = :v", text("5"), false},
		{"n5 <> :v", text("5"), true},
		{"n5 <> :v", number("5"), false},
		{"n5 < :v", number("5"), false},
		{"n5 <= :v", number("5"), true},
		{"n5 > :v", number("5"), false},
		{"n5 >= :v", number("5"), true},
		{"n5 > :v", number("-10"), true},
		{"n5 < :v", number("10"), true},
		{"n5 < :v", text("a"), false},
		{"n5 > :v", text("a"), false},
		{"nowhere = :v", number("5"), false},
		{"nowhere <> :v", number("5"), true},
		{"nowhere < :v", number("5"), false},
		{"nowhere >= :v", number("5"), false},
		{"NOT nowhere < :v", number("5"), true},
		{"nowhere = neither OR n5 = :v", number("6"), false},
		{"n5 BETWEEN :v AND n5", number("5"), true},
		{"n5 BETWEEN :v AND n5", number("5.1"), false},
		{"nowhere BETWEEN :v AND n5", number("1"), false},
		{"n5 IN (nowhere, :v)", number("5"), true},
		{"nowhere IN (nowhere, :v)", number("5"), false},
		{"begins_with(words, :v)", text("ab"), true},
		{"begins_with(words, :v)", text("bc"), false},
		{"begins_with(n5, :v)", text("5"), false},
		{"begins_with(nowhere, :v)", text(""), false},
		{"size(words) = :v", number("3"), true},
		{"size(emoji) = :v", number("3"), true}, // in units of UTF-16
		{"size(entries) = :v", number("2"), true},
		{"size(n5) = :v", number("1"), false},
		{"size(nowhere) <> :v", number("1"), true},
		{"entries[0] = :v", number("1.0"), true},
		{"entries[2] = :v", number("1"), false},
		{"doc.n5 = :v", number("5"), true},
		{"words.n5 = :v", number("5"), false},
		{"flagged = :v", &types.AttributeValueMemberBOOL{Value: true}, true},
		{"labels = :v", &types.AttributeValueMemberSS{Value: []string{"b", "a"}}, true},
		{"entries = :v", &types.AttributeValueMemberL{Value: []types.AttributeValue{number("1.0"), text("a")}}, true},
		{"attribute_exists(nowhere) OR NOT n5 = :v", number("5"), false},
		{"n5 = :v OR n5 = n5 AND attribute_exists(nowhere)", number("5"), true}, // AND binds first
		{"(n5 = :v OR n5 = n5) AND attribute_exists(nowhere)", number("5"), false},
		{"NOT attribute_exists(nowhere) AND n5 = :v", number("5"), true}, // NOT binds before AND
	} {
		want := "canceled\nConditionalCheckFailed none"
		if rule.want {
			want = "done"
		}
		input := check(&p.tableName, rule.condition, item{":v": rule.value})
		if got := p.ask(rule.condition, input); got != want {
			t.Errorf("%s with %s: %q, want %q", rule.condition, valueText(rule.value), got, want)
		}
	}
}

// Numbers are exact in all 38 digits, and come back in one form. The engine is not asked:
// DynamoDB's documentation is the source.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html
func TestArithmeticIsExact(t *testing.T) {
	const digits38 = "99999999999999999999999999999999999999"
	const refused = "ValidationException"
	for _, sum := range []struct{ left, operator, right, want string }{
		{"1", "+", "2", "3"},
		{"1", "-", "2", "-1"},
		{"0.1", "+", "0.2", "0.3"},
		{"1.50", "-", "0.50", "1"},
		{"-0", "+", "0.0", "0"},
		{"1e2", "+", "1E-2", "100.01"},
		{"999999999999999999", "+", "1", "1000000000000000000"},
		{"9223372036854775807", "+", "9223372036854775807", "18446744073709551614"},
		{"-9223372036854775808", "-", "1", "-9223372036854775809"},
		{digits38, "-", "1", "99999999999999999999999999999999999998"},
		{digits38, "+", "1", "100000000000000000000000000000000000000"}, // one digit, and zeros
		{digits38, "+", "0.1", refused},
		{"9e125", "+", "9e125", refused},
		{"1e-130", "-", "1e-130", "0"},
		{"1e126", "+", "0", refused},
		{"1e-131", "+", "0", refused},
		{digits38 + "9", "+", "0", refused},
		{"1_0", "+", "0", refused},
		{"", "+", "0", refused},
		{"+-1", "+", "0", refused},
		{"1e", "+", "0", refused},
		{"0x1", "+", "0", refused},
		{"1e99999999999", "+", "0", refused},
	} {
		simulated := table.New(dynamo.TableSchema())
		mutations, err := simulated.Update(&dynamodb.UpdateItemInput{
			Key: proper(), UpdateExpression: aws.String("SET number = if_not_exists(absent, :left) " + sum.operator + " :right"),
			ExpressionAttributeValues: item{":left": number(sum.left), ":right": number(sum.right)},
		})
		got := errorText(err)
		if err == nil {
			got = valueText(mutations[0].New["number"])
		}
		if got != sum.want {
			t.Errorf("%s %s %s is %s, want %s", sum.left, sum.operator, sum.right, got, sum.want)
		}
	}
}
