package table_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"holdfast/shared/dynamo"
)

// caller is what the engine and the table are asked through.
type caller interface {
	dynamo.Client
	dynamo.ScanClient
}

// answerOf makes the request and writes all of its answer that a caller may rely on as
// text, so that two answers can be compared and read.
func answerOf(ctx context.Context, c caller, input any) string {
	switch in := input.(type) {
	case *dynamodb.TransactWriteItemsInput:
		_, err := c.TransactWriteItems(ctx, in)
		return errorText(err)
	case *dynamodb.PutItemInput:
		_, err := c.PutItem(ctx, in)
		return errorText(err)
	case *dynamodb.UpdateItemInput:
		_, err := c.UpdateItem(ctx, in)
		return errorText(err)
	case *dynamodb.GetItemInput:
		out, err := c.GetItem(ctx, in)
		if err != nil {
			return errorText(err)
		}
		return itemText(out.Item)
	case *dynamodb.TransactGetItemsInput:
		out, err := c.TransactGetItems(ctx, in)
		if err != nil {
			return errorText(err)
		}
		var lines []string
		for _, response := range out.Responses {
			lines = append(lines, itemText(response.Item))
		}
		return strings.Join(lines, "\n")
	case *dynamodb.BatchGetItemInput:
		out, err := c.BatchGetItem(ctx, in)
		if err != nil {
			return errorText(err)
		}
		var lines []string
		for _, items := range out.Responses {
			for _, item := range items {
				lines = append(lines, itemText(item))
			}
		}
		slices.Sort(lines) // a batch has no order
		return fmt.Sprintf("%s\n%d tables, %d unprocessed", strings.Join(lines, "\n"), len(out.Responses), len(out.UnprocessedKeys))
	case *dynamodb.ScanInput:
		out, err := c.Scan(ctx, in)
		if err != nil {
			return errorText(err)
		}
		lines := make([]string, 0, len(out.Items))
		for _, item := range out.Items {
			lines = append(lines, itemText(item))
		}
		slices.Sort(lines) // a scan has no order
		return fmt.Sprintf("%s\ncount %d of %d", strings.Join(lines, "\n"), out.Count, out.ScannedCount)
	case *dynamodb.QueryInput:
		out, err := c.Query(ctx, in)
		if err != nil {
			return errorText(err)
		}
		return fmt.Sprintf("%s\ncount %d of %d, last %s", itemTexts(out.Items), out.Count, out.ScannedCount, itemText(out.LastEvaluatedKey))
	}
	panic(fmt.Sprintf("no answer to a %T", input))
}

// allItems is the whole table, in an order of its own.
func allItems(ctx context.Context, c caller, tableName string) (string, error) {
	in := &dynamodb.ScanInput{TableName: &tableName, ConsistentRead: aws.Bool(true), Limit: aws.Int32(7)}
	var lines []string
	for {
		out, err := c.Scan(ctx, in)
		if err != nil {
			return "", err
		}
		for _, item := range out.Items {
			lines = append(lines, itemText(item))
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			break
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

// errorText is the kind of an error and what it says to a program; a message is for
// people and may differ.
func errorText(err error) string {
	var canceled *types.TransactionCanceledException
	var failed *types.ConditionalCheckFailedException
	var api smithy.APIError
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &canceled):
		lines := []string{"canceled"}
		for _, reason := range canceled.CancellationReasons {
			lines = append(lines, aws.ToString(reason.Code)+" "+itemText(reason.Item))
		}
		return strings.Join(lines, "\n")
	case errors.As(err, &failed):
		return "condition failed " + itemText(failed.Item)
	case errors.As(err, &api):
		return api.ErrorCode()
	}
	return err.Error()
}

func itemTexts(items []map[string]types.AttributeValue) string {
	lines := make([]string, len(items))
	for i, item := range items {
		lines[i] = itemText(item)
	}
	return strings.Join(lines, "\n")
}

func itemText(item map[string]types.AttributeValue) string {
	if item == nil {
		return "none"
	}
	parts := make([]string, 0, len(item))
	for _, name := range slices.Sorted(maps.Keys(item)) {
		parts = append(parts, name+"="+valueText(item[name]))
	}
	return "{" + strings.Join(parts, " ") + "}"
}

func valueText(v types.AttributeValue) string {
	switch value := v.(type) {
	case *types.AttributeValueMemberS:
		return fmt.Sprintf("%q", value.Value)
	case *types.AttributeValueMemberN:
		return value.Value
	case *types.AttributeValueMemberB:
		return fmt.Sprintf("x%x", value.Value)
	case *types.AttributeValueMemberBOOL:
		return fmt.Sprint(value.Value)
	case *types.AttributeValueMemberNULL:
		return "null"
	case *types.AttributeValueMemberL:
		parts := make([]string, len(value.Value))
		for i, element := range value.Value {
			parts[i] = valueText(element)
		}
		return "[" + strings.Join(parts, " ") + "]"
	case *types.AttributeValueMemberM:
		return itemText(value.Value)
	case *types.AttributeValueMemberSS:
		return fmt.Sprintf("SS%q", slices.Sorted(slices.Values(value.Value)))
	case *types.AttributeValueMemberNS:
		return fmt.Sprintf("NS%q", slices.Sorted(slices.Values(value.Value)))
	case *types.AttributeValueMemberBS:
		parts := make([]string, len(value.Value))
		for i, member := range value.Value {
			parts[i] = fmt.Sprintf("x%x", member)
		}
		slices.Sort(parts)
		return "BS" + fmt.Sprint(parts)
	}
	return fmt.Sprintf("%T", v)
}

// requestText shows a request to a person: every field that is set.
func requestText(input any) string { return fieldsText(reflect.ValueOf(input), "") }

func fieldsText(v reflect.Value, indent string) string {
	if value, is := v.Interface().(types.AttributeValue); is {
		return valueText(value)
	}
	if item, is := v.Interface().(map[string]types.AttributeValue); is {
		return itemText(item)
	}
	switch v.Kind() {
	case reflect.Pointer:
		return fieldsText(v.Elem(), indent)
	case reflect.Struct:
		text := v.Type().Name()
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && !v.Field(i).IsZero() {
				text += "\n" + indent + "  " + v.Type().Field(i).Name + ": " + fieldsText(v.Field(i), indent+"  ")
			}
		}
		return text
	case reflect.Slice:
		text := ""
		for i := range v.Len() {
			text += "\n" + indent + "  - " + fieldsText(v.Index(i), indent+"    ")
		}
		return text
	default:
		return fmt.Sprint(v.Interface())
	}
}
