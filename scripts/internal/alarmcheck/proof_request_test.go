package alarmcheck_test

import (
	"time"

	"holdfast/shared/topology"
)

// requestProofs are faults that buyers meet.
func requestProofs() map[string]proof {
	refusing := func(err error, d time.Duration) proof {
		return proof{fault: func(p *plant) { p.refusing(topology.FunctionAPI, err, "TransactWriteItems"); p.run(d) }}
	}
	return map[string]proof{
		"ApiInternalFaults":   refusing(errInvalid, 2*time.Minute),
		"HoldRequestsFailing": refusing(errNoAnswer, 6*time.Minute),
		"ConflictRetries":     {fault: func(p *plant) { p.outrunning(topology.FunctionAPI, 3); p.run(17 * time.Minute) }},
	}
}
