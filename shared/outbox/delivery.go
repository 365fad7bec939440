package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
)

// delivery is one run of the relay under way.
type delivery struct {
	*Relay
	stopAt time.Time
	// told are the messages that their queues have taken.
	told map[message]bool
	duty duty

	published, failed, aside, truncated int
	lagMax                              time.Duration
	// became counts what became of holds, by the metric of it.
	became map[telemetry.MetricName]int
}

func (r *Relay) newDelivery(stopAt time.Time) *delivery {
	return &delivery{Relay: r, stopAt: stopAt, told: map[message]bool{}, became: map[telemetry.MetricName]int{}}
}

// publish publishes and marks records until one fails that may succeed later, and returns
// its index, or -1.
func (d *delivery) publish(ctx context.Context, records []record) int {
	for done := 0; done < len(records); {
		if d.late(ctx) {
			d.stop(ctx, len(records)-done)
			return done
		}
		if first := records[done]; first.err != nil {
			if d.setAsideAlone(ctx, first) != nil {
				return done
			}
			done++
			continue
		}
		call := records[done : done+d.nextCall(records[done:])]
		for i, err := range d.deliver(ctx, call) {
			if err != nil {
				return done + i
			}
		}
		done += len(call)
	}
	return -1
}

// deliver sends the messages of one call, publishes it and marks it. It returns one error
// for each record, nil for one that is done with: published and marked, or set aside.
func (d *delivery) deliver(ctx context.Context, call []record) []error {
	failures := d.wake(ctx, call)
	d.tellDue(ctx, call, failures)
	d.publishWoken(ctx, call, failures)
	marking, cancel := context.WithTimeout(ctx, MarkFor)
	defer cancel()
	d.mark(marking, call, failures)
	d.settle(marking, call, failures)
	return failures
}

// publishWoken publishes the records of call whose failure is nil, and notes the failures
// of those that the bus did not accept.
func (d *delivery) publishWoken(ctx context.Context, call []record, failures []error) {
	var ready []record
	var at []int
	for i, r := range call {
		if failures[i] == nil {
			ready, at = append(ready, r), append(at, i)
		}
	}
	if d.late(ctx) {
		// The messages took the time that the bus and the marks need.
		for _, i := range at {
			failures[i] = errLate
		}
		return
	}
	for i, err := range d.send(ctx, ready) {
		failures[at[i]] = err
	}
}

// settle deals with the failures of one call. One that no retry can change is none any
// more once its record is set aside.
func (d *delivery) settle(ctx context.Context, call []record, failures []error) {
	left := 0
	for i, err := range failures {
		switch {
		case err == nil:
		case permanent(err):
			failures[i] = d.setAside(ctx, call[i], err)
		case errors.Is(err, errLate):
			left++
		default:
			d.reportFailure(ctx, call[i], err)
		}
	}
	if left > 0 {
		d.stop(ctx, left)
	}
}

// stop notes that a run ends for lack of time.
func (d *delivery) stop(ctx context.Context, left int) {
	d.truncated = 1
	d.ports.Logger.WarnContext(ctx, "the time ended before all was published; the rest comes again", slog.Int("records_left", left))
}

// mark marks what the bus has accepted: the records of call whose failure is nil. It is
// never done before, because a mark is the end of all care about an event (promise P7).
// An event whose mark fails becomes a failure, and will be published again.
func (d *delivery) mark(ctx context.Context, call []record, failures []error) {
	at := system.Millisecond(d.ports.Clock)
	for i, r := range call {
		if failures[i] != nil {
			continue
		}
		d.lagMax = max(d.lagMax, at.Sub(r.event.OccurredAt))
		if err := d.ports.Marker.MarkPublished(ctx, r.event, at); err != nil {
			failures[i] = fmt.Errorf("mark as published: %w", err)
			continue
		}
		d.published++
		if metric, counted := becomes(r.event); counted {
			d.became[metric]++
		}
	}
}

// becomes is the metric of what the event says of its hold. A hold that is born sold in the
// place of another one was not asked for, so it counts as sold and not as made.
func becomes(e ledger.Event) (telemetry.MetricName, bool) {
	switch e.Type {
	case ledger.EventHoldCreated:
		return telemetry.MetricHoldsCreated, true
	case ledger.EventHoldConfirmed, ledger.EventHoldReacquired:
		return telemetry.MetricHoldsConfirmed, true
	case ledger.EventHoldCanceled:
		return telemetry.MetricHoldsCanceled, true
	case ledger.EventHoldExpired:
		return telemetry.MetricHoldsExpired, true
	default:
		return "", false
	}
}

func (d *delivery) late(ctx context.Context) bool {
	return system.Late(ctx, d.ports.Clock, d.stopAt)
}

func (d *delivery) reportFailure(ctx context.Context, r record, err error) {
	d.failed++
	d.ports.Logger.LogAttrs(ctx, slog.LevelError, "an event could not be published; it comes again", r.logged(err)...)
}

// logged is what a log line says of a record and what befell it.
func (r record) logged(err error) []slog.Attr {
	return append(telemetry.AboutEvent(r.event),
		slog.String("sequence_number", r.sequenceNumber), slog.String("item", r.item.String()), slog.Any("error", err))
}

func (d *delivery) measurements() []telemetry.Measurement {
	out := []telemetry.Measurement{
		telemetry.Count(telemetry.MetricOutboxPublished, d.published),
		telemetry.Count(telemetry.MetricOutboxFailed, d.failed),
		telemetry.Count(telemetry.MetricOutboxSetAside, d.aside),
		telemetry.Count(telemetry.MetricOutboxTruncated, d.truncated),
		telemetry.Count(telemetry.MetricOutboxDueUnsent, d.duty.unsent),
		telemetry.Count(telemetry.MetricHoldsCreated, d.became[telemetry.MetricHoldsCreated]),
		telemetry.Count(telemetry.MetricHoldsConfirmed, d.became[telemetry.MetricHoldsConfirmed]),
		telemetry.Count(telemetry.MetricHoldsCanceled, d.became[telemetry.MetricHoldsCanceled]),
		telemetry.Count(telemetry.MetricHoldsExpired, d.became[telemetry.MetricHoldsExpired]),
	}
	if d.published > 0 {
		out = append(out, telemetry.Measurement{Metric: telemetry.MetricOutboxLagSecondsMax, Value: d.lagMax.Seconds()})
		// There is no lag of zero here: what is published was written a moment ago at the least.
		took, recovered := d.recovery.Observe(system.Millisecond(d.ports.Clock), d.lagMax, telemetry.BacklogOver)
		if recovered {
			out = append(out, telemetry.Measurement{Metric: telemetry.MetricOutboxRecoverySeconds, Value: took.Seconds()})
		}
	}
	return out
}
