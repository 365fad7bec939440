package localrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"holdfast/scripts/internal/build"
	"holdfast/scripts/internal/cloud"
	"holdfast/scripts/internal/gateway"
	"holdfast/scripts/internal/lambdahost"
	"holdfast/shared/dynamo/engine"
	"holdfast/shared/payment/stripetest"
	"holdfast/shared/topology"
)

// System is one running Holdfast. It is safe for concurrent use.
type System struct {
	// BaseURL is the gateway's address, without a slash at the end.
	BaseURL string
	// Table is the name of the table.
	Table string
	// Payments is the payment provider: a stand-in that speaks Stripe's API, and sends its
	// webhooks to the gateway.
	Payments *stripetest.Server

	options        Options
	folder         *folder
	listener       net.Listener
	log            *slog.Logger
	issuer         *gateway.Issuer
	functions      map[topology.FunctionName]*lambdahost.Host
	programs       map[topology.FunctionName]string
	emulator       string // the program of the cloud
	cloud          *cloud.Cloud
	queues         map[topology.Resource]cloud.Queue
	feeds          map[topology.Resource]*feed
	engineLog      io.Writer
	environment    map[string]string // of all functions together
	events         *eventLog
	client         *http.Client
	engineEndpoint string
	streamARN      string
	stream         *stream

	// running ends when Close begins.
	running context.Context
	end     context.CancelFunc
	failed  chan error

	mu      sync.Mutex
	engine  *engine.Engine // nil after KillEngine
	closers []func() error // the last one is closed first
}

// Start starts everything and returns when requests are answered. The caller must Close
// the System. The context bounds the start only. The first time takes some minutes, as
// programs are built; Options.Progress is told so.
//
// The errors tell a person what to do; none of them is worth a retry.
func Start(ctx context.Context, options Options) (*System, error) {
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	s := &System{
		options: options, Table: tableName,
		functions:   make(map[topology.FunctionName]*lambdahost.Host),
		programs:    make(map[topology.FunctionName]string),
		queues:      make(map[topology.Resource]cloud.Queue),
		feeds:       make(map[topology.Resource]*feed),
		environment: map[string]string{},
		failed:      make(chan error, 1), client: newClient(),
	}
	s.running, s.end = context.WithCancel(context.Background())
	for _, step := range []func(context.Context) error{
		s.openFolder, s.listen, s.build, s.startEngine, s.openTable, s.startCloud,
		s.createQueues, s.createBuckets, s.startPayments, s.startFunctions, s.writeEnvironment, s.startConsumer, s.startTriggers, s.startGateway,
	} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// Close ends everything that Start has started, in the opposite order, and waits until it
// is gone. It may be repeated.
func (s *System) Close() error {
	s.end()
	s.mu.Lock()
	closers := s.closers
	s.closers = nil
	s.mu.Unlock()
	var failures []error
	for _, closer := range slices.Backward(closers) {
		failures = append(failures, closer())
	}
	return errors.Join(failures...)
}

// Failed returns a channel with the first error of a part that should run and does not
// any more. The System is of no use then and should be closed.
func (s *System) Failed() <-chan error { return s.failed }

// LogFolder has a log of each part, and events.log with the events.
func (s *System) LogFolder() string { return s.folder.file(logFolderName) }

func (s *System) fail(err error) {
	select {
	case s.failed <- err:
	default: // an earlier failure is known, and this one may only follow from it
	}
}

func (s *System) onClose(closer func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers = append(s.closers, closer)
}

// start runs work beside everything else until Close, which waits for it.
func (s *System) start(work func(context.Context)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		work(s.running)
	}()
	s.onClose(func() error { <-done; return nil })
}

func (s *System) tell(format string, arguments ...any) {
	fmt.Fprintf(s.options.Progress, format+"\n", arguments...)
}

func (s *System) openFolder(context.Context) error {
	opened, err := openFolder(s.options.DataFolder)
	if err != nil {
		return err
	}
	s.folder = opened
	s.onClose(opened.close)
	if opened.isScratch {
		s.Table = filepath.Base(opened.path) // a name of its own, on an engine that others may use
	}
	log, err := s.openLog("local")
	if err != nil {
		return err
	}
	s.log = slog.New(slog.NewJSONHandler(log, nil))
	s.issuer, err = gateway.LoadIssuer(opened.path)
	return err
}

func (s *System) openLog(part string) (io.Writer, error) {
	log, err := s.folder.openLog(part)
	if err != nil {
		return nil, err
	}
	s.onClose(log.Close)
	return log, nil
}

// build builds the functions and the emulator one after another: built at once from an
// empty cache, each would compile the packages that they share.
func (s *System) build(ctx context.Context) error {
	s.tell("building the functions and the event bus (the first time: about a minute)")
	folder, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	root, err := build.ModuleRoot(folder)
	if err != nil {
		return err
	}
	programs := s.folder.file(programFolderName)
	for _, function := range topology.Functions() {
		if s.programs[function.Name], err = lambdahost.Build(ctx, root, string(function.Name), programs); err != nil {
			return err
		}
	}
	s.emulator, err = cloud.Build(ctx, root, programs)
	return err
}
