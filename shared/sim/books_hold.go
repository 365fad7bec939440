package sim

import (
	"reflect"
	"slices"
	"time"

	"holdfast/shared/ledger"
)

// holdBook is one hold through time.
type holdBook struct {
	now       ledger.Hold
	createdAt time.Time // true time of the commit, not what a clock said
	endedAt   time.Time
	by        *request // the request that made it
	endedBy   *request
	versions  []time.Time // when each version was made
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
	if other, twice := b.effects[by.idempotency()]; twice && !b.forgotten(other) {
		w.violated("P6", "%s made %s under a key that had made %s", c.by, hold.ID, other)
	}
	b.effects[by.idempotency()] = hold.ID
	for _, line := range hold.Lines {
		if shown := by.quoted[line.Slot]; line.UnitPrice.AmountMinor != shown {
			w.violated("price", "%s sold %s at %v, and %s was shown %d", c.by, line.Slot, line.UnitPrice, by.name, shown)
		}
	}
	if string(hold.Owner) != by.subject || !sameLines(hold.Lines, by.lines) {
		w.violated("P6", "%s made %s of %s, which is not what %s asked for", c.by, hold.ID, hold.Owner, by.name)
	}
}

// forgotten reports whether the key of an earlier hold may be used again: by the clock
// of any instance.
func (b *books) forgotten(earlier ledger.HoldID) bool {
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
		if other, twice := b.payments[after.PaymentReference]; twice {
			b.world.violated("payments", "%s confirmed %s by the payment that has confirmed %s", c.by, after.ID, other)
		}
		b.payments[after.PaymentReference] = after.ID
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
