package reconcile

import (
	"fmt"
	"slices"
	"time"

	"holdfast/shared/ledger"
)

// GhostAfter is how long a hold may be HELD after it was due: more than the sweep's published
// bound of 120 s, so that what is being swept is none.
const GhostAfter = 5 * time.Minute

// flaw is what is wrong with a thing by itself.
type flaw struct {
	Kind     FindingKind `json:"kind"`
	Promise  string      `json:"promise"`
	Evidence string      `json:"evidence"`
	Cause    string      `json:"cause"`
}

func flawed(kind FindingKind, promise, cause, format string, args ...any) flaw {
	return flaw{kind, promise, fmt.Sprintf(format, args...), cause}
}

// holdRow is what is kept of a hold.
type holdRow struct {
	ID          ledger.HoldID        `json:"id"`
	Version     ledger.Version       `json:"version"`
	Status      ledger.Status        `json:"status"`
	Owner       ledger.OwnerID       `json:"owner"`
	Reservation ledger.ReservationID `json:"reservation,omitempty"`
	Attempt     ledger.AttemptNumber `json:"attempt,omitempty"`
	Reacquires  ledger.HoldID        `json:"reacquires,omitempty"`
	Archived    bool                 `json:"archived,omitempty"`
	// Shares is what it adds to stock items, by its own lines, and Returned what was given back
	// of that: whether it is sold again, its events tell, as the slot may have been oversold.
	Shares   []share `json:"shares,omitempty"`
	Returned []share `json:"returned,omitempty"`
	// Denied is what its events moved more than that, where the two can't both be true.
	Denied []share `json:"denied,omitempty"`
	// Carry is what its events moved beside that, because the units went on from it to another
	// hold, or came to it from one, without being available in between.
	Carry []share `json:"carry,omitempty"`
	// Touches are the stock items of its lines, while it is not known whether its events are
	// whole: all that adds to them is in doubt, also what another hold took over from it.
	Touches []share `json:"touches,omitempty"`
	// GrantsTo are the slots that its payment credits.
	GrantsTo []ledger.SlotID `json:"grants_to,omitempty"`
	// Counts is what it adds to the counts of its owner, and Resources in which of them each of
	// its slots counts that are not the slot's own.
	Counts    map[ledger.QuotaKey]ledger.Units    `json:"counts,omitempty"`
	Resources map[ledger.SlotID][]ledger.QuotaKey `json:"resources,omitempty"`
	// Told says that it was compared with its events, and has one for each version.
	Told  bool   `json:"told,omitempty"`
	Flaws []flaw `json:"flaws,omitempty"`
}

// lively reports whether the row says anything that another one could need.
func (r *holdRow) lively() bool {
	return !r.Told || len(r.Flaws)+len(r.Shares)+len(r.Counts)+len(r.Carry)+len(r.Resources) > 0 || r.Reservation != "" || r.Reacquires != ""
}

// addHold takes a hold into the tally.
func (t *Tally) addHold(stored ledger.StoredHold) {
	h := stored.Hold
	row := newHoldRow(h)
	if h.ArchivedIn != "" {
		t.rows.Counts.Archived++
		for _, line := range h.Lines {
			if sold(h.Status) {
				t.rows.ArchivedSales[line.Slot] += line.Quantity - unitsOf(line.Returned)
			}
		}
		row.Flaws = append(row.Flaws, archivedHoldFlaws(stored)...)
		delete(t.rows.Histories, ledger.Event{Hold: &h}.Subject())
	} else {
		t.rows.Counts.Holds++
		row.Flaws = append(row.Flaws, t.holdFlaws(stored)...)
	}
	t.rows.Holds[h.ID] = row
	if !row.lively() {
		delete(t.rows.Holds, h.ID)
	}
}

// sold reports whether a hold of this status was sold.
func sold(s ledger.Status) bool { return s == ledger.StatusConfirmed || s == ledger.StatusReturned }

func unitsOf(parts []ledger.Allocation) ledger.Units {
	var total ledger.Units
	for _, a := range parts {
		total += a.Quantity
	}
	return total
}

func newHoldRow(h ledger.Hold) *holdRow {
	row := &holdRow{
		ID: h.ID, Version: h.Version, Status: h.Status, Owner: h.Owner, Reservation: h.Reservation, Attempt: h.AttemptOpen,
		Reacquires: h.Reacquires, Archived: h.ArchivedIn != "",
	}
	if !row.Archived {
		row.Shares, row.Returned, row.Touches = sharesOf(h), returnedOf(h), touchesOf(h)
	}
	for _, line := range h.Lines {
		if line.GrantTo != "" {
			row.GrantsTo = append(row.GrantsTo, line.GrantTo)
		}
	}
	row.count(h)
	return row
}

// sharesOf is what a hold adds to the counters of stock items by its lines.
func sharesOf(h ledger.Hold) []share {
	var shares []share
	for _, line := range h.Lines {
		for _, a := range line.Shards {
			s := share{Slot: line.Slot, Shard: a.Shard, Available: -a.Quantity}
			switch {
			case h.Status == ledger.StatusHeld:
				s.Held = a.Quantity
			case sold(h.Status):
				s.Confirmed = a.Quantity
			default:
				continue
			}
			shares = append(shares, s)
		}
		if !sold(h.Status) {
			continue
		}
		for _, a := range line.Returned {
			s := share{Slot: line.Slot, Shard: a.Shard, Confirmed: -a.Quantity}
			if !line.NoRestock {
				s.Available = a.Quantity
			}
			shares = append(shares, s)
		}
	}
	return summed(shares)
}

// returnedOf is what was given back of a hold.
func returnedOf(h ledger.Hold) []share {
	var shares []share
	for _, line := range h.Lines {
		for _, a := range line.Returned {
			shares = append(shares, share{Slot: line.Slot, Shard: a.Shard, Available: a.Quantity})
		}
	}
	return summed(shares)
}

// touchesOf are the stock items that the lines of a hold were taken from.
func touchesOf(h ledger.Hold) []share {
	var touches []share
	for _, line := range h.Lines {
		for _, a := range line.Shards {
			touches = append(touches, share{Slot: line.Slot, Shard: a.Shard})
		}
	}
	return touches
}

// count notes what the hold adds to what is counted of its owner. One that lies in the archive
// is counted like any other, as its owner still has what it sold.
func (r *holdRow) count(h ledger.Hold) {
	add := func(key ledger.QuotaKey, units ledger.Units) {
		if r.Counts == nil {
			r.Counts = map[ledger.QuotaKey]ledger.Units{}
		}
		r.Counts[key] += units
	}
	for _, key := range h.CountsIn {
		if key != keyOfHolds {
			r.Flaws = append(r.Flaws, flawed(FindingQuotaMismatch, "P5", "the hold was written with a count that is none", "it is counted in %s, which counts no holds", key))
		}
		if h.Status == ledger.StatusHeld {
			add(key, 1)
		}
	}
	for _, line := range h.Lines {
		for _, key := range line.CountsIn {
			if h.Status == ledger.StatusHeld || sold(h.Status) {
				add(key, line.Quantity-unitsOf(line.Returned))
			}
			if key != keyOfSlot(line.Slot) {
				if r.Resources == nil {
					r.Resources = map[ledger.SlotID][]ledger.QuotaKey{}
				}
				r.Resources[line.Slot] = append(r.Resources[line.Slot], key)
			}
		}
	}
	for key, units := range r.Counts {
		if units == 0 {
			delete(r.Counts, key)
		}
	}
}

// holdFlaws is what is wrong with a hold by itself.
func (t *Tally) holdFlaws(stored ledger.StoredHold) []flaw {
	h := stored.Hold
	var flaws []flaw
	held := h.Status == ledger.StatusHeld
	if held != stored.Due || held == stored.Archivable {
		flaws = append(flaws, flawed(FindingDueIndexHole, "P9", "the keys of the index were lost or written wrong",
			"it is %s, and in the due index: %t, and in the archive's list: %t", h.Status, stored.Due, stored.Archivable))
	}
	if dueAt, waits := h.DueAt(); waits && t.overdue(dueAt, GhostAfter) {
		flaws = append(flaws, flawed(FindingGhostHold, "P9", "no sweep has ended it",
			"it is HELD, and was due at %s", dueAt.Format(time.RFC3339)))
	}
	if h.Status == ledger.StatusPaymentChecking {
		flaws = append(flaws, mismatched("P3", "it is stored as %s, which is only shown", h.Status))
	}
	for _, line := range h.Lines {
		flaws = append(flaws, lineFlaws(h, line)...)
	}
	return flaws
}

func mismatched(promise, format string, args ...any) flaw {
	return flawed(FindingEventMismatch, promise, "the item was written without the step that its events tell of", format, args...)
}

func lineFlaws(h ledger.Hold, line ledger.Line) []flaw {
	var flaws []flaw
	if units := unitsOf(line.Shards); units != line.Quantity {
		flaws = append(flaws, mismatched("P2", "its line of %s has %d units, its shards %d", line.Slot, line.Quantity, units))
	}
	switch back := unitsOf(line.Returned); {
	case back > 0 && !sold(h.Status):
		flaws = append(flaws, mismatched("P3", "it is %s, and %d units of %s were given back", h.Status, back, line.Slot))
	case back > line.Quantity, h.Status == ledger.StatusReturned && back != line.Quantity:
		flaws = append(flaws, mismatched("P3", "it is %s, and %d of %d units of %s were given back", h.Status, back, line.Quantity, line.Slot))
	}
	return flaws
}

// archivedHoldFlaws require of a hold in the archive that it had ended, and that no list leads
// anybody to it.
func archivedHoldFlaws(stored ledger.StoredHold) []flaw {
	var flaws []flaw
	if stored.Hold.Status == ledger.StatusHeld {
		flaws = append(flaws, flawed(FindingArchiveMismatch, "P9", "the archive took what was not at rest", "it is HELD, and archived"))
	}
	if stored.Due || stored.Archivable {
		flaws = append(flaws, flawed(FindingArchiveMismatch, "P9", "its mark has left the keys of the index", "it is archived, and in the due index"))
	}
	return flaws
}

// settleHold compares a hold with its events.
func (t *Tally) settleHold(row *holdRow, told *history) bool {
	if row.Archived {
		return true // what its events moved is in the archived counters
	}
	if !told.whole(row.Version) {
		return false
	}
	row.Told, row.Touches = true, nil
	t.rows.Counts.Events += len(told.Versions)
	switch more := without(told.Moved, row.Shares); {
	case len(more) == 0:
	case row.restockedOtherwise(more):
		row.Shares = told.Moved
	case row.carries(more):
		row.Carry = more
	default:
		row.Denied = more
		row.Flaws = append(row.Flaws, mismatched("P3", "its events moved %s more than it has", inShares(more)))
	}
	if !row.lively() {
		delete(t.rows.Holds, row.ID)
	}
	return true
}

// restockedOtherwise reports whether the difference is that of units which were given back
// otherwise than the policy of their line says: they are not sold again because the slot was
// oversold then, or because they were broken; or they are, because the shop has said so.
func (r *holdRow) restockedOtherwise(more []share) bool {
	for _, s := range more {
		i := slices.IndexFunc(r.Returned, func(back share) bool { return back.Slot == s.Slot && back.Shard == s.Shard })
		if i < 0 || s.Held != 0 || s.Confirmed != 0 || max(s.Available, -s.Available) > r.Returned[i].Available {
			return false
		}
	}
	return true
}

// carries reports whether the difference is that of units which went straight from a hold
// that was over to the one that its late payment made.
func (r *holdRow) carries(more []share) bool {
	for _, s := range more {
		went := r.Status == ledger.StatusExpired && s.Held > 0
		came := r.Reacquires != "" && s.Held < 0
		if s.Confirmed != 0 || s.Available != -s.Held || !went && !came {
			return false
		}
	}
	return true
}

func inShares(shares []share) string {
	var words []string
	for _, s := range shares {
		words = append(words, fmt.Sprintf("%s of %s", inWords(s.counters()), item{s.Slot, s.Shard}))
	}
	slices.Sort(words)
	return fmt.Sprint(words)
}
