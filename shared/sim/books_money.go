package sim

import (
	"slices"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
)

// captures watches a capture at the bank: P8 at the moment when the money is taken.
func (b *books) captures(id ledger.PaymentID, amountMinor int64, do func() (payment.Payment, error)) (payment.Payment, error) {
	w := b.world
	before, known := w.bank.real.LookUp(id)
	answer, err := do()
	after, _ := w.bank.real.LookUp(id) // the one that was asked for a moment ago
	if known != nil || after.Captures == before.Captures {
		return answer, err
	}
	book := b.reservations[after.Reservation]
	b.captured[after.Reservation]++
	switch {
	case b.captured[after.Reservation] > 1:
		w.violated("P8", "%s was captured for the %d. time", after.Reservation, b.captured[after.Reservation])
	case book == nil || book.now.SoldHold == "":
		w.violated("P8", "%s was captured, and nothing was sold for it", after.Reservation)
	case amountMinor != book.now.Amount.AmountMinor || after.Amount != book.now.Amount:
		w.violated("P8", "%d %s of %s were captured, and %v was quoted", amountMinor, after.Amount.Currency, after.Reservation, book.now.Amount)
	}
	return answer, err
}

// refunds checks, when a refund is asked for at the bank, that it was written down before,
// over that amount.
func (b *books) refunds(id ledger.PaymentID, key payment.Key, amountMinor int64) {
	w := b.world
	p, err := w.bank.real.LookUp(id)
	if err != nil {
		w.violated("P8", "a refund is asked of %s, which there is not", id)
		return
	}
	book := b.reservations[p.Reservation]
	if book == nil || !slices.ContainsFunc(book.now.Refunds, func(r ledger.Refund) bool {
		return payment.RefundKey(p.Reservation, r.Attempt, r.Number) == key && r.Attempt == p.Attempt && r.AmountMinor == amountMinor
	}) {
		w.violated("P8", "a refund of %d is asked under %s, and it is not written down", amountMinor, key)
	}
}

// checkRefunds: a refund is owed, and then what the bank has made of it.
func (s *step) checkRefunds(before, after ledger.Reservation) {
	bank := s.world.bank
	payments := bank.paymentsOf(after.ID)
	for i, r := range after.Refunds {
		p, _ := attemptPayment(payments, r.Attempt)
		if i >= len(before.Refunds) {
			if r.State != ledger.RefundOwed || r.AmountMinor <= 0 || r.Number != i+1 {
				s.violated("P8", "began a refund of %s as %+v", after.ID, r)
			}
			continue
		}
		was := before.Refunds[i]
		if r.AmountMinor != was.AmountMinor || r.Attempt != was.Attempt || r.Number != was.Number {
			s.violated("P8", "took the refund %+v of %s for %+v", was, after.ID, r)
		}
		if r.State == was.State {
			continue
		}
		truly := false
		switch r.State {
		case ledger.RefundDone:
			truly = p.RefundedMinor >= refundsIn(after, r.Attempt, ledger.RefundDone) || bank.failed[p.ID]
		case ledger.RefundFailed:
			truly = bank.scriptOf(p.Payment).RefundRefused || bank.failed[p.ID]
		case ledger.RefundOwed:
		}
		if !truly {
			s.violated("P8", "wrote that refund %d of %s is %s, and the bank has never said so: %+v", r.Number, after.ID, r.State, p)
		}
	}
	if len(after.Refunds) < len(before.Refunds) {
		s.violated("P8", "forgot refunds of %s", after.ID)
	}
}

// refundsIn adds up the refunds of an attempt that are in one of these states.
func refundsIn(r ledger.Reservation, n ledger.AttemptNumber, states ...ledger.RefundState) int64 {
	var total int64
	for _, refund := range r.Refunds {
		if refund.Attempt == n && slices.Contains(states, refund.State) {
			total += refund.AmountMinor
		}
	}
	return total
}

// checkMoney: P8 at this commit. Money that the bank has taken without our asking, or given
// back and taken again, is judged at the end: nobody may know of it yet.
func (s *step) checkMoney(r ledger.Reservation) {
	bank := s.world.bank
	sold := s.holds[r.SoldHold]
	for _, p := range bank.paymentsOf(r.ID) {
		taken := p.CapturedMinor - p.RefundedMinor
		if taken == 0 || bank.late[p.ID] || bank.failed[p.ID] {
			continue
		}
		current, _ := r.Current()
		wanted := sold != nil && sold.now.Status == ledger.StatusConfirmed && current.Number == p.Attempt && !current.Unwanted
		worked := slices.Contains([]ledger.ReservationStatus{ledger.ReservationCompensating, ledger.ReservationRefundRequired, ledger.ReservationReview}, r.Status) ||
			refundsIn(r, p.Attempt, ledger.RefundOwed, ledger.RefundFailed) > 0
		if !wanted && !worked {
			s.violated("P8", "left %s, which is %s, with %d taken and nothing sold", r.ID, r.Status, taken)
		}
	}
}

// checkNoMoney: a reservation that ends without a sale has no money, as far as the bank has
// let it know.
func (s *step) checkNoMoney(r ledger.Reservation) {
	bank := s.world.bank
	for _, p := range bank.paymentsOf(r.ID) {
		open := p.Status != payment.StatusVoided && p.Status != payment.StatusCaptured
		if (open || p.CapturedMinor != p.RefundedMinor) && !bank.late[p.ID] && !bank.failed[p.ID] {
			s.violated("P8", "ended %s as %s, and the bank has %+v", r.ID, r.Status, p)
		}
	}
}

// closeReservations checks what must be true of the money once everything has come to rest.
func (b *books) closeReservations() {
	for _, id := range sortedKeys(b.reservations) {
		book := b.reservations[id]
		payments := b.world.bank.paymentsOf(id)
		b.closeStatus(book, payments)
		for _, p := range payments {
			b.closePayment(book.now, p)
		}
	}
}

// closeStatus: every reservation has ended, or waits for somebody outside.
func (b *books) closeStatus(book *reservationBook, payments []paymenttest.Payment) {
	r, w := book.now, b.world
	rests := false
	switch r.Status {
	case ledger.ReservationCompleted, ledger.ReservationCanceled, ledger.ReservationRefunded, ledger.ReservationReview:
		rests = true
	case ledger.ReservationRefundRequired:
		rests = slices.ContainsFunc(payments, func(p paymenttest.Payment) bool {
			return w.bank.scriptOf(p.Payment).RefundRefused || w.bank.failed[p.ID]
		})
	case ledger.ReservationCaptured:
		sold := b.holds[r.SoldHold]
		rests = sold != nil && sold.now.Terms.Delivery == ledger.DeliveryEvent && !book.delivered
	case ledger.ReservationPaymentPending, ledger.ReservationAuthorized, ledger.ReservationConfirmed, ledger.ReservationCompensating:
	}
	if !rests {
		w.violated("P9", "%s of %s is still %s (%s)", r.ID, r.Hold, r.Status, r.Reason)
	}
	for _, refund := range r.Refunds {
		p, _ := attemptPayment(payments, refund.Attempt)
		if refund.State == ledger.RefundOwed || refund.State == ledger.RefundFailed && !w.bank.scriptOf(p.Payment).RefundRefused && !w.bank.failed[p.ID] {
			w.violated("P8", "refund %d of %s is still %s", refund.Number, r.ID, refund.State)
		}
	}
}

// closePayment: the bank keeps of a payment what the reservation sold, and what it refuses
// to give back.
func (b *books) closePayment(r ledger.Reservation, p paymenttest.Payment) {
	w := b.world
	waits := r.Status == ledger.ReservationReview && r.Reason == ledger.ReasonLate
	if p.Status != payment.StatusCaptured && p.Status != payment.StatusVoided && !waits {
		w.violated("P8", "%s of %s, which is %s (%s), is still %s", p.ID, r.ID, r.Status, r.Reason, p.Status)
	}
	current, _ := r.Current()
	var keeps int64
	if sold := b.holds[r.SoldHold]; sold != nil && keepsMoney(r) && current.Number == p.Attempt {
		for _, line := range sold.now.Lines {
			keeps += int64(line.Quantity-quantityOf(line.Returned)) * line.UnitPrice.AmountMinor
		}
	}
	if waits && current.Number == p.Attempt && !current.Unwanted {
		keeps = p.CapturedMinor
	}
	stuck := refundsIn(r, p.Attempt, ledger.RefundFailed)
	if has := p.CapturedMinor - p.RefundedMinor; has != keeps+stuck {
		w.violated("P8", "the bank has %d of %s for %s, which is %s (%s) and keeps %d, with %d that it does not give back",
			has, p.ID, r.ID, r.Status, r.Reason, keeps, stuck)
	}
}
