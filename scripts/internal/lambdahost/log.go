package lambdahost

import (
	"bytes"
	"io"
	"sync"
)

// lineBytesMax bounds a line that is kept back until its end comes. CloudWatch cuts
// a log event at 256 KiB too.
const lineBytesMax = 256 << 10

// sharedWriter lets the processes of one function write to one log.
type sharedWriter struct {
	mu     sync.Mutex
	writer io.Writer
}

func (w *sharedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writer.Write(p)
}

// lineWriter passes on whole lines, so that lines of several processes never mix: a
// metric is one line of JSON, and half of one is lost.
type lineWriter struct {
	mu     sync.Mutex
	kept   []byte
	writer io.Writer
}

// Write keeps back what follows the last line end. Its length is the whole of p in
// every case, because a log that fails must not break the function that writes it.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept = append(w.kept, p...)
	end := bytes.LastIndexByte(w.kept, '\n') + 1
	if end == 0 && len(w.kept) > lineBytesMax {
		end = len(w.kept)
	}
	if end > 0 {
		_, _ = w.writer.Write(w.kept[:end])
		w.kept = append(w.kept[:0], w.kept[end:]...)
	}
	return len(p), nil
}

// flush passes on an unfinished last line.
func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.writer.Write(w.kept)
	w.kept = nil
}
