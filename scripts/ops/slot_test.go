package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
)

// An operator changes a slot under its holds. Each change keeps who did it and why, and one that
// the ledger refuses changes nothing.
func TestASlotIsChangedByAnOperator(t *testing.T) {
	w := newWorld(t, time.Minute)
	w.hold()
	by := []string{"-who", "olga", "-why", "two seats are broken"}
	for _, step := range []struct {
		command []string
		want    changed
	}{
		{[]string{"adjust", "seat", "-delta", "-2"}, changed{Open: true, Shards: 1, Capacity: 3, Available: 2, Held: 1, Version: 2}},
		{[]string{"adjust", "seat", "-capacity", "9"}, changed{Open: true, Shards: 1, Capacity: 9, Available: 8, Held: 1, Version: 3}},
		{[]string{"reshard", "seat", "4"}, changed{Open: true, Shards: 4, Capacity: 9, Available: 8, Held: 1, Version: 4}},
		{[]string{"reshard", "seat", "2"}, changed{Open: true, Shards: 2, Retired: 2, Capacity: 9, Available: 8, Held: 1, Version: 5}},
		{[]string{"close", "seat"}, changed{Shards: 2, Retired: 2, Capacity: 9, Available: 8, Held: 1, Version: 6}},
		{[]string{"close", "seat"}, changed{Shards: 2, Retired: 2, Capacity: 9, Available: 8, Held: 1, Version: 6}}, // nothing is left to do
		{[]string{"open", "seat"}, changed{Open: true, Shards: 2, Retired: 2, Capacity: 9, Available: 8, Held: 1, Version: 7}},
	} {
		var out []changed
		step.want.Slot = slotID
		if w.opsJSON(&out, step.command[0], append(step.command[1:], by...)...); len(out) != 1 || out[0] != step.want {
			t.Errorf("%v gives %+v, want %+v", step.command, out, step.want)
		}
	}
	events, err := w.store.SlotEvents(t.Context(), slotID)
	w.check(err)
	for _, e := range events[1:] {
		if e.Origin.Actor != "operator:olga" || e.Origin.Why != "two seats are broken" || e.Origin.Command != ledger.CommandPatchSlot {
			t.Errorf("version %d is by %+v", e.Version, e.Origin)
		}
	}

	var out bytes.Buffer
	err = run(t.Context(), append([]string{"adjust", "-environment", w.environment, "seat", "-capacity", "0"}, by...), &out)
	if ledger.CodeOf(err) != ledger.CodeCapacityInUse {
		t.Errorf("less than is held: %v, want %s", err, ledger.CodeCapacityInUse)
	}
	out.Reset()
	err = run(t.Context(), append([]string{"close", "-environment", w.environment, "seat", "none"}, by...), &out)
	if ledger.CodeOf(err) != ledger.CodeSlotNotFound || !strings.Contains(out.String(), "seat") {
		t.Errorf("of two slots of which one is there: %v\n%s", err, out.String())
	}
}
