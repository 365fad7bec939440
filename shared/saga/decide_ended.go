package saga

import (
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
)

// lastAsk asks once more about an attempt that keeps no money, when what has ended, or
// waits for somebody outside, is looked at, and reports whether that is over.
func (d decider) lastAsk(a ledger.Attempt) (Decision, bool) {
	r := d.Reservation
	waits := r.Status == ledger.ReservationCaptured || r.Status == ledger.ReservationRefundRequired
	if (!r.Status.Ended() && !waits) || a.Payment == "" || r.LookAt.IsZero() || r.LookAt.After(d.Now) {
		return Decision{}, true
	}
	_, first, known := d.known(a)
	if first.Answered && r.Status.Ended() && r.Tries >= TriesMax {
		return Decision{}, true // as in ended
	}
	return first, known
}

// ended sees to a reservation that has come to its end: it owes nothing, and nothing more
// comes of it, unless the provider says otherwise.
func (d decider) ended() Decision {
	r := d.Reservation
	if attempt, p, late := d.lateMoney(); late && r.Status == ledger.ReservationCanceled {
		return d.authorize(attempt, p)
	}
	attempt, begun := r.Current()
	if !begun {
		return Decision{}
	}
	if !r.LookAt.IsZero() && attempt.Payment != "" {
		if _, asked := d.Sightings[attempt.Number]; !asked {
			return d.ask(attempt)
		}
	}
	sighting := d.Sightings[attempt.Number]
	unwanted := r.Status != ledger.ReservationCompleted && holdsMoney(sighting.Payment)
	switch {
	case sighting.NotFound && r.Tries >= TriesMax:
		// A person has ended what the provider does not know, and it keeps saying so.
		return Decision{}
	case sighting.Unreachable, sighting.NotFound:
		return Decision{Retry: true, Answered: sighting.NotFound}
	case !sighting.Seen:
		return Decision{LookAt: d.laterLook()}
	case unwanted && (attempt.State == ledger.AttemptVoided || !d.settled(attempt)):
		return d.reopen(attempt, sighting.Payment)
	}
	if refunds := d.checkRefunds(attempt, sighting); refunds.acts() || !refunds.LookAt.IsZero() {
		return refunds
	}
	return Decision{LookAt: d.laterLook()}
}

// seldom is when what waits for somebody outside is looked at again. It is sooner where an
// attempt was closed before: the news that its payment succeeded after all may be lost,
// and nobody would ask until the wait is over.
func (d decider) seldom() time.Time {
	if len(d.Reservation.Attempts) > 1 {
		return d.Now.Add(LastLookAfter)
	}
	return d.Now.Add(LookSeldom)
}

// laterLook is when what has ended is looked at for the last time: LastLookAfter its last
// step. Zero is for what was looked at already, or had no payment, and for a single
// payment that bought what it was for and of which nothing was given back: a refund may
// fail afterwards, and the news of it be lost.
func (d decider) laterLook() time.Time {
	r := d.Reservation
	at := r.UpdatedAt.Add(LastLookAfter)
	bought := r.Status == ledger.ReservationCompleted && len(r.Attempts) == 1 && len(r.Refunds) == 0
	if !at.After(d.Now) || bought || d.lastLook().IsZero() {
		return time.Time{}
	}
	return at
}

// reopen: money has come to a reservation that had ended without it.
func (d decider) reopen(a ledger.Attempt, p payment.Payment) Decision {
	next := d.Reservation.Clone()
	attempt := next.Attempt(a.Number)
	recordMoney(attempt, p)
	attempt.Unwanted = true
	next.Status, next.LookAt = ledger.ReservationCompensating, d.Now
	return Decision{Change: d.step(next, ledger.EventReservationCompensating)}
}

// lastLook is when a reservation that ended is looked at once more; never for one that
// never had a payment.
func (d decider) lastLook() time.Time {
	for _, attempt := range d.Reservation.Attempts {
		if attempt.Payment != "" {
			return d.Now.Add(LastLookAfter)
		}
	}
	return time.Time{}
}

// nextLookOfEnded keeps a completed reservation in the due index while it owes something,
// or has an attempt before the one that paid.
func (d decider) nextLookOfEnded(next ledger.Reservation) time.Time {
	switch {
	case next.OwedMinor() > 0:
		return d.Now
	case len(next.Attempts) > 1:
		return d.lastLook()
	}
	return time.Time{}
}
