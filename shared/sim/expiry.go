package sim

import (
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/expiry"
	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
)

// startExpiry starts two processes of the expiry function, so that sweeps, due messages
// and one another's leases race, on the queue of due messages.
func (w *world) startExpiry() {
	d := w.dice("settings of the sweep")
	w.sweep = expiry.SweepSettings{PageItems: pick(d, []int{1, 100, 100}), ParallelMax: pick(d, []int{1, 3, expiry.ParallelMaxDefault})}
	w.sweepers = []*instance{w.newInstance("expiry-0", topology.FunctionExpiry), w.newInstance("expiry-1", topology.FunctionExpiry)}
	w.queues[dueQueueURL].consume(w.sweepers, func(to *instance, event json.RawMessage) (events.SQSEventResponse, error) {
		return batchAnswer(to.expiry.Handle(to.deadline(), event))
	})
}

// newExpiry wires the expiry function of the instance.
func (i *instance) newExpiry(store *dynamo.Store) (*expiry.Handler, error) {
	w, random, ahead := i.world, taskRandom{i.world.kernel}, expiry.NewReadAhead(store)
	return expiry.NewFunction(expiry.FunctionPorts{
		Store: store, Releaser: commands.New(ahead, i.clock, random), Ahead: ahead, Parking: store, Leases: store,
		Due: expiry.NewQueue(&sender{w, i}, dueQueueURL), Failed: expiry.NewQueue(&sender{w, i}, expiryFailedQueueURL),
		Skew: i.gauge, Commands: telemetry.NewCommandTally(), Metrics: noMetrics{}, Clock: i.clock, Random: random, Parallel: parallel{w.kernel}, Logger: noLogger,
	}, w.sweep)
}

// tickExpiry invokes the expiry function for a tick of the Scheduler. A call that fails is
// not tried again: the next tick does its work.
func (w *world) tickExpiry(name string) {
	to := pick(w.dice(name+" goes to"), w.sweepers)
	w.trace.add("%s", name)
	to.invoke(name, func() {
		if _, err := to.expiry.Handle(to.deadline(), json.RawMessage(`{}`)); err != nil {
			w.trace.add("%s: %v", name, err)
		}
	}, func(completed bool) { w.trace.add("%s ended, completed: %t", name, completed) })
}

// batchAnswer reads what a function answers to a batch of a queue, as the mapping does.
func batchAnswer(answer any, err error) (events.SQSEventResponse, error) {
	if err != nil {
		return events.SQSEventResponse{}, err
	}
	response, known := answer.(events.SQSEventResponse)
	if !known {
		return response, fmt.Errorf("a batch was answered with %T", answer)
	}
	return response, nil
}
