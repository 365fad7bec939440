package alarmcheck

import (
	"fmt"
	"time"
)

// State is what an alarm says.
type State string

// The states.
const (
	OK               State = "OK"                // what was measured is within the limit
	InAlarm          State = "ALARM"             // it is over it, often enough
	InsufficientData State = "INSUFFICIENT_DATA" // nothing was measured, and silence means nothing
)

// Missing says what silence means.
type Missing string

// What silence may mean. CloudWatch also knows "ignore", under which an alarm depends on
// what it was before; no alarm of ours may.
const (
	MissingBreaching    Missing = "breaching"
	MissingNotBreaching Missing = "notBreaching"
	MissingMissing      Missing = "missing"
)

const (
	// evaluatedEvery is how often CloudWatch looks at an alarm whose period is a minute or
	// more ("evaluation").
	evaluatedEvery = time.Minute
	// rangeBeyondPeriods is by how many periods CloudWatch looks back further than the alarm's
	// own. The page "missing data" says that it does and that the number varies; in its
	// examples of 3 periods the range is 5.
	rangeBeyondPeriods = 2
)

// Alarm is one alarm of a template.
type Alarm struct {
	// ID is the name that the code gave it: the logical id without its hash.
	ID          string
	Description string
	// Actions are the topics that hear of it, by the same kind of name.
	Actions []string
	// Watched is the number that is compared.
	Watched    Expression
	Comparison Comparison
	Threshold  float64
	Period     time.Duration
	// Periods is how many periods are looked at, and ToAlarm how many of them must breach.
	Periods, ToAlarm int
	Missing          Missing
}

// State is what CloudWatch says at now, when samples is all that was reported. The window
// ends with the last whole minute and slides with it ("evaluation": an alarm of five
// minutes is looked at each minute, over the five before).
func (a Alarm) State(samples []Sample, now time.Time) (State, error) {
	end := now.Truncate(evaluatedEvery)
	samples = a.Watched.own(samples)
	var breaches []*bool // the oldest first; nil where nothing was measured
	for back := a.Periods + rangeBeyondPeriods; back > 0; back-- {
		from := end.Add(-time.Duration(back) * a.Period)
		value, measured, err := a.Watched.valueIn(samples, from, from.Add(a.Period))
		if err != nil {
			return "", fmt.Errorf("alarm %s: %w", a.ID, err)
		}
		if !measured {
			breaches = append(breaches, nil)
			continue
		}
		breached := a.Comparison.holds(value, a.Threshold)
		breaches = append(breaches, &breached)
	}
	return a.decide(breaches), nil
}

// decide is the table of the page "missing data".
func (a Alarm) decide(breaches []*bool) State {
	var measured []bool
	for _, breached := range breaches {
		if breached != nil {
			measured = append(measured, *breached)
		}
	}
	if len(measured) == 0 && a.Missing == MissingMissing {
		return InsufficientData
	}
	// Enough real numbers make the rule for missing ones void, also when older ones are
	// needed for it.
	filled := max(0, a.Periods-len(measured))
	if filled == 0 {
		measured = measured[len(measured)-a.Periods:]
	}
	count := 0
	for _, breached := range measured {
		if breached {
			count++
		}
	}
	if a.Missing == MissingBreaching {
		count += filled
	}
	if count >= a.ToAlarm || a.Missing == MissingMissing && filled > 0 && a.isPremature(breaches) {
		return InAlarm
	}
	return OK
}

// isPremature is the exception that the page calls a premature alarm: one number breached,
// it is as old as the alarm asks for, and nothing better was heard since.
func (a Alarm) isPremature(breaches []*bool) bool {
	for i, breached := range breaches {
		if breached == nil {
			continue
		}
		if !*breached {
			return false
		}
		for _, later := range breaches[i:] {
			if later != nil && !*later {
				return false
			}
		}
		return len(breaches)-i >= a.ToAlarm
	}
	return false
}
