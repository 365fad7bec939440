package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/shared/ledger"
)

// errUnreadable is the error of a subject whose items are not what they should be. It
// stays in the table, and keeps nobody else there.
var errUnreadable = errors.New("the record can't be archived as it is stored")

// record is one subject as the table has it.
type record struct {
	subject     ledger.ArchiveSubject
	hold        *ledger.Hold
	reservation *ledger.Reservation
	events      []ledger.Event
	items       []json.RawMessage
	// unpublished says that an event of it has not reached the bus: the table is the only
	// place that it can be published from.
	unpublished bool
}

// read reads a subject. It reports false when there is none: it never was, or it has been
// archived and has left the table.
func (w *Worker) read(ctx context.Context, subject ledger.ArchiveSubject) (record, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, StepFor)
	defer cancel()
	items, err := w.store.ArchiveItems(ctx, subject)
	if err != nil {
		return record{}, false, fmt.Errorf("read %s %s: %w", subject.Kind(), idOf(subject), err)
	}
	r := record{subject: subject}
	for _, i := range items {
		switch {
		case i.Hold != nil:
			r.hold = i.Hold
		case i.Reservation != nil:
			r.reservation = i.Reservation
		case i.Event != nil:
			r.events = append(r.events, *i.Event)
			r.unpublished = r.unpublished || i.Unpublished
		}
		r.items = append(r.items, i.Text)
	}
	return r, r.hold != nil || r.reservation != nil, nil
}

func (r record) version() ledger.Version {
	if r.hold != nil {
		return r.hold.Version
	}
	return r.reservation.Version
}

// archivedIn is the batch that the record lies in; "" while it is in use.
func (r record) archivedIn() ledger.BatchID {
	if r.hold != nil {
		return r.hold.ArchivedIn
	}
	return r.reservation.ArchivedIn
}

// from is the time from which the record's retention counts, and false when it has none.
func (r record) from() (time.Time, bool) {
	if r.reservation != nil {
		return r.reservation.ArchiveFrom()
	}
	if len(r.events) == 0 {
		return time.Time{}, false
	}
	return r.hold.ArchiveFrom(r.events[len(r.events)-1].OccurredAt)
}

// mayBeZero are the counts of the owner that the record was part of and is not any more,
// each once. Those that its own sale is still part of are not zero.
func (r record) mayBeZero() []ledger.QuotaKey {
	if r.hold == nil {
		return nil
	}
	keys := slices.Clone(r.hold.CountsIn)
	var sold []ledger.QuotaKey
	for _, line := range r.hold.Lines {
		if r.hold.Status == ledger.StatusConfirmed && line.Quantity > line.ReturnedQuantity() {
			sold = append(sold, line.CountsIn...)
		}
		keys = append(keys, line.CountsIn...)
	}
	slices.Sort(keys)
	return slices.DeleteFunc(slices.Compact(keys), func(key ledger.QuotaKey) bool { return slices.Contains(sold, key) })
}

// line is the record as it goes into a data object. One that no batch has room for stays in
// the table.
func (w *Worker) line(r record) ([]byte, error) {
	text, err := encodeLine(line{Kind: r.subject.Kind(), ID: idOf(r.subject), Version: r.version(), Items: r.items})
	if err == nil && len(text) > w.batchBytes {
		err = fmt.Errorf("%s %s has %d bytes: %w", r.subject.Kind(), idOf(r.subject), len(text), errUnreadable)
	}
	return text, err
}

// mark is the Change that marks the record as archived. It returns CodeNotArchivable for
// one that is still in use, such as a hold whose reservation is not at rest (case M3), or
// whose events are not all published.
func (w *Worker) mark(ctx context.Context, r record, batch ledger.BatchID, now time.Time) (ledger.Change, error) {
	if r.unpublished {
		return ledger.Change{}, &ledger.Error{Code: ledger.CodeNotArchivable, Message: "an event of it is not published"}
	}
	if r.reservation != nil {
		return ledger.ArchiveReservation(*r.reservation, r.events, batch, purgeAt(now), now)
	}
	var of *ledger.Reservation
	if r.hold.Reservation != "" {
		ctx, cancel := context.WithTimeout(ctx, StepFor)
		defer cancel()
		found, err := w.store.Reservation(ctx, r.hold.Reservation)
		switch {
		case err == nil:
			of = &found
		case ledger.CodeOf(err) != ledger.CodeReservationNotFound:
			return ledger.Change{}, fmt.Errorf("read reservation %s of hold %s: %w", r.hold.Reservation, r.hold.ID, err)
		}
	}
	return ledger.ArchiveHold(*r.hold, of, r.events, batch, purgeAt(now), now)
}

// purgeAt is when what is marked at now leaves the table: in whole seconds, as time to
// live has no finer ones.
func purgeAt(now time.Time) time.Time { return now.Add(PurgeAfter).Truncate(time.Second) }
