package dynamo_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
)

// The server answers like DynamoDB and keeps the token of the last request, because only
// what leaves the process tells what the SDK has filled in.
func TestWithoutClientToken(t *testing.T) {
	var sent string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ ClientRequestToken string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		sent = body.ClientRequestToken
		w.Write([]byte("{}"))
	}))
	defer server.Close()
	config := aws.Config{
		Region:       "us-east-1",
		BaseEndpoint: &server.URL,
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""),
	}
	write := func(client *dynamodb.Client, token *string) string {
		t.Helper()
		in := transactionOfOnePut()
		in.ClientRequestToken = token
		if _, err := client.TransactWriteItems(context.Background(), in); err != nil {
			t.Fatal(err)
		}
		return sent
	}

	if got := write(dynamodb.NewFromConfig(config), nil); got == "" {
		t.Error("the SDK no longer fills in a token: WithoutClientToken has lost its purpose")
	}
	local := dynamodb.NewFromConfig(config, dynamo.WithoutClientToken)
	if got := write(local, nil); got != "" {
		t.Errorf("a local client sent the token %q", got)
	}
	if got := write(local, aws.String("of-the-caller")); got != "of-the-caller" {
		t.Errorf("the caller's own token arrived as %q", got)
	}
	if _, err := local.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: aws.String("table"), Key: onePutsKey()}); err != nil {
		t.Errorf("an operation that has no token: %v", err)
	}
}

func onePutsKey() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		dynamo.AttributePartitionKey: &types.AttributeValueMemberS{Value: "a"},
		dynamo.AttributeSortKey:      &types.AttributeValueMemberS{Value: "b"},
	}
}

func transactionOfOnePut() *dynamodb.TransactWriteItemsInput {
	return &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{TableName: aws.String("table"), Item: onePutsKey()}},
	}}
}
