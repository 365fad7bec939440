package expiry

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// steady are the times of n writes that all take as long.
func steady(n int, each time.Duration) []time.Duration {
	return slices.Repeat([]time.Duration{each}, n)
}

// Whatever the rounds are like, the pace stays within its bounds, and one round never more
// than adds one or halves.
func TestThePaceIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, ParallelLimit).Draw(t, "most")
		p := newPace(1, most)
		for range rapid.IntRange(1, 100).Draw(t, "rounds") {
			writes := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration {
				return time.Duration(rapid.Int64Range(0, int64(StepFor)).Draw(t, "write"))
			}), 0, 60).Draw(t, "writes")
			strained := rapid.Bool().Draw(t, "strained")
			before := p
			p = p.after(writes, strained)
			if p.parallel < 1 || p.parallel > most || p.batch() != p.parallel*holdsForEach {
				t.Fatalf("%d at once of %d, in rounds of %d", p.parallel, most, p.batch())
			}
			if p.parallel > before.parallel+1 || p.parallel < max(1, before.parallel/2) {
				t.Fatalf("from %d at once to %d", before.parallel, p.parallel)
			}
			if strained && before.parallel > 1 && p.parallel >= before.parallel {
				t.Fatalf("a strained database gets %d at once after %d", p.parallel, before.parallel)
			}
			if p.probeAfter < 1 || p.probeAfter > probeAfterMax || p.calm > p.probeAfter && p.parallel < most {
				t.Fatalf("%d of %d calm rounds", p.calm, p.probeAfter)
			}
			if p.baseline < 0 || len(p.writes) >= samplesMin {
				t.Fatalf("a baseline of %s, and %d writes that are not judged", p.baseline, len(p.writes))
			}
		}
	})
}

// A sweep begins gently, and on a database that does not mind it comes to its most, one
// step for each round.
func TestACalmDatabaseIsUsedInFull(t *testing.T) {
	p := newPace(1, ParallelMaxDefault)
	if p.parallel != 1 {
		t.Errorf("it begins with %d at once", p.parallel)
	}
	for round := 1; round <= 2*ParallelMaxDefault; round++ {
		p = p.after(steady(p.batch(), 10*time.Millisecond), false)
		if want := min(1+round, ParallelMaxDefault); p.parallel != want {
			t.Fatalf("%d at once after %d rounds, want %d", p.parallel, round, want)
		}
	}
	if p := newPace(1, 1).after(steady(100, 10*time.Millisecond), false); p.parallel != 1 {
		t.Error("the most is 1, and it does more")
	}
}

// A database whose writes wait for each other takes longer the more are made at once, and
// nothing is gained. The pace stays at one, where a buyer waits least, and tries more the
// more seldom the longer that lasts.
func TestASerialDatabaseIsNotPressed(t *testing.T) {
	p := newPace(1, ParallelMaxDefault)
	pressed := 0
	for round := range 400 {
		p = p.after(steady(p.batch(), time.Duration(p.parallel)*time.Millisecond), false)
		if p.parallel > 2 {
			t.Fatalf("round %d: %d at once", round, p.parallel)
		}
		if round >= 200 && p.parallel > 1 {
			pressed++
		}
	}
	if pressed < 1 || pressed > 200/probeAfterMax+1 {
		t.Errorf("pressed in %d of the last 200 rounds", pressed)
	}
}

// A throttle halves the pace, down to 1, and when it is over the pace comes back. So does
// it when writes have become slower for good.
func TestThePaceShrinksAndComesBack(t *testing.T) {
	calm := func(p pace, rounds int, each time.Duration) pace {
		for range rounds {
			p = p.after(steady(p.batch(), each), false)
		}
		return p
	}
	p := calm(newPace(1, ParallelMaxDefault), 10, 10*time.Millisecond)
	for _, want := range []int{4, 2, 1, 1} {
		// The times of a strained round are not taken for usual.
		if p = p.after(steady(p.batch(), StepFor), true); p.parallel != want || p.baseline != 10*time.Millisecond {
			t.Fatalf("%d at once and a baseline of %s, want %d", p.parallel, p.baseline, want)
		}
	}
	// Three times it was too much, so eight calm rounds pass before one more is tried.
	if p = calm(p, 8+ParallelMaxDefault-2, 10*time.Millisecond); p.parallel != ParallelMaxDefault {
		t.Errorf("%d at once after the throttle", p.parallel)
	}
	if p = calm(p, 1, 12*time.Millisecond); p.parallel != ParallelMaxDefault {
		t.Errorf("%d at once when writes take 20 %% longer", p.parallel)
	}
	slower := calm(p, 3, 13*time.Millisecond)
	if slower.parallel >= ParallelMaxDefault {
		t.Errorf("%d at once when writes take 30 %% longer", slower.parallel)
	}
	if p = calm(p, 60, 30*time.Millisecond); p.parallel != ParallelMaxDefault {
		t.Errorf("%d at once when slow writes have become usual", p.parallel)
	}
}

// Five slow writes in a hundred are no strain, six are: the p95 decides.
func TestTheP95Decides(t *testing.T) {
	for slow, want := range map[int]int{5: 3, 6: 1} {
		p := newPace(1, ParallelMaxDefault).after(steady(100, 10*time.Millisecond), false) // 2 at once
		if p = p.after(append(steady(100-slow, 10*time.Millisecond), steady(slow, time.Second)...), false); p.parallel != want {
			t.Errorf("with %d slow writes %d at once, want %d", slow, p.parallel, want)
		}
	}
}

// A few writes tell nothing by themselves. They count together with those of the next
// rounds, also when a slow database lets no round have many.
func TestFewWritesAreJudgedTogether(t *testing.T) {
	p := newPace(1, ParallelMaxDefault).after(steady(100, 10*time.Millisecond), false)
	for round := range 4 {
		before := p.parallel
		p = p.after(steady(samplesMin/4, time.Second), false)
		if last := round == 3; (p.parallel < before) != last {
			t.Errorf("round %d: from %d at once to %d", round, before, p.parallel)
		}
	}
	if idle := p.after(nil, false); idle.parallel != p.parallel || idle.baseline != p.baseline {
		t.Errorf("a round without writes changes the pace")
	}
}

// A pace with a least goes no lower, and judges by what writes take at that.
func TestThePaceHasALeast(t *testing.T) {
	p := newPace(4, 8)
	for range 20 {
		if p = p.after(steady(p.batch(), time.Duration(p.parallel)*time.Millisecond), false); p.parallel < 4 || p.parallel > 5 {
			t.Fatalf("%d at once", p.parallel)
		}
	}
	if p = p.after(nil, true); p.parallel != 4 {
		t.Errorf("%d at once when the database is strained", p.parallel)
	}
}

// The p95 of a list is its nearest rank.
func TestThe95thPercentile(t *testing.T) {
	var times []time.Duration
	for i := 200; i >= 1; i-- {
		times = append(times, time.Duration(i))
	}
	for n, want := range map[int]time.Duration{0: 0, 1: 200, 20: 199, 100: 195, 200: 190} {
		if got := percentile95(times[:n]); got != want {
			t.Errorf("of %d: %d, want %d", n, got, want)
		}
	}
}
