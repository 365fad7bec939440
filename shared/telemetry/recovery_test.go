package telemetry_test

import (
	"testing"
	"time"

	"holdfast/shared/telemetry"
)

func TestABacklogIsToldWhenItIsOver(t *testing.T) {
	type seen struct {
		at, lag time.Duration
		took    time.Duration // 0 for nothing
	}
	for name, looks := range map[string][]seen{
		"no backlog":                  {{0, 0, 0}, {time.Minute, telemetry.BacklogOver, 0}, {2 * time.Minute, 0, 0}},
		"one":                         {{0, 5 * time.Minute, 0}, {time.Minute, 30 * time.Second, 0}, {2 * time.Minute, 0, 7 * time.Minute}, {3 * time.Minute, 0, 0}},
		"from its oldest":             {{0, 5 * time.Minute, 0}, {time.Minute, 20 * time.Minute, 0}, {2 * time.Minute, 0, 21 * time.Minute}},
		"not from what is left of it": {{0, 10 * time.Minute, 0}, {time.Minute, 5 * time.Minute, 0}, {2 * time.Minute, 0, 12 * time.Minute}},
		"two":                         {{0, 2 * time.Minute, 0}, {time.Minute, 0, 3 * time.Minute}, {10 * time.Minute, 4 * time.Minute, 0}, {11 * time.Minute, 0, 5 * time.Minute}},
		"a clock that was set back":   {{time.Hour, 2 * time.Minute, 0}, {0, 0, 0}, {time.Minute, 0, 0}},
	} {
		var recovery telemetry.Recovery
		for i, look := range looks {
			took, over := recovery.Observe(start.Add(look.at), look.lag, 0)
			if took > 0 != over || over != (look.took > 0) || over && took != look.took {
				t.Errorf("%s: look %d tells %s (%t), want %s", name, i+1, took, over, look.took)
			}
		}
	}
	// Where there is always some lag, as much as is no backlog ends it.
	var recovery telemetry.Recovery
	recovery.Observe(start, 2*time.Minute, telemetry.BacklogOver)
	if took, over := recovery.Observe(start.Add(time.Second), time.Second, telemetry.BacklogOver); !over || took != 2*time.Minute+time.Second {
		t.Errorf("recovered after %s: %t", took, over)
	}
}
