package sim

import (
	"maps"
	"slices"
)

// shrinkRunsMax bounds how many histories a shrink may play.
const shrinkRunsMax = 600

// Shrink looks for a smaller history of the same seed that breaks the same promise:
// first with fewer kinds of faults, then with fewer requests. Every request and every
// fault draws from dice of its own, so what is left keeps its course for the most part.
// It returns the options of the smallest one that it found.
func Shrink(seed uint64, o Options) Options {
	s := shrinker{seed: seed, smallest: o}
	first := Run(seed, o)
	if len(first.Violations) == 0 {
		return o
	}
	s.promise = first.Violations[0].Promise
	for _, kind := range faultNames {
		s.tryWithout(kind.name)
	}
	for size := PlansOfOneHistory / 2; size >= 1; size /= 2 {
		s.trySkipping(size)
	}
	return s.smallest
}

// shrinker is a shrink under way.
type shrinker struct {
	seed     uint64
	promise  string
	smallest Options
	runs     int
}

// fails plays the history and reports whether it still breaks the promise.
func (s *shrinker) fails(o Options) bool {
	s.runs++
	return s.runs <= shrinkRunsMax && slices.ContainsFunc(Run(s.seed, o).Violations, func(v Violation) bool { return v.Promise == s.promise })
}

func (s *shrinker) tryWithout(fault string) {
	o := s.smallest
	o.Without = append(slices.Clone(o.Without), fault)
	if s.fails(o) {
		s.smallest = o
	}
}

// trySkipping leaves out runs of so many requests, one after the other.
func (s *shrinker) trySkipping(size int) {
	for first := 0; first < PlansOfOneHistory; first += size {
		o := s.smallest
		o.Skip = maps.Clone(o.Skip)
		if o.Skip == nil {
			o.Skip = map[int]bool{}
		}
		before := len(o.Skip)
		for number := first; number < min(first+size, PlansOfOneHistory); number++ {
			o.Skip[number] = true
		}
		if len(o.Skip) > before && s.fails(o) {
			s.smallest = o
		}
	}
}
