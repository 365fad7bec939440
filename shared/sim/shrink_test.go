package sim

import (
	"slices"
	"testing"

	"holdfast/shared/httpapi"
)

// A failing history shrinks to the requests that it needs, without faults that it does
// not need, and is still the same history.
func TestShrinkKeepsWhatIsNeeded(t *testing.T) {
	contract, err := httpapi.LoadContract()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Contract: contract}
	needed := firstCreates(t, o, 2)
	o.suspect = func(sent []int) bool { return slices.Contains(sent, needed[0]) && slices.Contains(sent, needed[1]) }
	smallest := Shrink(7, o)
	left := PlansOfOneHistory - len(smallest.Skip)
	if left != 2 || smallest.Skip[needed[0]] || smallest.Skip[needed[1]] {
		t.Errorf("%d requests are left and %v are skipped; want only %v left", left, smallest.Skip, needed)
	}
	if len(smallest.Without) != len(faultNames) {
		t.Errorf("turned off %v; want all %d kinds of faults off", smallest.Without, len(faultNames))
	}
	if err := smallest.Validate(); err != nil {
		t.Errorf("the smallest history can't be asked for: %v", err)
	}
	if found := Run(7, smallest).Violations; len(found) != 1 || found[0].Promise != "suspect" {
		t.Errorf("the smallest history shows %v", found)
	}
}

// firstCreates are requests that need no other one.
func firstCreates(t *testing.T, o Options, n int) []int {
	t.Helper()
	load := drawWorkload(dicePastFaults(7))
	var numbers []int
	for _, p := range load.plans {
		if p.kind == askCreate && p.repeats < 0 && len(numbers) < n {
			numbers = append(numbers, p.number)
		}
	}
	if len(numbers) < n || len(Run(7, o).Violations) > 0 {
		t.Fatal("seed 7 is not what this test needs")
	}
	return numbers
}

func dicePastFaults(seed uint64) *dice {
	d := newDice(seed, "history")
	drawFaults(d)
	return d
}

// A history that breaks nothing has nothing to shrink.
func TestShrinkLeavesASoundHistory(t *testing.T) {
	contract, err := httpapi.LoadContract()
	if err != nil {
		t.Fatal(err)
	}
	if left := Shrink(7, Options{Contract: contract}); len(left.Skip)+len(left.Without) > 0 {
		t.Errorf("shrunk to %+v", left)
	}
}

// The kernel runs one task at a time, in the order of the agenda, and a killed task ends
// where it waits without a step more.
func TestKernelOrder(t *testing.T) {
	k := newKernel(historyStart)
	var order []string
	say := func(what string) { order = append(order, what) }
	k.spawn(historyStart, "slow", newDice(1, "a"), func(t *task) {
		say("slow begins")
		t.wait(3)
		say("slow ends")
	})
	k.spawn(historyStart.Add(1), "quick", newDice(1, "b"), func(t *task) {
		say("quick begins")
		t.wait(1)
		say("quick ends")
	})
	victim := k.spawn(historyStart, "victim", newDice(1, "c"), func(t *task) {
		defer say("victim is cleaned up")
		t.wait(10)
		say("victim goes on")
	})
	k.at(historyStart.Add(5), victim.kill)
	never := k.spawn(historyStart.Add(20), "never", newDice(1, "d"), func(*task) { say("never") })
	never.kill()
	k.run(historyStart.Add(100))
	want := []string{"slow begins", "quick begins", "quick ends", "slow ends", "victim is cleaned up"}
	if !slices.Equal(order, want) {
		t.Errorf("order %q, want %q", order, want)
	}
	if len(k.alive) > 0 || !k.now.Equal(historyStart.Add(100)) {
		t.Errorf("%d tasks are left at %s", len(k.alive), k.now)
	}
}

// A wake-up that comes late does not end another pause than its own.
func TestLateWakeUp(t *testing.T) {
	k := newKernel(historyStart)
	var woken []string
	k.spawn(historyStart, "sleeper", newDice(1, "a"), func(t *task) {
		late := t.waker()
		k.after(1, t.waker())
		k.after(2, late)
		t.pause()
		woken = append(woken, k.now.Sub(historyStart).String())
		t.wait(10)
		woken = append(woken, k.now.Sub(historyStart).String())
	})
	k.run(historyStart.Add(100))
	if !slices.Equal(woken, []string{"1ns", "11ns"}) {
		t.Errorf("woken at %v, want 1ns and 11ns", woken)
	}
}

// Without is the way to turn kinds of faults off; a misspelt one must not pass for off.
func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{{Without: []string{"crashs"}}, {Skip: map[int]bool{PlansOfOneHistory: true}}} {
		if o.Validate() == nil {
			t.Errorf("%+v was not refused", o)
		}
	}
	all := Options{}
	for _, kind := range faultNames {
		all.Without = append(all.Without, kind.name)
	}
	if err := all.Validate(); err != nil {
		t.Error(err)
	}
	for seed := range uint64(50) {
		if f := drawFaults(newDice(seed, "x")).without(all.Without); f != (Faults{}) {
			t.Fatalf("a kind of fault can't be turned off: %s", f)
		}
	}
	KeptSeeds() // panics for a file that can't be read
}
