package alarmcheck_test

import (
	"time"

	"holdfast/shared/topology"
)

// expiryProofs are faults of what ends holds.
func expiryProofs() map[string]proof {
	// The role of the expiry function loses the permission to write, and time passes.
	powerless := func(d time.Duration) proof {
		return proof{fault: func(p *plant) {
			p.refusing(topology.FunctionExpiry, errDenied, "TransactWriteItems")
			p.run(d)
		}}
	}
	wrongClock := func(by, d time.Duration) proof {
		return proof{fault: func(p *plant) { p.database.ahead = by; p.run(d) }}
	}
	return map[string]proof{
		"ExpiryLag":           powerless(6 * time.Minute),
		"ExpiryLagLong":       powerless(9 * time.Minute),
		"ExpiryGhosts":        powerless(9 * time.Minute),
		"ExpiryParked":        powerless(6 * time.Minute),
		"ExpiryFailedWaiting": powerless(6 * time.Minute),
		"ExpiryHoldsFailed":   powerless(7 * time.Minute),
		"DueFailed":           powerless(7 * time.Minute),
		"ExpiryHeartbeat": {fault: func(p *plant) {
			p.refusing(topology.FunctionExpiry, errDenied, "Query")
			p.run(3 * time.Minute)
		}},
		// A crowd of holds is due at once, no message ends them, and each write is slow.
		"ExpiryTruncated": {fault: func(p *plant) {
			p.queueHeld[topology.ResourceDueQueue] = true
			for range 40 {
				p.hold()
			}
			p.run(holdFor - time.Minute)
			p.slowing(topology.FunctionExpiry, 20*time.Second, "TransactWriteItems")
			p.run(5 * time.Minute)
		}},
		"ExpiryReleaseDelay": {fault: func(p *plant) {
			p.queueHeld[topology.ResourceDueQueue] = true
			p.run(20 * time.Minute)
		}},
		"OutboxDueUnsent": {fault: func(p *plant) {
			p.queues.down[topology.ResourceDueQueue] = true
			p.run(4 * time.Minute)
		}},
		"ClockSkew":       wrongClock(5*time.Second, 5*time.Minute),
		"ClockUnreliable": wrongClock(40*time.Second, 3*time.Minute),
	}
}
