package lambdahost

import (
	"errors"
	"fmt"
	"time"
)

// ErrThrottled says that the queue was full, or that no process became free in time.
// The function has not seen the event. AWS answers TooManyRequestsException.
var ErrThrottled = errors.New("lambda: too many requests")

// ErrClosed says that the host is closed, or was closed while the call waited. When
// the call had already reached a process, its outcome is unknown.
var ErrClosed = errors.New("lambda: host is closed")

// ErrPayloadTooLarge says that the event is larger than PayloadBytesMax. The function
// has not seen it.
var ErrPayloadTooLarge = errors.New("lambda: payload too large")

// FunctionError is the error that a handler returned, or its panic. After a panic the
// process is gone.
type FunctionError struct {
	Function string
	// Type and Message are errorType and errorMessage as the function reported them.
	Type, Message string
}

func (e *FunctionError) Error() string {
	return fmt.Sprintf("function %s failed: %s: %s", e.Function, e.Type, e.Message)
}

// TimeoutError says that the function overran its time-out and was killed. What it
// had written by then stays written.
type TimeoutError struct {
	Function string
	Timeout  time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("function %s: task timed out after %s", e.Function, e.Timeout)
}

// CrashError says that the process ended without an answer. What it had written by
// then stays written.
type CrashError struct {
	Function string
	// Cause says how the process ended, such as "exit status 1" or "signal: killed".
	Cause error
}

func (e *CrashError) Error() string {
	return fmt.Sprintf("function %s: runtime exited without an answer: %v", e.Function, e.Cause)
}

func (e *CrashError) Unwrap() error { return e.Cause }

// InitError says that a process ended, or reported an error, or stayed silent, before
// it asked for its first event. The reason is in the function's log.
type InitError struct {
	Function string
	Cause    error
}

func (e *InitError) Error() string {
	return fmt.Sprintf("function %s did not start: %v", e.Function, e.Cause)
}

func (e *InitError) Unwrap() error { return e.Cause }
