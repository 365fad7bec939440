package engine_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/engine"
)

const table = "table-of-the-test"

func mustStart(tb testing.TB, options engine.Options) *engine.Engine {
	tb.Helper()
	started, err := engine.Start(context.Background(), options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := started.Close(); err != nil {
			tb.Errorf("close the engine: %v", err)
		}
	})
	return started
}

func mustCreateTable(tb testing.TB, client *dynamodb.Client) {
	tb.Helper()
	if err := dynamo.CreateTable(context.Background(), client, table); err != nil {
		tb.Fatal(err)
	}
}

func item() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "a"},
		"sk": &types.AttributeValueMemberS{Value: "b"},
	}
}

func mustPut(tb testing.TB, client *dynamodb.Client) {
	tb.Helper()
	if _, err := client.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: item()}); err != nil {
		tb.Fatal(err)
	}
}

func mustHave(tb testing.TB, client *dynamodb.Client) {
	tb.Helper()
	out, err := client.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: aws.String(table), Key: item()})
	if err != nil {
		tb.Fatal(err)
	}
	if out.Item == nil {
		tb.Fatal("the item is not there")
	}
}

// mustBeSilent waits until nobody listens at the endpoint. The kernel closes the port
// at the end of the process, so a refusal proves that end.
func mustBeSilent(tb testing.TB, endpoint string) {
	tb.Helper()
	address := strings.TrimPrefix(endpoint, "http://")
	deadline := time.Now().Add(waitWithin)
	for time.Now().Before(deadline) {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		connection.Close()
		runtime.Gosched()
	}
	tb.Fatalf("an engine still listens at %s", endpoint)
}

func portOf(tb testing.TB, endpoint string) int {
	tb.Helper()
	parsed, err := url.Parse(endpoint)
	if err != nil {
		tb.Fatal(err)
	}
	port, err := strconv.Atoi(parsed.Port())
	if err != nil {
		tb.Fatal(err)
	}
	return port
}

func TestCloseEndsTheEngineAndItsScratchData(t *testing.T) {
	t.Setenv(engine.EndpointVariable, "")
	started := mustStart(t, engine.Options{})
	mustCreateTable(t, started.Client())
	mustPut(t, started.Client())
	mustHave(t, started.Client())
	if started.PID() <= 0 {
		t.Errorf("PID %d", started.PID())
	}
	if err := started.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-started.Ended():
	default:
		t.Error("Close returned before the end of the process")
	}
	mustBeSilent(t, started.Endpoint())
	if _, err := os.Stat(started.ScratchDirectory()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the scratch data is still there (%v)", err)
	}
	if err := started.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
}

// What the engine has acknowledged survives a crash, and the engine comes back where its
// clients look for it.
func TestKilledEngineComesBackWithItsData(t *testing.T) {
	options := engine.Options{DataFile: filepath.Join(t.TempDir(), "engine.db"), OwnProcess: true}
	first := mustStart(t, options)
	client := first.Client()
	mustCreateTable(t, client)
	mustPut(t, client)
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	mustBeSilent(t, first.Endpoint())

	options.Port = portOf(t, first.Endpoint())
	second := mustStart(t, options)
	if second.Endpoint() != first.Endpoint() {
		t.Errorf("the engine came back at %s, want %s", second.Endpoint(), first.Endpoint())
	}
	mustHave(t, client)
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(options.DataFile); err != nil {
		t.Errorf("Close removed a file that is not its own: %v", err)
	}
}

func TestRunningEngineIsUsedAndLeftRunning(t *testing.T) {
	running := mustStart(t, engine.Options{OwnProcess: true})
	t.Setenv(engine.EndpointVariable, running.Endpoint())
	used := mustStart(t, engine.Options{})
	if used.Endpoint() != running.Endpoint() || used.PID() != 0 || used.Ended() != nil {
		t.Errorf("got an engine at %s with process %d, want the running one at %s", used.Endpoint(), used.PID(), running.Endpoint())
	}
	if err := used.Kill(); !errors.Is(err, engine.ErrNotOwned) {
		t.Errorf("Kill: %v, want ErrNotOwned", err)
	}
	if err := used.Close(); err != nil {
		t.Fatal(err)
	}
	mustCreateTable(t, running.Client())

	own := mustStart(t, engine.Options{OwnProcess: true})
	if own.Endpoint() == running.Endpoint() || own.PID() == 0 {
		t.Error("OwnProcess did not start an engine of its own")
	}
}

func TestSilentEndpointIsAnError(t *testing.T) {
	gone := mustStart(t, engine.Options{OwnProcess: true})
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	t.Setenv(engine.EndpointVariable, gone.Endpoint())
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := engine.Start(ctx, engine.Options{})
	mustNameAll(t, err, []string{engine.EndpointVariable, gone.Endpoint(), "no DynamoDB engine answers"})
}

// An engine that is already at the port must never be taken for the new one: two test
// packages would then share tables, and the first to end would take the engine away.
func TestTakenPortIsAnError(t *testing.T) {
	first := mustStart(t, engine.Options{OwnProcess: true})
	mustCreateTable(t, first.Client())
	second, err := engine.Start(context.Background(), engine.Options{Port: portOf(t, first.Endpoint()), OwnProcess: true})
	if err == nil {
		t.Errorf("a second engine at %s", second.Endpoint())
		second.Close()
	}
	mustNameAll(t, err, []string{"5 tries", "ended before it was ready", strings.TrimPrefix(first.Endpoint(), "http://")})
	mustPut(t, first.Client())
}

// A port that somebody takes between the look for a free one and the engine's own bind
// is played by a program that fails twice and then is the engine.
func TestPortTakenInBetweenIsTriedAgain(t *testing.T) {
	real, err := engine.Binary(context.Background(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	mustWriteProgram(t, filepath.Join(directory, "dynoxide"), `#!/bin/sh
cd '`+directory+`'
if [ "$1" != serve ]; then exec '`+real+`' "$@"; fi
if [ ! -e first ]; then : >first; echo address already in use >&2; exit 1; fi
if [ ! -e second ]; then : >second; echo address already in use >&2; exit 1; fi
exec '`+real+`' "$@"
`)
	t.Setenv("PATH", directory+string(os.PathListSeparator)+os.Getenv("PATH"))
	told := newLog()
	started := mustStart(t, engine.Options{OwnProcess: true, Log: told})
	mustCreateTable(t, started.Client())
	if refused := strings.Count(told.String(), "address already in use"); refused != 2 {
		t.Errorf("%d refused tries, want 2", refused)
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	directory := t.TempDir()
	mustWriteProgram(t, filepath.Join(directory, "dynoxide"), `#!/bin/sh
if [ "$1" = serve ]; then echo silent; exec tail -f /dev/null; fi
echo dynoxide 1.5.0
`)
	t.Setenv("PATH", directory+string(os.PathListSeparator)+os.Getenv("PATH"))
	ctx, cancel := context.WithCancel(context.Background())
	told, ended := newLog(), make(chan error, 1)
	go func() {
		_, err := engine.Start(ctx, engine.Options{OwnProcess: true, Log: told})
		ended <- err
	}()
	told.MustWaitFor(t, "silent")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
