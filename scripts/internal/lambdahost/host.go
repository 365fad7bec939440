package lambdahost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"holdfast/scripts/internal/build"
	"holdfast/shared/system"
)

// PayloadBytesMax is Lambda's limit of a synchronous event, and of its answer.
// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
const PayloadBytesMax = 6 << 20

const (
	// QueuedCallsMax bounds the calls that wait for a process. AWS has no queue: it
	// starts more processes than one machine could.
	QueuedCallsMax = 1000
	// QueueWaitMax bounds how long a call waits for a process.
	QueueWaitMax = 10 * time.Second
	// InitMax is Lambda's limit of the start of a process.
	InitMax = 10 * time.Second
)

// Config describes one function.
type Config struct {
	Name string
	// Binary is the path of the built Lambda binary.
	Binary    string
	MemoryMiB int // told to the function; not enforced
	// Timeout is the function's time-out. A process that overruns it is killed.
	Timeout time.Duration
	// ProcessesMax bounds how many events are worked on at once.
	ProcessesMax int
	Region       string
	// Variables are the function's own environment variables. They win over the ones
	// that Lambda sets. Nothing else of this process's environment is passed on.
	Variables map[string]string
	// Log receives what the function writes, whole lines at a time.
	Log io.Writer
	// Measured is told each number that Lambda would count of a call; nil means nobody is.
	Measured func(metric Metric, value float64)
	// Clock is what the duration of a call is measured by; nil means the machine's. Time-outs
	// are always by the machine's, because they kill.
	Clock system.Clock
}

func (c Config) validate() error {
	switch {
	case c.Name == "":
		return errors.New("no name")
	case c.Binary == "":
		return errors.New("no binary")
	case c.Timeout <= 0:
		return errors.New("no time-out")
	case c.ProcessesMax <= 0:
		return errors.New("no processes allowed")
	case c.Log == nil:
		return errors.New("no log")
	}
	return nil
}

// Host runs the processes of one function. It is safe for concurrent use.
type Host struct {
	config Config
	// startable holds one token per process that may still be started. Whoever takes
	// a token starts a process; whoever ends one puts the token back, which wakes a
	// waiting call that then starts the replacement.
	startable chan struct{}
	free      chan *process
	queue     chan struct{}
	closing   chan struct{}
	closeOnce sync.Once

	mu sync.Mutex
	// isClosing guards working: nothing is added to it once Close waits for it.
	isClosing bool
	working   sync.WaitGroup
	processes map[*process]struct{} // every one that may still run
}

// Build compiles functions/<name> of the module and returns the path of the binary,
// <outputFolder>/<name>/bootstrap. It may be repeated.
func Build(ctx context.Context, moduleRoot, name, outputFolder string) (string, error) {
	output := filepath.Join(outputFolder, name, "bootstrap")
	if err := build.Program(ctx, moduleRoot, "./functions/"+name, build.LambdaTags, output); err != nil {
		return "", err
	}
	return output, nil
}

// Start starts the first process of a function and waits until it is ready for
// events, so that a function that cannot start is found out at once. It returns an
// InitError for that.
func Start(config Config) (*Host, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("lambda host %q: %w", config.Name, err)
	}
	host := &Host{
		config:    config,
		startable: make(chan struct{}, config.ProcessesMax),
		free:      make(chan *process, config.ProcessesMax),
		queue:     make(chan struct{}, config.ProcessesMax+QueuedCallsMax),
		closing:   make(chan struct{}),
		processes: make(map[*process]struct{}),
	}
	host.config.Log = &sharedWriter{writer: config.Log}
	if host.config.Measured == nil {
		host.config.Measured = func(Metric, float64) {}
	}
	if host.config.Clock == nil {
		host.config.Clock = system.RealClock{}
	}
	for range config.ProcessesMax - 1 {
		host.startable <- struct{}{}
	}
	first, err := host.startProcess()
	if err != nil {
		return nil, err
	}
	host.free <- first
	return host, nil
}

// Close kills every process, waits until all are gone, and lets waiting calls return
// ErrClosed. It may be repeated.
func (h *Host) Close() {
	h.closeOnce.Do(func() { close(h.closing) })
	h.mu.Lock()
	h.isClosing = true
	running := slices.Collect(maps.Keys(h.processes))
	h.mu.Unlock()
	for _, p := range running {
		p.end()
	}
	h.working.Wait()
}

// Kill kills every process in the middle of whatever it does, and returns when all are
// gone. A call that one of them was working on fails with a CrashError, and what it had
// written by then stays written; the next call starts a new process.
func (h *Host) Kill() {
	h.mu.Lock()
	running := slices.Collect(maps.Keys(h.processes))
	h.mu.Unlock()
	for _, p := range running {
		p.child.Kill()
	}
}

// Invoke gives one event to one process and returns the function's answer. Errors are
// FunctionError, TimeoutError, CrashError, InitError, ErrThrottled, ErrClosed,
// ErrPayloadTooLarge, or the context's error. When the context ends after the
// event was handed over, the function goes on by itself.
func (h *Host) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	if len(payload) > PayloadBytesMax {
		return nil, ErrPayloadTooLarge
	}
	answer, err := h.invoke(ctx, payload)
	if errors.Is(err, ErrThrottled) {
		h.config.Measured(MetricThrottles, 1)
	}
	return answer, err
}

func (h *Host) invoke(ctx context.Context, payload []byte) ([]byte, error) {
	select {
	case h.queue <- struct{}{}:
		defer func() { <-h.queue }()
	default:
		return nil, ErrThrottled
	}
	free, err := h.take(ctx)
	if err != nil {
		return nil, err
	}
	if !h.begin() {
		return nil, ErrClosed // Close ends the process
	}
	outcomes := make(chan outcome, 1)
	go func() {
		defer h.working.Done()
		h.measure(func(measured chan<- outcome) { free.work(payload, h.config.Timeout, measured) }, outcomes)
		h.giveBack(free)
	}()
	select {
	case out := <-outcomes:
		if crash := (*CrashError)(nil); errors.As(out.err, &crash) && h.isClosed() {
			return nil, ErrClosed // it did not crash: Close killed it
		}
		return out.response, out.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// take returns a process that waits for an event, and starts one if none is free and
// one more is allowed.
func (h *Host) take(ctx context.Context) (*process, error) {
	timer := time.NewTimer(QueueWaitMax)
	defer timer.Stop()
	for {
		// A free process wins over the start of another one.
		select {
		case free := <-h.free:
			if free.isRunning() {
				return free, nil
			}
			h.giveBack(free)
			continue
		default:
		}
		select {
		case free := <-h.free:
			if free.isRunning() {
				return free, nil
			}
			h.giveBack(free)
		case <-h.startable:
			return h.startAnother()
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timer.C:
			return nil, ErrThrottled
		case <-h.closing:
			return nil, ErrClosed
		}
	}
}

func (h *Host) startAnother() (*process, error) {
	if !h.begin() {
		return nil, ErrClosed
	}
	defer h.working.Done()
	another, err := h.startProcess()
	if err != nil {
		h.startable <- struct{}{}
		return nil, err
	}
	return another, nil
}

func (h *Host) startProcess() (*process, error) {
	started, err := spawn(h.config)
	if err != nil {
		return nil, &InitError{Function: h.config.Name, Cause: err}
	}
	// Known to Close before it is ready, so that Close need not wait for a slow start.
	h.mu.Lock()
	isClosing := h.isClosing
	h.processes[started] = struct{}{}
	h.mu.Unlock()
	if isClosing {
		h.forget(started)
		return nil, ErrClosed
	}
	if err := started.waitUntilReady(); err != nil {
		h.forget(started)
		return nil, &InitError{Function: h.config.Name, Cause: err}
	}
	return started, nil
}

// giveBack makes a process free again, or lets another one take its place.
func (h *Host) giveBack(used *process) {
	if used.isRunning() {
		h.free <- used
		return
	}
	h.forget(used)
	h.startable <- struct{}{}
}

func (h *Host) forget(ended *process) {
	ended.end()
	h.mu.Lock()
	delete(h.processes, ended)
	h.mu.Unlock()
}

// begin notes that work starts which Close has to wait for. It returns false if the
// host is closing.
func (h *Host) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isClosing {
		return false
	}
	h.working.Add(1)
	return true
}

func (h *Host) isClosed() bool {
	select {
	case <-h.closing:
		return true
	default:
		return false
	}
}
