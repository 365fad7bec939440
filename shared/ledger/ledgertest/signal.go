package ledgertest

import (
	"strings"
	"time"

	"holdfast/shared/ledger"
)

var signalRules = []rule{
	{"IsCountedUpToItsLimit", signalIsCountedUpToItsLimit},
	{"KindsAndHashesAreApart", signalsAreApart},
	{"RefusalCountsNothing", refusedSignalCountsNothing},
	{"EndingTakesNothingBack", endingTakesNoSignalBack},
	{"EachWindowBeginsAtZero", eachWindowBeginsAtZero},
	{"RepeatedChangeCountsOnce", repeatedSignalCountsOnce},
}

func device(letter string) ledger.Signal {
	return ledger.Signal{Kind: ledger.SignalDevice, Hash: strings.Repeat(letter, ledger.SignalHashCharacters)}
}

func means(letter string) ledger.Signal {
	return ledger.Signal{Kind: ledger.SignalPaymentMeans, Hash: strings.Repeat(letter, ledger.SignalHashCharacters)}
}

// watched is a slot of which a signal may have two holds in a window.
func (f *fixture) watched() ledger.Slot {
	f.Helper()
	return f.slot("A", limited(99, func(p *ledger.Policy) { p.HoldsPerSignalMax = 2 }))
}

// signaled builds a hold of the slot that is made with the signals.
func (f *fixture) signaled(slot ledger.Slot, signals ...ledger.Signal) ledger.Change {
	f.Helper()
	return f.built(ledger.NewHold(ledger.HoldPlan{
		ID: f.holdID(), Owner: theOwner, Signals: signals,
		Quotes:      []ledger.Quote{{Slot: slot.ID, Quantity: 1, UnitAmount: slot.Terms.Price.AmountMinor}},
		Slots:       map[ledger.SlotID]ledger.Slot{slot.ID: slot},
		Allocations: map[ledger.SlotID][]ledger.Allocation{slot.ID: {{Shard: 0, Quantity: 1}}},
	}, f.origin(ledger.CommandCreateHold), f.now))
}

// refusedSignal is the leg of a signal that has been counted so often in this window.
func (f *fixture) refusedSignal(signal ledger.Signal, count ledger.Units) ledger.RefusedLeg {
	return ledger.RefusedLeg{Kind: ledger.LegSignal, Signal: &ledger.SignalWrite{
		Signal: signal, Window: f.now.UTC().Truncate(ledger.SignalWindow), Max: count,
	}}
}

func signalIsCountedUpToItsLimit(f *fixture) {
	slot := f.watched()
	f.commit(f.signaled(slot, device("a")))
	f.commit(f.signaled(slot, device("a")))
	f.refuse(f.signaled(slot, device("a")), f.refusedSignal(device("a"), 2))
	f.commit(f.signaled(slot)) // nobody has to tell one
	f.counters(slot, ledger.Counters{Available: 96, Held: 3, Capacity: 99})
	f.equal("quota", f.quota(theOwner), ledger.Quota{Owner: theOwner})

	// The limit is that of the write, so one that was lowered below the count holds at once.
	stricter := f.signaled(slot, device("a"))
	stricter.Signals[0].Max = 1
	f.refuse(stricter, f.refusedSignal(device("a"), 2))
	stricter.Signals[0].Max = 3
	f.commit(stricter)
}

func signalsAreApart(f *fixture) {
	slot := f.watched()
	for _, signal := range []ledger.Signal{device("a"), means("a"), device("b"), means("b")} {
		f.commit(f.signaled(slot, signal))
		f.commit(f.signaled(slot, signal))
		f.refuse(f.signaled(slot, signal), f.refusedSignal(signal, 2))
	}
}

func refusedSignalCountsNothing(f *fixture) {
	slot := f.watched()
	f.commit(f.signaled(slot, device("a"), means("a")))
	f.commit(f.signaled(slot, device("a"), means("b")))
	for range 3 {
		f.refuse(f.signaled(slot, device("a"), means("a")), f.refusedSignal(device("a"), 2))
	}
	f.commit(f.signaled(slot, device("c"), means("a"))) // of which there is one so far
	f.refuse(f.signaled(slot, device("a"), means("a")), f.refusedSignal(device("a"), 2), f.refusedSignal(means("a"), 2))
}

func endingTakesNoSignalBack(f *fixture) {
	slot := f.watched()
	for range 2 {
		change := f.signaled(slot, device("a"))
		f.commit(change)
		f.commit(f.cancel(change.Holds[0].Next))
	}
	f.refuse(f.signaled(slot, device("a")), f.refusedSignal(device("a"), 2))
}

func eachWindowBeginsAtZero(f *fixture) {
	slot := f.watched()
	begins := noon.Truncate(ledger.SignalWindow)
	for window := range 3 {
		f.now = begins.Add(time.Duration(window) * ledger.SignalWindow)
		f.commit(f.signaled(slot, device("a")))
		f.now = f.now.Add(ledger.SignalWindow - time.Millisecond)
		f.commit(f.signaled(slot, device("a")))
		f.refuse(f.signaled(slot, device("a")), f.refusedSignal(device("a"), 2))
	}
}

func repeatedSignalCountsOnce(f *fixture) {
	slot := f.watched()
	change := f.signaled(slot, device("a"))
	for range 3 {
		f.commit(change)
	}
	f.commit(f.signaled(slot, device("a")))
	f.refuse(f.signaled(slot, device("a")), f.refusedSignal(device("a"), 2))
	f.commit(change) // applied already, whatever would refuse it now
}
