package expiry

import (
	"context"
	"errors"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// parkedAtOnce is how many parked holds are tried at the same time. They are few, and what
// they lack is not speed.
const parkedAtOnce = 4

// TickPorts is what a Tick works with. All are needed.
type TickPorts struct {
	Sweep    *Sweep
	Parked   *ParkedLook
	Ender    HoldEnder
	Skew     Skew
	Parallel system.Parallel
	Clock    system.Clock
}

// Tick is what the expiry function does every minute: it looks at the parked holds, sweeps
// what is due, and tries the parked holds whose time has come. They come last, so that
// holds which can't be ended take no time from those that can.
type Tick struct {
	ports TickPorts
}

// NewTick returns a Tick. It returns an error when a port is missing.
func NewTick(ports TickPorts) (*Tick, error) {
	if ports.Sweep == nil || ports.Parked == nil || ports.Ender == nil || ports.Skew == nil || ports.Parallel == nil || ports.Clock == nil {
		return nil, errors.New("tick: a port is missing")
	}
	return &Tick{ports}, nil
}

// TickReport is what a Tick saw and did. Its Report is that of the sweep, with the parked
// holds: in the lag, and among the released, the ended and the failed.
type TickReport struct {
	Report
	// At is when the tick began.
	At time.Time
	// ParkedBefore is how many holds were parked when the tick began.
	ParkedBefore int
	// Ghosts is how many overdue holds it met, or found parked, and left HELD.
	Ghosts int
}

// Run does all of it once. It returns ErrClockUnreliable, and has ended nothing, when this
// machine's clock is wrong, and an error when a part of the index could not be read; the
// report is right in any case. It may be called again at any time, also while another call
// runs.
func (t *Tick) Run(ctx context.Context, request ledger.RequestID) (TickReport, error) {
	now := system.Millisecond(t.ports.Clock)
	late := lateAfter(ctx, t.ports.Clock)
	// The look comes first also because its reads tell how far the clock is off.
	parked, lookErr := t.ports.Parked.Look(ctx, now)
	if t.ports.Skew.Unreliable() {
		return TickReport{At: now, ParkedBefore: parked.Count}, errors.Join(ErrClockUnreliable, lookErr)
	}
	report, delays, err := t.ports.Sweep.run(ctx, request)
	out := TickReport{Report: report, At: now, ParkedBefore: parked.Count, Ghosts: report.Failed + report.Parked + parked.Count}
	if !parked.OldestDueAt.IsZero() {
		out.Lag = max(out.Lag, now.Sub(parked.OldestDueAt))
	}
	out.LagKnown = out.LagKnown && lookErr == nil
	delays = append(delays, t.endParked(ctx, parked.Due, request, late, &out)...)
	out.ReleaseDelayP95 = percentile95(delays)
	return out, errors.Join(err, lookErr)
}

// endParked tries the parked holds whose time has come, notes in out what became of them,
// and returns the delays of those that were released.
func (t *Tick) endParked(ctx context.Context, entries []ledger.DueHold, request ledger.RequestID, late func() bool, out *TickReport) []time.Duration {
	endings := make([]Ending, len(entries))
	t.ports.Parallel.Do(len(entries), parkedAtOnce, func(i int) {
		if !late() {
			endings[i] = t.ports.Ender.End(ctx, entries[i], request)
		}
	})
	var delays []time.Duration
	for _, ending := range endings {
		switch ending.Outcome {
		case OutcomeReleased:
			out.Released++
			out.Ghosts--
			delays = append(delays, ending.Delay)
		case OutcomeEnded:
			out.AlreadyEnded++
			out.Ghosts--
		case OutcomeFailed, OutcomeParked:
			out.Failed++
		default:
			out.Truncated = true
			out.RemainingMin++
		}
	}
	return delays
}
