package sim

import (
	"fmt"
	"reflect"
	"slices"
	"time"

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
	stock    map[stockKey]ledger.Stock
	promised map[stockKey]ledger.Counters // by the holds
	effects  map[string]ledger.HoldID     // holds by the owner and key that made them
}

type stockKey struct {
	slot  ledger.SlotID
	shard ledger.Shard
}

// slotBook is one slot through time.
type slotBook struct {
	now     ledger.Slot
	moments []moment
	edits   []edit
}

// edit is a change of the slot itself.
type edit struct {
	at   time.Time
	by   *request
	step slotStep
}

// moment is a slot from a time on, until the next moment.
type moment struct {
	at        time.Time
	available ledger.Units
	terms     ledger.Terms
}

// holdBook is one hold through time.
type holdBook struct {
	now       ledger.Hold
	createdAt time.Time // true time of the commit, not what a clock said
	endedAt   time.Time
	by        *request // the request that made it
	endedBy   *request
	versions  []time.Time // when each version was made
}

type eventBook struct {
	event     ledger.Event
	delivered int
	marked    bool
}

func newBooks(w *world) *books {
	return &books{
		world: w, slots: map[ledger.SlotID]*slotBook{}, holds: map[ledger.HoldID]*holdBook{},
		events: map[ledger.EventID]*eventBook{}, stock: map[stockKey]ledger.Stock{},
		promised: map[stockKey]ledger.Counters{}, effects: map[string]ledger.HoldID{},
	}
}

// write takes one commit into the books and checks it.
func (b *books) write(c commit, by *request) {
	before, after, err := decodeCommit(c)
	if err != nil {
		b.world.violated("P5", "%s wrote what cannot be read: %v", c.by, err)
		return
	}
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

// writeEvents checks that an event is written once, and afterwards only marked. It
// returns the new events of this commit.
func (b *books) writeEvents(c commit, before, after []ledger.Event) []ledger.Event {
	var created []ledger.Event
	for _, e := range after {
		known := b.events[e.ID]
		if known == nil {
			b.events[e.ID] = &eventBook{event: e}
			created = append(created, e)
			b.world.trace.add("COMMIT by %s: %s", c.by, describe(e))
			continue
		}
		if !slices.ContainsFunc(before, func(old ledger.Event) bool { return old.ID == e.ID }) || !reflect.DeepEqual(known.event, e) {
			b.world.violated("P5", "%s changed the event %s", c.by, e.ID)
		}
		if known.delivered == 0 {
			b.world.violated("P7", "%s marked the event %s, which the bus has never had", c.by, e.ID)
		}
		known.marked = true
	}
	for _, e := range before {
		if known := b.events[e.ID]; known == nil {
			b.world.violated("P5", "%s replaced an event that nobody wrote", c.by)
		} else if !slices.ContainsFunc(after, func(now ledger.Event) bool { return now.ID == e.ID }) {
			b.world.violated("P5", "%s wrote over the event %s", c.by, e.ID)
		}
	}
	return created
}

func describe(e ledger.Event) string {
	text := fmt.Sprintf("%s %s version %d", e.ID, e.Type, e.Version)
	if e.Hold != nil {
		text += fmt.Sprintf(" of %s (%s)", e.Hold.ID, e.Hold.Owner)
	}
	for _, m := range e.Movements {
		text += fmt.Sprintf(", %s/%d %s>%s %d", m.Slot, m.Shard, m.From, m.To, m.Quantity)
	}
	return text
}

func (b *books) writeSlot(c commit, slot ledger.Slot, created []ledger.Event, by *request) {
	book := b.slots[slot.ID]
	if book == nil {
		book = &slotBook{}
		b.slots[slot.ID] = book
	}
	if slot.Version != book.now.Version+1 {
		b.world.violated("P5", "%s took slot %s from version %d to %d", c.by, slot.ID, book.now.Version, slot.Version)
	}
	at := slices.IndexFunc(created, func(e ledger.Event) bool { return e.Slot != nil && e.Slot.ID == slot.ID && e.Version == slot.Version })
	if at < 0 {
		b.world.violated("P5", "%s changed slot %s without an event", c.by, slot.ID)
		return
	}
	book.edits = append(book.edits, edit{b.world.kernel.now, by, editStep(book.now, slot, created[at].Movements)})
	book.now = slot
}

// editStep says what an edit changed. A planned edit changes one thing.
func editStep(before, after ledger.Slot, movements []ledger.Movement) slotStep {
	var capacity ledger.Units
	for _, m := range movements {
		capacity += m.Delta().Capacity
	}
	amount, open := after.Terms.Price.AmountMinor, after.Terms.Open
	switch {
	case before.Version == 0:
		return slotStep{kind: stepDefine, quantity: capacity, amount: amount}
	case amount != before.Terms.Price.AmountMinor:
		return slotStep{kind: stepPrice, amount: amount}
	case open != before.Terms.Open:
		return slotStep{kind: stepOpen, open: open}
	default:
		return slotStep{kind: stepCapacity, quantity: capacity}
	}
}

// writeHold checks a hold's step: P3, P4 and P5.
func (b *books) writeHold(c commit, stored ledger.StoredHold, created []ledger.Event, by *request) {
	hold, w := stored.Hold, b.world
	book := b.holds[hold.ID]
	if book == nil {
		book = &holdBook{createdAt: w.kernel.now, by: by}
		b.holds[hold.ID] = book
		b.checkNewHold(c, hold, by)
	} else {
		b.checkEnd(c, book.now, hold)
		book.endedAt, book.endedBy = w.kernel.now, by
	}
	if hold.Version != book.now.Version+1 {
		w.violated("P3", "%s took %s from version %d to %d", c.by, hold.ID, book.now.Version, hold.Version)
	}
	if stored.Due != (hold.Status == ledger.StatusHeld) {
		w.violated("P9", "%s left %s, which is %s, in the due index: %t", c.by, hold.ID, hold.Status, stored.Due)
	}
	at := slices.IndexFunc(created, func(e ledger.Event) bool {
		return e.Hold != nil && e.Hold.ID == hold.ID && e.Version == hold.Version
	})
	if at < 0 {
		w.violated("P5", "%s changed %s without an event", c.by, hold.ID)
	} else {
		b.checkTime(c, book.now, hold, created[at])
	}
	b.promise(hold, book.now)
	book.now = hold
	book.versions = append(book.versions, w.kernel.now)
}

// checkNewHold checks what a new hold was sold at: it must be what the slot said at the
// moment of the commit.
func (b *books) checkNewHold(c commit, hold ledger.Hold, by *request) {
	w := b.world
	if hold.Status != ledger.StatusHeld {
		w.violated("P3", "%s made %s as %s", c.by, hold.ID, hold.Status)
	}
	for _, line := range hold.Lines {
		slot := b.slots[line.Slot]
		if slot == nil || !slot.now.Terms.Open || slot.now.Terms.Price != line.UnitPrice {
			w.violated("price", "%s sold %s at %v, which is not its price now, or it is closed", c.by, line.Slot, line.UnitPrice)
		}
	}
	if by == nil {
		w.violated("P5", "%s made %s and nobody asked for it", c.by, hold.ID)
		return
	}
	if other, twice := b.effects[by.idempotency()]; twice && !b.forgotten(by, other) {
		w.violated("P6", "%s made %s under a key that had made %s", c.by, hold.ID, other)
	}
	b.effects[by.idempotency()] = hold.ID
	if string(hold.Owner) != by.subject || !sameLines(hold.Lines, by.lines) {
		w.violated("P6", "%s made %s of %s, which is not what %s asked for", c.by, hold.ID, hold.Owner, by.name)
	}
}

// forgotten reports whether the key of an earlier hold may be used again: by the clock
// of any instance.
func (b *books) forgotten(by *request, earlier ledger.HoldID) bool {
	age := b.world.kernel.now.Sub(b.holds[earlier].createdAt)
	return age >= ledger.IdempotencyRetainFor-2*clockJumpMax-time.Minute
}

func sameLines(lines []ledger.Line, wishes []wish) bool {
	total := map[ledger.SlotID]ledger.Units{}
	for _, l := range lines {
		total[l.Slot] += l.Quantity
	}
	for _, wanted := range wishes {
		total[wanted.slot] -= wanted.quantity
	}
	for _, left := range total {
		if left != 0 {
			return false
		}
	}
	return true
}

func (b *books) checkEnd(c commit, before, after ledger.Hold) {
	w := b.world
	if before.Status != ledger.StatusHeld || after.Status == ledger.StatusHeld {
		w.violated("P3", "%s took %s from %s to %s", c.by, after.ID, before.Status, after.Status)
	}
	same := before
	same.Status, same.Version, same.EndedAt, same.PaymentReference = after.Status, after.Version, after.EndedAt, after.PaymentReference
	if !reflect.DeepEqual(same, after) {
		w.violated("P2", "%s changed %s beyond its end: %v to %v", c.by, after.ID, before, after)
	}
}

// checkTime holds the decision against the time that its instance saw.
func (b *books) checkTime(c commit, before, after ledger.Hold, e ledger.Event) {
	switch after.Status {
	case ledger.StatusConfirmed:
		if !e.OccurredAt.Before(before.ReleaseAt) {
			b.world.violated("P4", "%s confirmed %s at %s, and it was over at %s", c.by, after.ID, e.OccurredAt, before.ReleaseAt)
		}
	case ledger.StatusExpired:
		if e.OccurredAt.Before(before.ReleaseAt) {
			b.world.violated("P4", "%s expired %s at %s, before it was over at %s", c.by, after.ID, e.OccurredAt, before.ReleaseAt)
		}
	case ledger.StatusHeld:
		if !after.CreatedAt.Equal(e.OccurredAt) || !after.ExpiresAt.After(after.CreatedAt) {
			b.world.violated("P4", "%s made %s with times that do not fit: %v", c.by, after.ID, after)
		}
	case ledger.StatusCanceled:
	}
}

// promise moves what the hold promises in our own sums.
func (b *books) promise(now, before ledger.Hold) {
	for _, line := range now.Lines {
		for _, a := range line.Shards {
			key := stockKey{line.Slot, a.Shard}
			sum := b.promised[key]
			if before.Status == ledger.StatusHeld {
				sum.Held -= a.Quantity
			}
			switch now.Status {
			case ledger.StatusHeld:
				sum.Held += a.Quantity
			case ledger.StatusConfirmed:
				sum.Confirmed += a.Quantity
			case ledger.StatusCanceled, ledger.StatusExpired:
			}
			b.promised[key] = sum
		}
	}
}

// writeStock checks P1 and P2 of every stock item that changed, and that it changed as
// the events of the same commit tell (P5).
func (b *books) writeStock(c commit, after []ledger.Stock, created []ledger.Event) {
	w := b.world
	told := map[stockKey]ledger.Counters{}
	for _, e := range created {
		for _, m := range e.Movements {
			key := stockKey{m.Slot, m.Shard}
			told[key] = moved(moved(told[key], m.From, -m.Quantity), m.To, m.Quantity)
		}
	}
	for _, s := range after {
		key := stockKey{s.Slot, s.Shard}
		before, now := b.stock[key].Counters, s.Counters
		if now.Available < 0 || now.Held < 0 || now.Confirmed < 0 || now.Available+now.Held+now.Confirmed != now.Capacity {
			w.violated("P1", "%s left %s/%d at %+v", c.by, s.Slot, s.Shard, now)
		}
		if sum := b.promised[key]; now.Held != sum.Held || now.Confirmed != sum.Confirmed {
			w.violated("P2", "%s left %s/%d at %+v, and its holds have %+v", c.by, s.Slot, s.Shard, now, sum)
		}
		change := ledger.Counters{Available: now.Available - before.Available, Held: now.Held - before.Held, Confirmed: now.Confirmed - before.Confirmed}
		if tells := told[key]; change != tells {
			w.violated("P5", "%s changed %s/%d by %+v, and its events tell %+v", c.by, s.Slot, s.Shard, change, tells)
		}
		delete(told, key)
		b.stock[key] = s
	}
	for key, tells := range told {
		w.violated("P5", "%s told of %s/%d moving by %+v, and it did not move", c.by, key.slot, key.shard, tells)
	}
}

func moved(c ledger.Counters, bucket ledger.Bucket, units ledger.Units) ledger.Counters {
	switch bucket {
	case ledger.BucketAvailable:
		c.Available += units
	case ledger.BucketHeld:
		c.Held += units
	case ledger.BucketConfirmed:
		c.Confirmed += units
	case ledger.BucketOutside:
	}
	return c
}

func touchedSlots(r ledger.Records) []ledger.SlotID {
	var ids []ledger.SlotID
	for _, s := range r.Stock {
		if !slices.Contains(ids, s.Slot) {
			ids = append(ids, s.Slot)
		}
	}
	return ids
}

// remember adds a moment to the slot's book.
func (b *books) remember(id ledger.SlotID) {
	book := b.slots[id]
	if book == nil {
		b.world.violated("P5", "stock of %s was written before the slot", id)
		return
	}
	m := moment{at: b.world.kernel.now, terms: book.now.Terms}
	for shard := range book.now.Terms.Shards {
		s := b.stock[stockKey{id, ledger.Shard(shard)}]
		m.available += s.Counters.Available
		if s.Terms != book.now.Terms {
			b.world.violated("P5", "shard %d of %s has other terms than the slot", shard, id)
		}
	}
	book.moments = append(book.moments, m)
}

// ever reports whether the slot was so at any moment between two times.
func (b *books) ever(id ledger.SlotID, from, to time.Time, so func(moment) bool) bool {
	book := b.slots[id]
	if book == nil {
		return false
	}
	for i, m := range book.moments {
		lastsUntil := to
		if i+1 < len(book.moments) {
			lastsUntil = book.moments[i+1].at
		}
		if !m.at.After(to) && !lastsUntil.Before(from) && so(m) {
			return true
		}
	}
	return false
}

// delivered takes an event that the bus has accepted into the books.
func (b *books) delivered(d delivered) {
	known := b.events[d.EventID]
	if known == nil {
		b.world.violated("P7", "the bus has the event %s, which was never committed", d.EventID)
		return
	}
	known.delivered++
	e := known.event
	sameHold := (e.Hold == nil) == (d.Hold == nil) && (e.Hold == nil || e.Hold.ID == d.Hold.ID)
	sameSlot := (e.Slot == nil) == (d.Slot == nil) && (e.Slot == nil || e.Slot.ID == d.Slot.ID)
	if d.Type != e.Type || d.Version != e.Version || !sameHold || !sameSlot {
		b.world.violated("P7", "the bus tells of %s as %+v, and it was %s", d.EventID, d, describe(e))
	}
}
