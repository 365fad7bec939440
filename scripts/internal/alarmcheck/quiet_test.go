package alarmcheck_test

import (
	"testing"
	"time"

	"holdfast/scripts/internal/alarmcheck"
)

// quietFor is longer than the longest period but the archive's day, so that every heartbeat
// has to beat.
const quietFor = 130 * time.Minute

// Nobody is called while all goes well: two hours of buyers who pay and buyers who leave,
// in which every alarm is looked at every minute.
func TestQuietTrafficKeepsEveryAlarmOK(t *testing.T) {
	alarms, p := mustAlarms(t), newPlant(t)
	// An alarm is made after its function has begun to beat.
	p.run(auditEvery + 16*time.Minute)
	for range int(quietFor / time.Minute) {
		p.run(time.Minute)
		for _, a := range alarms {
			state, err := a.State(p.samplesOf(a), p.clock.Now())
			if err != nil {
				t.Fatal(err)
			}
			if state != alarmcheck.OK {
				t.Fatalf("at %s, %s is in %s: %s", p.clock.Now().Format(time.TimeOnly), a.ID, state, a.Description)
			}
		}
	}
}
