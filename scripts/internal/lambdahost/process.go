package lambdahost

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"holdfast/scripts/internal/child"
)

// accountID stands in ARNs where AWS has the account.
const accountID = "000000000000"

// outcome is what became of one event.
type outcome struct {
	response []byte
	err      error
}

// invocation is one event on its way through a process.
type invocation struct {
	id       string
	payload  []byte
	deadline time.Time
	done     chan outcome // buffered, so that the answer never waits for its reader
}

// process is one running copy of the function with the Runtime API of its own.
type process struct {
	config Config
	child  *child.Process
	log    *lineWriter
	server *http.Server
	// ready has an element while the function waits for an event.
	ready chan struct{}
	// pending hands an event to the waiting request for the next one.
	pending chan *invocation
	// initFailed has the error that the function reported about its start.
	initFailed chan error

	mu      sync.Mutex
	current *invocation
}

// spawn starts one process. It is not ready yet.
func spawn(config Config) (*process, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the runtime API: %w", err)
	}
	p := &process{
		config:     config,
		ready:      make(chan struct{}, 1),
		pending:    make(chan *invocation),
		initFailed: make(chan error, 1),
		log:        &lineWriter{writer: config.Log},
	}
	p.server = &http.Server{Handler: p.runtimeAPI(), ReadHeaderTimeout: InitMax}
	p.child, err = child.Start(child.Command{
		Program:     config.Binary,
		Environment: environment(config, listener.Addr().String()),
		Output:      p.log,
	})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	go func() {
		// Serve ends when the process is ended; nobody is left to be told.
		_ = p.server.Serve(listener)
	}()
	return p, nil
}

// waitUntilReady returns when the function asks for its first event.
func (p *process) waitUntilReady() error {
	timer := time.NewTimer(InitMax)
	defer timer.Stop()
	select {
	case <-p.ready:
		return nil
	case err := <-p.initFailed:
		return err
	case <-p.child.Exited():
		return fmt.Errorf("exited before it asked for an event: %w", exitCause(p.child.ExitError()))
	case <-timer.C:
		return fmt.Errorf("did not ask for an event within %s", InitMax)
	}
}

// work hands one event to the function, sends what became of it to outcomes exactly
// once, and returns when the process is ready for the next event or has ended.
func (p *process) work(payload []byte, timeout time.Duration, outcomes chan<- outcome) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	event := &invocation{
		id:       uuid.NewString(),
		payload:  payload,
		deadline: time.Now().Add(timeout),
		done:     make(chan outcome, 1),
	}
	select {
	case p.pending <- event:
	case <-p.child.Exited():
		outcomes <- p.lastWords(event)
		return
	case <-timer.C:
		outcomes <- p.overrun(timeout)
		return
	}
	select {
	case out := <-event.done:
		outcomes <- out
	case <-p.child.Exited():
		outcomes <- p.lastWords(event)
		return
	case <-timer.C:
		outcomes <- p.overrun(timeout)
		return
	}
	// The call is over only when the function asks for the next event, and the time
	// until then counts against its time-out. After a panic it ends instead.
	select {
	case <-p.ready:
	case <-p.child.Exited():
	case <-timer.C:
		p.child.Kill()
	}
}

func (p *process) overrun(timeout time.Duration) outcome {
	p.child.Kill()
	return outcome{err: &TimeoutError{Function: p.config.Name, Timeout: timeout}}
}

// lastWords is the answer of a process that has ended. A panic is reported just
// before the end, so the report and the end may be seen in either order.
func (p *process) lastWords(event *invocation) outcome {
	select {
	case out := <-event.done:
		return out
	default:
		return outcome{err: &CrashError{Function: p.config.Name, Cause: exitCause(p.child.ExitError())}}
	}
}

func (p *process) isRunning() bool {
	select {
	case <-p.child.Exited():
		return false
	default:
		return true
	}
}

// end kills the process if it runs, waits for it, and closes its Runtime API. It may
// be repeated.
func (p *process) end() {
	p.child.Kill()
	p.log.flush()
	// Closing a listener that is already closed is no failure here.
	_ = p.server.Close()
}

// environment is what a function finds on AWS, apart from what the binary cannot see.
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
func environment(config Config, runtimeAPI string) []string {
	variables := map[string]string{
		"AWS_LAMBDA_RUNTIME_API":          runtimeAPI,
		"AWS_LAMBDA_FUNCTION_NAME":        config.Name,
		"AWS_LAMBDA_FUNCTION_VERSION":     "$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": strconv.Itoa(config.MemoryMiB),
		"AWS_LAMBDA_FUNCTION_TIMEOUT":     strconv.Itoa(int(config.Timeout / time.Second)),
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"AWS_EXECUTION_ENV":               "AWS_Lambda_provided.al2023",
		"_HANDLER":                        "bootstrap",
		"AWS_REGION":                      config.Region,
		"AWS_DEFAULT_REGION":              config.Region,
		"AWS_ACCESS_KEY_ID":               "local",
		"AWS_SECRET_ACCESS_KEY":           "local",
		"TZ":                              ":UTC",
		"PATH":                            "/usr/local/bin:/usr/bin:/bin",
		// A forgotten endpoint must fail here, not reach a real account by the
		// developer's own settings.
		"AWS_CONFIG_FILE":             os.DevNull,
		"AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
		"AWS_EC2_METADATA_DISABLED":   "true",
	}
	maps.Copy(variables, config.Variables)
	pairs := make([]string, 0, len(variables))
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		pairs = append(pairs, name+"="+variables[name])
	}
	return pairs
}

// exitCause gives the end of a process with status 0 words of its own.
func exitCause(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}
