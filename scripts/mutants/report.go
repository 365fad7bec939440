package main

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// testsShown bounds how many failed tests are named.
const testsShown = 3

// killedBy says what noticed the mutant.
func (o outcome) killedBy() string {
	switch {
	case o.seeds > 0:
		return strings.Join(o.promises, ", ")
	case len(o.tests) > testsShown:
		return fmt.Sprintf("%s and %d more tests", strings.Join(o.tests[:testsShown], ", "), len(o.tests)-testsShown)
	case len(o.tests) > 0:
		return strings.Join(o.tests, ", ")
	}
	return "NOTHING"
}

// seedsText is how many seeds it took, or a dash.
func (o outcome) seedsText() string {
	if o.seeds == 0 {
		return "–"
	}
	return strconv.Itoa(o.seeds)
}

func (o outcome) String() string {
	return fmt.Sprintf("%-50s %4s  %s", o.mutant.name, o.seedsText(), o.killedBy())
}

// summary counts outcomes.
type summary struct {
	survivors                []string
	bySimulation, byTests    int
	seedsMedian, seedsInMost int
}

func summarize(outcomes []outcome) summary {
	var s summary
	var seeds []int
	for _, o := range outcomes {
		switch {
		case o.seeds > 0:
			s.bySimulation++
			seeds = append(seeds, o.seeds)
		case len(o.tests) > 0:
			s.byTests++
		default:
			s.survivors = append(s.survivors, o.mutant.name)
		}
	}
	if len(seeds) > 0 {
		slices.Sort(seeds)
		s.seedsMedian, s.seedsInMost = seeds[len(seeds)/2], seeds[len(seeds)-1]
	}
	return s
}

func (s summary) good() bool { return len(s.survivors) == 0 && s.seedsMedian < seedsMedianMax }

func (s summary) String() string {
	text := fmt.Sprintf("%d mutants: %d killed by the simulation (seeds needed: median %d, most %d), %d by tests, %d survived",
		s.bySimulation+s.byTests+len(s.survivors), s.bySimulation, s.seedsMedian, s.seedsInMost, s.byTests, len(s.survivors))
	if len(s.survivors) > 0 {
		text += ": " + strings.Join(s.survivors, ", ")
	}
	return text
}

// markdown is the page that is committed.
func markdown(outcomes []outcome, o options) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# What notices which mistake

Written by `+"`go run ./scripts/mutants -write`"+`: each mutant is a mistake that is made on purpose in a copy of
the code. The simulation played at most %d histories from seed %d on against each, and stopped at the first one that broke a
promise; "seeds" is how many that took. The mutants that it cannot see are left to the tests of a package. A mutant of several
edits removes all guards that have one purpose.

%s.

| mutant | in | what goes wrong | killed by | seeds |
|---|---|---|---|---:|
`, o.histories, o.seed, summarize(outcomes))
	for _, one := range outcomes {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", one.mutant.name, one.mutant.packages(), one.mutant.harm, one.killedBy(), one.seedsText())
	}
	return b.String()
}

// packages names the packages that the mutant changes, and how many edits it takes.
func (m mutant) packages() string {
	var names []string
	for _, e := range m.edits {
		if name := path.Base(path.Dir(e.file)); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	text := strings.Join(names, ", ")
	if len(m.edits) > 1 {
		text += fmt.Sprintf(" (%d edits)", len(m.edits))
	}
	return text
}
