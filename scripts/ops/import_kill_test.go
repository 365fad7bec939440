package main

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/scripts/internal/build"
	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/system"
)

// writeTarget is how the engine is asked to write a Change.
const writeTarget = "TransactWriteItems"

// wire stands between a process and the engine. It counts the writes that took effect, and
// calls kill at one of them.
type wire struct {
	t      *testing.T
	engine string

	mutex  sync.Mutex
	writes int
	// at is the write at which kill is called: before it gets to the engine, or after it took
	// effect and before the process knows. Zero is never.
	at    int
	after bool
	kill  func()
}

func (w *wire) next(at int, after bool, kill func()) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.writes, w.at, w.after, w.kill = 0, at, after, kill
}

func (w *wire) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return // the process is killed in the middle of its request
	}
	isWrite := strings.HasSuffix(in.Header.Get("X-Amz-Target"), writeTarget)
	if isWrite && w.isTime(0, false) {
		return
	}
	request, err := http.NewRequest(in.Method, w.engine+in.URL.Path, bytes.NewReader(body)) //nolint:noctx // it reaches the engine though the process is killed
	if err != nil {
		w.t.Error(err)
		return
	}
	request.Header = in.Header.Clone()
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Error(err)
		return
	}
	defer func() { _ = answer.Body.Close() }() // it is read to its end, or the test fails
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		w.t.Error(err)
		return
	}
	if isWrite && answer.StatusCode == http.StatusOK && w.isTime(1, true) {
		return
	}
	for name, values := range answer.Header {
		out.Header()[name] = values
	}
	out.WriteHeader(answer.StatusCode)
	_, _ = out.Write(text) // the process may be killed meanwhile
}

// isTime counts more writes, and kills if it is the time.
func (w *wire) isTime(more int, after bool) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.writes += more
	reached := w.at > 0 && w.after == after && w.writes+1-more >= w.at
	if reached {
		w.kill()
	}
	return reached
}

// newStage is a table of the engine, behind a wire, with the environment that leads there.
func newStage(t *testing.T) (w *wire, store *dynamo.Store, environment string) {
	t.Helper()
	client, table := dynamotest.NewTable(t)
	w = &wire{t: t, engine: *client.Options().BaseEndpoint}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	environment = mustWriteEnvironment(t, map[string]string{
		"HOLDFAST_STAGE": "local", "HOLDFAST_TABLE_NAME": table, "HOLDFAST_LOCAL_DYNAMODB_ENDPOINT": server.URL,
		"HOLDFAST_OPERATOR_GROUP": "ops", "HOLDFAST_PAYMENT_SECRET_ID": "payment",
	})
	return w, dynamo.NewStore(client, table, system.RealClock{}, system.RealRandom{}), environment
}

// The command itself, on the engine: the shipped day is there once, and the second time
// nothing is written.
func TestImportOnTheEngine(t *testing.T) {
	w, store, environment := newStage(t)
	s := newShop(t)
	file := s.dayFile()
	for _, test := range []struct {
		arguments []string
		want      string
		writes    int
	}{
		{nil, `"rows": 696,` + "\n" + `  "created": 696,`, 22},
		{[]string{"-restart"}, `"unchanged": 696,`, 0},
	} {
		w.next(0, false, nil)
		var out bytes.Buffer
		arguments := append([]string{"import", "-json", "-environment", environment, "-attributes", dayChoice.attributes}, test.arguments...)
		if err := run(t.Context(), append(arguments, file), &out); err != nil || !strings.Contains(out.String(), test.want) {
			t.Errorf("%v: %v, printed %s", test.arguments, err, out.String())
		}
		if w.writes != test.writes {
			t.Errorf("%v: %d writes, want %d", test.arguments, w.writes, test.writes)
		}
	}
	wantDay(t, store)
	wrong := s.file("wrong.csv", "slot_id,open\nnone,false\n")
	var out bytes.Buffer
	err := run(t.Context(), []string{"import", "-environment", environment, "-type", "patch", wrong}, &out)
	if err == nil || !strings.Contains(err.Error(), "1 of 1 rows were refused; "+wrong+errorsSuffix) || !strings.Contains(out.String(), "REFUSED") {
		t.Errorf("%v, printed %s", err, out.String())
	}
}

// The process is killed at random moments of its writing, before a write and after it, and
// started again: in the end every row was carried out, and none twice.
func TestAKilledImportGoesOn(t *testing.T) {
	const kills, writesMax = 20, 8
	few := grouped{20, 6}
	w, store, environment := newStage(t)
	root, err := build.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "ops")
	if err := build.Program(t.Context(), root, "./scripts/ops", "", program); err != nil {
		t.Fatal(err)
	}
	s := newShop(t)
	file := s.file("rows.jsonl", few.rows())
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, seed))
	killed := 0
	for range kills + 1 {
		process := exec.CommandContext(t.Context(), program, "import", "-environment", environment, file)
		var told bytes.Buffer
		process.Stdout, process.Stderr = &told, &told
		if killed < kills {
			w.next(1+random.IntN(writesMax), random.IntN(2) == 0, func() { _ = process.Process.Kill() }) // it may have ended
		} else {
			w.next(0, false, nil)
		}
		err := process.Run()
		if process.ProcessState.Exited() {
			if !strings.Contains(told.String(), "rows were refused") || err == nil {
				t.Fatalf("it ended with %v and told %s", err, told.String())
			}
			break
		}
		killed++
	}
	t.Logf("killed %d times", killed)
	if stored, found, err := loadProgress(file); killed < kills/2 || err != nil || !found || !stored.Done || stored.Counts.Refused != few.refused() {
		t.Errorf("killed %d times, progress %+v, %v", killed, stored, err)
	}
	if _, err := os.Stat(file + progressSuffix + ".new"); err == nil {
		t.Error("a progress that was half written is left")
	}
	few.want(t, store, s.failures(file))
}
