package eventsource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"holdfast/shared/system"
	"holdfast/shared/topology"
)

const (
	// pollEvery is the mapping's own rate: a shard is polled four times a second.
	pollEvery = 250 * time.Millisecond
	// pageRecordsMax is DynamoDB's limit of one GetRecords.
	pageRecordsMax = 1000
	// shardPagesMax bounds the pages of one list of shards, of up to 100 shards each.
	shardPagesMax = 100
	// AWS says that it waits longer before each retry, but not how long.
	retryWaitMin = 250 * time.Millisecond
	retryWaitMax = 30 * time.Second
)

// Streams is what the poller uses of DynamoDB Streams.
type Streams interface {
	DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error)
	GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(context.Context, *dynamodbstreams.GetRecordsInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error)
}

// Config describes one mapping. Everything but Measured is needed.
type Config struct {
	Streams   Streams
	StreamARN string
	// SortKey is the name of the table's sort key attribute, which is filtered on.
	SortKey     string
	Trigger     topology.StreamTrigger
	FunctionARN string
	// Invoke gives an event to the function and returns its answer.
	Invoke func(ctx context.Context, payload []byte) ([]byte, error)
	// GiveUp delivers the message about a batch that was given up. It is called again
	// until it succeeds, because the records are lost to the function after it.
	GiveUp func(context.Context, Failure) error
	// Measured is told each number that Lambda would count of the mapping; nil means nobody is.
	Measured       func(metric Metric, value float64)
	CheckpointFile string
	Clock          system.Clock
	Log            *slog.Logger
}

// Poller is one mapping from a stream to a function.
type Poller struct {
	config    Config
	limits    Limits
	done      checkpoints
	iterators map[string]string // of shards that are being read
	// deliveredMax bounds a batch.
	deliveredMax int
}

// New reads the checkpoints. It returns an error for a trigger that this package does
// not imitate.
func New(config Config) (*Poller, error) {
	if config.Trigger.BatchWindow != 0 {
		return nil, fmt.Errorf("event source: a batching window of %s is not imitated", config.Trigger.BatchWindow)
	}
	if config.Trigger.BatchRecordsMax <= 0 || config.Trigger.RecordAgeMax <= 0 {
		return nil, errors.New("event source: the batch size and the record age need a limit")
	}
	if config.Measured == nil {
		config.Measured = func(Metric, float64) {}
	}
	done, err := loadCheckpoints(config.CheckpointFile, config.StreamARN)
	if err != nil {
		return nil, err
	}
	return &Poller{
		config:       config,
		limits:       Limits{Retries: config.Trigger.Retries, RecordAgeMax: config.Trigger.RecordAgeMax},
		done:         done,
		iterators:    make(map[string]string),
		deliveredMax: config.Trigger.BatchRecordsMax,
	}, nil
}

// Run delivers records until the context ends, and returns nil then. It outlives an
// engine that is away. It returns an error only if a checkpoint cannot be written.
func (p *Poller) Run(ctx context.Context) error {
	failures := 0
	for {
		progressed, err := p.poll(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if unwritten := (*checkpointError)(nil); errors.As(err, &unwritten) {
			return err
		}
		wait := pollEvery
		switch {
		case err != nil:
			if failures == 0 {
				p.config.Log.Warn("stream cannot be read; trying again", "error", err)
			}
			wait = retryWait(failures)
			failures++
		case progressed:
			failures = 0
			continue
		default:
			failures = 0
		}
		if p.config.Clock.Sleep(ctx, wait) != nil {
			return nil
		}
	}
}

// checkpointError marks the one failure that Run cannot outlive.
type checkpointError struct{ cause error }

func (e *checkpointError) Error() string { return e.cause.Error() }
func (e *checkpointError) Unwrap() error { return e.cause }

// poll reads one page of every shard that may be read, and says whether there was any
// record.
func (p *Poller) poll(ctx context.Context) (bool, error) {
	shards, err := p.readable(ctx)
	if err != nil {
		return false, err
	}
	progressed := false
	for _, id := range shards {
		hadRecords, err := p.pollShard(ctx, id)
		if err != nil {
			delete(p.iterators, id) // it may have expired
			return progressed, fmt.Errorf("shard %s: %w", id, err)
		}
		progressed = progressed || hadRecords
	}
	return progressed, nil
}

// readable lists the shards whose parent has been read to its end, so that the records
// of an item stay in order when its shard is split.
func (p *Poller) readable(ctx context.Context) ([]string, error) {
	var all []types.Shard
	var after *string
	for range shardPagesMax {
		page, err := p.config.Streams.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{
			StreamArn: aws.String(p.config.StreamARN), ExclusiveStartShardId: after,
		})
		if err != nil {
			return nil, fmt.Errorf("list shards: %w", err)
		}
		all = append(all, page.StreamDescription.Shards...)
		if after = page.StreamDescription.LastEvaluatedShardId; after == nil {
			break
		}
	}
	isUnfinished := func(id string) bool {
		return !p.done.Shards[id].Finished &&
			slices.ContainsFunc(all, func(s types.Shard) bool { return aws.ToString(s.ShardId) == id })
	}
	var ids []string
	for _, shard := range all {
		id := aws.ToString(shard.ShardId)
		if isUnfinished(id) && !isUnfinished(aws.ToString(shard.ParentShardId)) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// pollShard reads one page of a shard and works on it until all of it is done.
func (p *Poller) pollShard(ctx context.Context, id string) (bool, error) {
	iterator, err := p.iterator(ctx, id)
	if err != nil {
		return false, err
	}
	page, err := p.config.Streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{
		ShardIterator: aws.String(iterator), Limit: aws.Int32(pageRecordsMax),
	})
	if err != nil {
		return false, fmt.Errorf("read records: %w", err)
	}
	delivered := make([]events.DynamoDBEventRecord, 0, len(page.Records))
	last := p.done.Shards[id].Sequence
	for _, record := range page.Records {
		converted, err := Convert(record, p.config.StreamARN)
		if err != nil {
			return false, err
		}
		last = converted.Change.SequenceNumber
		if isDelivered(converted, p.config.SortKey, p.config.Trigger.SortKeyPrefixFilters) {
			delivered = append(delivered, converted)
		}
	}
	for batch := range slices.Chunk(delivered, p.deliveredMax) {
		if err := p.work(ctx, id, Batch{Records: batch}); err != nil {
			return true, err
		}
	}
	// Records that the filter left out are done too.
	if err := p.checkpoint(id, position{Sequence: last, Finished: page.NextShardIterator == nil}); err != nil {
		return true, err
	}
	p.iterators[id] = aws.ToString(page.NextShardIterator)
	return len(page.Records) > 0, nil
}

// iterator returns where to read next. A shard that has lost its place, because its
// records are older than the day that a stream keeps them, starts at its beginning.
func (p *Poller) iterator(ctx context.Context, id string) (string, error) {
	if iterator := p.iterators[id]; iterator != "" {
		return iterator, nil
	}
	input := &dynamodbstreams.GetShardIteratorInput{
		StreamArn: aws.String(p.config.StreamARN), ShardId: aws.String(id),
		ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	}
	if sequence := p.done.Shards[id].Sequence; sequence != "" {
		input.ShardIteratorType = types.ShardIteratorTypeAfterSequenceNumber
		input.SequenceNumber = aws.String(sequence)
	}
	output, err := p.config.Streams.GetShardIterator(ctx, input)
	if trimmed := (*types.TrimmedDataAccessException)(nil); errors.As(err, &trimmed) {
		p.config.Log.Error("stream records were lost: they were older than a day", "shard", id)
		input.ShardIteratorType, input.SequenceNumber = types.ShardIteratorTypeTrimHorizon, nil
		output, err = p.config.Streams.GetShardIterator(ctx, input)
	}
	if err != nil {
		return "", fmt.Errorf("find the place in the shard: %w", err)
	}
	return aws.ToString(output.ShardIterator), nil
}

// work delivers a batch, and what Decide makes of it, until all of it is done.
func (p *Poller) work(ctx context.Context, shardID string, whole Batch) error {
	for pending := []Batch{whole}; len(pending) > 0; {
		batch := pending[0]
		step, isFresh := DecideAge(batch, p.limits, p.config.Clock.Now())
		if isFresh {
			outcome, err := p.deliver(ctx, batch)
			if err != nil {
				return err
			}
			step = Decide(batch, outcome, p.limits)
		}
		if err := p.finish(ctx, shardID, batch, step); err != nil {
			return err
		}
		pending = append(slices.Clone(step.Next), pending[1:]...)
		if len(step.Next) > 0 && step.Next[0].Retries > batch.Retries {
			if err := p.config.Clock.Sleep(ctx, retryWait(batch.Retries)); err != nil {
				return err
			}
		}
	}
	return nil
}

// deliver gives the batch to the function. Its error is only ever the end of the
// context: what the function did then is unknown, and the batch stays undone.
func (p *Poller) deliver(ctx context.Context, batch Batch) (Outcome, error) {
	payload, err := json.Marshal(events.DynamoDBEvent{Records: batch.Records})
	if err != nil {
		return Outcome{}, fmt.Errorf("write the event: %w", err)
	}
	p.measure(batch)
	outcome := ReadOutcome(p.config.Invoke(ctx, payload))
	if ctx.Err() != nil {
		return Outcome{}, ctx.Err()
	}
	if outcome.Err != nil {
		p.config.Log.Warn("stream batch failed", "records", len(batch.Records), "retries", batch.Retries, "error", outcome.Err)
	}
	return outcome, nil
}

// finish delivers the message about records that are given up, and then checkpoints.
func (p *Poller) finish(ctx context.Context, shardID string, batch Batch, step Step) error {
	if step.Done == 0 {
		return nil
	}
	finished := batch.Records[:step.Done]
	for tries := 0; step.GivenUp != ""; tries++ {
		err := p.config.GiveUp(ctx, p.failure(shardID, finished, batch.Retries, step.GivenUp))
		if err == nil {
			break
		}
		p.config.Log.Error("stream batch cannot be given up; trying again", "error", err)
		if err := p.config.Clock.Sleep(ctx, retryWait(tries)); err != nil {
			return err
		}
	}
	return p.checkpoint(shardID, position{Sequence: finished[len(finished)-1].Change.SequenceNumber})
}

func (p *Poller) checkpoint(shardID string, reached position) error {
	if p.done.Shards[shardID] == reached {
		return nil
	}
	p.done.Shards[shardID] = reached
	if err := p.done.save(p.config.CheckpointFile); err != nil {
		return &checkpointError{err}
	}
	return nil
}

// retryWait doubles with each try, up to its maximum.
func retryWait(tries int) time.Duration {
	const doublingsMax = 10 // beyond it the maximum is reached in any case
	return min(retryWaitMax, retryWaitMin<<min(tries, doublingsMax))
}
