package ledgertest

import (
	"fmt"
	"slices"

	"holdfast/shared/ledger"
)

// auditedHold reads a hold, which may not exist.
func auditedHold(t TB, store ledger.Store, id ledger.HoldID) (ledger.Hold, bool) {
	t.Helper()
	hold, err := store.Hold(t.Context(), id)
	if err != nil && ledger.CodeOf(err) != ledger.CodeHoldNotFound {
		t.Fatalf("books: hold %s: %v", id, err)
	}
	if err == nil {
		return hold, true
	}
	events, err := store.HoldEvents(t.Context(), id)
	if err != nil {
		t.Fatalf("books: events of hold %s: %v", id, err)
	}
	if len(events) > 0 {
		t.Errorf("books: hold %s does not exist but has %d events", id, len(events))
	}
	return ledger.Hold{}, false
}

// auditHold adds up one hold and its events. gone says that another hold has taken its
// units over.
func auditHold(t TB, store ledger.Store, hold ledger.Hold, gone bool, fromHolds, fromEvents, archived map[item]counted) {
	t.Helper()
	events, err := store.HoldEvents(t.Context(), hold.ID)
	if err != nil {
		t.Fatalf("books: events of hold %s: %v", hold.ID, err)
	}
	auditVersions(t, "hold "+string(hold.ID), events, hold.Version)
	if last := len(events) - 1; last >= 0 && !sameHold(events[last].Hold, hold) {
		t.Errorf("books: the last event of hold %s tells\n%s\nbut it is\n%s", hold.ID, text(events[last].Hold), text(hold))
	}
	auditLife(t, hold, events, gone)
	for _, event := range events {
		addMovements(fromEvents, event)
		if hold.ArchivedIn != "" {
			addMovements(archived, event)
		}
	}
	for _, line := range hold.Lines {
		auditLine(t, hold, line, fromHolds)
	}
}

// sameHold reports whether the event tells the hold as it is. That it lies in the archive
// is told by no event.
func sameHold(told *ledger.Hold, is ledger.Hold) bool {
	is.ArchivedIn = ""
	return told != nil && same(*told, is)
}

// life is how far a hold is, as its events tell it.
type life struct {
	status  ledger.Status // "" before it was made
	attempt ledger.AttemptNumber
	units   ledger.Units // what its lines add up to
}

// auditLife follows the hold from event to event: each must be allowed where the hold is,
// tell what it becomes, and move the units that go with it.
func auditLife(t TB, hold ledger.Hold, events []ledger.Event, gone bool) {
	t.Helper()
	var now life
	told := make([]ledger.EventType, len(events))
	for i, event := range events {
		told[i] = event.Type
		next, allowed := now.after(event)
		if !allowed {
			t.Errorf("books: event %s of hold %s comes when it is %+v", event.Type, hold.ID, now)
		}
		if event.Hold == nil || event.Hold.Status != next.status || event.Hold.AttemptOpen != next.attempt {
			t.Errorf("books: after event %s hold %s should be %+v, and is told to be %s", event.Type, hold.ID, next, text(event.Hold))
		} else if message := wrongMovements(event, now.units, next.units, gone); message != "" {
			t.Errorf("books: event %s of hold %s %s", event.Type, hold.ID, message)
		}
		now = next
	}
	if now.status != hold.Status {
		t.Errorf("books: hold %s is %s after the events %v", hold.ID, hold.Status, told)
	}
	if born := len(told) > 0 && told[0] == ledger.EventHoldReacquired; born != (hold.Reacquires != "") {
		t.Errorf("books: hold %s reacquires %q after the events %v", hold.ID, hold.Reacquires, told)
	}
}

// after is what the hold becomes by the event, and whether the event may come now.
func (l life) after(event ledger.Event) (next life, allowed bool) {
	next = life{units: l.units}
	if event.Hold != nil {
		next.units = promisedBy(*event.Hold)
	}
	held := l.status == ledger.StatusHeld
	switch event.Type {
	case ledger.EventHoldCreated:
		next.status, allowed = ledger.StatusHeld, l.status == ""
	case ledger.EventHoldReacquired:
		next.status, allowed = ledger.StatusConfirmed, l.status == ""
	case ledger.EventHoldChanged:
		next.status, allowed = ledger.StatusHeld, held && l.attempt == 0
	case ledger.EventHoldConfirmed:
		next.status, allowed = ledger.StatusConfirmed, held
	case ledger.EventHoldCanceled:
		next.status, allowed = ledger.StatusCanceled, held
	case ledger.EventHoldExpired:
		next.status, allowed = ledger.StatusExpired, held
	case ledger.EventHoldPaymentStarted:
		// A free hold has a reservation without an attempt, so the attempt may be none. A new
		// attempt may close the one before it in the same step.
		next.status = ledger.StatusHeld
		if event.Hold != nil {
			next.attempt = event.Hold.AttemptOpen
		}
		allowed = held && (l.attempt == 0 || next.attempt > l.attempt)
	case ledger.EventHoldPaymentClosed:
		next.status, allowed = ledger.StatusHeld, held && l.attempt != 0
	case ledger.EventHoldReturned:
		next.status, allowed = ledger.StatusConfirmed, l.status == ledger.StatusConfirmed
		if event.Hold != nil && len(event.Hold.Unreturned()) == 0 {
			next.status = ledger.StatusReturned
		}
	case ledger.EventAuditRepaired: // the item was wrong, and not the hold
		next.status, next.attempt, allowed = l.status, l.attempt, l.status != "" && next.units == l.units
	default:
		return l, false
	}
	return next, allowed
}

func promisedBy(hold ledger.Hold) ledger.Units {
	var units ledger.Units
	for _, line := range hold.Lines {
		units += line.Quantity
	}
	return units
}

// way is from where to where units go.
type way struct{ from, to ledger.Bucket }

// The ways that units of a hold go.
var (
	takeUp    = way{ledger.BucketAvailable, ledger.BucketHeld}
	giveBack  = way{ledger.BucketHeld, ledger.BucketAvailable}
	sell      = way{ledger.BucketHeld, ledger.BucketConfirmed}
	sellLate  = way{ledger.BucketAvailable, ledger.BucketConfirmed}
	restock   = way{ledger.BucketConfirmed, ledger.BucketAvailable}
	writeDown = way{ledger.BucketConfirmed, ledger.BucketOutside}
)

// waysOf says on which ways a hold's event moves units. All together are so many as the
// hold had, or has: only a return may be a part of it.
func waysOf(event ledger.EventType) []way {
	switch event {
	case ledger.EventHoldCreated:
		return []way{takeUp}
	case ledger.EventHoldChanged:
		return []way{takeUp, giveBack}
	case ledger.EventHoldConfirmed:
		return []way{sell, giveBack}
	case ledger.EventHoldCanceled, ledger.EventHoldExpired:
		return []way{giveBack}
	case ledger.EventHoldReacquired:
		return []way{sell, sellLate}
	case ledger.EventHoldReturned:
		return []way{restock, writeDown}
	default:
		return nil
	}
}

// wrongMovements says what is wrong with the movements of a hold's event, "" for nothing.
// The hold had before units and has after. Only a hold whose units another one took over
// moves none.
func wrongMovements(event ledger.Event, before, after ledger.Units, gone bool) string {
	moved := make(map[way]ledger.Units)
	for _, m := range event.Movements {
		w := way{m.From, m.To}
		if !slices.Contains(waysOf(event.Type), w) {
			return fmt.Sprintf("moves units from %s to %s", m.From, m.To)
		}
		moved[w] += m.Quantity
	}
	var got, want ledger.Units
	switch event.Type {
	case ledger.EventHoldChanged:
		got, want = moved[takeUp]-moved[giveBack], after-before
	case ledger.EventHoldConfirmed:
		if moved[sell] != after {
			return fmt.Sprintf("sells %d units, want %d", moved[sell], after)
		}
		got, want = moved[sell]+moved[giveBack], before
	case ledger.EventHoldReturned:
		if moved[restock]+moved[writeDown] == 0 {
			return "moves no units"
		}
	case ledger.EventHoldExpired:
		if got, want = moved[giveBack], after; gone && got == 0 {
			want = 0
		}
	case ledger.EventHoldCreated, ledger.EventHoldCanceled:
		got, want = moved[takeUp]+moved[giveBack], after
	case ledger.EventHoldReacquired:
		got, want = moved[sell]+moved[sellLate], after
	default: // no way was allowed above, so nothing has moved
	}
	if got != want {
		return fmt.Sprintf("moves %d units, want %d", got, want)
	}
	return ""
}

// auditLine counts what the line has of each shard: a sold unit counts until it is given
// back.
func auditLine(t TB, hold ledger.Hold, line ledger.Line, fromHolds map[item]counted) {
	t.Helper()
	var taken ledger.Units
	for _, a := range line.Shards {
		taken += a.Quantity
		key := item{line.Slot, a.Shard}
		count := fromHolds[key]
		switch hold.Status {
		case ledger.StatusHeld:
			count.held += a.Quantity
		case ledger.StatusConfirmed, ledger.StatusReturned:
			count.confirmed += a.Quantity
		case ledger.StatusCanceled, ledger.StatusExpired, ledger.StatusPaymentChecking:
		}
		fromHolds[key] = count
	}
	if taken != line.Quantity {
		t.Errorf("books: hold %s takes %d units of slot %s from its shards, but its line says %d", hold.ID, taken, line.Slot, line.Quantity)
	}
	var returned ledger.Units
	for _, a := range line.Returned {
		returned += a.Quantity
		key := item{line.Slot, a.Shard}
		count := fromHolds[key]
		count.confirmed -= a.Quantity
		fromHolds[key] = count
	}
	if whole := returned == line.Quantity; hold.Status == ledger.StatusReturned && !whole {
		t.Errorf("books: hold %s is RETURNED with %d of %d units of slot %s given back", hold.ID, returned, line.Quantity, line.Slot)
	}
	if sold := hold.Status == ledger.StatusConfirmed || hold.Status == ledger.StatusReturned; returned > 0 && !sold {
		t.Errorf("books: hold %s is %s and has given back units of slot %s", hold.ID, hold.Status, line.Slot)
	}
}
