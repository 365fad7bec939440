package commands_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
)

// P6: the same key with the same request has one effect and one answer, also 50 times at
// once.
func TestP6_OneKeyAtOnce(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(100, 4))
	const callers = 50
	answers := make([]commands.Answer, callers)
	var done sync.WaitGroup
	for i := range callers {
		done.Go(func() {
			var err error
			if answers[i], err = b.create(b.commands, request("K"), quote("S", 2)); err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	done.Wait()
	first := 0
	for _, a := range answers {
		if !a.Replayed {
			first++
		}
		if string(a.Response.Body) != string(answers[0].Response.Body) {
			t.Errorf("two answers: %s and %s", a.Response.Body, answers[0].Response.Body)
		}
	}
	if first != 1 {
		t.Errorf("%d first answers", first)
	}
	b.wantCounters("S", 98, 2, 0)
}

// The first answer comes again also when what it did would refuse it now, and when the
// decision is made without any write.
func TestReplayBeforeRefusal(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(1, 1))
	first, err := b.create(b.commands, request("K"), quote("S", 1))
	if err != nil {
		t.Fatal(err)
	}
	hold := b.holds[0]
	closed := definition(1, 1)
	closed.Terms.Open = false
	b.define("S", closed)
	b.clock.Advance(time.Minute)
	again, err := b.create(b.commands, request("K"), quote("S", 1))
	if err != nil || !again.Replayed || string(again.Response.Body) != string(first.Response.Body) {
		t.Errorf("replay %+v, %v", again, err)
	}
	cancelled, err := b.commands.CancelHold(t.Context(), request("K"), hold, b.render)
	if err != nil || cancelled.Replayed {
		t.Fatalf("the key of another command: %+v, %v", cancelled, err)
	}
	again, err = b.commands.CancelHold(t.Context(), request("K"), hold, b.render)
	if err != nil || !again.Replayed || string(again.Response.Body) != string(cancelled.Response.Body) {
		t.Errorf("replay %+v, %v", again, err)
	}
	b.balanced()
}

// Case E9: two calls of one request meet, and the other one is carried out between this
// one's refused write and the reads that prove the shortage. The proof is of that moment,
// so the refusal would be for what the request itself has done.
func TestCaseE9_TheSameRequestTookTheLastUnits(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(2, 2)) // one unit in each shard, so two must be split
	var first commands.Answer
	b.store.stock = func(stock []ledger.Stock) []ledger.Stock {
		b.store.stock = nil
		var err error
		if first, err = b.create(b.others, request("K"), quote("S", 2)); err != nil {
			t.Fatal(err)
		}
		for i := range stock {
			stock[i].Counters.Available = 0 // as a read after the other call says
		}
		return stock
	}
	again, err := b.create(b.commands, request("K"), quote("S", 2))
	if err != nil || !again.Replayed || string(again.Response.Body) != string(first.Response.Body) {
		t.Errorf("replay %+v, %v, want %s", again, err, first.Response.Body)
	}
	if b.store.proofs != 1 {
		t.Errorf("%d proofs; the test must reach the refusal", b.store.proofs)
	}
	b.wantCounters("S", 0, 2, 0)
	stranger := request("K")
	stranger.Owner = "V"
	_, err = b.create(b.commands, stranger, quote("S", 2))
	b.wantCode(err, ledger.CodeInsufficientStock)
	b.balanced()
}

// A refusal is never remembered: the corrected request may use the key.
func TestRefusalIsNotRemembered(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(1, 1))
	_, err := b.create(b.commands, request("K"), quote("S", 2))
	b.wantCode(err, ledger.CodeInsufficientStock)
	corrected := request("K")
	corrected.Fingerprint = "corrected"
	if _, err := b.create(b.commands, corrected, quote("S", 1)); err != nil {
		t.Fatal(err)
	}
	_, err = b.create(b.commands, request("K"), quote("S", 2))
	b.wantCode(err, ledger.CodeKeyReused)
	stranger := request("K")
	stranger.Owner = "V"
	_, err = b.create(b.commands, stranger, quote("S", 1))
	b.wantCode(err, ledger.CodeInsufficientStock)
	b.balanced()
}

// Another request under the key is told so even when it would be refused anyway.
func TestReusedKeyBesideAnotherRefusal(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(5, 1))
	hold := b.mustHold("S", 1)
	if _, err := b.commands.CancelHold(t.Context(), request("K"), hold.ID, b.render); err != nil {
		t.Fatal(err)
	}
	other := request("K")
	other.Fingerprint = "another"
	_, err := b.commands.CancelHold(t.Context(), other, hold.ID, b.render)
	b.wantCode(err, ledger.CodeKeyReused)
	_, err = b.commands.CancelHold(t.Context(), request("L"), hold.ID, b.render)
	b.wantCode(err, ledger.CodeHoldNotActive)
}

// A key is remembered until retain_until and counts as absent from then on.
func TestKeyIsForgottenInTime(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(5, 1))
	first, err := b.create(b.commands, request("K"), quote("S", 1))
	if err != nil {
		t.Fatal(err)
	}
	b.clock.Set(noon.Add(ledger.IdempotencyRetainFor - time.Millisecond))
	if again, err := b.create(b.commands, request("K"), quote("S", 1)); err != nil || string(again.Response.Body) != string(first.Response.Body) {
		t.Errorf("just before: %+v, %v", again, err)
	}
	b.clock.Set(noon.Add(ledger.IdempotencyRetainFor))
	if again, err := b.create(b.commands, request("K"), quote("S", 1)); err != nil || again.Replayed {
		t.Errorf("from then on: %+v, %v", again, err)
	}
	b.wantCounters("S", 3, 2, 0)
	b.balanced()
}

// A forgotten record does not answer a command that is refused now, either.
func TestAForgottenAnswerIsNotGiven(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(5, 1))
	hold := b.mustHold("S", 1)
	if _, err := b.commands.CancelHold(t.Context(), request("K"), hold.ID, b.render); err != nil {
		t.Fatal(err)
	}
	b.clock.Set(noon.Add(ledger.IdempotencyRetainFor))
	_, err := b.commands.CancelHold(t.Context(), request("K"), hold.ID, b.render)
	b.wantCode(err, ledger.CodeHoldNotActive)
}

// G6: the commit was applied and its answer lost. Asking again with the same key gives
// the first answer, and there is one hold.
func TestG6_LostAnswerIsFoundAgain(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(5, 1))
	b.store.afterCommit = func(try int) error {
		if try == 1 {
			return &ledger.Error{Code: ledger.CodeOutcomeUnknown, Message: "no answer"}
		}
		return nil
	}
	_, err := b.create(b.commands, request("K"), quote("S", 1))
	b.wantCode(err, ledger.CodeOutcomeUnknown)
	again, err := b.create(b.commands, request("K"), quote("S", 1))
	if err != nil || !again.Replayed {
		t.Fatalf("%+v, %v", again, err)
	}
	b.wantCounters("S", 4, 1, 0)
	b.balanced()
}

// Errors of the store that are no refusal end the command at once, and no error of a
// read is taken for an answer.
func TestStoreErrorsEndTheCommand(t *testing.T) {
	for _, code := range []ledger.Code{ledger.CodeUnavailable, ledger.CodeOutcomeUnknown, ledger.CodeInternal} {
		b := newBench(t)
		b.define("S", definition(5, 1))
		b.store.beforeCommit = func(int, ledger.Change) error { return &ledger.Error{Code: code, Message: "told to"} }
		_, err := b.create(b.commands, request("K"), quote("S", 1))
		b.wantCode(err, code)
		if b.store.commits != 1 {
			t.Errorf("%s: %d tries", code, b.store.commits)
		}
	}
}

// A caller whose time is over is told that nothing was written, and the pause between
// tries ends with it.
func TestTimeOverBetweenTries(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(5, 1))
	ctx, cancel := context.WithCancel(t.Context())
	b.store.beforeCommit = func(int, ledger.Change) error {
		cancel()
		return &ledger.Refused{Contended: true}
	}
	_, err := b.commands.CreateHold(ctx, request("K"), commands.HoldWish{Quotes: quote("S", 1)}, b.render)
	b.wantCode(err, ledger.CodeUnavailable)
	if !errors.Is(err, context.Canceled) || b.store.commits != 1 {
		t.Errorf("%d tries, %v", b.store.commits, err)
	}
}

// All tries of one command carry one event id, so that a store can recognise its own
// earlier write; two commands never share one.
func TestTriesShareTheirEventID(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(5, 1))
	ids := make(map[ledger.EventID]int)
	b.store.beforeCommit = func(try int, c ledger.Change) error {
		ids[c.Events[0].ID]++
		if try < 4 {
			return &ledger.Refused{Contended: true}
		}
		return nil
	}
	for i := range 2 {
		if _, err := b.create(b.commands, request(fmt.Sprint(i)), quote("S", 1)); err != nil {
			t.Fatal(err)
		}
	}
	if len(ids) != 2 {
		t.Errorf("event ids %v, want one for each command", ids)
	}
}

// A render that fails writes nothing.
func TestRenderFailureWritesNothing(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(5, 1))
	broken := errors.New("no answer can be made")
	_, err := b.commands.CreateHold(t.Context(), request("K"), commands.HoldWish{Quotes: quote("S", 1)},
		func(ledger.Hold, time.Time) (ledger.Response, error) { return ledger.Response{}, broken })
	if !errors.Is(err, broken) || b.store.commits != 0 {
		t.Errorf("%v after %d commits", err, b.store.commits)
	}
}
