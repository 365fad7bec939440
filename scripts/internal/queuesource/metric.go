package queuesource

import (
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Metric names a number that SQS counts of every queue, as CloudWatch calls it:
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
type Metric string

// MetricAgeOfOldest is how old the oldest message is that is not deleted, in seconds. SQS
// knows it of all messages; a Source, which sees those that it receives, tells the oldest of
// them.
const MetricAgeOfOldest Metric = "ApproximateAgeOfOldestMessage"

// measure tells the age of the oldest message of a batch that was received.
func (s *Source) measure(batch []types.Message) {
	var oldest time.Duration
	for _, message := range batch {
		sent, err := strconv.ParseInt(message.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64)
		if err == nil {
			oldest = max(oldest, s.config.Clock.Now().Sub(time.UnixMilli(sent)))
		}
	}
	s.config.Measured(MetricAgeOfOldest, oldest.Seconds())
}
