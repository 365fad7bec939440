package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"holdfast/shared/ledger"
)

// SegmentPagesMax bounds the pages of one segment: a table of 8 segments then has at most 800 GB.
const SegmentPagesMax = 100_000

// errTooManyPages is the error of a segment that does not end.
var errTooManyPages = errors.New("the segment has more pages than any table")

// Tally is what a part of the table says, as compact as it can be said: what agrees with
// itself and adds to no number is counted and forgotten. Tallies of parts are merged in any
// order, and only then looked at (see Suspects).
type Tally struct {
	rows tallyRows
	// resources are the resources of slots that this tally is only told of, and gone what holds
	// sold that have left the table; nil where the rows say both.
	resources map[ledger.SlotID]resource
	gone      map[ledger.QuotaKey]ledger.Units
}

// tallyRows are the rows of a tally, as they are stored.
type tallyRows struct {
	At           time.Time                                `json:"at"`
	Holds        map[ledger.HoldID]*holdRow               `json:"holds"`
	Reservations map[ledger.ReservationID]*reservationRow `json:"reservations"`
	Slots        map[ledger.SlotID]*slotRow               `json:"slots"`
	Stock        []stockRow                               `json:"stock"`
	// Things are the policies and cases by their subject.
	Things map[string]ledger.Version `json:"things"`
	Quotas []ledger.Quota            `json:"quotas"`
	// Histories are what events tell of things with which that was not compared yet.
	Histories   map[string]*history       `json:"histories"`
	Unpublished []ledger.UnpublishedEvent `json:"unpublished"`
	Mortal      []ledger.MortalItem       `json:"mortal"`
	Unreadable  []ledger.EventItem        `json:"unreadable"`
	// ArchivedSales is what holds that lie in the archive, and in the table, have sold of each
	// slot.
	ArchivedSales map[ledger.SlotID]ledger.Units `json:"archived_sales"`
	Counts        tallyCounts                    `json:"counts"`
}

// tallyCounts are numbers that are only added up.
type tallyCounts struct {
	Policies     int                       `json:"policies"`
	Holds        int                       `json:"holds"`
	Reservations int                       `json:"reservations"`
	Events       int                       `json:"events"`
	Archived     int                       `json:"archived"`
	Pages        int                       `json:"pages"`
	ReadUnits    float64                   `json:"read_units"`
	Money        map[ledger.Currency]Money `json:"money"`
}

// NewTally is the tally of nothing, of an audit that began at that time: what is overdue is
// measured by it. A zero time says that nothing is.
func NewTally(at time.Time) *Tally {
	return &Tally{rows: tallyRows{
		At: at, Holds: map[ledger.HoldID]*holdRow{}, Reservations: map[ledger.ReservationID]*reservationRow{},
		Slots: map[ledger.SlotID]*slotRow{}, Things: map[string]ledger.Version{}, Histories: map[string]*history{},
		ArchivedSales: map[ledger.SlotID]ledger.Units{}, Counts: tallyCounts{Money: map[ledger.Currency]Money{}},
	}}
}

// TallySegment reads one of total segments.
func TallySegment(ctx context.Context, from Segments, segment, total int, at time.Time) (*Tally, error) {
	t := NewTally(at)
	var after ledger.Cursor
	for range SegmentPagesMax {
		page, err := from.ScanSegment(ctx, segment, total, after)
		if err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
		t.rows.Counts.Pages++
		t.rows.Counts.ReadUnits += page.ReadUnits
		t.add(page.Records)
		if after = page.Next; after == "" {
			return t, nil
		}
	}
	return nil, errTooManyPages
}

// add takes records into the tally.
func (t *Tally) add(r ledger.Records) {
	for _, s := range r.Slots {
		t.addSlot(s)
	}
	for _, s := range r.Stock {
		t.rows.Stock = append(t.rows.Stock, stockRow{Slot: s.Slot, Shard: s.Shard, Counters: s.Counters, Archived: s.Archived, Terms: s.Terms, Version: s.Version})
	}
	for _, p := range r.Policies {
		t.rows.Counts.Policies++
		t.rows.Things[ledger.Event{Policy: &p}.Subject()] = p.Version
	}
	for _, v := range r.Reviews {
		t.rows.Things[ledger.Event{Review: &v}.Subject()] = v.Version
	}
	t.rows.Quotas = append(t.rows.Quotas, r.Quotas...)
	for _, e := range r.Events {
		t.addEvent(e)
	}
	for _, h := range r.Holds {
		t.addHold(h)
	}
	for _, r := range r.Reservations {
		t.addReservation(r)
	}
	for _, u := range r.Unpublished {
		if t.overdue(u.OccurredAt, UnpublishedFor) {
			t.rows.Unpublished = append(t.rows.Unpublished, u)
		}
	}
	t.rows.Mortal = append(t.rows.Mortal, r.Mortal...)
	t.rows.Unreadable = append(t.rows.Unreadable, r.Unreadable...)
	t.settle()
}

// overdue reports whether something that began then lasts for longer than it may.
func (t *Tally) overdue(since time.Time, longest time.Duration) bool {
	return !t.rows.At.IsZero() && !since.IsZero() && since.Add(longest).Before(t.rows.At)
}

// settle compares what is there of things with their events, and forgets what agrees.
func (t *Tally) settle() {
	for subject, told := range t.rows.Histories {
		if t.settled(told) {
			delete(t.rows.Histories, subject)
		}
	}
}

// settled compares one thing with its events, if all of them are there.
func (t *Tally) settled(told *history) bool {
	switch {
	case told.Hold != "":
		row, found := t.rows.Holds[told.Hold]
		return found && t.settleHold(row, told)
	case told.Reservation != "":
		row, found := t.rows.Reservations[told.Reservation]
		return found && t.settleReservation(row, told)
	case told.Slot != "":
		row, found := t.rows.Slots[told.Slot]
		if !found || !told.whole(row.Version) {
			return false
		}
		row.Told, row.Shares = true, told.Moved
	default:
		version, found := t.rows.Things[told.Subject]
		if !found || !told.whole(version) {
			return false
		}
		t.rows.Things[told.Subject] = 0
	}
	t.rows.Counts.Events += len(told.Versions)
	return true
}

// Merge adds what another tally says. The other one is used up.
func (t *Tally) Merge(other *Tally) {
	a, b := &t.rows, &other.rows
	if b.At.Before(a.At) {
		a.At = b.At
	}
	for id, row := range b.Holds {
		a.Holds[id] = row
	}
	for id, row := range b.Reservations {
		a.Reservations[id] = row
	}
	for id, row := range b.Slots {
		a.Slots[id] = row
	}
	for subject, version := range b.Things {
		a.Things[subject] = version
	}
	for subject, told := range b.Histories {
		if known := a.Histories[subject]; known != nil {
			told.merge(known)
		}
		a.Histories[subject] = told
	}
	for slot, units := range b.ArchivedSales {
		a.ArchivedSales[slot] += units
	}
	a.Stock, a.Quotas = append(a.Stock, b.Stock...), append(a.Quotas, b.Quotas...)
	a.Unpublished, a.Mortal = append(a.Unpublished, b.Unpublished...), append(a.Mortal, b.Mortal...)
	a.Unreadable = append(a.Unreadable, b.Unreadable...)
	a.Counts.merge(b.Counts)
	t.settle()
}

func (c *tallyCounts) merge(other tallyCounts) {
	c.Policies += other.Policies
	c.Holds += other.Holds
	c.Reservations += other.Reservations
	c.Events += other.Events
	c.Archived += other.Archived
	c.Pages += other.Pages
	c.ReadUnits += other.ReadUnits
	for currency, money := range other.Money {
		c.Money[currency] = c.Money[currency].plus(money)
	}
}

// Encode writes the tally, for whoever merges it elsewhere.
func (t *Tally) Encode(w io.Writer) error {
	if err := json.NewEncoder(w).Encode(t.rows); err != nil {
		return fmt.Errorf("audit: writing a tally: %w", err)
	}
	return nil
}

// DecodeTally reads what Encode wrote.
func DecodeTally(r io.Reader) (*Tally, error) {
	t := NewTally(time.Time{})
	if err := json.NewDecoder(r).Decode(&t.rows); err != nil {
		return nil, fmt.Errorf("audit: reading a tally: %w", err)
	}
	return t, nil
}
