package main

import (
	"fmt"

	"holdfast/shared/topology"
)

// queueReceivesLate: a message that has been received so often and is still there is one
// that retries do not heal by themselves.
const queueReceivesLate = 2

// queueAlarms watch what waits: what people must read from the first message, and work by
// the age of its oldest message.
func queueAlarms(w watched) []alarm {
	var alarms []alarm
	for _, resource := range topology.QueuesForPeople() {
		meaning := fmt.Sprintf("Dead letters wait in the queue %s: work was given up after its retries. "+
			"The ledger itself still has the truth, so repair the cause first.", resource)
		if resource == topology.ResourceExpiryFailed {
			meaning = fmt.Sprintf("The queue %s was told of holds that could not be ended: their stock stays locked, and they are tried every few minutes.", resource)
		}
		queue := w.resources.queues.forPeople[resource]
		alarms = append(alarms, above(constructID(string(resource))+"Waiting",
			queue.MetricApproximateNumberOfMessagesVisible(over(minutePeriod, "Maximum")), 0, 1, page("status", meaning)))
	}
	for _, f := range w.functions {
		if f.Queue == nil {
			continue
		}
		// The age may count from the sending: SQS does not say that it leaves out the delay.
		late := f.Queue.DelayMax + queueReceivesLate*f.Queue.VisibilityTimeout
		queue := w.resources.queues.work[f.Queue.Queue]
		alarms = append(alarms, above(constructID(string(f.Queue.Queue))+"Old",
			queue.MetricApproximateAgeOfOldestMessage(over(minutePeriod, "Maximum")), late.Seconds(), 1, ticket("status",
				fmt.Sprintf("A message in the queue %s waits for more than %.0f seconds: the function %s does not keep up, or fails at it again and again.",
					f.Queue.Queue, late.Seconds(), f.Name))))
	}
	return alarms
}
