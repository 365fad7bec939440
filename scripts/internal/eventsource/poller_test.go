package eventsource_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"holdfast/scripts/internal/eventsource"
	"holdfast/shared/topology"
)

// shard is one shard of the stream. Its records are numbered from first on, and their
// sort keys are given.
type shard struct {
	id, parent string
	first      int
	sortKeys   []string
	closed     bool
	trimmed    int // the records up to this number are gone
}

// stream plays DynamoDB Streams. Its iterators are "shard/next number/generation".
type stream struct {
	shards     []*shard
	failNext   int // how many of the next reads fail
	generation int // a new one makes all old iterators invalid
	pageMax    int
}

func (s *stream) find(id string) *shard {
	i := slices.IndexFunc(s.shards, func(c *shard) bool { return c.id == id })
	return s.shards[i]
}

// DescribeStream gives one shard a page, so that paging is needed.
func (s *stream) DescribeStream(_ context.Context, in *dynamodbstreams.DescribeStreamInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	next := 0
	if in.ExclusiveStartShardId != nil {
		next = 1 + slices.IndexFunc(s.shards, func(c *shard) bool { return c.id == *in.ExclusiveStartShardId })
	}
	current := s.shards[next]
	described := types.Shard{ShardId: aws.String(current.id)}
	if current.parent != "" {
		described.ParentShardId = aws.String(current.parent)
	}
	out := &types.StreamDescription{Shards: []types.Shard{described}}
	if next+1 < len(s.shards) {
		out.LastEvaluatedShardId = aws.String(current.id)
	}
	return &dynamodbstreams.DescribeStreamOutput{StreamDescription: out}, nil
}

func (s *stream) GetShardIterator(_ context.Context, in *dynamodbstreams.GetShardIteratorInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	from := s.find(*in.ShardId)
	next := from.first + from.trimmed
	if in.ShardIteratorType == types.ShardIteratorTypeAfterSequenceNumber {
		number, err := strconv.Atoi(*in.SequenceNumber)
		if err != nil {
			return nil, err
		}
		if number < next-1 {
			return nil, &types.TrimmedDataAccessException{}
		}
		next = number + 1
	}
	return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: s.iterator(from, next)}, nil
}

func (s *stream) iterator(of *shard, next int) *string {
	return aws.String(fmt.Sprintf("%s/%d/%d", of.id, next, s.generation))
}

func (s *stream) GetRecords(_ context.Context, in *dynamodbstreams.GetRecordsInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	if s.failNext > 0 {
		s.failNext--
		return nil, errors.New("the engine is away")
	}
	parts := strings.Split(*in.ShardIterator, "/")
	if parts[2] != strconv.Itoa(s.generation) {
		return nil, &types.ExpiredIteratorException{}
	}
	from := s.find(parts[0])
	next, err := strconv.Atoi(parts[1])
	if err != nil {
		return nil, err
	}
	out := &dynamodbstreams.GetRecordsOutput{}
	for ; next < from.first+len(from.sortKeys) && len(out.Records) < s.pageMax; next++ {
		out.Records = append(out.Records, types.Record{
			EventID: aws.String(fmt.Sprintf("id-%d", next)), EventName: types.OperationTypeInsert,
			Dynamodb: &types.StreamRecord{
				SequenceNumber: aws.String(strconv.Itoa(next)), ApproximateCreationDateTime: aws.Time(now),
				Keys: map[string]types.AttributeValue{"sk": &types.AttributeValueMemberS{Value: from.sortKeys[next-from.first]}},
			},
		})
	}
	if !from.closed || next < from.first+len(from.sortKeys) {
		out.NextShardIterator = s.iterator(from, next)
	}
	return out, nil
}

// idleClock moves only when it is waited on. It ends the run when nothing is left to do,
// which is after quiet polls in a row have delivered nothing.
type idleClock struct {
	now    time.Time
	waits  []time.Duration
	quiet  int
	onWait func()
	finish context.CancelFunc
}

func (c *idleClock) Now() time.Time { return c.now }

func (c *idleClock) Sleep(ctx context.Context, duration time.Duration) error {
	const quietMax = 3
	c.now = c.now.Add(duration)
	c.waits = append(c.waits, duration)
	if c.onWait != nil {
		c.onWait()
	}
	if c.quiet++; c.quiet == quietMax {
		c.finish()
	}
	return ctx.Err()
}

// run is one run of a poller and what it did.
type run struct {
	stream    *stream
	file      string
	answer    func(numbers []string) (string, error)
	onWait    func(*run)
	giveUpErr []error // errors of the next deliveries to the failure destination

	delivered []string // "1 2 3" per call
	failures  []eventsource.Failure
	waits     []time.Duration
}

func (r *run) config(clock *idleClock) eventsource.Config {
	return eventsource.Config{
		Streams: r.stream, StreamARN: "arn:stream", SortKey: "sk", FunctionARN: "arn:function",
		Trigger: topology.StreamTrigger{
			BatchRecordsMax: 4, Retries: 2, RecordAgeMax: time.Hour, SortKeyPrefixFilters: []string{"EVENT#"},
		},
		Invoke: func(_ context.Context, payload []byte) ([]byte, error) {
			var event events.DynamoDBEvent
			if err := json.Unmarshal(payload, &event); err != nil {
				return nil, err
			}
			var numbers []string
			for _, record := range event.Records {
				numbers = append(numbers, record.Change.SequenceNumber)
			}
			clock.quiet = 0
			r.delivered = append(r.delivered, strings.Join(numbers, " "))
			answer, err := r.answer(numbers)
			return []byte(answer), err
		},
		GiveUp: func(_ context.Context, failure eventsource.Failure) error {
			clock.quiet = 0
			if len(r.giveUpErr) > 0 {
				err := r.giveUpErr[0]
				r.giveUpErr = r.giveUpErr[1:]
				return err
			}
			r.failures = append(r.failures, failure)
			return nil
		},
		CheckpointFile: r.file, Clock: clock, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

// untilIdle runs a new poller on the checkpoints of the one before it.
func (r *run) untilIdle(t *testing.T) {
	t.Helper()
	r.delivered = nil
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	clock := &idleClock{now: now, finish: cancel}
	if r.onWait != nil {
		clock.onWait = func() { r.onWait(r) }
	}
	poller, err := eventsource.New(r.config(clock))
	if err != nil {
		t.Fatal(err)
	}
	if err := poller.Run(ctx); err != nil {
		t.Fatal(err)
	}
	r.waits = clock.waits
}

func (r *run) wantDelivered(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(r.delivered, want) {
		t.Errorf("delivered %q, want %q", r.delivered, want)
	}
}

func sortKeys(count int) []string {
	keys := make([]string, count)
	for i := range keys {
		keys[i] = fmt.Sprintf("EVENT#%d", i)
	}
	return keys
}

func newRun(t *testing.T, shards ...*shard) *run {
	return &run{
		stream: &stream{shards: shards, pageMax: 6},
		file:   filepath.Join(t.TempDir(), "checkpoints.json"),
		answer: func([]string) (string, error) { return `{"batchItemFailures":[]}`, nil },
	}
}

func TestRecordsComeInOrderAndOnceOverRestarts(t *testing.T) {
	r := newRun(t, &shard{id: "s", first: 1, sortKeys: sortKeys(10)})
	r.untilIdle(t)
	r.wantDelivered(t, "1 2 3 4", "5 6", "7 8 9 10")
	r.untilIdle(t)
	r.wantDelivered(t)
	r.stream.shards[0].sortKeys = sortKeys(12)
	r.untilIdle(t)
	r.wantDelivered(t, "11 12")
}

func TestRecordsThatArriveDuringTheRunAreDelivered(t *testing.T) {
	r := newRun(t, &shard{id: "s", first: 1, sortKeys: sortKeys(1)})
	r.onWait = func(r *run) { r.stream.shards[0].sortKeys = sortKeys(2) }
	r.untilIdle(t)
	r.wantDelivered(t, "1", "2")
	for _, wait := range r.waits {
		if wait != 250*time.Millisecond {
			t.Errorf("waits = %v, want polls every 250 ms", r.waits)
		}
	}
}

func TestOtherItemsAreFilteredOutAndCheckpointed(t *testing.T) {
	r := newRun(t, &shard{id: "s", first: 1, sortKeys: []string{"HOLD", "EVENT#1", "STOCK", "EVENT#2", "EVENT", "HOLD"}})
	r.untilIdle(t)
	r.wantDelivered(t, "2 4")
	r.stream.shards[0].trimmed = 6 // a checkpoint before the filtered records would be lost now
	r.stream.shards[0].sortKeys = append(r.stream.shards[0].sortKeys, "EVENT#3")
	r.untilIdle(t)
	r.wantDelivered(t, "7")
}

func TestNewStreamStartsFromItsBeginning(t *testing.T) {
	r := newRun(t, &shard{id: "s", first: 1, sortKeys: sortKeys(2)})
	r.untilIdle(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	clock := &idleClock{now: now, finish: cancel}
	config := r.config(clock)
	config.StreamARN = "arn:another"
	poller, err := eventsource.New(config)
	if err != nil {
		t.Fatal(err)
	}
	r.delivered = nil
	if err := poller.Run(ctx); err != nil {
		t.Fatal(err)
	}
	r.wantDelivered(t, "1 2")
}

// Case G14: record 4 of 10 fails once. What follows it is delivered after it only.
func TestCaseG14_PartialFailureKeepsOrder(t *testing.T) {
	r := newRun(t, &shard{id: "s", first: 1, sortKeys: sortKeys(10)})
	r.stream.pageMax = 10
	failed := false
	r.answer = func(numbers []string) (string, error) {
		if slices.Contains(numbers, "3") && !failed {
			failed = true
			return `{"batchItemFailures":[{"itemIdentifier":"3"}]}`, nil
		}
		return "{}", nil
	}
	r.untilIdle(t)
	r.wantDelivered(t, "1 2 3 4", "3 4", "5 6 7 8", "9 10")
}

func TestPoisonRecordIsGivenUpAfterItsRetries(t *testing.T) {
	r := newRun(t, &shard{id: "s", first: 1, sortKeys: sortKeys(4)})
	r.answer = func(numbers []string) (string, error) {
		if slices.Contains(numbers, "2") {
			return "", errors.New("poison")
		}
		return "{}", nil
	}
	r.giveUpErr = []error{errors.New("the queue is away"), errors.New("the queue is away")}
	r.untilIdle(t)
	r.wantDelivered(t, "1 2 3 4", "1 2", "1", "2", "2", "2", "3 4")
	if len(r.failures) != 1 {
		t.Fatalf("failures = %+v, want one", r.failures)
	}
	got := r.failures[0]
	if got.RequestContext != (eventsource.FailureContext{
		FunctionARN: "arn:function", Condition: eventsource.RetryAttemptsExhausted, ApproximateInvokeCount: 3,
	}) || got.StreamBatchInfo != (eventsource.FailedBatch{
		ShardID: "s", StartSequenceNumber: "2", EndSequenceNumber: "2",
		FirstRecordAt: now, LastRecordAt: now, BatchSize: 1, StreamARN: "arn:stream",
	}) {
		t.Errorf("failure = %+v", got)
	}
	// Two retries and two tries to reach the queue, each after a longer wait.
	want := []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond}
	if len(r.waits) < len(want) || !slices.Equal(r.waits[:len(want)], want) {
		t.Errorf("waits = %v, want %v first", r.waits, want)
	}
	r.untilIdle(t)
	r.wantDelivered(t)
}

func TestTooOldRecordsAreGivenUpUnseen(t *testing.T) {
	r := newRun(t, &shard{id: "s", first: 1, sortKeys: sortKeys(2)})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	clock := &idleClock{now: now.Add(2 * time.Hour), finish: cancel}
	poller, err := eventsource.New(r.config(clock))
	if err != nil {
		t.Fatal(err)
	}
	if err := poller.Run(ctx); err != nil {
		t.Fatal(err)
	}
	r.wantDelivered(t)
	if len(r.failures) != 1 || r.failures[0].RequestContext.Condition != eventsource.RecordAgeExceeded || r.failures[0].StreamBatchInfo.BatchSize != 2 {
		t.Errorf("failures = %+v, want one of both records", r.failures)
	}
}

// A run that ends in the middle of a call does not know what the call did, so the next
// run makes it again; what was finished before stays finished.
func TestInterruptedBatchIsDeliveredAgain(t *testing.T) {
	r := newRun(t, &shard{id: "s", first: 1, sortKeys: sortKeys(6)})
	ctx, cancel := context.WithCancel(t.Context())
	clock := &idleClock{now: now, finish: cancel}
	r.answer = func(numbers []string) (string, error) {
		if numbers[0] == "5" {
			cancel()
			return "", context.Canceled
		}
		return "{}", nil
	}
	poller, err := eventsource.New(r.config(clock))
	if err != nil {
		t.Fatal(err)
	}
	if err := poller.Run(ctx); err != nil {
		t.Fatal(err)
	}
	r.answer = func([]string) (string, error) { return "{}", nil }
	r.untilIdle(t)
	r.wantDelivered(t, "5 6")
}

func TestEngineThatIsAwayIsOutlived(t *testing.T) {
	r := newRun(t, &shard{id: "s", first: 1, sortKeys: sortKeys(1)})
	r.stream.failNext = 2
	r.untilIdle(t)
	r.wantDelivered(t, "1")
	if r.waits[0] != 250*time.Millisecond || r.waits[1] != 500*time.Millisecond {
		t.Errorf("waits = %v, want growing ones first", r.waits)
	}
}

func TestExpiredIteratorIsReplaced(t *testing.T) {
	r := newRun(t, &shard{id: "s", first: 1, sortKeys: sortKeys(1)})
	expired := false
	r.onWait = func(r *run) {
		if !expired {
			expired = true
			r.stream.generation++
			r.stream.shards[0].sortKeys = sortKeys(2)
		}
	}
	r.untilIdle(t)
	r.wantDelivered(t, "1", "2")
}

func TestTrimmedPlaceStartsAtTheOldestRecord(t *testing.T) {
	r := newRun(t, &shard{id: "s", first: 1, sortKeys: sortKeys(2)})
	r.untilIdle(t)
	r.stream.shards[0].sortKeys, r.stream.shards[0].trimmed = sortKeys(6), 4
	r.untilIdle(t)
	r.wantDelivered(t, "5 6")
}

func TestChildShardWaitsForItsParent(t *testing.T) {
	parent := &shard{id: "parent", first: 1, sortKeys: sortKeys(8)}
	r := newRun(t, &shard{id: "child", parent: "parent", first: 100, sortKeys: sortKeys(1)}, parent)
	r.onWait = func(*run) { parent.closed = true }
	r.untilIdle(t)
	r.wantDelivered(t, "1 2 3 4", "5 6", "7 8", "100")
}

func TestTriggersThatAreNotImitatedAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(*topology.StreamTrigger){
		"window":        func(s *topology.StreamTrigger) { s.BatchWindow = time.Second },
		"no batch size": func(s *topology.StreamTrigger) { s.BatchRecordsMax = 0 },
		"no age":        func(s *topology.StreamTrigger) { s.RecordAgeMax = 0 },
	} {
		config := newRun(t).config(&idleClock{})
		spoil(&config.Trigger)
		if _, err := eventsource.New(config); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestCheckpointThatCannotBeWrittenEndsTheRun(t *testing.T) {
	r := newRun(t, &shard{id: "s", first: 1, sortKeys: sortKeys(1)})
	r.file = filepath.Join(t.TempDir(), "missing", "checkpoints.json")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	poller, err := eventsource.New(r.config(&idleClock{now: now, finish: cancel}))
	if err != nil {
		t.Fatal(err)
	}
	if err := poller.Run(ctx); err == nil {
		t.Error("no error")
	}
}
