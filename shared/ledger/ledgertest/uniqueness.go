package ledgertest

import "holdfast/shared/ledger"

var uniquenessRules = []rule{
	{"OnePaymentConfirmsOneHold", onePaymentConfirmsOneHold},
	{"EmptyReferenceClaimsNothing", emptyReferenceClaimsNothing},
	{"SameHoldIsRefusedToo", sameHoldIsRefusedToo},
}

func onePaymentConfirmsOneHold(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	first, second := f.held(one(slot, 1)), f.held(one(slot, 1))
	f.commit(f.confirm(first, "pay #1/é"))
	claim := ledger.Uniqueness{Kind: ledger.UniquePaymentReference, Value: "pay #1/é", Hold: first.ID}
	f.refuse(f.confirm(second, "pay #1/é"), ledger.RefusedLeg{Kind: ledger.LegUniqueness, Uniqueness: &claim})
	f.commit(f.confirm(second, "pay #1/É"))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{first.ID, second.ID})
}

func emptyReferenceClaimsNothing(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	first, second := f.held(one(slot, 1)), f.held(one(slot, 1))
	f.commit(f.confirm(first, ""))
	f.commit(f.confirm(second, ""))
	f.counters(slot, ledger.Counters{Available: 2, Confirmed: 2, Capacity: 4})
}

func sameHoldIsRefusedToo(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	hold := f.held(one(slot, 1))
	claim := ledger.Uniqueness{Kind: ledger.UniquePaymentReference, Value: "pay", Hold: hold.ID}
	f.commit(ledger.Change{At: f.now, Uniqueness: []ledger.Uniqueness{claim}})
	f.refuse(f.confirm(hold, "pay"), ledger.RefusedLeg{Kind: ledger.LegUniqueness, Uniqueness: &claim})
}
