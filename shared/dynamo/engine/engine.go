package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

const (
	// startAttemptsMax bounds the tries to get a port. Another process can take a free
	// port between the look and the engine's own bind, which is rare even once.
	startAttemptsMax = 5
	// readyWithin bounds one try. The engine is ready within some ten milliseconds; a
	// machine that is busy compiling takes longer.
	readyWithin = 30 * time.Second
	// externalReadyWithin bounds the wait for an engine that somebody else started,
	// perhaps a moment ago.
	externalReadyWithin = 5 * time.Second
)

// host is the only address the engine ever listens on: it has no authentication.
const host = "127.0.0.1"

// errEndedEarly says that the engine ended before it was ready, for example because its
// port was taken.
var errEndedEarly = errors.New("the engine ended before it was ready")

// ErrNotOwned is returned by Kill for an engine that this process did not start.
var ErrNotOwned = errors.New("the engine was not started by this process")

// Options says how to start an engine. The zero value is an engine for tests: scratch
// data, any free port, no output.
type Options struct {
	// DataFile is the database file, created when it does not exist, and kept by Close.
	// Empty means scratch data that Close removes.
	DataFile string
	// Port is the loopback port to listen on, to start an engine again where clients
	// expect it; 0 means any free one.
	Port int
	// Log receives what the engine prints, and the progress of a build. It must stand
	// concurrent use, as os.Stderr does. Nil means nowhere.
	Log io.Writer
	// OwnProcess starts an engine even if DYNAMODB_ENDPOINT names one, for a caller
	// that will kill it.
	OwnProcess bool
}

// Engine is a running DynamoDB engine.
type Engine struct {
	endpoint string
	// process is nil for an engine that somebody else started.
	process *child
	// scratch is nil unless the data is removed at the end.
	scratch *scratch
}

// Start returns an engine that has answered a request. Unless DYNAMODB_ENDPOINT names
// one, it is a new child process, which the caller must Close. The context bounds the
// start only, including a build of the program, not the life of the engine.
//
// The errors tell a person what to do; none of them is worth a retry.
func Start(ctx context.Context, options Options) (*Engine, error) {
	if options.Log == nil {
		options.Log = io.Discard
	}
	if endpoint := os.Getenv(EndpointVariable); endpoint != "" && !options.OwnProcess {
		return useRunning(ctx, endpoint)
	}
	binary, err := Binary(ctx, options.Log)
	if err != nil {
		return nil, err
	}
	var own *scratch
	if options.DataFile == "" {
		if own, err = newScratch(); err != nil {
			return nil, err
		}
		options.DataFile = own.dataFile()
	}
	if options.DataFile, err = filepath.Abs(options.DataFile); err != nil {
		return nil, errors.Join(fmt.Errorf("find the data file: %w", err), own.remove())
	}
	engine, err := startProcess(ctx, binary, options)
	if err != nil {
		return nil, errors.Join(err, own.remove())
	}
	engine.scratch = own
	return engine, nil
}

// Endpoint returns the URL of the engine.
func (e *Engine) Endpoint() string { return e.endpoint }

// PID returns the id of the engine's process, or 0 if this process did not start it.
func (e *Engine) PID() int {
	if e.process == nil {
		return 0
	}
	return e.process.PID()
}

// Ended returns a channel that is closed when the engine's process has ended, for
// whatever reason. For an engine that this process did not start it is nil, and so never
// ready.
func (e *Engine) Ended() <-chan struct{} {
	if e.process == nil {
		return nil
	}
	return e.process.Done()
}

// Close ends the engine's process and waits for its end, then removes scratch data. It
// may be repeated, also after Kill. An engine that this process did not start goes on.
func (e *Engine) Close() error {
	if e.process == nil {
		return nil
	}
	if err := e.process.Terminate(); err != nil {
		return err
	}
	return e.scratch.remove()
}

// Kill ends the engine's process in the middle of whatever it does, and waits for its
// end, as a test of a crash wants it. Data that it has acknowledged is still in DataFile.
func (e *Engine) Kill() error {
	if e.process == nil {
		return ErrNotOwned
	}
	return e.process.Kill()
}

func useRunning(ctx context.Context, endpoint string) (*Engine, error) {
	ctx, cancel := context.WithTimeout(ctx, externalReadyWithin)
	defer cancel()
	if err := waitUntilAnswering(ctx, endpoint); err != nil {
		return nil, fmt.Errorf("%s is %s, but no DynamoDB engine answers there: %w", EndpointVariable, endpoint, err)
	}
	return &Engine{endpoint: endpoint}, nil
}

func startProcess(ctx context.Context, binary string, options Options) (*Engine, error) {
	var err error
	for range startAttemptsMax {
		var engine *Engine
		if engine, err = startOnce(ctx, binary, options); err == nil {
			return engine, nil
		}
		if !errors.Is(err, errEndedEarly) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%d tries: %w", startAttemptsMax, err)
}

func startOnce(ctx context.Context, binary string, options Options) (*Engine, error) {
	port := options.Port
	if port == 0 {
		var err error
		if port, err = freePort(); err != nil {
			return nil, err
		}
	}
	address := net.JoinHostPort(host, strconv.Itoa(port))
	printed := newOutput(options.Log)
	listening := printed.Watch("listening on http://" + address)
	command := exec.Command(binary, "serve", "--host", host, "--port", strconv.Itoa(port), "--db-path", options.DataFile)
	command.Env = environment()
	command.Stdout, command.Stderr = printed, printed
	process, err := startChild(command)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	engine := &Engine{endpoint: "http://" + address, process: process}
	if err := engine.waitUntilReady(ctx, listening); err != nil {
		err = errors.Join(err, process.Kill())
		return nil, fmt.Errorf("start %s on %s: %w; it printed: %q", binary, address, err, printed.Tail())
	}
	if err := addStreamIndex(ctx, options.DataFile); err != nil {
		_, _ = fmt.Fprintf(printed, "writes will slow down as the stream grows: %v\n", err)
	}
	return engine, nil
}

// waitUntilReady first waits for the engine's own word that it has the port, and only
// then sends a request: an answer alone might come from another engine that was quicker
// to take the same port.
func (e *Engine) waitUntilReady(ctx context.Context, listening <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	select {
	case <-listening:
	case <-e.process.Done():
		return errors.Join(errEndedEarly, e.process.Err())
	case <-ctx.Done():
		return fmt.Errorf("wait until it listens: %w", ctx.Err())
	}
	return waitUntilAnswering(ctx, e.endpoint)
}

// probePause is the time between two requests to an engine that does not answer yet.
const probePause = 10 * time.Millisecond

// waitUntilAnswering sends requests until one is answered as DynamoDB answers it. An
// error carries the last refusal, because "deadline exceeded" alone helps nobody.
func waitUntilAnswering(ctx context.Context, endpoint string) error {
	client := Client(endpoint)
	one := int32(1)
	for {
		_, err := client.ListTables(ctx, &dynamodb.ListTablesInput{Limit: &one}, withoutRetries)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(probePause):
		}
	}
}

// freePort asks the kernel for a port that nobody has at this moment.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return 0, fmt.Errorf("look for a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		return 0, fmt.Errorf("give back the free port: %w", err)
	}
	return port, nil
}

// environment hands on everything except the engine's own settings, so that one that
// is set for another engine cannot change this one.
func environment() []string {
	var kept []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "DYNOXIDE_") {
			kept = append(kept, variable)
		}
	}
	return kept
}
