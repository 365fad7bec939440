package saga

import (
	"slices"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
)

const (
	// TriesMax bounds how often the provider may answer that it does not do what it is
	// asked, before a person is asked. Not answering does not count (case M7).
	TriesMax = 20
	// LookFirst is how long after the last step a payment that waits for its buyer is looked
	// at, and then twice as long each time. The provider's notices are faster; looking is
	// for those that are lost.
	LookFirst = 5 * time.Second
	// LookMax bounds the time between two of these looks.
	LookMax = time.Minute
	// LookSeldom is for what waits for somebody outside: a delivery, a refund that a person
	// must see to.
	LookSeldom = time.Hour
	// LastLookAfter is when a reservation that ended without money is looked at once more:
	// a provider may say "cancelled" and take the money all the same.
	LastLookAfter = 15 * time.Minute
)

// Sighting is what is known, in this drive, of how an attempt's payment stands.
type Sighting struct {
	// Seen says that Payment is the provider's answer. Otherwise Unreachable or NotFound is
	// set, or only Refused.
	Seen    bool
	Payment payment.Payment
	// Unreachable: the provider gave no answer that says anything.
	Unreachable bool
	// NotFound: the provider says that it knows no such payment, or will not tell of it.
	NotFound bool
	// Refused is the effect that the provider will never carry out; "" for none.
	Refused EffectKind
	// Refunded is the number of the refund whose carrying out has shown Payment; zero for
	// another effect.
	Refunded int
}

// saysAnything reports whether the provider has been heard about the payment itself.
func (s Sighting) saysAnything() bool { return s.Seen || s.Unreachable || s.NotFound }

// Situation is all that a decision rests on.
type Situation struct {
	Reservation ledger.Reservation
	// Hold is what is paid for, and Sold what was sold for it; they are the same unless a
	// late payment made a new hold. Sold is of no meaning before the sale.
	Hold, Sold ledger.Hold
	// Sightings are by the number of the attempt; what is not there has not been asked.
	Sightings map[ledger.AttemptNumber]Sighting
	// Notice is what the provider told and is not recorded yet; nil for nothing.
	Notice *payment.Notice
	// Stock is all stock of the slots that EffectReadStock named, at one moment for each
	// slot; nil before it was read.
	Stock []ledger.Stock
	// Closed says that the write of a reacquisition was refused by a closed slot.
	Closed bool
	Origin ledger.Origin
	Now    time.Time
}

// EffectKind names something that is done outside the ledger.
type EffectKind string

// The effects. Each may be repeated.
const (
	EffectCreate    EffectKind = "create"
	EffectLookUp    EffectKind = "look_up"
	EffectCapture   EffectKind = "capture"
	EffectVoid      EffectKind = "void"
	EffectRefund    EffectKind = "refund"
	EffectReadStock EffectKind = "read_stock"
)

// Effect is one thing to be done outside the ledger.
type Effect struct {
	Kind        EffectKind
	Attempt     ledger.Attempt
	AmountMinor int64
	Refund      int             // the refund's number, of EffectRefund
	Again       int             // how often a person had that refund asked for again
	Slots       []ledger.SlotID // of EffectReadStock
}

// Decision is what to do next: write Change, or else perform Effect, or else wait.
type Decision struct {
	// Cell says which cell of the table in DESIGN.md was met.
	Cell   Cell
	Change ledger.Change
	Effect Effect
	// Retry says that the provider should be asked again soon, because it did not answer or
	// not well; Answered tells the two apart.
	Retry, Answered bool
	// LookAt is when to look again; zero for never.
	LookAt time.Time
}

// acts reports whether the decision is to do something now.
func (d Decision) acts() bool { return !d.Change.Empty() || d.Effect.Kind != "" }

// Decide says what is to be done next with a reservation. It is a function of its
// argument alone. It looks only at how things stand and never at how they came to stand
// so, which is why signals may come late, twice, in any order, or not at all: whatever
// came before, the same state of ledger and provider leads to the same next step.
func Decide(s Situation) Decision {
	d := decider{s}
	decision := d.decide()
	decision.Cell = d.cell()
	return decision
}

type decider struct{ Situation }

func (d decider) decide() Decision {
	if ask, asks := d.askForNotice(); asks {
		return ask
	}
	decision := d.current()
	if !decision.acts() {
		decision = d.others(decision)
	}
	return d.takeNotice(decision)
}

// askForNotice looks up the payment that a notice is about, whatever else is known: a
// notice says that something has changed there.
func (d decider) askForNotice() (Decision, bool) {
	if d.Notice == nil {
		return Decision{}, false
	}
	attempt := d.Reservation.Attempt(d.Notice.Attempt)
	if attempt == nil {
		return Decision{}, false
	}
	if _, asked := d.Sightings[attempt.Number]; asked {
		return Decision{}, false
	}
	return d.ask(*attempt), true
}

// takeNotice records the notice with whatever is written, or alone when it changes
// nothing. While the provider has not said how the payment stands it is kept: an event must
// never count as done before its effect is (case D14). What a creation shows is not asked
// yet, because one that is repeated under its key answers how the payment was at first.
func (d decider) takeNotice(decision Decision) Decision {
	if d.Notice == nil || decision.Effect.Kind != "" || decision.Retry || recordsPayment(decision.Change) {
		return decision
	}
	r := d.Reservation
	if s := d.Sightings[d.Notice.Attempt]; r.Attempt(d.Notice.Attempt) != nil && !s.Seen && s.Refused != EffectCreate {
		decision.Retry = decision.Change.Empty()
		return decision
	}
	if decision.Change.Empty() {
		next := r.Clone()
		next.LookAt = decision.LookAt
		decision.Change = ledger.ReservationStep(r, next, ledger.EventReservationPaymentNoticed, nil, d.Origin, d.Now)
	}
	decision.Change.Uniqueness = append(decision.Change.Uniqueness, r.ClaimEvent(d.Notice.ID))
	return decision
}

// recordsPayment reports whether the change writes down the provider's id of a payment.
func recordsPayment(c ledger.Change) bool {
	return slices.ContainsFunc(c.Uniqueness, func(u ledger.Uniqueness) bool { return u.Kind == ledger.UniqueProviderPayment })
}

// others sees to the attempts before the current one: none of them may keep money.
// waiting is what the current one waits for.
func (d decider) others(waiting Decision) Decision {
	for _, attempt := range d.Reservation.Attempts[:max(0, len(d.Reservation.Attempts)-1)] {
		decision, done := d.giveBack(attempt)
		if done {
			continue
		}
		if decision.acts() {
			return decision
		}
		waiting = soonest(waiting, decision)
	}
	return waiting
}

// current decides by the reservation's status.
func (d decider) current() Decision {
	switch d.Reservation.Status {
	case ledger.ReservationPaymentPending:
		return d.pending()
	case ledger.ReservationAuthorized:
		return d.authorized()
	case ledger.ReservationConfirmed:
		return d.confirmed()
	case ledger.ReservationCaptured:
		return d.captured()
	case ledger.ReservationCompensating:
		return d.compensating()
	case ledger.ReservationRefundRequired:
		return d.refundRequired()
	case ledger.ReservationReview:
		return d.review()
	default:
		return d.ended()
	}
}

// ask looks how an attempt stands. One whose creation has had no answer is created again
// under its key, which gives the payment that there is.
func (d decider) ask(a ledger.Attempt) Decision {
	if a.Payment == "" {
		return Decision{Effect: Effect{Kind: EffectCreate, Attempt: a, AmountMinor: d.Reservation.Amount.AmountMinor}}
	}
	return Decision{Effect: Effect{Kind: EffectLookUp, Attempt: a}}
}

// known gives the sighting of the attempt, or what must be done first: ask, write down
// the payment's id, or wait for an answer.
func (d decider) known(a ledger.Attempt) (Sighting, Decision, bool) {
	sighting, asked := d.Sightings[a.Number]
	switch {
	case !asked, sighting.Refused != "" && sighting.Refused != EffectCreate && !sighting.saysAnything():
		return sighting, d.ask(a), false
	case sighting.Seen && a.Payment == "":
		return sighting, Decision{Change: ledger.PaymentCreated(d.Reservation, a.Number, sighting.Payment.ID, d.Origin, d.Now)}, false
	case sighting.Unreachable:
		return sighting, Decision{Retry: true}, false
	case sighting.NotFound:
		return sighting, Decision{Retry: true, Answered: true}, false
	}
	return sighting, Decision{}, true
}

// holdsMoney reports whether the payment has money in it.
func holdsMoney(p payment.Payment) bool {
	return p.Status == payment.StatusAuthorized || p.Status == payment.StatusCaptured
}

// matches reports whether the payment is for what was asked, and for this attempt. What a
// signed notice says of the amount counts as well (case K3).
func (d decider) matches(a ledger.Attempt, p payment.Payment) bool {
	amount := d.Reservation.Amount
	money := p.AuthorizedMinor
	if p.Status == payment.StatusCaptured {
		money = p.CapturedMinor
	}
	if p.Amount != amount || money != amount.AmountMinor || p.Reservation != d.Reservation.ID || p.Attempt != a.Number {
		return false
	}
	n := d.Notice
	told := n != nil && n.Attempt == a.Number && (n.Status == payment.StatusAuthorized || n.Status == payment.StatusCaptured)
	return !told || (n.AmountMinor == amount.AmountMinor && n.Currency == amount.Currency)
}

// live reports whether the hold can still be sold in time.
func (d decider) live() bool {
	return d.Hold.Status == ledger.StatusHeld && d.Now.Before(d.Hold.ReleaseAt)
}

// held reports whether the hold still has its units.
func (d decider) held() bool { return d.Hold.Status == ledger.StatusHeld }

// waitedEnough reports whether the hold has waited for its payment as long as it may.
func (d decider) waitedEnough() bool {
	return d.held() && !d.Now.Before(d.Hold.ReleaseAt.Add(d.Hold.Terms.UnknownFor))
}

// wait looks again at a time, or sooner if the hold's time has a border before.
func (d decider) wait(until time.Time) Decision {
	if d.held() {
		for _, border := range []time.Time{d.Hold.ReleaseAt, d.Hold.ReleaseAt.Add(d.Hold.Terms.UnknownFor)} {
			if border.After(d.Now) && border.Before(until) {
				until = border
			}
		}
	}
	return Decision{LookAt: until}
}

// waitForBuyer looks again, less often the longer nothing has happened.
func (d decider) waitForBuyer() Decision {
	since := d.Now.Sub(d.Reservation.UpdatedAt)
	return d.wait(d.Now.Add(min(max(since, LookFirst), LookMax)))
}

// giveUp releases the hold although nobody knows how its payment stands.
func (d decider) giveUp() Decision {
	change, err := ledger.GiveUp(d.Hold, d.Reservation, d.Origin, d.Now)
	if err != nil {
		return Decision{Retry: true}
	}
	return Decision{Change: change}
}

// step is the Change from the reservation to next.
func (d decider) step(next ledger.Reservation, t ledger.EventType) ledger.Change {
	return ledger.ReservationStep(d.Reservation, next, t, nil, d.Origin, d.Now)
}

// release gives the units back in the same Change as the step, if the hold still has them.
// No money can come for it any more.
func (d decider) release(step ledger.Change) Decision {
	if !d.held() {
		return Decision{Change: step}
	}
	released, err := ledger.ReleaseUnpaid(d.Hold, d.Origin.Beside("hold"), d.Now)
	return besides(released, err, step)
}

// besides puts what happens to a hold into the same Change as the step.
func besides(held ledger.Change, err error, step ledger.Change) Decision {
	if err != nil {
		// The hold has gone on since it was read. Deciding anew will see it.
		return Decision{Retry: true}
	}
	return Decision{Change: ledger.Together(held, step)}
}

// soonest is the wait that ends first.
func soonest(a, b Decision) Decision {
	out := Decision{Retry: a.Retry || b.Retry, Answered: a.Answered || b.Answered, LookAt: a.LookAt}
	if out.LookAt.IsZero() || (!b.LookAt.IsZero() && b.LookAt.Before(out.LookAt)) {
		out.LookAt = b.LookAt
	}
	return out
}
