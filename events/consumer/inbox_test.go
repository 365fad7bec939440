package consumer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"holdfast/events/consumer"
)

// versioned is the example of a confirmed hold as the event with this version.
func versioned(t *testing.T, version int) []byte {
	t.Helper()
	return changed(t, detail(t, "hold.confirmed"), func(members map[string]any) {
		members["event_id"] = fmt.Sprintf("event_%026d", version)
		members["version"] = version
		members["hold"].(map[string]any)["version"] = version
	})
}

// recorder is a handler that records the versions it was called with.
type recorder struct {
	mutex    sync.Mutex
	versions []consumer.Version
	fail     error
}

func (r *recorder) handle(_ context.Context, e consumer.Event) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.versions = append(r.versions, e.Version)
	return r.fail
}

func deliver(t *testing.T, in *consumer.Inbox, body []byte, handle consumer.Handler, want consumer.Outcome) {
	t.Helper()
	got, err := in.Handle(t.Context(), body, handle)
	if got != want || (err != nil) != (want == consumer.OutcomeFailed) {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

// Case I4: a consumer has counted a confirmed hold. The same event under another envelope
// id is accepted without an error, and the count stays 1: also when both come at once.
func TestCaseI4_OneEventUnderTwoEnvelopeIDs(t *testing.T) {
	for _, older := range []bool{false, true} {
		in := &consumer.Inbox{Memory: consumer.NewBounded(0), Older: older}
		var seen recorder
		body := versioned(t, 2)
		deliver(t, in, envelope(t, "envelope-1", "hold.confirmed", body), seen.handle, consumer.OutcomeHandled)
		deliver(t, in, envelope(t, "envelope-2", "hold.confirmed", body), seen.handle, consumer.OutcomeDuplicate)
		if len(seen.versions) != 1 {
			t.Errorf("counted %d times", len(seen.versions))
		}
	}
	in, seen := &consumer.Inbox{Memory: consumer.NewBounded(0)}, recorder{}
	var all sync.WaitGroup
	for i := range 32 {
		body := envelope(t, fmt.Sprintf("envelope-%d", i), "hold.confirmed", versioned(t, 2))
		all.Go(func() {
			if outcome, err := in.Handle(t.Context(), body, seen.handle); err != nil || outcome == consumer.OutcomeOutdated {
				t.Errorf("%s, %v", outcome, err)
			}
		})
	}
	all.Wait()
	if len(seen.versions) != 1 {
		t.Errorf("deliveries at once are counted %d times", len(seen.versions))
	}
}

// The rule of what is older, for both kinds of consumers.
func TestOlderVersions(t *testing.T) {
	const handled, duplicate, outdated = consumer.OutcomeHandled, consumer.OutcomeDuplicate, consumer.OutcomeOutdated
	for _, c := range []struct {
		older bool
		want  []consumer.Outcome // of versions 2, 5, 3, 5, 3, 2, 6
		calls []consumer.Version
	}{
		{false, []consumer.Outcome{handled, handled, outdated, duplicate, outdated, duplicate, handled}, []consumer.Version{2, 5, 6}},
		{true, []consumer.Outcome{handled, handled, handled, duplicate, duplicate, duplicate, handled}, []consumer.Version{2, 5, 3, 6}},
	} {
		in := &consumer.Inbox{Memory: consumer.NewBounded(0), Older: c.older}
		var seen recorder
		for i, version := range []int{2, 5, 3, 5, 3, 2, 6} {
			deliver(t, in, envelope(t, fmt.Sprint(i), "hold.confirmed", versioned(t, version)), seen.handle, c.want[i])
		}
		if !slices.Equal(seen.versions, c.calls) {
			t.Errorf("older %t: handled %v, want %v", c.older, seen.versions, c.calls)
		}
	}
}

// Another subject has versions of its own: the reservation of a hold is not the hold.
func TestSubjectsDoNotDisturbEachOther(t *testing.T) {
	in := &consumer.Inbox{Memory: consumer.NewBounded(0)}
	var seen recorder
	deliver(t, in, envelope(t, "1", "hold.confirmed", versioned(t, 9)), seen.handle, consumer.OutcomeHandled)
	for _, kind := range []string{"reservation.confirmed", "slot.created"} {
		deliver(t, in, envelope(t, "2", kind, detail(t, kind)), seen.handle, consumer.OutcomeHandled)
	}
}

// An error of the handler leaves nothing remembered: the event is handled when it comes
// again, and an older one that came in between is not taken for outdated.
func TestAFailedEventIsHandledAgain(t *testing.T) {
	in := &consumer.Inbox{Memory: consumer.NewBounded(0)}
	seen := recorder{fail: errors.New("the database is away")}
	newer, older := envelope(t, "1", "hold.confirmed", versioned(t, 5)), envelope(t, "2", "hold.confirmed", versioned(t, 2))
	outcome, err := in.Handle(t.Context(), newer, seen.handle)
	if outcome != consumer.OutcomeFailed || !errors.Is(err, seen.fail) {
		t.Errorf("%s, %v", outcome, err)
	}
	seen.fail = nil
	deliver(t, in, older, seen.handle, consumer.OutcomeHandled)
	deliver(t, in, newer, seen.handle, consumer.OutcomeHandled)
	deliver(t, in, newer, seen.handle, consumer.OutcomeDuplicate)
	if !slices.Equal(seen.versions, []consumer.Version{5, 2, 5}) {
		t.Errorf("handled %v", seen.versions)
	}
}

// What is no event reaches no handler and no memory.
func TestWhatIsNoEventReachesNobody(t *testing.T) {
	in := &consumer.Inbox{} // has no memory: asking it would panic
	outcome, err := in.Handle(t.Context(), []byte("{}"), func(context.Context, consumer.Event) error {
		t.Error("handled")
		return nil
	})
	if outcome != consumer.OutcomeFailed || !errors.Is(err, consumer.ErrInvalid) {
		t.Errorf("%s, %v", outcome, err)
	}
}

// losingMemory is a Memory whose transaction does not come about in the end.
type losingMemory struct{ err error }

func (m losingMemory) Once(ctx context.Context, _ consumer.Event, decide consumer.Decide) error {
	if _, err := decide(ctx, consumer.Seen{}); err != nil {
		return err
	}
	return m.err
}

// An event is handled when its memory says so, not when its handler returned.
func TestAFailedMemoryIsAFailure(t *testing.T) {
	want := errors.New("the transaction was canceled")
	in := &consumer.Inbox{Memory: losingMemory{want}}
	var seen recorder
	outcome, err := in.Handle(t.Context(), envelope(t, "1", "hold.confirmed", versioned(t, 2)), seen.handle)
	if outcome != consumer.OutcomeFailed || !errors.Is(err, want) || len(seen.versions) != 1 {
		t.Errorf("%s, %v, %v", outcome, err, seen.versions)
	}
}

// An event whose id was forgotten is known by its version.
func TestAForgottenIDIsKnownByItsVersion(t *testing.T) {
	in := &consumer.Inbox{Memory: seenMemory{consumer.Seen{Version: 2}}, Older: true}
	deliver(t, in, envelope(t, "1", "hold.confirmed", versioned(t, 2)), (&recorder{}).handle, consumer.OutcomeDuplicate)
}

// seenMemory always remembers the same.
type seenMemory struct{ seen consumer.Seen }

func (m seenMemory) Once(ctx context.Context, _ consumer.Event, decide consumer.Decide) error {
	_, err := decide(ctx, m.seen)
	return err
}

// The detail that a handler gets is what a struct of its own is decoded from.
func TestHandlersDecodeWhatTheyNeed(t *testing.T) {
	in := &consumer.Inbox{Memory: consumer.NewBounded(0)}
	var told struct {
		Hold struct {
			Status string `json:"status"`
		} `json:"hold"`
	}
	deliver(t, in, envelope(t, "1", "hold.confirmed", versioned(t, 2)), func(_ context.Context, e consumer.Event) error {
		return json.Unmarshal(e.Detail, &told)
	}, consumer.OutcomeHandled)
	if told.Hold.Status != "CONFIRMED" {
		t.Errorf("told %+v", told)
	}
}
