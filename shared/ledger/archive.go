package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ArchiveRetainMax bounds how far ahead an archived item's time to live may be. A value
// in milliseconds that is taken for seconds is thousands of years ahead, and refused.
const ArchiveRetainMax = 400 * 24 * time.Hour

// PlanSubjectsMax bounds one batch, so that its plan is one item of the table.
const PlanSubjectsMax = 1000

// BatchID names one batch of the archive: what was written, verified and marked together.
type BatchID string

// ArchiveKind says what is archived: each kind has its own retention.
type ArchiveKind string

// The kinds.
const (
	ArchiveHolds        ArchiveKind = "hold"
	ArchiveReservations ArchiveKind = "reservation"
)

// ArchiveSubject is what is archived as a whole, with its events: a hold or a reservation.
type ArchiveSubject struct {
	Hold        HoldID // one of the two
	Reservation ReservationID
}

// Kind is the kind of the subject.
func (s ArchiveSubject) Kind() ArchiveKind {
	if s.Hold != "" {
		return ArchiveHolds
	}
	return ArchiveReservations
}

// ArchiveEntry is an entry of the archive's list: a hint that the subject's retention
// counts from From. The subject itself decides.
type ArchiveEntry struct {
	Subject ArchiveSubject
	From    time.Time
}

// ArchiveItem is one stored item of a subject, and what it says.
type ArchiveItem struct {
	// Text is the whole item as JSON with the types of its attributes, the same bytes for
	// the same item. It is what goes to the archive.
	Text []byte
	// Hold, Reservation or Event is what the item is; exactly one is set.
	Hold        *Hold
	Reservation *Reservation
	Event       *Event
	// Unpublished says of an event that nobody has published it yet, so its subject has to
	// stay in the table.
	Unpublished bool
	// Publication is, for an event, what is known of its way to consumers.
	Publication Publication
}

// ArchivePlan says what one batch archives, written down before anything else, so that
// whoever comes after a crash goes on with the same batch.
type ArchivePlan struct {
	Kind     ArchiveKind
	Shard    int
	Batch    BatchID
	Begun    time.Time
	Subjects []PlannedSubject
	// Sealed says that the subjects are those that were archived, and no other of the batch
	// ever will be: what is left is to say so in the archive.
	Sealed bool
}

// PlannedSubject is a subject at the version that is archived.
type PlannedSubject struct {
	Subject ArchiveSubject
	Version Version
}

// ArchiveMark says that a subject lies verified in the archive: nothing changes it any
// more, and it leaves the table after PurgeAt. It makes no new version and no event. It
// requires the subject to be at Version, and not archived yet.
type ArchiveMark struct {
	Hold        HoldID // one of the two
	Reservation ReservationID
	Version     Version
	Batch       BatchID
	PurgeAt     time.Time // in whole seconds
}

// Subject is what m marks.
func (m ArchiveMark) Subject() ArchiveSubject { return ArchiveSubject{m.Hold, m.Reservation} }

// ArchiveFrom is the time from which the retention of a hold counts that changed last at
// changedAt, and false while it is HELD or when it is archived already. A hold that was
// sold is kept until its slots are over. The clock of the last change may be behind the one
// that ended the hold.
func (h Hold) ArchiveFrom(changedAt time.Time) (time.Time, bool) {
	if h.Status == StatusHeld || h.ArchivedIn != "" {
		return time.Time{}, false
	}
	from := changedAt
	if h.EndedAt.After(from) {
		from = h.EndedAt
	}
	for _, line := range h.Lines {
		if h.Status == StatusConfirmed && line.OverAt.After(from) {
			from = line.OverAt
		}
	}
	return from, true
}

// ArchiveFrom is the time from which the retention of r counts, and false unless r is at
// rest, its holds lie in the archive, and it does not. The holds go first, because a sale
// that can still be taken back needs its reservation.
func (r Reservation) ArchiveFrom() (time.Time, bool) {
	if !r.AtRest() || r.ArchivedIn != "" || r.HoldsArchived < r.holds() {
		return time.Time{}, false
	}
	return r.UpdatedAt, true
}

// batchGone stands for the batch of a hold that has left the table: only the archive knows
// which one it was.
const batchGone BatchID = "gone"

// HoldGone is what r still knows of a hold of it that lies in the archive and has left the
// table: how it ended, and nothing of its lines. Records of money stay longer than holds do,
// and a late notice, or a buyer who reads, must not fail for want of the hold. Nothing can
// be sold by it any more, so money that comes now goes back. It reports false while no hold
// of r is archived: then one that is not there is lost.
func (r Reservation) HoldGone(id HoldID) (Hold, bool) {
	if r.HoldsArchived == 0 || (id != r.Hold && id != r.SoldHold) {
		return Hold{}, false
	}
	status := StatusExpired
	if id == r.SoldHold {
		switch r.Status {
		case ReservationConfirmed, ReservationCaptured, ReservationCompleted:
			status = StatusConfirmed
		case ReservationPaymentPending, ReservationAuthorized, ReservationCompensating, ReservationCanceled,
			ReservationRefunded, ReservationRefundRequired, ReservationReview:
			status = StatusReturned
		}
	}
	return Hold{
		ID: id, Owner: r.Owner, Status: status, Reservation: r.ID, ArchivedIn: batchGone,
		Terms: PaymentTerms{LatePayment: LatePaymentRefund},
	}, true
}

// HoldOf reads a hold of r from store, or takes what HoldGone knows of it.
func HoldOf(ctx context.Context, store HoldReader, r Reservation, id HoldID) (Hold, error) {
	hold, err := store.Hold(ctx, id)
	if CodeOf(err) == CodeHoldNotFound {
		if gone, known := r.HoldGone(id); known {
			return gone, nil
		}
	}
	return hold, err
}

// HoldReader reads holds. A Store is one.
type HoldReader interface {
	// Hold returns CodeHoldNotFound for an id without a hold.
	Hold(ctx context.Context, id HoldID) (Hold, error)
}

// AtRest reports whether nothing is to be done about r and no money is owed: nobody looks
// at it again, and no person must decide.
func (r Reservation) AtRest() bool {
	switch r.Status {
	case ReservationCompleted, ReservationCanceled, ReservationRefunded:
		return r.LookAt.IsZero() && r.OwedMinor() == 0
	case ReservationPaymentPending, ReservationAuthorized, ReservationConfirmed, ReservationCaptured,
		ReservationCompensating, ReservationRefundRequired, ReservationReview:
	}
	return false
}

// holds is how many holds r is of.
func (r Reservation) holds() int {
	if r.SoldHold != "" && r.SoldHold != r.Hold {
		return 2
	}
	return 1
}

// ArchiveHold marks h as archived, together with its events, which are all of them in
// order. What they moved goes to the archived counters of the stock, net. r is the
// reservation that h is of, nil for none.
//
// It returns CodeNotArchivable while h is HELD, while r is not at rest, for a hold whose
// reservation is not r, and for events that are not all of h's; and CodeHoldArchived for a
// hold that is archived already.
func ArchiveHold(h Hold, r *Reservation, events []Event, batch BatchID, purgeAt, now time.Time) (Change, error) {
	switch {
	case h.ArchivedIn != "":
		return Change{}, HoldArchived()
	case h.Status == StatusHeld:
		return Change{}, notArchivable("the hold is HELD")
	case r == nil && h.Reservation != "", r != nil && r.ID != h.Reservation:
		return Change{}, notArchivable("the hold is of reservation %q, and another one was read", h.Reservation)
	case r != nil && (!r.AtRest() || r.ArchivedIn != ""):
		return Change{}, notArchivable("its reservation is %s and not at rest", r.Status)
	}
	mark := ArchiveMark{Hold: h.ID, Version: h.Version, Batch: batch, PurgeAt: purgeAt}
	change, err := archive(mark, events, "hold/"+string(h.ID), now)
	if err == nil && r != nil {
		change.AtRest = []Reservation{r.Clone()}
	}
	return change, err
}

// ArchiveReservation marks r as archived, together with its events, which are all of them
// in order. It returns CodeNotArchivable while r is not at rest or one of its holds is not
// archived, and for events that are not all of r's; and CodeReservationArchived for a
// reservation that is archived already.
func ArchiveReservation(r Reservation, events []Event, batch BatchID, purgeAt, now time.Time) (Change, error) {
	if r.ArchivedIn != "" {
		return Change{}, ReservationArchived()
	}
	if _, archivable := r.ArchiveFrom(); !archivable {
		return Change{}, notArchivable("the reservation is %s and not at rest, or its hold is not archived", r.Status)
	}
	mark := ArchiveMark{Reservation: r.ID, Version: r.Version, Batch: batch, PurgeAt: purgeAt}
	return archive(mark, events, "reservation/"+string(r.ID), now)
}

// archive builds the Change of one mark. Version n of a subject has the nth event: one
// that is missing would leave its movements out of the archived counters.
func archive(mark ArchiveMark, events []Event, subject string, now time.Time) (Change, error) {
	if Version(len(events)) != mark.Version {
		return Change{}, notArchivable("version %d has %d events", mark.Version, len(events))
	}
	var movements []Movement
	for i, e := range events {
		if e.Subject() != subject || e.Version != Version(i+1) {
			return Change{}, notArchivable("event %s is not event %d of %s", e.ID, i+1, subject)
		}
		movements = append(movements, e.Movements...)
	}
	writes := stockWrites(movements, nil)
	writes = slices.DeleteFunc(writes, func(w StockWrite) bool { return w.Delta == Counters{} })
	for i := range writes {
		writes[i].Archived, writes[i].Delta = writes[i].Delta, Counters{}
	}
	return Change{At: now, Archives: []ArchiveMark{mark}, Stock: writes}, nil
}

func notArchivable(format string, args ...any) *Error {
	return errorf(CodeNotArchivable, format+"; it stays in the table", args...)
}

// validateArchives returns an error for a mark that no batch can have made.
func (c Change) validateArchives() error {
	for _, m := range c.Archives {
		switch {
		case (m.Hold == "") == (m.Reservation == ""):
			return fmt.Errorf("change: an archive mark is of hold %q and reservation %q", m.Hold, m.Reservation)
		case m.Version < 1 || m.Batch == "":
			return fmt.Errorf("change: the archive mark of %v lacks its version or its batch", m.Subject())
		case !m.PurgeAt.Equal(m.PurgeAt.Truncate(time.Second)):
			return fmt.Errorf("change: the purge time %s is not in whole seconds", m.PurgeAt)
		case m.PurgeAt.Before(c.At) || m.PurgeAt.After(c.At.Add(ArchiveRetainMax)):
			return fmt.Errorf("change: the purge time %s is not within %s from %s", m.PurgeAt, ArchiveRetainMax, c.At)
		}
	}
	if c.Lease != nil && len(c.Archives) == 0 {
		return errors.New("change: a lease is required, and nothing is archived")
	}
	for _, w := range c.Holds {
		if w.Next.ArchivedIn != "" {
			return fmt.Errorf("change: hold %s is archived by a step of it", w.Next.ID)
		}
	}
	for _, w := range c.Reservations {
		if w.Next.ArchivedIn != "" {
			return fmt.Errorf("change: reservation %s is archived by a step of it", w.Next.ID)
		}
	}
	for _, r := range c.AtRest {
		if len(c.Archives) == 0 || !r.AtRest() || r.ArchivedIn != "" {
			return fmt.Errorf("change: reservation %s is not at rest beside what is archived", r.ID)
		}
	}
	for _, w := range c.Stock {
		if (w.Archived == Counters{}) {
			continue
		}
		if len(c.Archives) == 0 || (w.Delta != Counters{}) || w.Sale != nil || w.Open || w.SetTerms != nil {
			return fmt.Errorf("change: stock of %s counts archived events beside a movement", w.Slot)
		}
		if a := w.Archived; a.Available+a.Held+a.Confirmed != a.Capacity {
			return fmt.Errorf("change: archived counters %+v of %s do not add up", a, w.Slot)
		}
	}
	return nil
}
