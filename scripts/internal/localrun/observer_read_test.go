package localrun_test

import (
	"slices"
	"testing"

	"holdfast/shared/topology"
)

// The comparison of calls with grants means something only if each call is read right.
func TestCallsAreReadAsIAMWould(t *testing.T) {
	for _, test := range []struct {
		target, body string
		want         []granted
	}{
		{"AWSEvents.PutEvents", `{"Entries":[]}`, []granted{{topology.ResourceEventBus, "events:PutEvents"}}},
		{"AmazonSQS.SendMessage", `{"QueueUrl":"http://localhost:4566/000000000000/saga-queue","MessageBody":"{}"}`,
			[]granted{{topology.ResourceSagaQueue, "sqs:SendMessage"}}},
		{"AmazonSQS.SendMessageBatch", `{"QueueUrl":"http://localhost:4566/000000000000/saga-queue","Entries":[]}`,
			[]granted{{topology.ResourceSagaQueue, "sqs:SendMessage"}}},
		{"AmazonSQS.SendMessage", `{"QueueUrl":"http://localhost:4566/000000000000/saga-failures"}`,
			[]granted{{topology.ResourceSagaFailures, "sqs:SendMessage"}}},
		{"secretsmanager.GetSecretValue", `{"SecretId":"payment-secret"}`,
			[]granted{{topology.ResourcePaymentSecret, "secretsmanager:GetSecretValue"}}},
		{"DynamoDB_20120810.Query", `{"TableName":"t","IndexName":"due"}`,
			[]granted{{topology.TableIndex("due"), "dynamodb:Query"}}},
		{"DynamoDB_20120810.TransactWriteItems", `{"TransactItems":[{"Put":{}},{"Update":{}}]}`,
			[]granted{{topology.ResourceTable, "dynamodb:PutItem"}, {topology.ResourceTable, "dynamodb:UpdateItem"}}},
	} {
		if got := calledFor(test.target, []byte(test.body)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.target, got, test.want)
		}
	}
	for _, odd := range [][2]string{{"AmazonS3.GetObject", `{}`}, {"", `{}`}, {"AWSEvents.PutEvents", `no JSON`}} {
		if got := calledFor(odd[0], []byte(odd[1])); len(got) != 1 || got[0].resource != "unknown" {
			t.Errorf("%s %s: %v, want that it is unknown", odd[0], odd[1], got)
		}
	}
}
