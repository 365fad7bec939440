package engine_test

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// waitWithin bounds each wait of these tests. It is generous, because it is only ever
// used up by a failure.
const waitWithin = 20 * time.Second

// log keeps what was written to it, and lets a test wait for a text.
type log struct {
	mu      sync.Mutex
	text    strings.Builder
	written chan struct{}
}

func newLog() *log { return &log{written: make(chan struct{}, 1)} }

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	select {
	case l.written <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// MustWaitFor returns once the text has been written.
func (l *log) MustWaitFor(tb testing.TB, text string) {
	tb.Helper()
	deadline := time.After(waitWithin)
	for !strings.Contains(l.String(), text) {
		select {
		case <-l.written:
		case <-deadline:
			tb.Fatalf("%q was never written; there is only:\n%s", text, l.String())
		}
	}
}
