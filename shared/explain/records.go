package explain

import (
	"slices"

	"holdfast/shared/ledger"
)

// Records is all that is known of one thing. The order of each list is of no account.
type Records struct {
	// Slot, for the story of a slot, is what it is of; "" for that of a hold or a reservation.
	Slot ledger.SlotID
	// Hold or Reservation is what the story is of otherwise. The other one of the two, and a
	// hold that a late payment made, are part of the story.
	Hold        ledger.HoldID
	Reservation ledger.ReservationID

	Slots        []ledger.Slot
	Stock        []ledger.Stock
	Holds        []ledger.Hold
	Reservations []ledger.Reservation
	Events       []ledger.TracedEvent
	// FromArchive are the subjects that have left the table, and were read from the archive,
	// with the batch. They are all at their last version.
	FromArchive map[string]ledger.BatchID
	// Moved says that the stock changed while the records were read, so that a difference
	// may be one of two moments.
	Moved bool
}

// hold finds a hold among the records.
func (r Records) hold(id ledger.HoldID) (ledger.Hold, bool) {
	i := slices.IndexFunc(r.Holds, func(h ledger.Hold) bool { return h.ID == id })
	if i < 0 {
		return ledger.Hold{}, false
	}
	return r.Holds[i], true
}

// archivedEvent reports whether what the event moved is in the archived counters of its
// stock: from the mark of its subject on, which is written before those of its events.
func (r Records) archivedEvent(e ledger.TracedEvent) bool {
	if e.ArchivedIn != "" {
		return true
	}
	switch {
	case e.Hold != nil:
		h, found := r.hold(e.Hold.ID)
		return found && h.ArchivedIn != ""
	case e.Reservation != nil:
		return slices.ContainsFunc(r.Reservations, func(s ledger.Reservation) bool {
			return s.ID == e.Reservation.ID && s.ArchivedIn != ""
		})
	}
	return false
}

// inOrder puts the events in the order of time, those of one subject always in the order of
// their versions: the clock of the machine that made the next one may have been behind.
func inOrder(events []ledger.TracedEvent) []ledger.TracedEvent {
	bySubject := make(map[string][]ledger.TracedEvent)
	for _, e := range events {
		bySubject[e.Subject()] = append(bySubject[e.Subject()], e)
	}
	subjects := make([]string, 0, len(bySubject))
	for subject, of := range bySubject {
		slices.SortStableFunc(of, func(a, b ledger.TracedEvent) int { return int(a.Version - b.Version) })
		subjects = append(subjects, subject)
	}
	// A slot is told before what was taken of it, and a reservation before its hold, whose
	// step it caused.
	slices.SortFunc(subjects, compareSubjects)
	out := make([]ledger.TracedEvent, 0, len(events))
	for range events {
		first := -1
		for i, subject := range subjects {
			of := bySubject[subject]
			if len(of) > 0 && (first < 0 || sooner(of[0], bySubject[subjects[first]][0], out)) {
				first = i
			}
		}
		of := bySubject[subjects[first]]
		out = append(out, of[0])
		bySubject[subjects[first]] = of[1:]
	}
	return out
}

// sooner reports whether a is told before b, which stands before it otherwise. What one Change
// made together stays together, also when the next one is of the same millisecond.
func sooner(a, b ledger.TracedEvent, told []ledger.TracedEvent) bool {
	if !a.OccurredAt.Equal(b.OccurredAt) {
		return a.OccurredAt.Before(b.OccurredAt)
	}
	if len(told) == 0 {
		return false
	}
	last := told[len(told)-1]
	return beside(last, a) && !beside(last, b)
}

// beside reports whether the two are of one Change: the id of the second event of a Change
// follows from that of the first.
func beside(first, second ledger.TracedEvent) bool {
	hold := first.Origin.Beside("hold")
	return slices.Contains([]ledger.EventID{
		hold.EventID, hold.Beside("reacquired").EventID, first.Origin.Beside("reacquired").EventID,
	}, second.ID)
}
