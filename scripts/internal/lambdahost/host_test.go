package lambdahost_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/scripts/internal/build"
	"holdfast/scripts/internal/lambdahost"
)

// binary is the test function, built once for the package.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "lambdahost")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(folder)
	binary = filepath.Join(folder, "bootstrap")
	if err := build.Program(context.Background(), ".", "./testdata/function", build.LambdaTags, binary); err != nil {
		fmt.Println(err)
		return 1
	}
	return m.Run()
}

// logBuffer is a log that may be read while it is written.
type logBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

type answer struct {
	Text        string   `json:"text"`
	ProcessID   int      `json:"process_id"`
	RequestID   string   `json:"request_id"`
	RemainingMs int64    `json:"remaining_ms"`
	Environment []string `json:"environment"`
}

func config(log *logBuffer) lambdahost.Config {
	return lambdahost.Config{
		Name: "tested", Binary: binary, MemoryMiB: 256, Timeout: 20 * time.Second,
		ProcessesMax: 1, Region: "us-east-1", Log: log,
	}
}

func mustStart(t *testing.T, config lambdahost.Config) *lambdahost.Host {
	t.Helper()
	host, err := lambdahost.Start(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(host.Close)
	return host
}

func invoke(ctx context.Context, host *lambdahost.Host, event map[string]string) (answer, error) {
	payload, err := json.Marshal(event)
	if err != nil {
		return answer{}, err
	}
	response, err := host.Invoke(ctx, payload)
	if err != nil {
		return answer{}, err
	}
	var got answer
	return got, json.Unmarshal(response, &got)
}

func mustEcho(t *testing.T, host *lambdahost.Host) answer {
	t.Helper()
	got, err := invoke(t.Context(), host, map[string]string{"do": "echo", "text": "héllo"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Text != "héllo" {
		t.Errorf("text = %q, want %q", got.Text, "héllo")
	}
	return got
}

func TestEventReachesTheFunctionWithItsSurroundings(t *testing.T) {
	t.Setenv("AWS_PROFILE", "production")
	settings := config(&logBuffer{})
	settings.Variables = map[string]string{"HOLDFAST_STAGE": "local"}
	host := mustStart(t, settings)
	first, second := mustEcho(t, host), mustEcho(t, host)
	if first.ProcessID != second.ProcessID {
		t.Error("a second event started a second process, though the first one was free")
	}
	if first.RequestID == "" || first.RequestID == second.RequestID {
		t.Errorf("request ids %q and %q, want two different ones", first.RequestID, second.RequestID)
	}
	if first.RemainingMs <= 10_000 || first.RemainingMs > 20_000 {
		t.Errorf("remaining time = %d ms, want just under the time-out of 20 s", first.RemainingMs)
	}
	for _, want := range []string{
		"HOLDFAST_STAGE=local", "AWS_LAMBDA_FUNCTION_NAME=tested", "AWS_REGION=us-east-1",
		"AWS_LAMBDA_FUNCTION_TIMEOUT=20", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=256", "_HANDLER=bootstrap",
	} {
		if !slices.Contains(first.Environment, want) {
			t.Errorf("environment lacks %s", want)
		}
	}
	if slices.Contains(first.Environment, "AWS_PROFILE=production") {
		t.Error("a variable of the developer reached the function")
	}
}

func TestHandlerErrorIsTypedAndKeepsTheProcess(t *testing.T) {
	host := mustStart(t, config(&logBuffer{}))
	before := mustEcho(t, host)
	_, err := invoke(t.Context(), host, map[string]string{"do": "fail", "text": "no stock"})
	var failure *lambdahost.FunctionError
	if !errors.As(err, &failure) || failure.Type != "refusedError" || failure.Message != "no stock" {
		t.Errorf("error = %v, want FunctionError refusedError: no stock", err)
	}
	if after := mustEcho(t, host); after.ProcessID != before.ProcessID {
		t.Error("an error of the handler ended the process")
	}
}

// What ends a process must be told to its caller only: the next caller gets a fresh
// process and an answer.
func TestProcessIsReplacedAfterItsEnd(t *testing.T) {
	tests := []struct {
		do    string
		check func(error) bool
	}{
		{"panic", func(err error) bool {
			failure := (*lambdahost.FunctionError)(nil)
			return errors.As(err, &failure) && failure.Message == "told to"
		}},
		{"exit", func(err error) bool {
			crash := (*lambdahost.CrashError)(nil)
			return errors.As(err, &crash) && crash.Cause.Error() == "exit status 7"
		}},
		{"overrun", func(err error) bool {
			timeout := (*lambdahost.TimeoutError)(nil)
			return errors.As(err, &timeout) && timeout.Timeout == time.Second
		}},
	}
	for _, test := range tests {
		t.Run(test.do, func(t *testing.T) {
			settings := config(&logBuffer{})
			settings.Timeout = time.Second
			host := mustStart(t, settings)
			before := mustEcho(t, host)
			_, err := invoke(t.Context(), host, map[string]string{"do": test.do, "text": "told to"})
			if !test.check(err) {
				t.Errorf("error = %T %v", err, err)
			}
			if after := mustEcho(t, host); after.ProcessID == before.ProcessID {
				t.Error("the next event went to the process that should be gone")
			}
			if isAlive(before.ProcessID) {
				t.Error("the ended process is still there")
			}
		})
	}
}

func TestProcessKilledWhileFreeIsReplaced(t *testing.T) {
	host := mustStart(t, config(&logBuffer{}))
	before := mustEcho(t, host)
	if err := syscall.Kill(before.ProcessID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// The end may be noticed before the event is handed over, or by it.
	if _, err := invoke(t.Context(), host, map[string]string{"do": "echo"}); err != nil {
		var crash *lambdahost.CrashError
		if !errors.As(err, &crash) {
			t.Errorf("error = %v, want none or CrashError", err)
		}
	}
	if after := mustEcho(t, host); after.ProcessID == before.ProcessID {
		t.Error("the killed process answered")
	}
}

// Kill ends a process in the middle of an event: its caller is told, and the next event
// goes to a new process.
func TestKilledWhileItWorks(t *testing.T) {
	arrived := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done() // the function has gone
	}))
	t.Cleanup(server.Close)
	host := mustStart(t, config(&logBuffer{}))
	before := mustEcho(t, host)
	told := make(chan error, 1)
	go func() {
		_, err := invoke(t.Context(), host, map[string]string{"do": "visit", "url": server.URL})
		told <- err
	}()
	<-arrived
	host.Kill()
	if isAlive(before.ProcessID) {
		t.Error("the killed process is still there")
	}
	crash := (*lambdahost.CrashError)(nil)
	if err := <-told; !errors.As(err, &crash) {
		t.Errorf("error = %v, want CrashError", err)
	}
	if after := mustEcho(t, host); after.ProcessID == before.ProcessID {
		t.Error("the killed process answered")
	}
}

// meeting answers its visitors only when enough of them are there at once.
func meeting(t *testing.T, visitors int) *httptest.Server {
	var arrived sync.WaitGroup
	arrived.Add(visitors)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived.Done()
		arrived.Wait()
		fmt.Fprint(w, r.URL.Query().Get("number"))
	}))
	t.Cleanup(server.Close)
	return server
}

// Four events that wait for each other can end only if four processes work at once,
// and each must get its own answer.
func TestProcessesGrowWithDemandUpToTheirMaximum(t *testing.T) {
	const processes = 4
	settings := config(&logBuffer{})
	settings.ProcessesMax = processes
	host := mustStart(t, settings)
	server := meeting(t, processes)
	answers := make([]answer, processes)
	var calls sync.WaitGroup
	for i := range processes {
		calls.Go(func() {
			var err error
			answers[i], err = invoke(t.Context(), host, map[string]string{
				"do": "visit", "url": fmt.Sprintf("%s/?number=%d", server.URL, i),
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	ids := make(map[int]bool)
	for i, got := range answers {
		ids[got.ProcessID] = true
		if got.Text != fmt.Sprint(i) {
			t.Errorf("call %d got the answer of call %q", i, got.Text)
		}
	}
	if len(ids) != processes {
		t.Errorf("%d processes worked, want %d", len(ids), processes)
	}
	// More calls than processes wait their turn, and start no further process.
	for range 5 * processes {
		calls.Go(func() {
			got, err := invoke(t.Context(), host, map[string]string{"do": "echo"})
			if err != nil || !ids[got.ProcessID] {
				t.Errorf("process %d, error %v; want one of the %d known ones", got.ProcessID, err, processes)
			}
		})
	}
	calls.Wait()
}

// Case H8: a caller that gives up at 30 s does not stop the function, which may
// commit a second later.
func TestCaseH8_FunctionGoesOnWhenItsCallerLeaves(t *testing.T) {
	arrived, release, finished := make(chan struct{}), make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-release
		fmt.Fprint(w, "late")
		close(finished)
	}))
	t.Cleanup(server.Close)
	host := mustStart(t, config(&logBuffer{}))
	before := mustEcho(t, host)
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-arrived
		leave()
	}()
	_, err := invoke(ctx, host, map[string]string{"do": "visit", "url": server.URL})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want context.Canceled", err)
	}
	close(release)
	<-finished
	if after := mustEcho(t, host); after.ProcessID != before.ProcessID {
		t.Error("the function was ended with its caller")
	}
}

func TestWaitingCallEndsWithItsContext(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-release
	}))
	t.Cleanup(server.Close)
	host := mustStart(t, config(&logBuffer{}))
	var busy sync.WaitGroup
	busy.Go(func() {
		if _, err := invoke(t.Context(), host, map[string]string{"do": "visit", "url": server.URL}); err != nil {
			t.Error(err)
		}
	})
	<-arrived
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := invoke(ctx, host, map[string]string{"do": "echo"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error = %v, want context.DeadlineExceeded", err)
	}
	close(release)
	busy.Wait()
}

func TestFullQueueRefusesAtOnce(t *testing.T) {
	const refused = 5
	arrived, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-release
	}))
	t.Cleanup(server.Close)
	host := mustStart(t, config(&logBuffer{}))
	var calls sync.WaitGroup
	calls.Go(func() {
		if _, err := invoke(t.Context(), host, map[string]string{"do": "visit", "url": server.URL}); err != nil {
			t.Error(err)
		}
	})
	<-arrived
	ctx, leave := context.WithCancel(t.Context())
	errs := make(chan error, lambdahost.QueuedCallsMax+refused)
	for range cap(errs) {
		calls.Go(func() {
			_, err := host.Invoke(ctx, []byte("{}"))
			errs <- err
		})
	}
	for range refused {
		if err := <-errs; !errors.Is(err, lambdahost.ErrThrottled) {
			t.Errorf("error = %v, want ErrThrottled", err)
		}
	}
	leave()
	for range lambdahost.QueuedCallsMax {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v, want context.Canceled", err)
		}
	}
	close(release)
	calls.Wait()
}

func TestFailedStartIsAnInitErrorWithItsLog(t *testing.T) {
	var log logBuffer
	settings := config(&log)
	settings.Variables = map[string]string{"BROKEN_START": "yes"}
	_, err := lambdahost.Start(settings)
	var failure *lambdahost.InitError
	if !errors.As(err, &failure) || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("error = %v, want InitError with the exit status", err)
	}
	if !strings.Contains(log.String(), "cannot start: the variable says so\n") {
		t.Errorf("log = %q, want the function's reason", log.String())
	}
}

func TestCloseEndsEveryProcessAndWaitingCall(t *testing.T) {
	arrived := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	host := mustStart(t, config(&logBuffer{}))
	id := mustEcho(t, host).ProcessID
	var busy sync.WaitGroup
	busy.Go(func() {
		_, err := invoke(t.Context(), host, map[string]string{"do": "visit", "url": server.URL})
		if !errors.Is(err, lambdahost.ErrClosed) {
			t.Errorf("error of the running call = %v, want ErrClosed", err)
		}
	})
	<-arrived
	host.Close()
	busy.Wait()
	if isAlive(id) {
		t.Error("a process outlived Close")
	}
	if _, err := invoke(t.Context(), host, map[string]string{"do": "echo"}); !errors.Is(err, lambdahost.ErrClosed) {
		t.Errorf("error after Close = %v, want ErrClosed", err)
	}
	host.Close()
}

func TestPayloadLimitsOfBothWays(t *testing.T) {
	host := mustStart(t, config(&logBuffer{}))
	tooLarge := fmt.Appendf(nil, "%q", strings.Repeat("x", lambdahost.PayloadBytesMax))
	if _, err := host.Invoke(t.Context(), tooLarge); !errors.Is(err, lambdahost.ErrPayloadTooLarge) {
		t.Errorf("error = %v, want ErrPayloadTooLarge", err)
	}
	_, err := invoke(t.Context(), host, map[string]string{"do": "swell"})
	var failure *lambdahost.FunctionError
	if !errors.As(err, &failure) || failure.Type != "Function.ResponseSizeTooLarge" {
		t.Errorf("error = %v, want FunctionError Function.ResponseSizeTooLarge", err)
	}
	mustEcho(t, host)
}

func TestUnfinishedLastLineIsLogged(t *testing.T) {
	var log logBuffer
	host := mustStart(t, config(&log))
	if _, err := invoke(t.Context(), host, map[string]string{"do": "exit"}); err == nil {
		t.Fatal("no error")
	}
	host.Close()
	if !strings.Contains(log.String(), "a last line without an end") {
		t.Errorf("log = %q", log.String())
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, spoil := range []func(*lambdahost.Config){
		func(c *lambdahost.Config) { c.Name = "" },
		func(c *lambdahost.Config) { c.Binary = "" },
		func(c *lambdahost.Config) { c.Timeout = 0 },
		func(c *lambdahost.Config) { c.ProcessesMax = 0 },
		func(c *lambdahost.Config) { c.Log = nil },
	} {
		settings := config(&logBuffer{})
		spoil(&settings)
		if host, err := lambdahost.Start(settings); err == nil {
			host.Close()
			t.Errorf("no error for %+v", settings)
		}
	}
}

func isAlive(id int) bool { return syscall.Kill(id, 0) == nil }
