// Package consumertest checks what a consumer builds itself: a Memory in its own database.
package consumertest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/events/consumer"
)

const (
	// deliveriesAtOnce is how many deliveries of one event meet in TestMemory.
	deliveriesAtOnce = 16
	// yields is how often one of them lets the others go first.
	yields = 100
)

// errHandler is the error of a handler that fails.
var errHandler = errors.New("the handler fails on purpose")

// TestMemory checks that a Memory keeps what an Inbox needs. newMemory returns an empty
// one for each part of the test.
func TestMemory(t *testing.T, newMemory func(t *testing.T) consumer.Memory) {
	t.Helper()
	for name, part := range map[string]func(*testing.T, consumer.Memory){
		"what was handled is remembered":            remembers,
		"the highest version stays":                 keepsTheHighest,
		"what failed or was skipped is not":         forgetsFailures,
		"a handler that panics leaves it usable":    survivesPanics,
		"subjects are apart":                        keepsSubjectsApart,
		"deliveries at once are handled once":       handlesOnceAtOnce,
		"a canceled context is an error or handled": endsWithItsContext,
	} {
		t.Run(name, func(t *testing.T) { part(t, newMemory(t)) })
	}
}

// Event is an event of a hold, for tests of handlers and memories.
func Event(hold string, version consumer.Version) consumer.Event {
	return consumer.Event{
		ID: consumer.EventID(fmt.Sprintf("event_%s_%d", hold, version)), Type: "hold.confirmed", Version: version,
		Subject:    consumer.Subject{Kind: consumer.KindHold, ID: hold},
		OccurredAt: time.Date(2026, 12, 1, 9, 30, 0, 0, time.UTC), Detail: []byte("{}"),
	}
}

// handled marks e as handled, and requires that this is asked with want.
func handled(t *testing.T, m consumer.Memory, e consumer.Event, want consumer.Seen) {
	t.Helper()
	once(t, m, e, want, true, nil)
}

func once(t *testing.T, m consumer.Memory, e consumer.Event, want consumer.Seen, result bool, fail error) {
	t.Helper()
	called := false
	err := m.Once(t.Context(), e, func(_ context.Context, seen consumer.Seen) (bool, error) {
		called = true
		if seen != want {
			t.Errorf("of %s is known %+v, want %+v", e.ID, seen, want)
		}
		return result, fail
	})
	if !called || !errors.Is(err, fail) || fail == nil && err != nil {
		t.Errorf("%s: decide was called: %t, error %v, want %v", e.ID, called, err, fail)
	}
}

func remembers(t *testing.T, m consumer.Memory) {
	t.Helper()
	handled(t, m, Event("a", 1), consumer.Seen{})
	handled(t, m, Event("a", 2), consumer.Seen{Version: 1})
	once(t, m, Event("a", 1), consumer.Seen{Event: true, Version: 2}, false, nil)
	once(t, m, Event("a", 2), consumer.Seen{Event: true, Version: 2}, false, nil)
}

func keepsTheHighest(t *testing.T, m consumer.Memory) {
	t.Helper()
	handled(t, m, Event("a", 7), consumer.Seen{})
	handled(t, m, Event("a", 3), consumer.Seen{Version: 7})
	once(t, m, Event("a", 5), consumer.Seen{Version: 7}, false, nil)
	once(t, m, Event("a", 3), consumer.Seen{Event: true, Version: 7}, false, nil)
}

func forgetsFailures(t *testing.T, m consumer.Memory) {
	t.Helper()
	once(t, m, Event("a", 1), consumer.Seen{}, false, errHandler)
	once(t, m, Event("a", 1), consumer.Seen{}, true, errHandler)
	once(t, m, Event("a", 1), consumer.Seen{}, false, nil)
	handled(t, m, Event("a", 1), consumer.Seen{})
	once(t, m, Event("a", 2), consumer.Seen{Version: 1}, true, errHandler)
	once(t, m, Event("a", 2), consumer.Seen{Version: 1}, false, nil)
}

func survivesPanics(t *testing.T, m consumer.Memory) {
	t.Helper()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic of a handler is swallowed")
			}
		}()
		if err := m.Once(t.Context(), Event("a", 1), func(context.Context, consumer.Seen) (bool, error) { panic(errHandler) }); err != nil {
			t.Error(err)
		}
	}()
	handled(t, m, Event("a", 1), consumer.Seen{})
}

func keepsSubjectsApart(t *testing.T, m consumer.Memory) {
	t.Helper()
	handled(t, m, Event("a", 4), consumer.Seen{})
	handled(t, m, Event("b", 1), consumer.Seen{})
	slot := Event("a", 1)
	slot.ID, slot.Subject.Kind = "event_slot", consumer.KindSlot
	handled(t, m, slot, consumer.Seen{})
	once(t, m, Event("a", 5), consumer.Seen{Version: 4}, false, nil)
}

// handlesOnceAtOnce delivers one event many times at once; who comes later must know of
// who came first.
func handlesOnceAtOnce(t *testing.T, m consumer.Memory) {
	t.Helper()
	var all sync.WaitGroup
	var kept atomic.Int64
	start := make(chan struct{})
	for range deliveriesAtOnce {
		all.Go(func() {
			<-start
			won := false
			err := m.Once(t.Context(), Event("a", 1), func(_ context.Context, seen consumer.Seen) (bool, error) {
				won = !seen.Event
				for range yields { // let the others come in between, if they can
					runtime.Gosched()
				}
				return won, nil
			})
			if err != nil {
				t.Error(err)
			} else if won {
				kept.Add(1)
			}
		})
	}
	close(start)
	all.Wait()
	if n := kept.Load(); n != 1 {
		t.Errorf("%d of %d deliveries were handled", n, deliveriesAtOnce)
	}
}

func endsWithItsContext(t *testing.T, m consumer.Memory) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := m.Once(ctx, Event("a", 1), func(context.Context, consumer.Seen) (bool, error) { return true, nil })
	known := consumer.Seen{}
	if err == nil {
		known = consumer.Seen{Event: true, Version: 1}
	}
	once(t, m, Event("a", 1), known, false, nil)
}
