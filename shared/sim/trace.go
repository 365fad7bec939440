package sim

import (
	"fmt"
	"strings"
)

// trace is the readable story of a history. It is written only when somebody wants to
// read it: of a hundred thousand histories, that is nearly none.
type trace struct {
	kernel *kernel
	keep   bool
	lines  []string
}

func newTrace(k *kernel, keep bool) *trace { return &trace{kernel: k, keep: keep} }

// add writes one line, with the time since the history began.
func (t *trace) add(format string, args ...any) {
	if t.keep {
		at := t.kernel.now.Sub(historyStart).Seconds()
		t.lines = append(t.lines, fmt.Sprintf("%12.6f  ", at)+fmt.Sprintf(format, args...))
	}
}

// String is all lines.
func (t *trace) String() string { return strings.Join(t.lines, "\n") + "\n" }
