package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"holdfast/shared/dynamo"
	"holdfast/shared/outbox"
	"holdfast/shared/reconcile"
)

const (
	// reconcileEvery is the rate of the reconciler. A real one is slower; a history is shorter.
	reconcileEvery = 2 * time.Minute
	// redriveAgeMin and redriveAgeMax are how old an event is that the reconciler publishes:
	// less than in the cloud, so that it meets the stream.
	redriveAgeMin, redriveAgeMax = 5 * time.Second, 40 * time.Second
)

// newReconciler wires the reconcile function of the instance.
func (i *instance) newReconciler(store *dynamo.Store) (*reconcile.Handler, error) {
	w := i.world
	relay, err := i.newRelay(store)
	if err != nil {
		return nil, err
	}
	age := w.dice("age of what is redriven").between(redriveAgeMin, redriveAgeMax)
	return reconcile.NewHandler(reconcile.Ports{
		Redrive: hasty{outbox.NewRedrive(relay, store), age}, Quarantine: store,
		Metrics: noMetrics{}, Clock: i.clock, Logger: noLogger,
	}), nil
}

// newRelay wires the outbox of the instance.
func (i *instance) newRelay(store *dynamo.Store) (*outbox.Relay, error) {
	w := i.world
	return outbox.NewRelay(outbox.Ports{
		Publisher: &publisher{world: w, instance: i}, Queue: &sender{w, i}, Marker: store, Decode: dynamo.DecodeEventImage,
		Metrics: noMetrics{}, Clock: i.clock, Random: taskRandom{w.kernel}, Logger: noLogger,
	}, outbox.Settings{
		Bus: busName, Stage: stageName, CallBytesMax: outbox.CallBytesMaxDefault, SagaQueueURL: sagaQueueURL, DueQueueURL: dueQueueURL,
	})
}

// hasty is a redrive that does not wait for as long as the reconciler would let it.
type hasty struct {
	redrive *outbox.Redrive
	age     time.Duration
}

// Run publishes events that are older than the age of the history.
func (h hasty) Run(ctx context.Context, _, longest time.Duration) (outbox.RedriveReport, error) {
	return h.redrive.Run(ctx, h.age, longest)
}

// startReconciler lets the reconciler tick from one time to another.
func (w *world) startReconciler(from, to time.Time) {
	for at := from.Truncate(reconcileEvery).Add(reconcileEvery); !at.After(to); at = at.Add(reconcileEvery) {
		name := fmt.Sprintf("tick %d of the reconciler", at.Sub(historyStart)/reconcileEvery)
		w.kernel.at(at, func() { w.tick(name, w.tickReconciler) })
	}
}

// tickReconciler invokes the reconcile function for a tick of the Scheduler.
func (w *world) tickReconciler(name string) {
	w.trace.add("%s", name)
	to := w.reconciler
	to.invoke(name, func() {
		if err := to.reconciler.Handle(to.deadline(), json.RawMessage(`{}`)); err != nil {
			w.trace.add("%s: %v", name, err)
		}
	}, func(completed bool) { w.trace.add("%s ended, completed: %t", name, completed) })
}
