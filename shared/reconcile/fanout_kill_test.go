package reconcile_test

import "testing"

// killAt lets the worker die at the nth call from now, before it is made or after it.
func (s *spread) killAt(n int, after bool) {
	calls := 0
	s.step = func(_ string, done bool) {
		if !done {
			calls++
		}
		if calls == n && done == after {
			s.step = nil
			panic(killed{})
		}
	}
}

// A worker dies at each of its calls, before and after, one by one. What it was at comes back
// with the next tick, and the audit ends as if nothing had been.
func TestAnAuditWhoseWorkerDiesAnywhereEndsOnce(t *testing.T) {
	const callsMin = 30
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			s := newSpread(t)
			s.killAt(n, after)
			died := s.tick()
			if s.drain(1) {
				died = true
			}
			if !died {
				if n < callsMin {
					t.Fatalf("an audit makes %d calls only", n)
				}
				break
			}
			s.clock.Advance(fanoutTick)
			s.run(2)
			s.endedOnce()
			if t.Failed() {
				t.Fatalf("died at call %d, after it: %t; log %s", n, after, s.logs.String())
			}
		}
	}
}

// A worker stands still at each of its calls while others do all of the work, and goes on
// then as if nothing had been.
func TestAnAuditWhoseWorkerWasThoughtDeadEndsOnce(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			s := newSpread(t)
			calls, stood := 0, false
			s.step = func(_ string, done bool) {
				if !done {
					calls++
				}
				if !stood && calls == n && done == after {
					stood = true
					s.step = nil
					s.clock.Advance(fanoutTick)
					s.run(2)
				}
			}
			s.tick()
			s.drain(1)
			if !stood {
				break
			}
			s.run(1)
			s.endedOnce()
			if t.Failed() {
				t.Fatalf("stood at call %d, after it: %t; log %s", n, after, s.logs.String())
			}
		}
	}
}
