package sim

import (
	"maps"
	"reflect"
	"strings"

	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/reconcile"
	"holdfast/shared/sim/table"
)

// checkDeleted checks what a commit takes out of the table: only what has outlived its
// time to live there, and of the ledger only what lies in the archive.
func (b *books) checkDeleted(c commit) {
	for _, m := range c.mutations {
		if m.New != nil {
			continue
		}
		until := numberOf(m.Old, dynamo.AttributeTimeToLive)
		ofLedger := !strings.HasPrefix(m.Key.Partition, "IDEM#") && !strings.HasPrefix(m.Key.Partition, "UNIQ#") && !strings.HasPrefix(m.Key.Partition, "SIGNAL#")
		if until == 0 || until >= b.world.kernel.now.Unix() || ofLedger && textOf(m.Old, dynamo.AttributeArchivedIn) == "" {
			b.world.violated("P5", "%s deleted %v, which had its place in the table until %d, in the archive: %q", c.by, m.Key, until, textOf(m.Old, dynamo.AttributeArchivedIn))
		}
		if id, isHold := strings.CutPrefix(m.Key.Partition, "HOLD#"); isHold && m.Key.Sort == "HOLD" {
			b.purged[ledger.ArchiveSubject{Hold: ledger.HoldID(id)}] = true
		}
		if id, isReservation := strings.CutPrefix(m.Key.Partition, "RES#"); isReservation && m.Key.Sort == "RES" {
			b.purged[ledger.ArchiveSubject{Reservation: ledger.ReservationID(id)}] = true
		}
	}
}

// writeUnversioned checks a change of a hold's item that makes no version: its mark as
// archived, or another place in a list.
func (s *step) writeUnversioned(book *holdBook, stored ledger.StoredHold) {
	hold, before := stored.Hold, book.now
	restored := hold.ArchivedIn != "" && hold.ArchivedIn == before.ArchivedIn
	delete(s.purged, ledger.ArchiveSubject{Hold: hold.ID})
	same := before
	same.ArchivedIn = hold.ArchivedIn
	if !reflect.DeepEqual(same, hold) {
		s.violated("P5", "changed %s without a version: %v to %v", hold.ID, before, hold)
	}
	switch {
	case restored:
	case hold.ArchivedIn != "" && before.ArchivedIn == "":
		r := s.reservations[hold.Reservation]
		if hold.Status == ledger.StatusHeld || stored.Due || stored.Archivable || hold.Reservation != "" && (r == nil || !r.now.AtRest()) {
			s.violated("archive", "archived %s, which is %s, in the due index: %t, in the archive's list: %t, of %q", hold.ID, hold.Status, stored.Due, stored.Archivable, hold.Reservation)
		}
		s.archiveEvents("hold/" + string(hold.ID))
		book.now = hold
	case hold.ArchivedIn != before.ArchivedIn:
		s.violated("archive", "took %s from batch %q to %q", hold.ID, before.ArchivedIn, hold.ArchivedIn)
	case hold.Status == ledger.StatusHeld:
		s.writeParked(book, stored)
	case !stored.Archivable:
		s.violated("archive", "took %s out of the archive's list", hold.ID)
	}
}

// writeUnversionedReservation is the same of a reservation.
func (s *step) writeUnversionedReservation(book *reservationBook, stored ledger.StoredReservation) {
	after, before := stored.Reservation, book.now
	delete(s.purged, ledger.ArchiveSubject{Reservation: after.ID})
	same := before
	same.LookAt, same.Tries, same.HoldsArchived, same.ArchivedIn = after.LookAt, after.Tries, after.HoldsArchived, after.ArchivedIn
	if !reflect.DeepEqual(same, after) {
		s.violated("P5", "changed %s without a version: %v to %v", after.ID, before, after)
	}
	archived := 0
	for _, hold := range s.holds {
		if hold.now.Reservation == after.ID && hold.now.ArchivedIn != "" {
			archived++
		}
	}
	switch {
	case after.HoldsArchived != archived:
		s.violated("archive", "counts %d archived holds of %s, and there are %d", after.HoldsArchived, after.ID, archived)
	case after.ArchivedIn == before.ArchivedIn: // also when it is restored
	case before.ArchivedIn != "":
		s.violated("archive", "took %s from batch %q to %q", after.ID, before.ArchivedIn, after.ArchivedIn)
	default:
		if _, may := before.ArchiveFrom(); !may || stored.Due || stored.Archivable {
			s.violated("archive", "archived %s, which is %s, in the due index: %t, in the archive's list: %t", after.ID, after.Status, stored.Due, stored.Archivable)
		}
		s.archiveEvents("reservation/" + string(after.ID))
	}
	book.now = after
}

// archiveEvents adds up what the events of a subject have moved, as the stock must count
// it from now on.
func (b *books) archiveEvents(subject string) {
	for _, e := range b.events {
		if e.event.Subject() != subject {
			continue
		}
		for _, m := range e.event.Movements {
			key := stockKey{m.Slot, m.Shard}
			b.archived[key] = moved(moved(b.archived[key], m.From, -m.Quantity), m.To, m.Quantity)
		}
	}
}

// seen counts what must happen often enough in histories that prove something.
func (b *books) seen() (parked, givenUp, prompt, archived int) {
	for _, e := range b.events {
		if e.givenUp {
			givenUp++
		}
	}
	for _, hold := range b.holds {
		if hold.now.ArchivedIn != "" {
			archived++
		}
	}
	for _, r := range b.reservations {
		if r.now.ArchivedIn != "" {
			archived++
		}
	}
	return b.parked, givenUp, b.prompt, archived
}

// count is what an audit of the table must count now.
func (b *books) count() reconcile.Report {
	want := reconcile.Report{Slots: len(b.slots)}
	gone := map[string]bool{}
	for id, hold := range b.holds {
		switch {
		case hold.now.ArchivedIn == "":
			want.Holds++
			continue
		case !b.purged[ledger.ArchiveSubject{Hold: id}]:
			want.Archived++
		}
		gone["hold/"+string(id)] = true
	}
	for id, r := range b.reservations {
		switch {
		case r.now.ArchivedIn == "":
			want.Reservations++
			continue
		case !b.purged[ledger.ArchiveSubject{Reservation: id}]:
			want.Archived++
		}
		gone["reservation/"+string(id)] = true
	}
	for _, e := range b.events {
		if !gone[e.event.Subject()] {
			want.Events++
		}
	}
	return want
}

// sameRestored reports whether an item that was put back is what it was, but for the time
// that it stays.
func sameRestored(was, is table.Item) bool {
	was, is = maps.Clone(was), maps.Clone(is)
	delete(was, dynamo.AttributeTimeToLive)
	delete(is, dynamo.AttributeTimeToLive)
	return reflect.DeepEqual(was, is)
}
