package alarmcheck_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"holdfast/scripts/internal/eventsource"
	"holdfast/scripts/internal/queuesource"
	"holdfast/scripts/internal/schedule"
	"holdfast/shared/dynamo"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/topology"
)

var (
	errFunctionFailed = errors.New("function failed: Runtime.ExitError")
	noLog             = slog.New(slog.DiscardHandler)
)

// stopClock is the plant's clock for a part that runs until something is true. It polls less
// often than the part asks for, which nothing depends on.
type stopClock struct {
	*systemtest.Clock
	stop  func()
	until func() bool
}

// Sleep moves the clock, or ends the part.
func (c stopClock) Sleep(ctx context.Context, d time.Duration) error {
	if c.until() {
		c.stop()
	}
	return c.Clock.Sleep(ctx, max(d, time.Second))
}

// runUntil lets a part run by itself until something is true of what it does.
func (p *plant) runUntil(until func() bool, part func(ctx context.Context, clock stopClock)) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	part(ctx, stopClock{p.clock, stop, until})
}

// queueProofs are faults of what starts functions: queues, the stream, and the Scheduler.
func queueProofs() map[string]proof {
	all := map[string]proof{
		"OutboxFailuresWaiting":   streamGivenUpProof(),
		"OutboxBehind":            streamBehindProof(),
		"ScheduleFailuresWaiting": scheduleProof(),
	}
	for _, f := range topology.Functions() {
		if f.Queue == nil {
			continue
		}
		dead, late := f.Queue.DeadLetters, f.Queue.DelayMax+2*f.Queue.VisibilityTimeout
		calm := func(p *plant) {
			p.feed(f, nil, func(time.Duration) bool { return len(p.queues.of(f.Queue.Queue).messages) == 0 })
		}
		all[constructID(string(f.Queue.Queue))+"Old"] = proof{calm: calm, fault: func(p *plant) {
			p.feed(f, errFunctionFailed, func(age time.Duration) bool { return age > late })
		}}
		all[constructID(string(dead))+"Waiting"] = proof{calm: calm, fault: func(p *plant) {
			p.feed(f, errFunctionFailed, func(time.Duration) bool { return len(p.queues.of(dead).messages) > 0 })
		}}
	}
	return all
}

// feed sends a message, kept back as long as senders may, lets the queue's mapping feed the
// function, which answers failure, and counts what waits afterwards.
func (p *plant) feed(f topology.Function, failure error, until func(age time.Duration) bool) {
	p.tb.Helper()
	p.queues.of(f.Queue.Queue).put(p.clock.Now(), `{}`, f.Queue.DelayMax)
	// One run at once: the clock stands still while it works.
	trigger := *f.Queue
	trigger.ConcurrencyMax = 1
	var age time.Duration
	p.runUntil(func() bool { return until(age) }, func(ctx context.Context, clock stopClock) {
		source, err := queuesource.New(queuesource.Config{
			Queue: p.queues, QueueURL: string(f.Queue.Queue), QueueARN: "arn:aws:sqs:::" + string(f.Queue.Queue), Trigger: trigger,
			Invoke: func(context.Context, []byte) ([]byte, error) { return []byte(`{}`), failure },
			Measured: func(metric queuesource.Metric, value float64) {
				age = time.Duration(value * float64(time.Second))
				p.count("AWS/SQS", string(metric), "QueueName", constructID(string(f.Queue.Queue)), value)
			},
			Clock: clock, Log: noLog,
		})
		p.must(err)
		source.Run(ctx)
	})
	p.countWaiting(f.Queue.DeadLetters)
}

// countWaiting counts what waits in a queue that people read, and lets the minute end.
func (p *plant) countWaiting(resource topology.Resource) {
	p.count("AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", constructID(string(resource)), float64(p.queues.of(resource).visible(p.clock.Now())))
	p.clock.Advance(time.Minute)
}

// give puts a message about what was given up into its queue.
func (p *plant) give(resource topology.Resource, failure any) error {
	body, err := json.Marshal(failure)
	if err == nil {
		p.queues.give(resource, string(body))
	}
	return err
}

// scheduleProof: the function fails at a tick and at its retries.
func scheduleProof() proof {
	return proof{
		calm: func(p *plant) { p.countWaiting(topology.ResourceScheduleFailures) },
		fault: func(p *plant) {
			f := p.function(topology.FunctionReconcile)
			waiting := func() bool { return p.queues.holds(topology.ResourceScheduleFailures) }
			p.runUntil(waiting, func(ctx context.Context, clock stopClock) {
				made, err := schedule.New(schedule.Config{
					Name: string(f.Name), Trigger: *f.Schedule, Clock: clock, Log: noLog,
					Invoke: func(context.Context, []byte) ([]byte, error) { return nil, errFunctionFailed },
					GiveUp: func(_ context.Context, failure schedule.Failure) error {
						return p.give(topology.ResourceScheduleFailures, failure)
					},
				})
				p.must(err)
				made.Run(ctx)
			})
			p.countWaiting(topology.ResourceScheduleFailures)
		},
	}
}

// shardID is the one shard of the plant's stream.
const shardID = "shard-1"

// endlessStream has one more record at each read, made so long ago.
type endlessStream struct {
	clock *systemtest.Clock
	age   time.Duration
	reads int
}

func (s *endlessStream) DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	return &dynamodbstreams.DescribeStreamOutput{StreamDescription: &types.StreamDescription{Shards: []types.Shard{{ShardId: aws.String(shardID)}}}}, nil
}

func (s *endlessStream) GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: aws.String("iterator")}, nil
}

func (s *endlessStream) GetRecords(context.Context, *dynamodbstreams.GetRecordsInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	s.reads++
	text := func(value string) types.AttributeValue { return &types.AttributeValueMemberS{Value: value} }
	keys := map[string]types.AttributeValue{dynamo.AttributePartitionKey: text("HOLD#hold_1"), dynamo.AttributeSortKey: text("EVENT#0000000001")}
	return &dynamodbstreams.GetRecordsOutput{NextShardIterator: aws.String("iterator"), Records: []types.Record{{
		EventID: aws.String("stream-" + strconv.Itoa(s.reads)), EventName: types.OperationTypeInsert,
		Dynamodb: &types.StreamRecord{
			ApproximateCreationDateTime: aws.Time(s.clock.Now().Add(-s.age)), Keys: keys, NewImage: keys,
			SequenceNumber: aws.String(strconv.Itoa(s.reads)), StreamViewType: types.StreamViewTypeNewImage,
		},
	}}}, nil
}

// poll lets the stream's mapping feed the outbox, which takes some time over each batch and
// answers failure.
func (p *plant) poll(stream *endlessStream, takes time.Duration, failure error, until func() bool) {
	p.tb.Helper()
	f := p.function(topology.FunctionOutbox)
	p.runUntil(until, func(ctx context.Context, clock stopClock) {
		poller, err := eventsource.New(eventsource.Config{
			Streams: stream, StreamARN: "arn:aws:dynamodb:::table/stream", SortKey: dynamo.AttributeSortKey, Trigger: *f.Stream,
			FunctionARN: "arn:aws:lambda:::outbox", CheckpointFile: filepath.Join(p.tb.TempDir(), "checkpoints"), Clock: clock, Log: noLog,
			Invoke: func(context.Context, []byte) ([]byte, error) {
				p.clock.Advance(takes)
				if until() {
					clock.stop()
				}
				return []byte(`{}`), failure
			},
			GiveUp: func(_ context.Context, failure eventsource.Failure) error {
				clock.stop()
				return p.give(topology.ResourceOutboxFailures, failure)
			},
			Measured: func(metric eventsource.Metric, value float64) {
				p.count("AWS/Lambda", string(metric), "FunctionName", constructID(string(f.Name))+"Function", value)
			},
		})
		p.must(err)
		p.must(poller.Run(ctx))
	})
}

// streamBehindProof: batches are older than a minute when they reach the outbox.
func streamBehindProof() proof {
	reads := func(age time.Duration) func(p *plant) {
		return func(p *plant) {
			stream := &endlessStream{clock: p.clock, age: age}
			p.poll(stream, time.Minute, nil, func() bool { return stream.reads == 5 })
		}
	}
	return proof{calm: reads(time.Second), fault: reads(90 * time.Second)}
}

// streamGivenUpProof: the outbox fails at a record until the record is too old.
func streamGivenUpProof() proof {
	return proof{
		calm: func(p *plant) { p.countWaiting(topology.ResourceOutboxFailures) },
		fault: func(p *plant) {
			p.poll(&endlessStream{clock: p.clock}, time.Second, errFunctionFailed, func() bool { return false })
			p.countWaiting(topology.ResourceOutboxFailures)
		},
	}
}
