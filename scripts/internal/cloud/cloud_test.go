package cloud_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	secrettypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"holdfast/scripts/internal/cloud"
)

// arrivalMax bounds the wait for a message.
const arrivalMax = 60 * time.Second

// program is the built emulator.
var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "cloud")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(folder)
	if program, err = cloud.Build(context.Background(), "../../..", folder); err != nil {
		fmt.Println(err)
		return 1
	}
	return m.Run()
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func mustStart(t *testing.T) *cloud.Cloud {
	t.Helper()
	started, err := cloud.Start(t.Context(), program, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(started.Close)
	return started
}

func mustQueue(t *testing.T, in *cloud.Cloud, name string) cloud.Queue {
	t.Helper()
	queue, err := in.CreateQueue(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return queue
}

// bodies consumes a queue in the background until the test ends.
func bodies(t *testing.T, from *cloud.Cloud, queue cloud.Queue) <-chan string {
	t.Helper()
	arrived := make(chan string, 1000)
	consume(t, from, queue, func(_ context.Context, body string) error {
		arrived <- body
		return nil
	})
	return arrived
}

func consume(t *testing.T, from *cloud.Cloud, queue cloud.Queue, handle func(context.Context, string) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var consuming sync.WaitGroup
	consuming.Go(func() { from.Consume(ctx, queue, quiet(), handle) })
	t.Cleanup(func() {
		cancel()
		consuming.Wait()
	})
}

func next(t *testing.T, arrived <-chan string) string {
	t.Helper()
	select {
	case body := <-arrived:
		return body
	case <-time.After(arrivalMax):
		t.Fatal("nothing arrived")
		return ""
	}
}

// The whole way of an event: PutEvents in tens, rule, queue, consumer.
func TestEveryEventOfTheBusReachesItsSubscriber(t *testing.T) {
	const calls, perCall = 20, 10
	c := mustStart(t)
	if err := c.CreateBus(t.Context(), "ledger"); err != nil {
		t.Fatal(err)
	}
	queue, other := mustQueue(t, c, "events"), mustQueue(t, c, "other")
	if err := c.Subscribe(t.Context(), "ledger", queue); err != nil {
		t.Fatal(err)
	}
	arrived, elsewhere := bodies(t, c, queue), bodies(t, c, other)
	client := eventbridge.NewFromConfig(c.AWSConfig())
	for call := range calls {
		var entries []types.PutEventsRequestEntry
		for n := range perCall {
			entries = append(entries, types.PutEventsRequestEntry{
				EventBusName: aws.String("ledger"), Source: aws.String("holdfast"), DetailType: aws.String("hold.created"),
				Detail: aws.String(fmt.Sprintf(`{"n":%d}`, call*perCall+n)),
			})
		}
		out, err := client.PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: entries})
		if err != nil || out.FailedEntryCount != 0 {
			t.Fatalf("put events: %v, %+v", err, out)
		}
	}
	seen := make(map[string]int)
	for range calls * perCall {
		event, err := cloud.ReadEvent(next(t, arrived))
		if err != nil {
			t.Fatal(err)
		}
		if event.Source != "holdfast" || event.DetailType != "hold.created" || event.ID == "" || event.Time.IsZero() {
			t.Errorf("event = %+v", event)
		}
		seen[string(event.Detail)]++
	}
	for n := range calls * perCall {
		if detail := fmt.Sprintf(`{"n":%d}`, n); seen[detail] != 1 {
			t.Errorf("%s arrived %d times, want once", detail, seen[detail])
		}
	}
	if len(elsewhere) != 0 {
		t.Error("an event reached a queue that is no target")
	}
}

func TestFailedMessageComesAgainAndEndsAsADeadLetter(t *testing.T) {
	c := mustStart(t)
	queue, dead, err := c.CreateQueueWithDeadLetters(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	tries := make(map[string]int)
	arrived := make(chan string, 10)
	consume(t, c, queue, func(_ context.Context, body string) error {
		mu.Lock()
		tries[body]++
		tried := tries[body]
		mu.Unlock()
		if body == "poison" || tried == 1 {
			return errors.New("told to fail")
		}
		arrived <- body
		return nil
	})
	letters := bodies(t, c, dead)
	for _, body := range []string{"poison", "shaky"} {
		if err := c.Send(t.Context(), queue, body); err != nil {
			t.Fatal(err)
		}
	}
	if got := next(t, arrived); got != "shaky" {
		t.Errorf("handled %q, want shaky", got)
	}
	if got := next(t, letters); got != "poison" {
		t.Errorf("dead letter %q, want poison", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if tries["poison"] != 3 || tries["shaky"] != 2 {
		t.Errorf("tries = %v, want 3 of poison and 2 of shaky", tries)
	}
}

func TestTwoCloudsShareNothing(t *testing.T) {
	first, second := mustStart(t), mustStart(t)
	queue, same := mustQueue(t, first, "events"), mustQueue(t, second, "events")
	if err := first.Send(t.Context(), queue, "for the first"); err != nil {
		t.Fatal(err)
	}
	if err := second.Send(t.Context(), same, "for the second"); err != nil {
		t.Fatal(err)
	}
	if got := next(t, bodies(t, second, same)); got != "for the second" {
		t.Errorf("the second got %q", got)
	}
	if got := next(t, bodies(t, first, queue)); got != "for the first" {
		t.Errorf("the first got %q", got)
	}
}

// A secret is read as the functions read it: not there, there, and changed.
func TestSecretIsReadAndChanged(t *testing.T) {
	c := mustStart(t)
	reader := secretsmanager.NewFromConfig(c.AWSConfig())
	read := func() (string, error) {
		out, err := reader.GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{SecretId: aws.String("keys")})
		if err != nil {
			return "", err
		}
		return aws.ToString(out.SecretString), nil
	}
	var missing *secrettypes.ResourceNotFoundException
	if value, err := read(); !errors.As(err, &missing) {
		t.Errorf("a secret that is not there: %q, %v", value, err)
	}
	for _, value := range []string{"first", "second"} {
		if err := c.PutSecret(t.Context(), "keys", value); err != nil {
			t.Fatal(err)
		}
		if got, err := read(); err != nil || got != value {
			t.Errorf("secret = %q, %v; want %q", got, err, value)
		}
	}
}

func TestWaitingCountsHiddenMessages(t *testing.T) {
	c := mustStart(t)
	queue := mustQueue(t, c, "work")
	for _, body := range []string{"one", "two"} {
		if err := c.Send(t.Context(), queue, body); err != nil {
			t.Fatal(err)
		}
	}
	client := sqs.NewFromConfig(c.AWSConfig())
	received, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(queue.URL), MaxNumberOfMessages: 1})
	if err != nil || len(received.Messages) != 1 {
		t.Fatalf("received %d messages, %v", len(received.Messages), err)
	}
	want := func(messages int) {
		t.Helper()
		if got, err := c.Waiting(t.Context(), queue); err != nil || got != messages {
			t.Errorf("%d messages wait, %v; want %d", got, err, messages)
		}
	}
	want(2)
	if _, err := client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: aws.String(queue.URL), ReceiptHandle: received.Messages[0].ReceiptHandle}); err != nil {
		t.Fatal(err)
	}
	want(1)
}

// More messages than one receive brings are taken, and are gone then.
func TestTakeEmptiesAQueue(t *testing.T) {
	const messages = 25
	c := mustStart(t)
	queue := mustQueue(t, c, "taken")
	sent := make(map[string]bool)
	for i := range messages {
		body := fmt.Sprintf("message %d", i)
		sent[body] = true
		if err := c.Send(t.Context(), queue, body); err != nil {
			t.Fatal(err)
		}
	}
	bodies, err := c.Take(t.Context(), queue)
	if err != nil || len(bodies) != messages {
		t.Fatalf("%d messages were taken, %v", len(bodies), err)
	}
	for _, body := range bodies {
		if !sent[body] {
			t.Errorf("%q was not sent, or came twice", body)
		}
		delete(sent, body)
	}
	if left, err := c.Waiting(t.Context(), queue); err != nil || left != 0 {
		t.Errorf("%d messages are left, %v", left, err)
	}
}

// What the archive stands on: an object is written once, and what is not there reads so.
func TestObjectIsWrittenOnce(t *testing.T) {
	c := mustStart(t)
	if err := c.CreateBucket(t.Context(), "archive"); err != nil {
		t.Fatal(err)
	}
	put := func(body string) error {
		_, err := c.Objects().PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: aws.String("archive"), Key: aws.String("a/b"), Body: strings.NewReader(body), IfNoneMatch: aws.String("*"),
		})
		return err
	}
	if err := put("kept"); err != nil {
		t.Fatal(err)
	}
	var refused smithy.APIError
	if err := put("other"); !errors.As(err, &refused) || refused.ErrorCode() != "PreconditionFailed" {
		t.Errorf("a second write: %v", err)
	}
	out, err := c.Objects().GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("archive"), Key: aws.String("a/b")})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Body.Close()
	if got, err := io.ReadAll(out.Body); err != nil || string(got) != "kept" {
		t.Errorf("object = %q, %v; want kept", got, err)
	}
	_, err = c.Objects().GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("archive"), Key: aws.String("a/c")})
	if missing := (*s3types.NoSuchKey)(nil); !errors.As(err, &missing) {
		t.Errorf("an object that is not there: %v", err)
	}
}

func TestNothingListensAfterClose(t *testing.T) {
	c := mustStart(t)
	c.Close()
	c.Close()
	connection, err := net.Dial("tcp", strings.TrimPrefix(c.Endpoint, "http://"))
	if err == nil {
		connection.Close()
		t.Error("the endpoint still accepts")
	}
}

func TestProgramThatCannotServeIsAnError(t *testing.T) {
	for _, broken := range []string{"/bin/false", t.TempDir() + "/missing"} {
		if c, err := cloud.Start(t.Context(), broken, io.Discard); err == nil {
			c.Close()
			t.Errorf("%s: no error", broken)
		}
	}
}

// Where the kernel does not end a child with its parent, the end of its standard input
// does.
func TestEmulatorEndsWithItsInput(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ctx, cancel := context.WithTimeout(t.Context(), arrivalMax)
	defer cancel()
	command := exec.CommandContext(ctx, program)
	command.ExtraFiles = []*os.File{file}
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if err := input.Close(); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("the emulator ended with %v, want status 0", err)
	}
}
