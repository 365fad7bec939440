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

// Every queue of the topology is there under its name, and nothing else is.
func TestQueuesAreThoseOfTheTopology(t *testing.T) {
	w := newWorld(t)
	for _, resource := range []topology.Resource{
		topology.ResourceOutboxFailures, topology.ResourceScheduleFailures, topology.ResourceSagaQueue, topology.ResourceSagaFailures,
		topology.ResourceDueQueue, topology.ResourceDueFailures, topology.ResourceExpiryFailed,
		topology.ResourceAuditQueue, topology.ResourceAuditFailures,
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
