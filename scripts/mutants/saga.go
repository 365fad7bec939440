package main

import "slices"

const (
	sagaCompensation = "shared/saga/decide_compensation.go"
	sagaRefund       = "shared/saga/decide_refund.go"
	sagaEnded        = "shared/saga/decide_ended.go"
	sagaDecide       = "shared/saga/decide.go"
	sagaDriver       = "shared/saga/driver.go"
	sagaPending      = "shared/saga/decide_pending.go"
	sagaSale         = "shared/saga/decide_sale.go"
	sagaTick         = "shared/saga/tick.go"
	ledgerPayment    = "shared/ledger/hold_payment.go"
	ledgerCancel     = "shared/ledger/reservation_cancel.go"
	ledgerReserve    = "shared/ledger/reservation.go"
	commandsPayment  = "shared/commands/payment.go"
	paymentPort      = "shared/payment/payment.go"
	outboxWake       = "shared/outbox/wake.go"
)

// sagaTests are asked when the simulation notices nothing.
var sagaTests = []string{"./shared/saga", "./shared/ledger/...", "./shared/commands"}

func sagaMutants() []mutant {
	all := slices.Concat(saleMutants(), releaseMutants(), moneyMutants(), returnMutants(), driveMutants())
	for i := range all {
		all[i].tests = sagaTests
	}
	return all
}

// saleMutants sell what must not be sold, or for other money.
func saleMutants() []mutant {
	return []mutant{
		{
			name: "sell a paid hold that is over",
			edits: []edit{
				{ledgerPayment, "	if h.Status != StatusHeld || !now.Before(h.ReleaseAt) {\n		return Change{}, notActive(h, now)\n	}\n	change := endHold(h, ended(h, StatusConfirmed", "	if h.Status != StatusHeld {\n		return Change{}, notActive(h, now)\n	}\n	change := endHold(h, ended(h, StatusConfirmed"},
				{ledgerPayment, "change.Holds[0].When, change.Holds[0].Of = BeforeRelease, &h.Reservation", "change.Holds[0].When, change.Holds[0].Of = AnyTime, &h.Reservation"},
				{sagaSale, "	case d.live():\n		sold, err", "	case d.held():\n		sold, err"},
			},
			harm: "money that came too late buys, whatever the shop's policy for late money says",
		},
		{
			name: "capture before the sale",
			edits: []edit{{
				sagaSale, "	if paid && d.approved() {\n",
				"	if paid && d.Sightings[attempt.Number].Payment.Status == payment.StatusAuthorized {\n		return Decision{Effect: Effect{Kind: EffectCapture, Attempt: attempt, AmountMinor: d.Reservation.Amount.AmountMinor}}\n	}\n	if paid && d.approved() {\n",
			}},
			harm: "a buyer's money is taken, and in the same moment the seat goes to somebody else",
		},
		{
			name: "take other money for the payment",
			edits: []edit{
				{sagaDecide, "if p.Amount != amount || money != amount.AmountMinor || p.Reservation != d.Reservation.ID", "if amount.AmountMinor < 0 || money < 0 || p.Reservation != d.Reservation.ID"},
				{sagaDecide, "return !told || (n.AmountMinor == amount.AmountMinor && n.Currency == amount.Currency)", "return !told || n.AmountMinor > 0"},
			},
			harm: "a seat of 500 is sold for 499, or for 500 of another currency",
		},
		{
			name:  "late money buys against the policy",
			edits: []edit{{sagaSale, "	return terms.LatePayment\n", "	return ledger.LatePaymentReacquire\n"}},
			harm:  "a shop that wants late money back with its buyer has sold instead",
		},
		{
			name:  "reacquire moves the units twice",
			edits: []edit{{ledgerPayment, "old := changeHold(h, ended(h, StatusExpired, now), EventHoldExpired, origin, now)", "old := endHold(h, ended(h, StatusExpired, now), EventHoldExpired, BucketAvailable, origin, now)"}},
			harm:  "the seat that a late payment has bought is on sale again",
		},
		{
			name:  "the grace grows with every attempt",
			edits: []edit{{ledgerPayment, "next.ReleaseAt = h.ExpiresAt.Add(h.GraceFor)", "next.ReleaseAt = h.ReleaseAt.Add(h.GraceFor)"}},
			harm:  "who is declined again and again keeps a seat for ever",
		},
		{
			name: "begin to pay after the user's time",
			edits: []edit{
				{ledgerPayment, "case h.Status != StatusHeld || !now.Before(h.ExpiresAt):", "case h.Status != StatusHeld || !now.Before(h.ReleaseAt.Add(h.GraceFor)):"},
				{ledgerPayment, "change.Holds[0].When, change.Holds[0].NoOpenAttempt = BeforeExpiry, true", "change.Holds[0].When, change.Holds[0].NoOpenAttempt = AnyTime, true"},
			},
			harm: "a payment begins for a hold whose countdown has ended",
		},
	}
}

// releaseMutants give units back while money can still come for them.
func releaseMutants() []mutant {
	return []mutant{
		{
			name: "cancel a hold that is being paid",
			edits: []edit{
				{ledgerHold, "	case h.AttemptOpen != 0:\n		return Change{}, paymentInProgress()\n	}\n	change := endHold(h, ended(h, StatusCanceled", "	}\n	change := endHold(h, ended(h, StatusCanceled"},
				{ledgerHold, "EventHoldCanceled, BucketAvailable, origin, now)\n	change.Holds[0].NoOpenAttempt = true\n", "EventHoldCanceled, BucketAvailable, origin, now)\n"},
			},
			harm: "the buyer's bank approves a payment for seats that are somebody else's",
		},
		{
			name: "expire a hold that is being paid",
			edits: []edit{
				{commandsHoldEnd, "if hold.Status != ledger.StatusHeld || hold.AttemptOpen == 0 {\n		return expireWith(", "if hold.Version > 0 {\n		return expireWith("},
				{commandsHoldEnd, "if hold.Status != ledger.StatusHeld || hold.AttemptOpen == 0 {\n		return ledger.Expire(", "if hold.Version > 0 {\n		return ledger.Expire("},
				{ledgerHold, "	if h.AttemptOpen != 0 {\n		return Change{}, paymentInProgress()\n	}\n	change := endHold(h, ended(h, StatusExpired", "	change := endHold(h, ended(h, StatusExpired"},
				{ledgerHold, "change.Holds[0].When, change.Holds[0].NoOpenAttempt = FromRelease, true", "change.Holds[0].When = FromRelease"},
			},
			harm: "the seats are free, the payment goes through, and nobody owes the money back",
		},
		{
			name: "give up without waiting",
			edits: []edit{
				{ledgerPayment, "case now.Before(h.ReleaseAt.Add(h.Terms.UnknownFor)):", "case now.Before(h.ReleaseAt):"},
				{ledgerPayment, "change.Holds[0].When, change.Holds[0].OverFor = FromRelease, h.Terms.UnknownFor", "change.Holds[0].When = FromRelease"},
				{sagaDecide, "return d.held() && !d.Now.Before(d.Hold.ReleaseAt.Add(d.Hold.Terms.UnknownFor))", "return d.held() && !d.Now.Before(d.Hold.ReleaseAt)"},
			},
			harm: "a provider that is slow for a moment costs every buyer the seats",
		},
		{
			name:  "expire before the void",
			edits: []edit{{sagaPending, "	case !d.live():\n		return d.void(attempt, sighting)", "	case !d.live():\n		return d.attemptEnds(attempt, ledger.ReasonExpired)"}},
			harm:  "the seats are free while the buyer's page still takes the card",
		},
		{
			name: "a decline is the end",
			edits: []edit{{
				sagaPending, "d.Hold.Terms.OnDecline == ledger.OnDeclineRelease:\n		return d.void(attempt, sighting)",
				"d.Hold.Terms.OnDecline == ledger.OnDeclineRelease:\n		return d.attemptEnds(attempt, ledger.ReasonDeclined)",
			}},
			harm: "the buyer's second card is charged for seats that were given up",
		},
		{
			name: "another attempt beside an open one",
			edits: []edit{
				{commandsPayment, "		seen, err = s.provider.Void(ctx, payment.VoidKey(r.ID, current.Number), current.Payment)\n", ""},
				{commandsPayment, "	if seen.Status != payment.StatusVoided {\n		return 0, nil\n	}\n	return current.Number, nil", "	return current.Number, nil"},
			},
			harm: "two payments of one order are open, and both can be paid",
		},
	}
}

// moneyMutants lose sight of money.
func moneyMutants() []mutant {
	return []mutant{
		{
			name: "refund before it is written down",
			edits: []edit{{
				sagaRefund, "		return Decision{Change: d.step(next, ledger.EventReservationRefundOwed)}\n	}\n	return d.settleRefund(a, s, next)",
				"		if p.RefundedMinor == 0 {\n			return Decision{Effect: Effect{Kind: EffectRefund, Attempt: a, AmountMinor: rest, Refund: len(next.Refunds)}}\n		}\n		return Decision{Change: d.step(next, ledger.EventReservationRefundOwed)}\n	}\n	return d.settleRefund(a, s, next)",
			}},
			harm: "a process that dies after the call leaves a refund that nobody knows of",
		},
		{
			name:  "one key for all refunds",
			edits: []edit{{paymentPort, `fmt.Sprintf("refund-%d", refund)`, `fmt.Sprintf("refund-%d", min(refund, 1))`}},
			harm:  "the second ticket that is given back is never paid back",
		},
		{
			name:  "one key for all attempts",
			edits: []edit{{paymentPort, `return key(r, a, "create")`, `return key(r, min(a, 1), "create")`}},
			harm:  "who was declined once can never pay",
		},
		{
			name: "late money is overlooked",
			edits: []edit{
				{sagaEnded, "late && r.Status == ledger.ReservationCanceled {", "late && r.Version == 0 {"},
				{sagaEnded, "case unwanted && (attempt.State == ledger.AttemptVoided || !d.settled(attempt)):", "case unwanted && r.Version == 0:"},
			},
			harm: "a bank says cancelled and charges all the same, and the money stays",
		},
		{
			name:  "refund the line for a part of it",
			edits: []edit{{ledgerCancel, "amount += h.line(line.Slot).UnitPrice.Times(line.Quantity).AmountMinor", "amount += h.line(line.Slot).UnitPrice.Times(h.line(line.Slot).Quantity).AmountMinor"}},
			harm:  "who gives one of two tickets back is paid for both",
		},
		{
			name:  "a refused refund looks ended",
			edits: []edit{{sagaRefund, "case ledger.ReservationCompensating, ledger.ReservationRefunded, ledger.ReservationCanceled:", "case ledger.ReservationRefunded:"}},
			harm:  "money that the provider does not give back, and no operator knows of it",
		},
	}
}

// returnMutants lose count of what was given back or granted.
func returnMutants() []mutant {
	return []mutant{
		{
			name:  "return without counting",
			edits: []edit{{ledgerHoldLine, "	l.Returned = slices.DeleteFunc(returned,", "	_ = slices.DeleteFunc(returned,"}},
			harm:  "one ticket is given back as often as its buyer likes",
		},
		{
			name:  "grant what was given back",
			edits: []edit{{ledgerReserve, "left := line.Quantity - line.ReturnedQuantity()\n		if line.GrantTo", "left := line.Quantity\n		if line.GrantTo"}},
			harm:  "who gives coins back before they are delivered has the coins and the money",
		},
		{
			name:  "a cancelled sale keeps its grant",
			edits: []edit{{ledgerCancel, "units := min(g.Quantity, back[g.Slot])", "units := min(0, back[g.Slot])"}},
			harm:  "coins for nothing: bought, cancelled, and kept",
		},
	}
}

// driveMutants keep the saga from coming to its end, or let it act on old news.
func driveMutants() []mutant {
	return []mutant{
		{
			name:  "decide on what was seen before another's step",
			edits: []edit{{sagaDriver, "if reservation.Version != w.expected {", "if reservation.Version < w.expected {"}},
			harm:  "a paid sale is taken back, because an older answer said that it was not paid",
		},
		{
			name:  "never look again",
			edits: []edit{{sagaDriver, "	if decision.Retry {\n		again", "	if decision.Retry && now.IsZero() {\n		again"}},
			harm:  "one outage of the provider leaves orders open for ever",
		},
		{
			name: "nobody wakes the saga",
			edits: []edit{
				{outboxWake, "		return e.Reservation.ID\n", "		return \"\"\n"},
				{outboxWake, "		return e.Hold.Reservation\n", "		return \"\"\n"},
				{sagaTick, "		run.settle(ctx, entry)\n", "		_ = entry\n"},
			},
			harm: "an order is paid, its webhook is lost, and nothing happens",
		},
		{
			name: "a notice counts without its effect",
			edits: []edit{
				{sagaDecide, "	if ask, asks := d.askForNotice(); asks {", "	if ask, asks := d.askForNotice(); asks && d.Now.IsZero() {"},
				{sagaDecide, "decision.Effect.Kind != \"\" || decision.Retry || recordsPayment(decision.Change) {", "decision.Effect.Kind != \"\" || recordsPayment(decision.Change) {"},
			},
			harm: "the event of a payment is ticked off, and its order stays open (case D14)",
		},
	}
}
