package localrun_test

import (
	"testing"

	"holdfast/shared/topology"
)

func (w *world) waiting(resource topology.Resource) int {
	w.t.Helper()
	count, err := w.system.Waiting(w.t.Context(), resource)
	if err != nil {
		w.t.Fatal(err)
	}
	return count
}

// A message in the saga's queue is given to the saga. This one is none of ours: whether the
// saga drops it or fails at it until it is a dead letter, it does not stay.
func TestMessagesReachTheSaga(t *testing.T) {
	w := newWorld(t)
	if err := w.system.SendMessage(t.Context(), topology.ResourceSagaQueue, "no message of ours"); err != nil {
		t.Fatal(err)
	}
	w.until("the message has left the queue", func() bool { return w.waiting(topology.ResourceSagaQueue) == 0 })
}

// Every queue of the topology is there under its name, and nothing else is.
func TestQueuesAreThoseOfTheTopology(t *testing.T) {
	w := newWorld(t)
	for _, resource := range []topology.Resource{
		topology.ResourceOutboxFailures, topology.ResourceScheduleFailures, topology.ResourceSagaQueue, topology.ResourceSagaFailures,
	} {
		w.waiting(resource)
	}
	if _, err := w.system.Waiting(t.Context(), topology.ResourceTable); err == nil {
		t.Error("the table is a queue")
	}
	if err := w.system.SendMessage(t.Context(), topology.ResourceTable, "x"); err == nil {
		t.Error("the table takes a message")
	}
}
