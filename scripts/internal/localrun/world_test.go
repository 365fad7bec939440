package localrun_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/scripts/internal/localrun"
	"holdfast/shared/topology"
)

const (
	// comesWithin bounds the wait for what must come.
	comesWithin = 30 * time.Second
	lookEvery   = 20 * time.Millisecond
	unitAmount  = 1000
)

// names makes names that no other test has.
var names atomic.Int64

func newName(kind string) string { return fmt.Sprintf("%s-%d", kind, names.Add(1)) }

// world is the shared System as one test sees it.
type world struct {
	t        *testing.T
	system   *localrun.System
	observer *observer
	catalog  *localrun.Caller
	shop     *localrun.Caller
}

// newWorld returns a world whose books are checked at the end of the test.
func newWorld(t *testing.T) *world {
	t.Helper()
	system, observer := mustSystem(t)
	w := &world{t: t, system: system, observer: observer}
	w.catalog, w.shop = w.caller("catalogue", topology.ScopeCatalog), w.caller("shop", topology.ScopeConfirm)
	t.Cleanup(w.balanced)
	return w
}

func (w *world) caller(subject string, scopes ...topology.Scope) *localrun.Caller {
	w.t.Helper()
	caller, err := w.system.Caller(subject, scopes...)
	if err != nil {
		w.t.Fatal(err)
	}
	return caller
}

func (w *world) owner() *localrun.Caller { return w.caller(newName("owner"), topology.ScopeHolds) }

// answer is what came back, with what a test asks of it.
type answer struct {
	localrun.Answer
	t *testing.T
}

// do makes a request that must be answered. It may be called by several goroutines.
func (w *world) do(caller *localrun.Caller, request localrun.Request) answer {
	w.t.Helper()
	got, err := caller.Do(w.t.Context(), request)
	if err != nil {
		w.t.Errorf("%s %s: %v", request.Method, request.Path, err)
	}
	refusals.note(got)
	return answer{got, w.t}
}

// refusals are the answers of the whole run that were no success.
var refusals refusalList

type refusalList struct {
	mu   sync.Mutex
	list []localrun.Answer
}

func (r *refusalList) note(a localrun.Answer) {
	if a.Status < http.StatusBadRequest {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, a)
}

func (r *refusalList) all() []localrun.Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

func (w *world) post(caller *localrun.Caller, path, key, body string) answer {
	w.t.Helper()
	return w.do(caller, localrun.Request{Method: http.MethodPost, Path: path, Key: key, Body: body})
}

func (a answer) want(status int) answer {
	a.t.Helper()
	if a.Status != status {
		a.t.Fatalf("status %d, want %d: %s", a.Status, status, a.Body)
	}
	return a
}

// wantProblem checks that a is a problem of this code.
func (a answer) wantProblem(status int, code string) {
	a.t.Helper()
	if a.Status != status || a.ProblemCode() != code {
		a.t.Fatalf("status %d, code %q, want %d, %q: %s", a.Status, a.ProblemCode(), status, code, a.Body)
	}
}

func (a answer) text(member string) string {
	a.t.Helper()
	var body map[string]json.RawMessage
	var text string
	if err := a.Decode(&body); err != nil {
		a.t.Fatal(err)
	}
	if err := json.Unmarshal(body[member], &text); err != nil {
		a.t.Fatalf("member %s of %s: %v", member, a.Body, err)
	}
	return text
}

func (a answer) isReplayed() bool { return a.Header.Get("Idempotent-Replayed") == "true" }

func definition(resource string, capacity int, further string) string {
	return fmt.Sprintf(`{"resource_type":"test","resource_id":%q,"capacity":%d,"unit_amount":%d,"currency":"KRW","open":true%s}`,
		resource, capacity, unitAmount, further)
}

// slot defines a slot. further is members of the body, each after a comma.
func (w *world) slot(capacity int, further string) string {
	w.t.Helper()
	id := newName("slot")
	w.do(w.catalog, localrun.Request{Method: http.MethodPut, Path: "/v1/slots/" + id, Body: definition(id, capacity, further)}).want(http.StatusCreated)
	return id
}

func holdBody(slot string, quantity int) string {
	return fmt.Sprintf(`{"lines":[{"slot_id":%q,"quantity":%d,"unit_amount":%d}]}`, slot, quantity, unitAmount)
}

func (w *world) ask(owner *localrun.Caller, slot string, quantity int) answer {
	w.t.Helper()
	return w.post(owner, "/v1/holds", newName("key"), holdBody(slot, quantity))
}

func (w *world) mustHold(owner *localrun.Caller, slot string, quantity int) string {
	w.t.Helper()
	return w.ask(owner, slot, quantity).want(http.StatusCreated).text("hold_id")
}

func (w *world) hold(id string) answer {
	w.t.Helper()
	return w.do(w.shop, localrun.Request{Method: http.MethodGet, Path: "/v1/holds/" + id}).want(http.StatusOK)
}

func (w *world) confirm(hold string) answer {
	w.t.Helper()
	return w.post(w.shop, "/v1/holds/"+hold+"/confirm", newName("key"), "")
}

type counters struct {
	Available, Held, Confirmed, Capacity int
}

func (w *world) countersOf(slot string) counters {
	w.t.Helper()
	var got counters
	a := w.do(w.catalog, localrun.Request{Method: http.MethodGet, Path: "/v1/slots/" + slot})
	if a.Status != http.StatusOK {
		w.t.Errorf("slot %s: status %d: %s", slot, a.Status, a.Body)
	} else if err := a.Decode(&got); err != nil {
		w.t.Error(err)
	}
	return got
}

func (w *world) wantCounters(slot string, want counters) {
	w.t.Helper()
	if got := w.countersOf(slot); got != want {
		w.t.Fatalf("slot %s is at %+v, want %+v", slot, got, want)
	}
}

// sweep starts the expiry function once, as the schedule does.
func (w *world) sweep() {
	w.t.Helper()
	if _, err := w.system.Invoke(w.t.Context(), topology.FunctionExpiry, []byte(`{}`)); err != nil {
		w.t.Errorf("sweep: %v", err)
	}
}

// until waits until look says yes, for a bounded time.
func (w *world) until(what string, look func() bool) {
	w.t.Helper()
	w.untilWithin(comesWithin, what, look)
}

func (w *world) untilWithin(longest time.Duration, what string, look func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(longest)
	for !look() {
		if time.Now().After(deadline) {
			w.t.Fatalf("after %s it is still not true that %s", longest, what)
		}
		select {
		case err := <-w.system.Failed():
			w.t.Fatal(err)
		case <-time.After(lookEvery):
		}
	}
}

// untilOver waits until the hold's time is over. Nothing has ended it then.
func (w *world) untilOver(hold string) {
	w.t.Helper()
	w.until("hold "+hold+" is over", func() bool { return w.hold(hold).text("status") == "EXPIRED" })
}

// untilPublished waits until every event so far came out of the bus and is marked.
func (w *world) untilPublished() {
	w.t.Helper()
	w.until("every event is published", func() bool {
		count, err := w.system.Unpublished(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		return count == 0
	})
}

// balanced audits the whole table.
func (w *world) balanced() {
	// The test's own context has ended when its clean-up runs.
	ctx, cancel := context.WithTimeout(context.Background(), comesWithin)
	defer cancel()
	report, err := w.system.Audit(ctx)
	if err != nil {
		w.t.Error(err)
	}
	for _, finding := range report.Findings {
		w.t.Error(finding)
	}
}

// atOnce runs n callers that all start at the same moment.
func atOnce(n int, do func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			do(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}

// outcomes counts answers by status and code.
func outcomes(answers []answer) map[string]int {
	counts := make(map[string]int)
	for _, a := range answers {
		counts[strings.TrimSpace(fmt.Sprintf("%d %s", a.Status, a.ProblemCode()))]++
	}
	return counts
}
