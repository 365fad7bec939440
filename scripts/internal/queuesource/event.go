package queuesource

import (
	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// eventSource is what Lambda calls the service.
const eventSource = "aws:sqs"

// event is the event of a batch, as the function is given it.
func (s *Source) event(batch []types.Message) events.SQSEvent {
	var event events.SQSEvent
	for _, message := range batch {
		attributes := make(map[string]events.SQSMessageAttribute, len(message.MessageAttributes))
		for name, value := range message.MessageAttributes {
			attributes[name] = events.SQSMessageAttribute{
				StringValue: value.StringValue, BinaryValue: value.BinaryValue, DataType: aws.ToString(value.DataType),
				// Lambda always sends both lists, and they are always empty.
				StringListValues: []string{}, BinaryListValues: [][]byte{},
			}
		}
		event.Records = append(event.Records, events.SQSMessage{
			MessageId: aws.ToString(message.MessageId), ReceiptHandle: aws.ToString(message.ReceiptHandle),
			Body: aws.ToString(message.Body), Md5OfBody: aws.ToString(message.MD5OfBody),
			Md5OfMessageAttributes: aws.ToString(message.MD5OfMessageAttributes),
			Attributes:             message.Attributes, MessageAttributes: attributes,
			EventSourceARN: s.config.QueueARN, EventSource: eventSource, AWSRegion: s.config.Region,
		})
	}
	return event
}
