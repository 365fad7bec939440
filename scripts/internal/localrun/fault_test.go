package localrun_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"holdfast/scripts/internal/localrun"
	"holdfast/shared/topology"
)

// isTransaction tells a call that writes.
func isTransaction(target string) bool { return strings.HasSuffix(target, ".TransactWriteItems") }

// loseFirstAnswer lets the first call of a kind be carried out and loses its answer.
func loseFirstAnswer(isOfKind func(target string) bool) fault {
	var once sync.Once
	return func(target string, forward func()) (isLost bool) {
		forward()
		if isOfKind(target) {
			once.Do(func() { isLost = true })
		}
		return isLost
	}
}

// Case G6: a successful write was reported as a conflict because its answer got lost.
func TestCaseG6_LostAnswer(t *testing.T) {
	w := newWorld(t)
	slot, owner := w.slot(10, ""), w.owner()
	end := w.observer.inject(topology.FunctionAPI, loseFirstAnswer(isTransaction))
	defer end()
	hold := w.ask(owner, slot, 1).want(http.StatusCreated).text("hold_id")
	w.hold(hold)
	w.wantCounters(slot, counters{Available: 9, Held: 1, Capacity: 10})
	end()
	end = w.observer.inject(topology.FunctionAPI, loseFirstAnswer(isTransaction))
	defer end()
	w.wantCounters(w.slot(5, ""), counters{Available: 5, Capacity: 5})
}

// Case H8: the client gave up although the hold was made a moment later. A retry with the
// same key gets the original answer.
func TestCaseH8_ClientGivesUp(t *testing.T) {
	w := newWorld(t)
	slot, owner, key := w.slot(10, ""), w.owner(), newName("key")
	committed, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	end := w.observer.inject(topology.FunctionAPI, func(target string, forward func()) bool {
		forward()
		if isTransaction(target) {
			once.Do(func() { close(committed); <-goOn })
		}
		return false
	})
	defer end()
	ctx, giveUp := context.WithCancel(t.Context())
	gaveUp := make(chan error, 1)
	request := localrun.Request{Method: http.MethodPost, Path: "/v1/holds", Key: key, Body: holdBody(slot, 2)}
	go func() {
		_, err := owner.Do(ctx, request)
		gaveUp <- err
	}()
	<-committed
	giveUp()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Errorf("the client that gave up got %v", err)
	}
	close(goOn)
	again := w.do(owner, request).want(http.StatusCreated)
	if !again.isReplayed() || w.hold(again.text("hold_id")).text("status") != "HELD" {
		t.Errorf("the retry got %v %s", again.Header, again.Body)
	}
	w.wantCounters(slot, counters{Available: 8, Held: 2, Capacity: 10})
}

// The engine is killed while requests are on their way: some have been applied and not
// answered, some have not arrived. Each client is told to ask again, nothing is half done,
// and after the restart asking again with the same key makes exactly one hold of each.
func TestEngineKilledMidRequest(t *testing.T) {
	const buyers, applied = 6, 3
	w := newWorld(t)
	slot := w.slot(buyers, "")
	owners, keys := w.owners(buyers), make([]string, buyers)
	for i := range keys {
		keys[i] = newName("key")
	}
	var underway sync.WaitGroup
	underway.Add(buyers)
	killed := make(chan struct{})
	var mu sync.Mutex
	seen := 0
	end := w.observer.inject(topology.FunctionAPI, func(target string, forward func()) bool {
		if !isTransaction(target) {
			forward()
			return false
		}
		mu.Lock()
		seen++
		turn := seen
		mu.Unlock()
		switch {
		case turn <= applied:
			forward()
			underway.Done()
			<-killed
			return true
		case turn <= buyers:
			underway.Done()
			<-killed
		}
		forward()
		return false
	})
	defer end()
	answers := make([]answer, buyers)
	var asking sync.WaitGroup
	for i := range buyers {
		asking.Go(func() { answers[i] = w.post(owners[i], "/v1/holds", keys[i], holdBody(slot, 1)) })
	}
	underway.Wait()
	if err := w.system.KillEngine(); err != nil {
		t.Fatal(err)
	}
	close(killed)
	asking.Wait()
	for _, a := range answers {
		wait, err := strconv.Atoi(a.Header.Get("Retry-After"))
		if a.Status != http.StatusServiceUnavailable || err != nil || wait < 1 ||
			!slices.Contains([]string{"unavailable", "outcome_unknown", "busy"}, a.ProblemCode()) {
			t.Errorf("status %d, Retry-After %q: %s", a.Status, a.Header.Get("Retry-After"), a.Body)
		}
	}
	end()
	if err := w.system.RestartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantCounters(slot, counters{Available: buyers - applied, Held: applied, Capacity: buyers})
	w.balanced()
	replayed := 0
	for i, owner := range owners {
		if w.post(owner, "/v1/holds", keys[i], holdBody(slot, 1)).want(http.StatusCreated).isReplayed() {
			replayed++
		}
	}
	if replayed != applied {
		t.Errorf("%d of the repeated requests had been applied, want %d", replayed, applied)
	}
	w.wantCounters(slot, counters{Held: buyers, Capacity: buyers})
	w.untilPublished() // the stream's reader has found the engine again
}
