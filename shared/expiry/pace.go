package expiry

import (
	"slices"
	"time"
)

const (
	// ParallelMaxDefault is how many holds a sweep ends at once at the most, if it is not
	// told otherwise. More than that gains little: each is two calls of some milliseconds,
	// and other workers run.
	ParallelMaxDefault = 8
	// ParallelLimit bounds that setting, and so the connections and the memory of a sweep.
	ParallelLimit = 64
	// holdsForEach is how many holds a round has for each that is ended at once. It makes a
	// round of about a second, so that a pace that is too high is not kept for long.
	holdsForEach = 25
	// samplesMin is how many writes a p95 is taken of. It is the least number whose p95 is
	// not simply the slowest of all.
	samplesMin = 20
	// slowerPercent is the p95, in percent of the baseline, from which on the database
	// counts as strained.
	slowerPercent = 120
	// baselineShare is the share of each new p95 in the baseline, as a divisor: about so
	// many rounds make what has become usual the new baseline.
	baselineShare = 8
	// baselineStepMax bounds what one round does to the baseline, as a multiple of it: one
	// bad round must not make bad rounds usual.
	baselineStepMax = 2
	// probeAfterMax bounds how many calm rounds a sweep waits before it tries one more at
	// once, where that was too much before. A table that has recovered is used in full again
	// after some of them; one that has not is pressed in one round of so many.
	probeAfterMax = 32
)

// pace is how hard a sweep works: how many holds it ends at once, and how many in a round.
// It is a value, and knows of time only what it is told. It gives way to the buyers, who
// write to the same table: when writes take longer than one alone does, or the database
// turns some away, the sweep does half as much at once; after calm rounds, one more. Each
// time that one more was too much, it waits twice as long before it tries again.
type pace struct {
	parallel    int // from parallelMin to parallelMax
	parallelMin int
	parallelMax int
	// baseline is the usual p95 of a write when parallelMin holds are ended at a time; zero
	// until it is known.
	baseline   time.Duration
	calm       int             // calm rounds since parallel last changed
	probeAfter int             // how many of them it takes to try one more at once
	writes     []time.Duration // not judged yet, because they are too few
}

// newPace is the pace of a sweep's first round. That has as few at once as may be: a buyer
// feels it least, and it is the only way to learn what a write takes that stands behind no
// other of this sweep.
func newPace(parallelMin, parallelMax int) pace {
	parallelMin = max(1, parallelMin)
	return pace{parallel: parallelMin, parallelMin: parallelMin, parallelMax: parallelMax, probeAfter: 1}
}

// batch is how many holds the next round has.
func (p pace) batch() int { return p.parallel * holdsForEach }

// after is the pace after a round with these times of its writes. strained says that the
// database turned some away, or did not answer in time.
func (p pace) after(writes []time.Duration, strained bool) pace {
	if strained {
		// The times of such a round tell of the fault and not of what is usual.
		return p.slower()
	}
	p.writes = append(slices.Clip(p.writes), writes...)
	if len(p.writes) < samplesMin {
		return p
	}
	p95 := percentile95(p.writes)
	p.writes = nil
	if p.baseline == 0 {
		p.baseline = p95
	}
	slow := p95*100 > p.baseline*slowerPercent
	if p.parallel == p.parallelMin {
		// The baseline follows, so that a table that stays slower, for whatever reason, does
		// not hold the sweep at its slowest for ever.
		p.baseline += (min(p95, p.baseline*baselineStepMax) - p.baseline) / baselineShare
	}
	if slow {
		return p.slower()
	}
	return p.faster()
}

// slower is the pace after a round that was too much.
func (p pace) slower() pace {
	if p.parallel > p.parallelMin {
		p.probeAfter = min(2*p.probeAfter, probeAfterMax)
	}
	p.parallel, p.calm, p.writes = max(p.parallelMin, p.parallel/2), 0, nil
	return p
}

// faster is the pace after a calm round.
func (p pace) faster() pace {
	if p.parallel > p.parallelMin {
		p.probeAfter = 1 // more at once is not too much
	}
	if p.calm++; p.calm >= p.probeAfter && p.parallel < p.parallelMax {
		p.parallel, p.calm, p.writes = p.parallel+1, 0, nil
	}
	return p
}

// percentile95 is the time that 95 % of these stay at or under. It is zero for none.
func percentile95(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[(len(sorted)*95+99)/100-1]
}
