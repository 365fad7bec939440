// Package telemetrytest lets a test read what a function reports.
//
// The problem it solves: a function writes its metrics and its log to the standard output,
// which is where Lambda takes them from. A test of the real wiring must look there too, and
// not at a writer that nothing but the test would give it.
package telemetrytest

import (
	"os"
	"path/filepath"
	"testing"
)

// Output takes what is written to the standard output, from now to the end of the test, and
// returns a function that gives all of it so far. What was built before keeps the output
// that it has. Tests that run at the same time must not use it.
func Output(tb testing.TB) func() string {
	tb.Helper()
	file, err := os.Create(filepath.Join(tb.TempDir(), "stdout"))
	if err != nil {
		tb.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = file
	tb.Cleanup(func() {
		os.Stdout = stdout
		if err := file.Close(); err != nil {
			tb.Error(err)
		}
	})
	return func() string {
		text, err := os.ReadFile(file.Name())
		if err != nil {
			tb.Fatal(err)
		}
		return string(text)
	}
}
