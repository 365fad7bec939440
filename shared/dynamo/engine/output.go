package engine

import (
	"io"
	"strings"
	"sync"
)

// outputTailBytesMax is how much of a program's output is kept for an error.
const outputTailBytesMax = 8 << 10

// output passes on what a child process prints, and keeps the end of it for errors. It
// may be used by several goroutines.
type output struct {
	mu      sync.Mutex
	log     io.Writer
	tail    []byte
	watched string
	seen    chan struct{}
}

func newOutput(log io.Writer) *output {
	return &output{log: log, seen: make(chan struct{})}
}

// Watch returns a channel that is closed once text has been printed. It is called once,
// before the child starts. The text must be shorter than outputTailBytesMax.
func (o *output) Watch(text string) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.watched = text
	return o.seen
}

// Write never fails: a log that cannot be written to is no reason to end the child,
// which is what the error of a child's output would do.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail = append(o.tail, p...)
	if o.watched != "" && strings.Contains(string(o.tail), o.watched) {
		o.watched = ""
		close(o.seen)
	}
	if surplus := len(o.tail) - outputTailBytesMax; surplus > 0 {
		o.tail = o.tail[surplus:]
	}
	_, _ = o.log.Write(p) // a log that cannot be written must not end the engine
	return len(p), nil
}

// Tail returns the end of what was printed.
func (o *output) Tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(string(o.tail))
}
