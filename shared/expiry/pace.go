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
	// parallelStart is how many holds a sweep ends at once in its first round: enough to hide
	// the way to the database, and too little to be felt by a buyer.
	parallelStart = 2
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
)

// pace is how hard a sweep works: how many holds it ends at once, and how many in a round.
// It is a value, and knows of time only what it is told. It gives way to the buyers, who
// write to the same table: when writes take longer than they did, or the database turns
// some away, the sweep does half as much at once; after each calm round, one more.
type pace struct {
	parallel    int // from 1 to parallelMax
	parallelMax int
	baseline    time.Duration   // the usual p95 of a write; zero until it is known
	writes      []time.Duration // not judged yet, because they are too few
}

// newPace is the pace of a sweep's first round.
func newPace(parallelMax int) pace {
	return pace{parallel: min(parallelStart, parallelMax), parallelMax: parallelMax}
}

// batch is how many holds the next round has.
func (p pace) batch() int { return p.parallel * holdsForEach }

// after is the pace after a round with these times of its writes. strained says that the
// database turned some away, or did not answer in time.
func (p pace) after(writes []time.Duration, strained bool) pace {
	if strained {
		// The times of such a round tell of the fault and not of what is usual.
		p.writes = nil
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
	strained = p95*100 > p.baseline*slowerPercent
	// The baseline follows, so that a table that stays slower, for whatever reason, does not
	// hold the sweep at its slowest for ever.
	p.baseline += (min(p95, p.baseline*baselineStepMax) - p.baseline) / baselineShare
	if strained {
		return p.slower()
	}
	p.parallel = min(p.parallel+1, p.parallelMax)
	return p
}

func (p pace) slower() pace {
	p.parallel = max(1, p.parallel/2)
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
