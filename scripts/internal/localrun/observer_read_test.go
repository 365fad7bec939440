package localrun_test

import (
	"net/http"
	"net/http/httptest"
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
		if got := calledFor(test.target, "/", []byte(test.body)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.target, got, test.want)
		}
	}
	for _, odd := range [][2]string{{"Kinesis.GetRecords", `{}`}, {"", `{}`}, {"AWSEvents.PutEvents", `no JSON`}} {
		if got := calledFor(odd[0], "/", []byte(odd[1])); len(got) != 1 || got[0].resource != "unknown" {
			t.Errorf("%s %s: %v, want that it is unknown", odd[0], odd[1], got)
		}
	}
}

// S3 names no operation, so it is read from the request.
func TestCallsOfTheBucketAreReadAsIAMWould(t *testing.T) {
	for _, test := range []struct {
		method, path string
		want         granted
	}{
		{http.MethodGet, "/archive-bucket/hold/07/a.gz", granted{topology.ResourceArchiveBucket, "s3:GetObject"}},
		{http.MethodHead, "/archive-bucket/hold/07/a.gz", granted{topology.ResourceArchiveBucket, "s3:GetObject"}},
		{http.MethodPut, "/archive-bucket/hold/07/a.gz", granted{topology.ResourceArchiveBucket, "s3:PutObject"}},
		{http.MethodGet, "/archive-bucket?list-type=2", granted{topology.ResourceArchiveBucket, "s3:ListBucket"}},
		{http.MethodGet, "/archive-bucket/?list-type=2", granted{topology.ResourceArchiveBucket, "s3:ListBucket"}},
		{http.MethodDelete, "/archive-bucket/hold/07/a.gz", granted{topology.ResourceArchiveBucket, "s3:DELETE"}},
		{http.MethodGet, "/other/a", granted{"other", "s3:GetObject"}},
	} {
		request := httptest.NewRequest(test.method, test.path, nil)
		request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=local/20300101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0")
		if got := calledFor(targetOf(request), request.URL.Path, nil); !slices.Equal(got, []granted{test.want}) {
			t.Errorf("%s %s: %v, want %v", test.method, test.path, got, test.want)
		}
	}
}
