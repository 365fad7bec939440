package eventsource_test

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"holdfast/scripts/internal/eventsource"
)

func TestRecordBecomesTheEventOfLambda(t *testing.T) {
	text := func(value string) types.AttributeValue { return &types.AttributeValueMemberS{Value: value} }
	record := types.Record{
		AwsRegion: aws.String("us-east-1"), EventID: aws.String("e-1"), EventName: types.OperationTypeInsert,
		EventSource: aws.String("aws:dynamodb"), EventVersion: aws.String("1.1"),
		UserIdentity: &types.Identity{Type: aws.String("Service"), PrincipalId: aws.String("dynamodb.amazonaws.com")},
		Dynamodb: &types.StreamRecord{
			ApproximateCreationDateTime: aws.Time(now), SequenceNumber: aws.String("1405400000000002063282832"),
			SizeBytes: aws.Int64(54), StreamViewType: types.StreamViewTypeNewImage,
			Keys: map[string]types.AttributeValue{"pk": text("HOLD#1")},
			NewImage: map[string]types.AttributeValue{
				"number":  &types.AttributeValueMemberN{Value: "1570726625494837000"},
				"binary":  &types.AttributeValueMemberB{Value: []byte("hi")},
				"flag":    &types.AttributeValueMemberBOOL{Value: true},
				"nothing": &types.AttributeValueMemberNULL{Value: true},
				"texts":   &types.AttributeValueMemberSS{Value: []string{"a", "b"}},
				"numbers": &types.AttributeValueMemberNS{Value: []string{"1", "0.5"}},
				"bytes":   &types.AttributeValueMemberBS{Value: [][]byte{[]byte("hi")}},
				"list":    &types.AttributeValueMemberL{Value: []types.AttributeValue{text("a"), &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"deep": text("b")}}}},
			},
		},
	}
	converted, err := eventsource.Convert(record, "arn:stream")
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(converted)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"awsRegion":"us-east-1","dynamodb":{"ApproximateCreationDateTime":1772366400,"Keys":{"pk":{"S":"HOLD#1"}},` +
		`"NewImage":{"binary":{"B":"aGk="},"bytes":{"BS":["aGk="]},"flag":{"BOOL":true},"list":{"L":[{"S":"a"},{"M":{"deep":{"S":"b"}}}]},` +
		`"nothing":{"NULL":true},"number":{"N":"1570726625494837000"},"numbers":{"NS":["1","0.5"]},"texts":{"SS":["a","b"]}},` +
		`"SequenceNumber":"1405400000000002063282832","SizeBytes":54,"StreamViewType":"NEW_IMAGE"},"eventID":"e-1","eventName":"INSERT",` +
		`"eventSource":"aws:dynamodb","eventVersion":"1.1","eventSourceARN":"arn:stream",` +
		`"userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"}}`
	if string(got) != want {
		t.Errorf("event record =\n%s\nwant\n%s", got, want)
	}
}

func TestRecordWithoutChangeIsAnError(t *testing.T) {
	for _, record := range []types.Record{{}, {Dynamodb: &types.StreamRecord{}}} {
		if _, err := eventsource.Convert(record, "arn:stream"); err == nil {
			t.Errorf("no error for %+v", record)
		}
	}
}

func TestUnknownAttributeTypeIsAnError(t *testing.T) {
	record := types.Record{Dynamodb: &types.StreamRecord{
		SequenceNumber: aws.String("1"),
		NewImage:       map[string]types.AttributeValue{"odd": &types.UnknownUnionMember{Tag: "X"}},
	}}
	if _, err := eventsource.Convert(record, "arn:stream"); err == nil {
		t.Error("no error")
	}
}
