package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"holdfast/events/consumer"
	"holdfast/events/consumer/consumertest"
)

func TestBoundedIsAMemory(t *testing.T) {
	consumertest.TestMemory(t, func(*testing.T) consumer.Memory { return consumer.NewBounded(0) })
}

// seenOf is what m remembers about e.
func seenOf(t *testing.T, m consumer.Memory, e consumer.Event) consumer.Seen {
	t.Helper()
	var out consumer.Seen
	err := m.Once(t.Context(), e, func(_ context.Context, seen consumer.Seen) (bool, error) {
		out = seen
		return false, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func handle(t *testing.T, m consumer.Memory, e consumer.Event) {
	t.Helper()
	if err := m.Once(t.Context(), e, func(context.Context, consumer.Seen) (bool, error) { return true, nil }); err != nil {
		t.Fatal(err)
	}
}

// A full memory forgets who was not heard of for longest, and what was never handled takes
// no room.
func TestBoundedForgetsTheOldestSubject(t *testing.T) {
	m := consumer.NewBounded(3)
	for _, hold := range []string{"a", "b", "c"} {
		handle(t, m, consumertest.Event(hold, 1))
	}
	for i := range 100 {
		seenOf(t, m, consumertest.Event(fmt.Sprintf("looked at %d", i), 1))
	}
	handle(t, m, consumertest.Event("a", 2))
	handle(t, m, consumertest.Event("d", 1))
	for hold, want := range map[string]consumer.Seen{
		"a": {Event: true, Version: 2}, "b": {}, "c": {Event: true, Version: 1}, "d": {Event: true, Version: 1},
	} {
		if got := seenOf(t, m, consumertest.Event(hold, max(1, want.Version))); got != want {
			t.Errorf("%s: %+v, want %+v", hold, got, want)
		}
	}
}

// Of one subject the latest events are remembered by their ids, and all by the version.
func TestBoundedForgetsTheOldestEvents(t *testing.T) {
	m := consumer.NewBounded(3)
	const events = consumer.EventsPerSubjectMax + 1
	for version := range consumer.Version(events) {
		handle(t, m, consumertest.Event("a", version+1))
	}
	for version, known := range map[consumer.Version]bool{1: false, 2: true, events: true} {
		want := consumer.Seen{Event: known, Version: events}
		if got := seenOf(t, m, consumertest.Event("a", version)); got != want {
			t.Errorf("version %d: %+v, want %+v", version, got, want)
		}
	}
}

// A subject is not forgotten while one of its events is being handled, and who waits for
// its turn gives up with its context.
func TestBoundedKeepsWhatIsBeingHandled(t *testing.T) {
	m := consumer.NewBounded(1)
	err := m.Once(t.Context(), consumertest.Event("a", 1), func(context.Context, consumer.Seen) (bool, error) {
		handle(t, m, consumertest.Event("b", 1))
		handle(t, m, consumertest.Event("c", 1))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := m.Once(ctx, consumertest.Event("a", 1), func(context.Context, consumer.Seen) (bool, error) {
			t.Error("an event is handled twice at once")
			return true, nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("who waited is told %v", err)
		}
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := seenOf(t, m, consumertest.Event("a", 1)); got != (consumer.Seen{Event: true, Version: 1}) {
		t.Errorf("after it was handled: %+v", got)
	}
}
