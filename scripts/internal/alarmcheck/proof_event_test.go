package alarmcheck_test

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"holdfast/shared/outbox/outboxtest"
	"holdfast/shared/topology"
)

// eventProofs are faults of what publishes events.
func eventProofs() map[string]proof {
	refusing := func(d time.Duration) proof {
		return proof{fault: func(p *plant) {
			p.bus.Refuse(func(types.PutEventsRequestEntry) string { return outboxtest.CodeInvalid })
			p.run(d)
		}}
	}
	down := func(d time.Duration) proof {
		return proof{calm: longCalm, fault: func(p *plant) { p.bus.Down(true); p.run(d) }}
	}
	return map[string]proof{
		"OutboxSetAside":       refusing(2 * time.Minute),
		"OutboxQuarantine":     refusing(11 * time.Minute),
		"OutboxFailed":         down(4 * time.Minute),
		"OutboxUnpublishedLag": down(35 * time.Minute),
		// Each minute brings more events than a slow bus takes in the function's time.
		"OutboxTruncated": {fault: func(p *plant) {
			p.bus.BeforeCall(func() { p.clock.Advance(29 * time.Second) })
			for range 4 {
				for range 15 {
					p.hold()
				}
				p.run(time.Minute)
			}
		}},
		"OutboxLag": {fault: func(p *plant) { p.streamDelay = 90 * time.Second; p.run(6 * time.Minute) }},
		"ReconcileHeartbeat": {calm: longCalm, fault: func(p *plant) {
			p.refusing(topology.FunctionReconcile, errDenied, "Query")
			p.run(11 * time.Minute)
		}},
	}
}
