package localrun_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/scripts/internal/alarmcheck"
	"holdfast/scripts/internal/build"
	"holdfast/scripts/internal/localrun"
	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
)

// alarmStage is the stage whose alarms are looked at.
const alarmStage = "dev"

// numbers are what the local parts of AWS have counted.
type numbers struct {
	mutex sync.Mutex
	all   []alarmcheck.Sample
}

// note is localrun.Options.Measured.
func (n *numbers) note(number localrun.Number) {
	dimensions := map[string]string{"ApiId": "Gateway"}
	switch {
	case number.Function != "":
		dimensions = map[string]string{"FunctionName": constructID(string(number.Function)) + "Function"}
	case number.Queue != "":
		dimensions = map[string]string{"QueueName": constructID(string(number.Queue))}
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.all = append(n.all, alarmcheck.Sample{Metric: alarmcheck.NewMetric(number.Namespace, number.Metric, dimensions), At: time.Now(), Value: number.Value})
}

// take returns what was counted since the last call.
func (n *numbers) take() []alarmcheck.Sample {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	taken := n.all
	n.all = nil
	return taken
}

// constructID is the name that the stack gives to what the topology calls name.
func constructID(name string) string {
	var id strings.Builder
	for _, word := range strings.Split(name, "-") {
		id.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return id.String()
}

// logs reads what the functions have written since the last call.
type logs struct {
	folder string
	read   map[topology.FunctionName]int
}

func (l *logs) mustRead(tb testing.TB) []byte {
	tb.Helper()
	var out []byte
	for _, f := range topology.Functions() {
		text, err := os.ReadFile(filepath.Join(l.folder, string(f.Name)+".log"))
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, text[l.read[f.Name]:]...)
		l.read[f.Name] = len(text)
	}
	return out
}

// Real binaries serve buyers who buy, leave and pay, each function runs once as its schedule
// would start it, and every alarm of the template is OK over what the functions wrote and
// what the local parts counted. It is the first test of the package: what others break on
// purpose is not quiet.
func TestQuietTrafficKeepsEveryAlarmOK(t *testing.T) {
	w := newWorld(t)
	l := &logs{w.system.LogFolder(), map[topology.FunctionName]int{}}
	l.mustRead(t)
	shared.numbers.take()
	slot, owner := w.slot(10, ""), w.owner()
	w.confirm(w.mustHold(owner, slot, 1)).want(http.StatusOK)
	w.post(owner, "/v1/holds/"+w.mustHold(owner, slot, 2)+"/cancel", newName("key"), "").want(http.StatusOK)
	w.mustHold(owner, slot, 3)
	w.untilPublished()
	for _, f := range topology.Functions() {
		if f.Schedule == nil {
			continue
		}
		if _, err := w.system.Invoke(t.Context(), f.Name, []byte(`{}`)); err != nil {
			t.Fatalf("tick of %s: %v", f.Name, err)
		}
	}
	var written []byte
	w.until("the audit has come to its end", func() bool {
		written = append(written, l.mustRead(t)...)
		return bytes.Contains(written, []byte(`"`+telemetry.MetricAuditHeartbeat+`":1`))
	})
	samples, err := alarmcheck.ReadLines(bytes.NewReader(written))
	if err != nil {
		t.Fatal(err)
	}
	if len(samples) == 0 {
		t.Fatal("the functions have told nothing")
	}
	for i := range samples {
		samples[i].Metric.Dimensions = strings.Replace(samples[i].Metric.Dimensions, telemetry.DimensionStage+"=local", telemetry.DimensionStage+"="+alarmStage, 1)
	}
	samples = append(samples, shared.numbers.take()...)
	working, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	root, err := build.ModuleRoot(working)
	if err != nil {
		t.Fatal(err)
	}
	alarms, err := alarmcheck.Synthesize(t.Context(), root, alarmStage, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range alarms {
		// When the minute is over in which the last number was told.
		now := samples[len(samples)-1].At.Truncate(time.Minute).Add(time.Minute)
		if state, err := a.State(samples, now); err != nil || state != alarmcheck.OK {
			t.Errorf("%s is in %s, %v: %s", a.ID, state, err, a.Description)
		}
	}
}
