package eventsource

import (
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// Failure is the message about a batch that was given up, as it reaches an SQS queue.
// It says where the records are, not what is in them:
// https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html
type Failure struct {
	RequestContext  FailureContext `json:"requestContext"`
	Version         string         `json:"version"`
	Timestamp       time.Time      `json:"timestamp"`
	StreamBatchInfo FailedBatch    `json:"DDBStreamBatchInfo"`
}

// FailureContext says which function gave up, and why.
type FailureContext struct {
	FunctionARN            string    `json:"functionArn"`
	Condition              Condition `json:"condition"`
	ApproximateInvokeCount int       `json:"approximateInvokeCount"`
}

// FailedBatch says which records were given up. They stay in the stream for a day.
type FailedBatch struct {
	ShardID             string    `json:"shardId"`
	StartSequenceNumber string    `json:"startSequenceNumber"`
	EndSequenceNumber   string    `json:"endSequenceNumber"`
	FirstRecordAt       time.Time `json:"approximateArrivalOfFirstRecord"`
	LastRecordAt        time.Time `json:"approximateArrivalOfLastRecord"`
	BatchSize           int       `json:"batchSize"`
	StreamARN           string    `json:"streamArn"`
}

func (p *Poller) failure(shardID string, records []events.DynamoDBEventRecord, retries int, condition Condition) Failure {
	first, last := records[0].Change, records[len(records)-1].Change
	return Failure{
		RequestContext: FailureContext{
			FunctionARN: p.config.FunctionARN, Condition: condition, ApproximateInvokeCount: retries + 1,
		},
		Version:   "1.0",
		Timestamp: p.config.Clock.Now().UTC(),
		StreamBatchInfo: FailedBatch{
			ShardID: shardID, StartSequenceNumber: first.SequenceNumber, EndSequenceNumber: last.SequenceNumber,
			FirstRecordAt: first.ApproximateCreationDateTime.UTC(), LastRecordAt: last.ApproximateCreationDateTime.UTC(),
			BatchSize: len(records), StreamARN: p.config.StreamARN,
		},
	}
}
