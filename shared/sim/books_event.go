package sim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/sim/table"
)

type eventBook struct {
	event     ledger.Event
	delivered int
	firstAt   time.Time // of the first delivery
	marked    bool
	// givenUp says that the stream has dropped it: the table alone still has it.
	givenUp bool
	// purged says that it was archived and has left the table.
	purged bool
}

// deletes reports whether the commit takes the event out of the table.
func (c commit) deletes(e ledger.Event) bool {
	return slices.ContainsFunc(c.mutations, func(m table.Mutation) bool {
		return m.New == nil && textOf(m.Old, eventIDAttribute) == string(e.ID)
	})
}

// writeEvents checks that an event is written once, and afterwards only marked. It
// returns the new events of this commit.
func (b *books) writeEvents(c commit, before, after []ledger.Event) []ledger.Event {
	var created []ledger.Event
	for _, e := range after {
		known := b.events[e.ID]
		if known == nil {
			b.events[e.ID] = &eventBook{event: e}
			b.steps[stepName(e, e.Version)] = b.events[e.ID]
			created = append(created, e)
			b.world.trace.add("COMMIT by %s: %s", c.by, describe(e))
			continue
		}
		restored := known.purged
		known.purged = false
		if !restored && !slices.ContainsFunc(before, func(old ledger.Event) bool { return old.ID == e.ID }) || !reflect.DeepEqual(known.event, e) {
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
		} else if known.purged = c.deletes(e); !known.purged && !slices.ContainsFunc(after, func(now ledger.Event) bool { return now.ID == e.ID }) {
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
	if r := e.Reservation; r != nil {
		text += fmt.Sprintf(" of %s (%s) %s %s", r.ID, r.Owner, r.Status, r.Reason)
	}
	for _, m := range e.Movements {
		text += fmt.Sprintf(", %s/%d %s>%s %d", m.Slot, m.Shard, m.From, m.To, m.Quantity)
	}
	return text
}

// delivered takes an event that the bus has accepted into the books.
func (b *books) delivered(d delivered) {
	known := b.events[d.EventID]
	if known == nil {
		b.world.violated("P7", "the bus has the event %s, which was never committed", d.EventID)
		return
	}
	if known.delivered++; known.delivered == 1 {
		known.firstAt = b.world.kernel.now
	}
	e := known.event
	if before := b.steps[stepName(e, e.Version-1)]; before != nil && before.delivered == 0 && (!before.givenUp || known.givenUp) {
		b.world.violated("order", "the bus has %s before the event of the version before", describe(e))
	}
	sameHold := (e.Hold == nil) == (d.Hold == nil) && (e.Hold == nil || e.Hold.ID == d.Hold.ID)
	sameSlot := (e.Slot == nil) == (d.Slot == nil) && (e.Slot == nil || e.Slot.ID == d.Slot.ID)
	sameReservation := (e.Reservation == nil) == (d.Reservation == nil) && (e.Reservation == nil || e.Reservation.ID == d.Reservation.ID)
	if d.Type != e.Type || d.Version != e.Version || !sameHold || !sameSlot || !sameReservation {
		b.world.violated("P7", "the bus tells of %s as %+v, and it was %s", d.EventID, d, describe(e))
	}
}

// givenUp takes the loss of a record of the stream into the books. What the stream still
// has may now come to the bus before it: consumers have the version. What it has given up
// too comes from the table, in order.
func (b *books) givenUp(id ledger.EventID) {
	if known := b.events[id]; known != nil {
		known.givenUp = true
		b.world.trace.add("the stream gives up %s", describe(known.event))
	}
}

// stepName names the step that an event tells of: what it is of, and the version.
func stepName(e ledger.Event, version ledger.Version) string {
	return fmt.Sprintf("%s %d", e.Subject(), version)
}

// checkListed checks that an event is in the unpublished index from its commit until it is
// marked: a relay's loss is found there, and only there.
func (b *books) checkListed(c commit) {
	for _, m := range c.mutations {
		if !strings.HasPrefix(m.Key.Sort, "EVENT#") || m.New == nil {
			continue
		}
		_, listed := m.New[dynamo.AttributeUnpublishedShard]
		if isNew := m.Old == nil && textOf(m.New, dynamo.AttributeArchivedIn) == ""; listed != isNew {
			b.world.violated("P7", "%s left %s new: %t, in the list of unpublished events: %t", c.by, m.Key.Partition, isNew, listed)
		}
	}
}
