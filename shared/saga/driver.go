package saga

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
)

const (
	// StepsMax bounds the steps of one drive. The longest way, a payment that is refused
	// for lines and taken back, has fewer; a drive that uses them up goes on at its next
	// look.
	StepsMax = 60
	// RetriesMax bounds the calls that one drive repeats. What is left is for later drives:
	// a worker that sleeps is paid for.
	RetriesMax = 3
	// retryUnit, retryMax and retryJitter are the pause before a repeated call:
	// min(retryMax, 2^n × retryUnit) + 0..retryJitter.
	retryUnit   = 500 * time.Millisecond
	retryMax    = 30 * time.Second
	retryJitter = 250 * time.Millisecond
	// MarginBeforeDeadline is the part of a drive's time in which no pause is begun.
	MarginBeforeDeadline = 5 * time.Second
	// DwellTold is from which time on a reservation that stays in its status is told of with
	// every look, and not only when it leaves: one that is stuck would else never be heard of.
	// What goes well has moved on by then: an answer of the provider is waited for as long.
	DwellTold = ledger.UnknownForDefault
)

// Store is what a driver needs of a store.
type Store interface {
	ledger.Store
	// Postpone notes when the reservation is looked at again and how often that was in
	// vain, unless it has gone on to another version. It changes no promise.
	Postpone(ctx context.Context, id ledger.ReservationID, version ledger.Version, lookAt time.Time, tries int) error
}

// Metrics takes numbers. A telemetry.Emitter is one.
type Metrics interface {
	Emit(properties telemetry.Properties, measurements ...telemetry.Measurement) error
}

// Ports are what a driver works with. All of them must be set.
type Ports struct {
	Store    Store
	Provider payment.Provider
	Clock    system.Clock
	Random   system.Random
	Metrics  Metrics
	// Dwells gathers how long reservations were in a status, for who reports a run.
	Dwells *telemetry.Spread
	Logger *slog.Logger
}

// Driver takes reservations as far as they can go. It has no memory between calls, and
// any number of drivers may work on one reservation at once: each step is one Change with
// the version it rests on, and each effect may be repeated.
type Driver struct{ ports Ports }

// NewDriver returns a driver on these ports.
func NewDriver(ports Ports) *Driver { return &Driver{ports} }

// Drive takes the reservation as far as it can go now, and notes when to look again. The
// notice is what the provider told, or nil. It returns nil when that is done, also when
// the provider does not answer; an error means that the caller should come again.
// CodeReservationNotFound says that there is no such reservation, or none yet, and
// CodeReservationArchived that something is to be done about one that lies in the archive.
func (d *Driver) Drive(ctx context.Context, id ledger.ReservationID, notice *payment.Notice, request ledger.RequestID) error {
	ctx = telemetry.WithCorrelation(ctx, slog.String(telemetry.KeyReservationID, string(id)))
	w := &drive{Driver: d, id: id, request: request, notice: notice, sightings: map[ledger.AttemptNumber]Sighting{}}
	if err := w.load(ctx); err != nil {
		return err
	}
	for range StepsMax {
		decision := Decide(w.situation())
		switch {
		case !decision.Change.Empty():
			if err := w.write(ctx, decision); err != nil {
				return err
			}
		case decision.Effect.Kind != "":
			if err := w.perform(ctx, decision.Effect); err != nil {
				return err
			}
		case decision.Retry && w.retries < RetriesMax && w.pause(ctx):
			if err := w.load(ctx); err != nil {
				return err
			}
		default:
			return w.postpone(ctx, decision)
		}
	}
	return fmt.Errorf("reservation %s: %d steps were not enough", id, StepsMax)
}

// drive is one call of Drive.
type drive struct {
	*Driver
	id      ledger.ReservationID
	request ledger.RequestID
	notice  *payment.Notice

	reservation ledger.Reservation
	hold, sold  ledger.Hold
	// expected is the version that the reservation has if nobody else has moved it.
	expected  ledger.Version
	sightings map[ledger.AttemptNumber]Sighting
	stock     []ledger.Stock
	closed    bool
	retries   int
}

func (w *drive) situation() Situation {
	now := system.Millisecond(w.ports.Clock)
	return Situation{
		Reservation: w.reservation, Hold: w.hold, Sold: w.sold, Sightings: w.sightings, Notice: w.notice,
		Stock: w.stock, Closed: w.closed, Now: now,
		Origin: ledger.Origin{
			Actor: ledger.ActorSystem, Command: ledger.CommandDriveReservation, RequestID: w.request,
			EventID: ledger.NewEventID(w.ports.Random.Bits128()),
		},
	}
}

// load reads the reservation and its holds, and drops the notice if it is recorded.
func (w *drive) load(ctx context.Context) error {
	reservation, err := w.ports.Store.Reservation(ctx, w.id)
	if err != nil {
		return err
	}
	hold, err := ledger.HoldOf(ctx, w.ports.Store, reservation, reservation.Hold)
	if err != nil {
		return fmt.Errorf("hold of reservation %s: %w", w.id, err)
	}
	sold := hold
	if reservation.SoldHold != "" && reservation.SoldHold != hold.ID {
		if sold, err = ledger.HoldOf(ctx, w.ports.Store, reservation, reservation.SoldHold); err != nil {
			return fmt.Errorf("sold hold of reservation %s: %w", w.id, err)
		}
	}
	if reservation.Version != w.expected {
		// Somebody else has moved it. What was seen of its payments may be older than that,
		// and a step on it would take a newer one back; the stock was read for another step.
		clear(w.sightings)
		w.stock, w.closed = nil, false
	}
	w.reservation, w.hold, w.sold, w.expected = reservation, hold, sold, reservation.Version
	if w.notice == nil {
		return nil
	}
	_, recorded, err := w.ports.Store.Claimed(ctx, ledger.UniqueProviderEvent, string(w.notice.ID))
	if recorded {
		w.notice = nil
	}
	return err
}

// write commits the decision's change, and reads anew when somebody else was faster.
func (w *drive) write(ctx context.Context, decision Decision) error {
	if w.reservation.ArchivedIn != "" {
		// Nothing can be written of it any more. A person must see to what has come so late.
		return fmt.Errorf("reservation %s: %w", w.id, ledger.ReservationArchived())
	}
	err := w.ports.Store.Commit(ctx, decision.Change)
	var refused *ledger.Refused
	if errors.As(err, &refused) {
		if len(refused.LegsOf(ledger.LegStock)) > 0 {
			w.learnStock(refused)
		}
		return w.load(ctx)
	}
	if err != nil {
		return fmt.Errorf("reservation %s: %w", w.id, err)
	}
	w.forget(decision.Change)
	if len(decision.Change.Reservations) > 0 {
		w.expected++
	}
	w.report(ctx, decision)
	return w.load(ctx)
}

// forget drops what the change that was written has made old: the notice if it is
// recorded, the stock, and what the creation of a payment has shown. A creation that was
// repeated under its key answers how the payment was at first, and not how it is.
func (w *drive) forget(written ledger.Change) {
	w.stock = nil
	for _, u := range written.Uniqueness {
		switch u.Kind {
		case ledger.UniqueProviderEvent:
			w.notice = nil
		case ledger.UniqueProviderPayment:
			clear(w.sightings)
		default:
		}
	}
}

// pause waits before the provider is asked again, and forgets what it did not say. It
// reports false when there is no time left for it.
func (w *drive) pause(ctx context.Context) bool {
	length := Backoff(w.retries, w.ports.Random)
	if deadline, bounded := ctx.Deadline(); bounded && w.ports.Clock.Now().Add(length).After(deadline.Add(-MarginBeforeDeadline)) {
		return false
	}
	w.retries++
	for n, s := range w.sightings {
		if !s.Seen {
			delete(w.sightings, n)
		}
	}
	return w.ports.Clock.Sleep(ctx, length) == nil
}

// Backoff is the pause before the try after n failed ones.
func Backoff(n int, random system.Random) time.Duration {
	pause := retryMax
	if n < 10 { // 2^10 units are more than retryMax
		pause = min(retryMax, retryUnit<<n)
	}
	return pause + time.Duration(random.Below(int64(retryJitter)))
}

// postpone notes when to look again, if the record does not say so already.
func (w *drive) postpone(ctx context.Context, decision Decision) error {
	now := system.Millisecond(w.ports.Clock)
	w.tellDwell(now)
	lookAt, tries := decision.LookAt, w.reservation.Tries
	if decision.Answered {
		tries++
	}
	if decision.Retry {
		again := now.Add(Backoff(RetriesMax+tries, w.ports.Random)).Truncate(time.Millisecond)
		if lookAt.IsZero() || again.Before(lookAt) {
			lookAt = again
		}
	}
	if decision.Answered && tries == TriesMax {
		// It is asked again all the same, but somebody should look why.
		w.ports.Logger.ErrorContext(ctx, "the payment provider keeps refusing what a reservation needs",
			slog.String(telemetry.KeyHoldID, string(w.reservation.Hold)), slog.String("status", string(w.reservation.Status)))
		w.count(ctx, telemetry.MetricReservationsReview)
	}
	if lookAt.Equal(w.reservation.LookAt) && tries == w.reservation.Tries {
		return nil
	}
	return w.ports.Store.Postpone(ctx, w.id, w.reservation.Version, lookAt, tries)
}
