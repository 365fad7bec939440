package expiry_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"holdfast/shared/commands"
	"holdfast/shared/expiry"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/system/systemtest"
)

// countedReads is a store that counts what is read of it, and can fail to read holds
// together.
type countedReads struct {
	*memory.Store
	single   []ledger.HoldID
	together [][]ledger.HoldID
	fail     error
}

func (s *countedReads) Hold(ctx context.Context, id ledger.HoldID) (ledger.Hold, error) {
	s.single = append(s.single, id)
	return s.Store.Hold(ctx, id)
}

func (s *countedReads) Holds(ctx context.Context, ids []ledger.HoldID) ([]ledger.Hold, error) {
	s.together = append(s.together, ids)
	if s.fail != nil {
		return nil, s.fail
	}
	return s.Store.Holds(ctx, ids)
}

// readingAhead is a function whose releases read ahead of reads.
func (w *world) readingAhead(reads *countedReads) *function {
	f := w.function()
	ahead := expiry.NewReadAhead(reads)
	f.ahead, f.releaser = ahead, commands.New(ahead, w.clock, systemtest.NewRandom(5))
	return f
}

// The holds of a round are read by one call, and no hold by itself.
func TestARoundIsReadTogether(t *testing.T) {
	w := newWorld(t, 10)
	w.holds(7, 0)
	w.clock.Set(start.Add(holdFor))
	reads := &countedReads{Store: w.store}
	f := w.readingAhead(reads)
	if _, err := f.tick(); err != nil {
		t.Fatal(err)
	}
	w.mustBeExpired()
	if len(reads.together) != 1 || len(reads.together[0]) != 7 || len(reads.single) != 0 {
		t.Errorf("read together %v, one by one %v", reads.together, reads.single)
	}
}

// A hold that has changed since it was read ahead is read again: what was read is a hint,
// and the condition of the write decides.
func TestWhatWasReadAheadIsGivenOnce(t *testing.T) {
	w := newWorld(t, 10)
	w.holds(2, 0)
	w.clock.Set(start.Add(holdFor))
	reads := &countedReads{Store: w.store}
	ahead := expiry.NewReadAhead(reads)
	if err := ahead.Read(context.Background(), w.ids); err != nil {
		t.Fatal(err)
	}
	other := w.ids[0]
	if _, err := w.commands.ExpireHold(context.Background(), other, "request_other"); err != nil {
		t.Fatal(err)
	}
	release := commands.New(ahead, w.clock, systemtest.NewRandom(6))
	for i, id := range w.ids {
		released, err := release.ExpireHold(context.Background(), id, "request_sweep")
		if err != nil || released != (i == 1) {
			t.Errorf("hold %d: released %t, %v", i, released, err)
		}
	}
	if !slices.Equal(reads.single, []ledger.HoldID{other}) {
		t.Errorf("read again %v, want %s alone", reads.single, other)
	}
	w.mustBeExpired()
	if err := ahead.Read(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := ahead.Hold(context.Background(), w.ids[1]); err != nil || len(reads.single) != 2 {
		t.Errorf("after a new round: %v, read %v", err, reads.single)
	}
}

// A call for many that fails costs time and nothing else.
func TestAFailedReadAheadCostsTimeOnly(t *testing.T) {
	w := newWorld(t, 10)
	w.holds(3, 0)
	w.clock.Set(start.Add(holdFor))
	reads := &countedReads{Store: w.store, fail: errors.New("throttled")}
	f := w.readingAhead(reads)
	if _, err := f.tick(); err != nil {
		t.Fatal(err)
	}
	w.mustBeExpired()
	if len(reads.single) != 3 {
		t.Errorf("read one by one %v", reads.single)
	}
}
