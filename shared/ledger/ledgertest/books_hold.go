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
}

// auditLife follows the hold from event to event: each must be allowed where the hold is,
// tell what it becomes, and move the units that go with it.
func auditLife(t TB, hold ledger.Hold, events []ledger.Event, gone bool) {
	t.Helper()
	var now life
	told := make([]ledger.EventType, len(events))
	for i, event := range events {
		told[i] = event.Type
		next, from, to, allowed := now.after(event)
		if !allowed {
			t.Errorf("books: event %s of hold %s comes when it is %+v", event.Type, hold.ID, now)
		}
		now = next
		if event.Hold == nil || event.Hold.Status != now.status || event.Hold.AttemptOpen != now.attempt {
			t.Errorf("books: after event %s hold %s should be %+v, and is told to be %s", event.Type, hold.ID, now, text(event.Hold))
			continue
		}
		if message := wrongMovements(event, from, to, gone); message != "" {
			t.Errorf("books: event %s of hold %s %s", event.Type, hold.ID, message)
		}
	}
	if now.status != hold.Status {
		t.Errorf("books: hold %s is %s after the events %v", hold.ID, hold.Status, told)
	}
	if born := len(told) > 0 && told[0] == ledger.EventHoldReacquired; born != (hold.Reacquires != "") {
		t.Errorf("books: hold %s reacquires %q after the events %v", hold.ID, hold.Reacquires, told)
	}
}

// after is what the hold becomes by the event, between which buckets its units move, and
// whether the event may come now.
func (l life) after(event ledger.Event) (next life, from, to []ledger.Bucket, allowed bool) {
	available, held := []ledger.Bucket{ledger.BucketAvailable}, []ledger.Bucket{ledger.BucketHeld}
	confirmed := []ledger.Bucket{ledger.BucketConfirmed}
	switch event.Type {
	case ledger.EventHoldCreated:
		return life{status: ledger.StatusHeld}, available, held, l.status == ""
	case ledger.EventHoldReacquired:
		return life{status: ledger.StatusConfirmed}, append(held, available...), confirmed, l.status == ""
	case ledger.EventHoldConfirmed:
		return life{status: ledger.StatusConfirmed}, held, confirmed, l.status == ledger.StatusHeld
	case ledger.EventHoldCanceled:
		return life{status: ledger.StatusCanceled}, held, available, l.status == ledger.StatusHeld
	case ledger.EventHoldExpired:
		return life{status: ledger.StatusExpired}, held, available, l.status == ledger.StatusHeld
	case ledger.EventHoldPaymentStarted:
		// A free hold has a reservation without an attempt, so the attempt may be none. A new
		// attempt may close the one before it in the same step.
		next = life{status: ledger.StatusHeld}
		if event.Hold != nil {
			next.attempt = event.Hold.AttemptOpen
		}
		return next, nil, nil, l.status == ledger.StatusHeld && (l.attempt == 0 || next.attempt > l.attempt)
	case ledger.EventHoldPaymentClosed:
		return life{status: ledger.StatusHeld}, nil, nil, l.status == ledger.StatusHeld && l.attempt != 0
	case ledger.EventHoldReturned:
		next = life{status: ledger.StatusConfirmed}
		if event.Hold != nil && len(event.Hold.Unreturned()) == 0 {
			next.status = ledger.StatusReturned
		}
		return next, confirmed, append(available, ledger.BucketOutside), l.status == ledger.StatusConfirmed
	default:
		return l, nil, nil, false
	}
}

// wrongMovements says what is wrong with the movements of a hold's event, "" for nothing:
// they go between the buckets of that event, and are all units of the hold at once. Only
// a return may be a part, and only a hold whose units another one took over moves none.
func wrongMovements(event ledger.Event, from, to []ledger.Bucket, gone bool) string {
	var moved, promised ledger.Units
	for _, m := range event.Movements {
		moved += m.Quantity
		if !slices.Contains(from, m.From) || !slices.Contains(to, m.To) {
			return fmt.Sprintf("moves units from %s to %s", m.From, m.To)
		}
	}
	for _, line := range event.Hold.Lines {
		promised += line.Quantity
	}
	switch {
	case len(from) == 0:
		promised = 0
	case event.Type == ledger.EventHoldReturned && moved > 0:
		promised = moved
	case event.Type == ledger.EventHoldExpired && gone && moved == 0:
		promised = 0
	}
	if moved != promised {
		return fmt.Sprintf("moves %d units, want %d", moved, promised)
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
