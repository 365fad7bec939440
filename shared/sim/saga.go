package sim

import (
	"encoding/json"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/shared/topology"
)

// startSaga starts two processes of the saga, so that they race, on the queue that wakes
// them.
func (w *world) startSaga() {
	w.sagas = []*instance{w.newInstance("saga-0", topology.FunctionSaga), w.newInstance("saga-1", topology.FunctionSaga)}
	w.queues[sagaQueueURL].consume(w.sagas, func(to *instance, event json.RawMessage) (events.SQSEventResponse, error) {
		return batchAnswer(to.saga.Handle(to.deadline(), event))
	})
}

// tickSaga invokes the saga for a tick of the Scheduler.
func (w *world) tickSaga(name string) {
	to := pick(w.dice(name+" goes to"), w.sagas)
	w.trace.add("%s", name)
	to.invoke(name, func() {
		if _, err := to.saga.Handle(to.deadline(), json.RawMessage(`{}`)); err != nil {
			w.trace.add("%s: %v", name, err)
		}
	}, func(completed bool) { w.trace.add("%s ended, completed: %t", name, completed) })
}
