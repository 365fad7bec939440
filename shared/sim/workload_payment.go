package sim

import (
	"time"

	"holdfast/shared/ledger"
)

// border is a moment of a hold or its reservation that requests aim at.
type border string

// The borders.
const (
	borderExpiry  border = "expiry"  // what the user sees
	borderRelease border = "release" // when the hold is over
	borderSale    border = "sale"    // when the reservation has sold it
	borderCapture border = "capture" // when the reservation waits for its delivery
)

// buyerAct is what a buyer does with a payment.
type buyerAct string

// The acts.
const (
	buyerPays            buyerAct = "pays"
	buyerDeclined        buyerAct = "is declined"
	buyerDeclinedPays    buyerAct = "is declined and then pays"
	buyerProves          buyerAct = "is asked to prove who they are, and does"
	buyerAskedNeverDoes  buyerAct = "is asked to prove who they are, and never does"
	buyerPaysTwice       buyerAct = "pays twice"
	returnsAfterSaleMost          = 40 * time.Second
)

// drawTerms draws how a slot is sold and what a payment does to its holds. Everything may
// be short, so that a history sees the end of it.
func drawTerms(d *dice, s *slotPlan) {
	s.policy = ledger.DefaultPolicy()
	s.policy.HoldFor = s.holdFor
	if d.chance(3) {
		s.policy.HoldForMax = s.holdFor + d.between(0, 30*time.Second).Truncate(time.Second)
	}
	if d.chance(6) {
		s.amount = 0
	}
	s.policy.GraceFor = pick(d, []time.Duration{0, time.Second, d.between(0, 20*time.Second).Truncate(time.Millisecond)})
	s.policy.NoRestock = d.chance(4)
	if d.chance(3) {
		s.startsAt = historyStart.Add(d.between(0, workloadFor)).Truncate(time.Millisecond)
		s.policy.CancelFor = d.between(0, time.Minute).Truncate(time.Second)
	}
	s.policy.Payment = ledger.PaymentTerms{
		OnDecline:      pick(d, []ledger.OnDecline{ledger.OnDeclineRelease, ledger.OnDeclineKeep, ledger.OnDeclineKeep}),
		LatePayment:    pick(d, []ledger.LatePayment{ledger.LatePaymentReacquire, ledger.LatePaymentReacquire, ledger.LatePaymentRefund, ledger.LatePaymentReview}),
		LateByProvider: d.chance(2),
		UnknownFor:     d.between(time.Second, time.Minute).Truncate(time.Second),
		Delivery:       pick(d, []ledger.DeliveryKind{ledger.DeliveryNone, ledger.DeliveryNone, ledger.DeliveryNone, ledger.DeliveryNone, ledger.DeliveryEvent}),
	}
	if d.chance(3) { // one kind of terms in all slots, so that the strictest is not always the same
		s.policy.Payment.OnDecline, s.policy.Payment.LatePayment = ledger.OnDeclineKeep, ledger.LatePaymentReacquire
	}
}

// drawGrants lets some slots credit another one, which is sold as well, so that what was
// granted may be used up.
func (w *workload) drawGrants(d *dice) {
	if !d.chance(3) {
		return
	}
	granted := slotPlan{id: "G", shards: 1, capacity: ledger.Units(d.IntN(2)), amount: 500, holdFor: 20 * time.Second}
	drawTerms(d, &granted)
	// What is delivered later than it is paid may be given back in between.
	later := d.chance(2)
	for i := range w.slots {
		if later {
			w.slots[i].policy.Payment.Delivery = ledger.DeliveryEvent
		}
		if i == 0 || d.chance(2) {
			w.slots[i].policy.GrantTo = string(granted.id)
		}
	}
	w.slots = append(w.slots, granted)
}

// drawPayment plans a payment, or what follows one. Nearly every payment has a buyer.
func (w *workload) drawPayment(d *dice, p *plan, creates []plan) {
	if w.begun != nil && !d.chance(5) {
		begun := *w.begun
		w.begun = nil
		w.drawBuyer(d, p, begun)
		return
	}
	pays := w.of(askPay)
	if len(pays) == 0 || d.chance(2) {
		w.drawPay(d, p, pick(d, creates))
		w.begun = p
		return
	}
	pay := pick(d, pays)
	p.hold, p.client = pay.hold, pay.client
	if d.chance(12) {
		p.client = "U-2" // who may be another owner
	}
	switch d.IntN(12) {
	case 0, 1:
		w.drawBuyer(d, p, pay)
	case 2, 3, 4:
		w.drawPayAgain(d, p, pay)
	case 5, 6, 7:
		w.drawCancelPaid(d, p, pay)
	case 8:
		p.kind, p.at = askCancel, pay.at+d.between(0, 4*time.Second)
	case 9, 10:
		p.kind, p.client, p.delivered = askDelivery, "shop", !d.chance(3)
		p.border, p.fromBorder = borderCapture, d.between(0, 15*time.Second)
	default:
		p.kind, p.at = pick(d, []kind{askSession, askReadPaid, askReadPaid}), pay.at+d.between(0, 30*time.Second)
	}
}

func (w *workload) drawPay(d *dice, p *plan, create plan) {
	p.kind, p.hold = askPay, create.number
	if !d.chance(15) {
		p.client = create.client
	}
	p.at = create.at + d.between(5*time.Millisecond, 3*time.Second)
	switch d.IntN(8) {
	case 0:
		p.border, p.fromBorder = borderExpiry, d.between(-25*time.Millisecond, 10*time.Millisecond)
	case 1:
		p.at = create.at + d.between(0, 40*time.Second)
	default:
	}
}

// drawPayAgain plans another attempt, or the same one under its key: at once, or later.
func (w *workload) drawPayAgain(d *dice, p *plan, pay plan) {
	p.kind = askPay
	p.at = pay.at + pick(d, []time.Duration{d.between(0, 60*time.Millisecond), d.between(0, 5*time.Second), d.between(0, 40*time.Second)})
	if d.chance(2) {
		p.key, p.repeats = pay.key, pay.number
		if d.chance(6) {
			p.hold = pick(d, w.creates()).number
		}
	}
}

func (w *workload) drawBuyer(d *dice, p *plan, pay plan) {
	p.kind, p.hold, p.client = askBuyer, pay.hold, pay.client
	p.act = pick(d, []buyerAct{buyerPays, buyerPays, buyerPays, buyerPays, buyerDeclined, buyerDeclinedPays, buyerDeclinedPays, buyerProves, buyerAskedNeverDoes, buyerPaysTwice})
	p.at = pay.at + d.between(300*time.Millisecond, 6*time.Second)
	switch d.IntN(7) {
	case 0:
		p.border, p.fromBorder = borderRelease, d.between(-3*time.Second, 2*time.Second)
	case 1:
		p.border, p.fromBorder = pick(d, []border{borderRelease, borderExpiry}), d.between(-40*time.Millisecond, 10*time.Millisecond)
	case 2:
		p.border, p.fromBorder = borderRelease, d.between(0, 40*time.Second)
	default:
	}
}

// drawCancelPaid plans that a reservation is taken back: as a whole or in part, before the
// sale or after it.
func (w *workload) drawCancelPaid(d *dice, p *plan, pay plan) {
	p.kind, p.at = askCancelPaid, pay.at+d.between(0, 20*time.Second)
	if d.chance(5) {
		p.client = operatorSubject
	}
	if d.chance(3) {
		return
	}
	p.border, p.fromBorder = pick(d, []border{borderSale, borderCapture}), pick(d, []time.Duration{d.between(0, time.Second), d.between(0, returnsAfterSaleMost)})
	if d.chance(2) {
		return
	}
	for _, create := range w.creates() {
		if create.number == pay.hold {
			line := pick(d, create.lines)
			p.lines = []wish{{line.slot, ledger.Units(1 + d.IntN(int(line.quantity)))}}
		}
	}
}
