package sim

import (
	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
)

// books are what the simulation knows of the truth: every change, the moment it was
// made, checked against the promises right then. They use arithmetic of their own.
type books struct {
	world    *world
	slots    map[ledger.SlotID]*slotBook
	holds    map[ledger.HoldID]*holdBook
	events   map[ledger.EventID]*eventBook
	steps    map[string]*eventBook // the same, by what they are of and its version
	stock    map[stockKey]ledger.Stock
	promised map[stockKey]ledger.Counters // by the holds
	effects  map[string]ledger.HoldID     // holds by the owner and key that made them
	payments map[ledger.PaymentReference]ledger.HoldID
	writers  map[string]bool // the tasks that have written to the table
}

func newBooks(w *world) *books {
	return &books{
		world: w, slots: map[ledger.SlotID]*slotBook{}, holds: map[ledger.HoldID]*holdBook{},
		events: map[ledger.EventID]*eventBook{}, steps: map[string]*eventBook{}, stock: map[stockKey]ledger.Stock{},
		promised: map[stockKey]ledger.Counters{}, effects: map[string]ledger.HoldID{},
		payments: map[ledger.PaymentReference]ledger.HoldID{}, writers: map[string]bool{},
	}
}

// write takes one commit into the books and checks it.
func (b *books) write(c commit, by *request) {
	b.writers[c.by] = true
	before, after, err := decodeCommit(c)
	if err != nil {
		b.world.violated("P5", "%s wrote what cannot be read: %v", c.by, err)
		return
	}
	if len(before.Holds)+len(before.Slots)+len(before.Stock) > len(after.Holds)+len(after.Slots)+len(after.Stock) {
		b.world.violated("P5", "%s deleted a hold, a slot or stock", c.by)
	}
	b.checkListed(c)
	created := b.writeEvents(c, before.Events, after.Events)
	for _, slot := range after.Slots {
		b.writeSlot(c, slot, created, by)
	}
	for _, stored := range after.Holds {
		b.writeHold(c, stored, created, by)
	}
	b.writeStock(c, after.Stock, created)
	for _, slot := range touchedSlots(after) {
		b.remember(slot)
	}
}

func decodeCommit(c commit) (before, after ledger.Records, err error) {
	var olds, news []map[string]attributeValue
	for _, m := range c.mutations {
		if m.Old != nil {
			olds = append(olds, m.Old)
		}
		if m.New != nil {
			news = append(news, m.New)
		}
	}
	if before, err = dynamo.DecodeRecords(olds); err == nil {
		after, err = dynamo.DecodeRecords(news)
	}
	return before, after, err
}
