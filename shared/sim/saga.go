package sim

import (
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/shared/topology"
)

// startSaga starts two processes of the saga, so that they race, on the queue that wakes
// them.
func (w *world) startSaga() {
	w.sagas = []*instance{w.newInstance("saga-0", topology.FunctionSaga), w.newInstance("saga-1", topology.FunctionSaga)}
	w.queues[sagaQueueURL].consume(w.sagas, handleMessages)
}

// handleMessages hands a batch to the function and reads its answer as the mapping does.
func handleMessages(to *instance, event json.RawMessage) (events.SQSEventResponse, error) {
	answer, err := to.saga.Handle(to.deadline(), event)
	if err != nil {
		return events.SQSEventResponse{}, err
	}
	response, known := answer.(events.SQSEventResponse)
	if !known {
		return response, fmt.Errorf("the saga answered a batch with %T", answer)
	}
	return response, nil
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
