package hotslot

import (
	"sync"

	"holdfast/shared/ledger"
)

// book is what an onlooker knows of a sale: which transactions have begun and ended, and
// who was told that too little is left. Nobody gives units back while it is kept.
type book struct {
	mutex    sync.Mutex
	units    ledger.Units
	sold     ledger.Units    // by transactions that have ended
	open     map[*entry]bool // have begun and not ended
	refusals []refusal
}

// entry is a transaction that takes units.
type entry struct {
	quantity ledger.Units
	applied  bool // once it has ended
}

// refusal is the moment when a buyer was told that less is left than they asked for.
type refusal struct {
	quantity ledger.Units
	sold     ledger.Units // surely, by then
	open     []*entry     // may have been applied by then
}

func newBook(units ledger.Units) *book { return &book{units: units, open: make(map[*entry]bool)} }

// begin enters a transaction before it is sent. One that takes nothing is not kept.
func (b *book) begin(quantity ledger.Units) *entry {
	e := &entry{quantity: quantity}
	if quantity == 0 {
		return e
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.open[e] = true
	return e
}

// end enters the answer of a transaction.
func (b *book) end(e *entry, applied bool) {
	if e.quantity == 0 {
		return
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	delete(b.open, e)
	if e.applied = applied; applied {
		b.sold += e.quantity
	}
}

// refuse enters that a buyer of quantity was just told that too little is left.
func (b *book) refuse(quantity ledger.Units) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	r := refusal{quantity: quantity, sold: b.sold}
	for e := range b.open {
		r.open = append(r.open, e)
	}
	b.refusals = append(b.refusals, r)
}

// judged is how many refusals were true, false, or not to be decided because of what was
// on its way when they were told.
type judged struct{ right, wrong, open int }

// judge decides every refusal, when all transactions have ended. Available has only
// fallen: so it was at least the units less all that may have been sold by then, at every
// moment of the request, and a refusal of no more than that was wrong (promise P10). It was
// at most the units less what was surely sold, and a refusal of more than that was right.
func (b *book) judge() judged {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	var out judged
	for _, r := range b.refusals {
		atMost := b.units - r.sold
		atLeast := atMost
		for _, e := range r.open {
			if e.applied {
				atLeast -= e.quantity
			}
		}
		switch {
		case r.quantity <= atLeast:
			out.wrong++
		case r.quantity > atMost:
			out.right++
		default:
			out.open++
		}
	}
	return out
}

// soldUnits is what the transactions that were applied have taken.
func (b *book) soldUnits() ledger.Units {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.sold
}
