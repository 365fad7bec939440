package sim

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
)

// keptFile has the seeds that once failed, one a line, with what they found.
//
//go:embed seeds.txt
var keptFile string

// KeptSeeds are the seeds that once broke a promise. They are played in every campaign.
func KeptSeeds() []uint64 {
	var seeds []uint64
	for line := range strings.Lines(keptFile) {
		text, _, _ := strings.Cut(line, "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			panic("sim: seeds.txt: " + err.Error()) // a test reads the file
		}
		seeds = append(seeds, seed)
	}
	return seeds
}

// FailuresMax ends a campaign early: more failing histories of one kind teach nothing.
const FailuresMax = 3

// Campaign is many histories, played on several processors. Each history is played by
// one of them, so its course does not depend on how many there are.
type Campaign struct {
	First     uint64 // seed of the first history; the others follow
	Histories int
	Also      []uint64 // seeds to play first
	Workers   int
	Contract  *httpapi.Contract
	// FailuresMax is how many failing histories end the campaign early; zero plays all. The one of
	// the lowest seed is among them, however many workers there are, because seeds are
	// handed out in order and what was begun is played to its end.
	FailuresMax int
}

// Report is what a campaign saw.
type Report struct {
	Histories, Steps, Requests, Tries, Holds, Undecided int
	Parked, GivenUp, Prompt, Archived, Audits, Planted  int
	Ends                                                map[ledger.ReservationStatus]int
	Took                                                time.Duration
	Failed                                              []Result // by seed
}

// Play plays the histories until all are played or some have failed.
func (c Campaign) Play() Report {
	seeds := make(chan uint64)
	results := make(chan Result)
	var workers sync.WaitGroup
	for range c.Workers {
		workers.Go(func() {
			for seed := range seeds {
				results <- Run(seed, Options{Contract: c.Contract})
			}
		})
	}
	enough := make(chan struct{})
	go func() {
		c.hand(seeds, enough)
		workers.Wait()
		close(results)
	}()
	started := time.Now()
	var report Report
	for result := range results {
		report.add(result)
		if len(report.Failed) == c.FailuresMax && len(result.Violations) > 0 {
			close(enough)
		}
	}
	report.Took = time.Since(started)
	slices.SortFunc(report.Failed, func(a, b Result) int { return int(min(max(int64(a.Seed)-int64(b.Seed), -1), 1)) })
	return report
}

// hand hands out the seeds until all are handed out or enough have failed.
func (c Campaign) hand(seeds chan<- uint64, enough <-chan struct{}) {
	defer close(seeds)
	for i := range len(c.Also) + c.Histories {
		seed := c.First + uint64(i-len(c.Also))
		if i < len(c.Also) {
			seed = c.Also[i]
		}
		select {
		case seeds <- seed:
		case <-enough:
			return
		}
	}
}

func (r *Report) add(one Result) {
	r.Histories++
	r.Steps += one.Steps
	r.Requests += one.Requests
	r.Tries += one.Tries
	r.Holds += one.Holds
	r.Parked += one.Parked
	r.GivenUp += one.GivenUp
	r.Prompt += one.Prompt
	r.Archived += one.Archived
	r.Audits += one.Audits
	r.Planted += one.Planted
	r.Undecided += one.Undecided
	if r.Ends == nil {
		r.Ends = map[ledger.ReservationStatus]int{}
	}
	for status, n := range one.Ends {
		r.Ends[status] += n
	}
	if len(one.Violations) > 0 {
		r.Failed = append(r.Failed, one)
	}
}

func (r Report) String() string {
	seconds := max(r.Took.Seconds(), 0.001)
	var ends []string
	for _, status := range sortedKeys(r.Ends) {
		ends = append(ends, fmt.Sprintf("%s=%d", status, r.Ends[status]))
	}
	return fmt.Sprintf("histories=%d requests=%d tries=%d holds=%d steps=%d undecided=%d failed=%d\nparked=%d given up=%d prompt=%d archived=%d audits=%d planted=%d\nreservations: %s\n%.0f histories/s, %.0f steps/s, %.1f s",
		r.Histories, r.Requests, r.Tries, r.Holds, r.Steps, r.Undecided, len(r.Failed), r.Parked, r.GivenUp, r.Prompt, r.Archived, r.Audits, r.Planted, strings.Join(ends, " "),
		float64(r.Histories)/seconds, float64(r.Steps)/seconds, seconds)
}
