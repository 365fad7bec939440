package eventsource

import (
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// attributeDepthMax is DynamoDB's own limit of nesting.
const attributeDepthMax = 32

// Convert turns a record of the stream into what Lambda delivers. An error says that
// an attribute has a type that DynamoDB does not have.
func Convert(record types.Record, streamARN string) (events.DynamoDBEventRecord, error) {
	converted := events.DynamoDBEventRecord{
		AWSRegion:      aws.ToString(record.AwsRegion),
		EventID:        aws.ToString(record.EventID),
		EventName:      string(record.EventName),
		EventSource:    aws.ToString(record.EventSource),
		EventVersion:   aws.ToString(record.EventVersion),
		EventSourceArn: streamARN,
	}
	if identity := record.UserIdentity; identity != nil {
		converted.UserIdentity = &events.DynamoDBUserIdentity{
			Type: aws.ToString(identity.Type), PrincipalID: aws.ToString(identity.PrincipalId),
		}
	}
	change := record.Dynamodb
	if change == nil || change.SequenceNumber == nil {
		return converted, fmt.Errorf("stream record %s has no change or no sequence number", converted.EventID)
	}
	converted.Change = events.DynamoDBStreamRecord{
		ApproximateCreationDateTime: events.SecondsEpochTime{Time: aws.ToTime(change.ApproximateCreationDateTime)},
		SequenceNumber:              aws.ToString(change.SequenceNumber),
		SizeBytes:                   aws.ToInt64(change.SizeBytes),
		StreamViewType:              string(change.StreamViewType),
	}
	for _, image := range []struct {
		from map[string]types.AttributeValue
		to   *map[string]events.DynamoDBAttributeValue
	}{
		{change.Keys, &converted.Change.Keys},
		{change.NewImage, &converted.Change.NewImage},
		{change.OldImage, &converted.Change.OldImage},
	} {
		if image.from == nil {
			continue
		}
		attributes, err := convertMap(image.from, attributeDepthMax)
		if err != nil {
			return converted, fmt.Errorf("stream record %s: %w", converted.EventID, err)
		}
		*image.to = attributes
	}
	return converted, nil
}

func convertMap(from map[string]types.AttributeValue, depth int) (map[string]events.DynamoDBAttributeValue, error) {
	to := make(map[string]events.DynamoDBAttributeValue, len(from))
	for name, value := range from {
		converted, err := convertValue(value, depth)
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", name, err)
		}
		to[name] = converted
	}
	return to, nil
}

// convertValue keeps numbers as the text they are, to the last digit (case G18).
func convertValue(from types.AttributeValue, depth int) (events.DynamoDBAttributeValue, error) {
	var none events.DynamoDBAttributeValue
	if depth == 0 {
		return none, fmt.Errorf("nested deeper than %d levels", attributeDepthMax)
	}
	switch value := from.(type) {
	case *types.AttributeValueMemberS:
		return events.NewStringAttribute(value.Value), nil
	case *types.AttributeValueMemberN:
		return events.NewNumberAttribute(value.Value), nil
	case *types.AttributeValueMemberB:
		return events.NewBinaryAttribute(value.Value), nil
	case *types.AttributeValueMemberBOOL:
		return events.NewBooleanAttribute(value.Value), nil
	case *types.AttributeValueMemberNULL:
		return events.NewNullAttribute(), nil
	case *types.AttributeValueMemberSS:
		return events.NewStringSetAttribute(value.Value), nil
	case *types.AttributeValueMemberNS:
		return events.NewNumberSetAttribute(value.Value), nil
	case *types.AttributeValueMemberBS:
		return events.NewBinarySetAttribute(value.Value), nil
	case *types.AttributeValueMemberM:
		converted, err := convertMap(value.Value, depth-1)
		return events.NewMapAttribute(converted), err
	case *types.AttributeValueMemberL:
		list := make([]events.DynamoDBAttributeValue, len(value.Value))
		for i, element := range value.Value {
			converted, err := convertValue(element, depth-1)
			if err != nil {
				return none, err
			}
			list[i] = converted
		}
		return events.NewListAttribute(list), nil
	}
	return none, fmt.Errorf("unknown attribute type %T", from)
}

// isDelivered applies the filters of the mapping, of which one must match. Without
// filters everything is delivered.
func isDelivered(record events.DynamoDBEventRecord, sortKey string, prefixes []string) bool {
	key, found := record.Change.Keys[sortKey]
	for _, prefix := range prefixes {
		if found && key.DataType() == events.DataTypeString && strings.HasPrefix(key.String(), prefix) {
			return true
		}
	}
	return len(prefixes) == 0
}
