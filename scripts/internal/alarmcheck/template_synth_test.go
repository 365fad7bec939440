package alarmcheck_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"holdfast/scripts/internal/alarmcheck"
	"holdfast/scripts/internal/build"
)

// deployed are the alarms of the stage, as they are deployed. A test binary has no other
// place that its tests share.
var deployed struct {
	once   sync.Once
	alarms []alarmcheck.Alarm
	err    error
}

// mustAlarms returns the alarms of the synthesised template.
func mustAlarms(tb testing.TB) []alarmcheck.Alarm {
	tb.Helper()
	deployed.once.Do(func() { deployed.alarms, deployed.err = synthesize(tb.TempDir()) })
	if deployed.err != nil {
		tb.Fatal(deployed.err)
	}
	return deployed.alarms
}

func synthesize(folder string) ([]alarmcheck.Alarm, error) {
	working, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	root, err := build.ModuleRoot(working)
	if err != nil {
		return nil, err
	}
	return alarmcheck.Synthesize(context.Background(), root, testStage, folder)
}

// constructID is the name that the stack gives to what the topology calls name:
// due-queue is DueQueue.
func constructID(name string) string {
	var id strings.Builder
	for _, word := range strings.Split(name, "-") {
		id.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return id.String()
}
