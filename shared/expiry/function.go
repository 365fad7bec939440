package expiry

import (
	"errors"
	"log/slog"

	"holdfast/shared/lease"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
)

// FunctionPorts is what the expiry function works with. All are needed.
type FunctionPorts struct {
	Store    Store
	Releaser Releaser
	// Ahead reads for Releaser what a sweep is about to end.
	Ahead   Ahead
	Parking Parking
	Leases  lease.Leases
	// Due is the queue of due messages, and Failed the one that is told of parked holds.
	Due, Failed Sender
	Skew        Skew
	// Commands is where the Releaser counts how it fares; see telemetry.NewCommandTally.
	Commands telemetry.CommandTally
	Metrics  Metrics
	Clock    system.Clock
	Random   system.Random
	Parallel system.Parallel
	Logger   *slog.Logger
}

// NewFunction puts the parts of the expiry function together. It returns an error when a
// port is missing or a setting is out of bounds.
func NewFunction(p FunctionPorts, settings SweepSettings) (*Handler, error) {
	if p.Due == nil || p.Ahead == nil {
		return nil, errors.New("expiry: the queue of due messages, or what reads ahead, is missing")
	}
	ender, err := NewEnder(EnderPorts{Releaser: p.Releaser, Parking: p.Parking, Failed: p.Failed, Clock: p.Clock, Logger: p.Logger})
	if err != nil {
		return nil, err
	}
	sweep, err := NewSweep(SweepPorts{
		Store: p.Store, Ender: ender, Leases: p.Leases, Helpers: NewHelpQueue(p.Due), Ahead: p.Ahead,
		Clock: p.Clock, Parallel: p.Parallel, Logger: p.Logger,
	}, settings)
	if err != nil {
		return nil, err
	}
	worker, err := NewWorker(WorkerPorts{
		Ender: ender, Sweep: sweep, Queue: p.Due, Parking: p.Parking, Skew: p.Skew,
		Parallel: p.Parallel, Clock: p.Clock, Logger: p.Logger,
	})
	if err != nil {
		return nil, err
	}
	tick, err := NewTick(TickPorts{
		Sweep: sweep, Parked: NewParkedLook(p.Parking), Ender: ender, Skew: p.Skew, Parallel: p.Parallel, Clock: p.Clock,
	})
	if err != nil {
		return nil, err
	}
	return NewHandler(HandlerPorts{
		Worker: worker, Tick: tick, Skew: p.Skew, Commands: p.Commands, Metrics: p.Metrics, Random: p.Random, Logger: p.Logger,
	})
}
