package saga

import (
	"holdfast/shared/ledger"
)

// needPerson: the provider answers and does not do it.
func (d decider) needPerson() Decision {
	next := d.Reservation.Clone()
	next.Status, next.LookAt = ledger.ReservationRefundRequired, d.seldom()
	return Decision{Change: d.step(next, ledger.EventReservationRefundRequired)}
}

// refundRequired looks now and then whether a person has given the money back.
func (d decider) refundRequired() Decision {
	if d.waitedEnough() {
		return d.giveUp()
	}
	done := true
	for _, attempt := range d.Reservation.Attempts {
		decision, settled := d.giveBack(attempt)
		if decision.acts() {
			return decision
		}
		done = done && settled
	}
	if done {
		return d.compensated()
	}
	return Decision{LookAt: d.seldom()}
}

// review keeps no unwanted money, and keeps the units no longer than others may.
func (d decider) review() Decision {
	waiting := Decision{LookAt: d.laterLook()}
	for _, attempt := range d.Reservation.Attempts {
		if !attempt.Unwanted {
			continue
		}
		decision, settled := d.giveBack(attempt)
		if settled {
			continue
		}
		if decision.acts() {
			return decision
		}
		waiting = soonest(waiting, decision)
	}
	switch {
	case d.waitedEnough() && d.Hold.AttemptOpen != 0:
		return d.giveUp()
	case d.held() && d.Hold.AttemptOpen != 0:
		return soonest(waiting, d.wait(d.Now.Add(LookSeldom)))
	}
	return waiting
}
