package reconcile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"holdfast/shared/ledger"
)

// suspicion is a pass over a tally that adds up and compares.
type suspicion struct {
	t        *Tally
	findings []Finding
}

// Suspects adds up what the tally says and compares it. At rest what it returns is wrong; beside
// traffic it was read at many moments, and has to be looked at again.
func (t *Tally) Suspects() []Finding {
	s := suspicion{t: t}
	for _, row := range t.rows.Holds {
		s.hold(row)
	}
	for _, row := range t.rows.Reservations {
		s.reservation(row)
	}
	s.stock()
	s.quotas()
	s.histories()
	s.items()
	return inOneOrder(s.findings)
}

// inOneOrder sorts findings, and keeps one of those that say the same of one thing.
func inOneOrder(findings []Finding) []Finding {
	slices.SortFunc(findings, func(a, b Finding) int { return cmp.Compare(a.String(), b.String()) })
	seen := map[findingKey]bool{}
	return slices.DeleteFunc(findings, func(f Finding) bool {
		key := keyOf(f)
		twice := seen[key]
		seen[key] = true
		return twice
	})
}

// findingKey says what a finding is about, without its numbers.
type findingKey struct {
	kind        FindingKind
	promise     string
	hold        ledger.HoldID
	reservation ledger.ReservationID
	slot        ledger.SlotID
	shard       ledger.Shard
	owner       ledger.OwnerID
	count       ledger.QuotaKey
	payment     ledger.PaymentID
	event       ledger.EventItem
	subject     string
}

func keyOf(f Finding) findingKey {
	return findingKey{f.Kind, f.Promise, f.Hold, f.Reservation, f.Slot, f.Shard, f.Owner, f.Count, f.Payment, f.Event, f.Subject}
}

// wrong notes a finding with its words.
func (s *suspicion) wrong(f Finding, with flaw) {
	f.Kind, f.Promise, f.Evidence, f.Cause = with.Kind, with.Promise, with.Evidence, with.Cause
	f.Proof.At = s.t.rows.At
	s.findings = append(s.findings, f)
}

func aboutHold(row *holdRow) Finding {
	return Finding{Subject: "hold " + string(row.ID), Hold: row.ID, Proof: Proof{Version: row.Version}}
}

func aboutReservation(row *reservationRow) Finding {
	return Finding{Subject: "reservation " + string(row.ID), Reservation: row.ID, Proof: Proof{Version: row.Version}}
}

// hold looks at a hold by itself and from the side of its payment: whoever waits for money
// must be there, and a hold that took another one's place must be the only one of the two.
func (s *suspicion) hold(row *holdRow) {
	about := aboutHold(row)
	for _, f := range row.Flaws {
		s.wrong(about, f)
	}
	s.countsIn(row)
	if row.Archived {
		return
	}
	if !row.Told {
		s.untold(about, ledger.Event{Hold: &ledger.Hold{ID: row.ID}}.Subject(), row.Version)
	}
	paying, found := s.t.rows.Reservations[row.Reservation]
	if row.Reservation != "" && (!found || paying.Archived) {
		s.wrong(about, linkBroken("P5", "its reservation %s does not exist, or is archived before it", row.Reservation))
	}
	if row.Attempt != 0 {
		var attempt *attemptRow
		if found {
			attempt = paying.attempt(row.Attempt)
		}
		if attempt == nil || attempt.State == ledger.AttemptVoided || row.Status != ledger.StatusHeld {
			s.wrong(about, linkBroken("P9", "it is %s and waits for attempt %d of reservation %q, which can't succeed", row.Status, row.Attempt, row.Reservation))
		}
	}
	goneToArchive := found && paying.HoldsArchived > 0
	if row.Reacquires != "" {
		before, left := s.t.rows.Holds[row.Reacquires]
		switch {
		case !left && goneToArchive: // that it is archived is noted, and compared with the reservation
		case !left || before.Status != ledger.StatusExpired && before.Status != ledger.StatusCanceled:
			s.wrong(about, linkBroken("P3", "it has taken the place of hold %s, which is %q", row.Reacquires, statusOf(before)))
		}
	}
	s.carried(row, paying, goneToArchive)
}

func statusOf(row *holdRow) ledger.Status {
	if row == nil {
		return ""
	}
	return row.Status
}

func linkBroken(promise, format string, args ...any) flaw {
	return flawed(FindingLinkBroken, promise, "one of the two was written without the other", format, args...)
}

// carried requires that units which went straight on from one hold came to another one.
func (s *suspicion) carried(row *holdRow, paying *reservationRow, goneToArchive bool) {
	if len(row.Carry) == 0 {
		return
	}
	other := s.t.rows.Holds[row.Reacquires]
	if row.Reacquires == "" && paying != nil {
		if next := s.t.rows.Holds[paying.SoldHold]; next != nil && next.Reacquires == row.ID {
			other = next
		}
	}
	switch {
	case other == nil && goneToArchive, other != nil && (other.Archived || !other.Told):
	case other == nil:
		s.wrong(aboutHold(row), mismatched("P3", "its events moved %s more than it has, and no other hold has it", inShares(row.Carry)))
	case len(summed(slices.Concat(row.Carry, other.Carry))) > 0:
		s.wrong(aboutHold(row), mismatched("P3", "its events moved %s more than it has, and those of hold %s %s", inShares(row.Carry), other.ID, inShares(other.Carry)))
	}
}

// countsIn requires that a hold says of nothing but itself where it is counted.
func (s *suspicion) countsIn(row *holdRow) {
	for slot, keys := range row.Resources {
		for _, key := range keys {
			if of, found := s.t.resourceOf(slot); !found || key != keyOfResource(of) {
				s.wrong(aboutHold(row), flawed(FindingQuotaMismatch, "P5", "the hold was written with a count of something else",
					"its line of %s is counted in %s, which is not of that slot", slot, key))
			}
		}
	}
}

// reservation looks at a reservation and its holds.
func (s *suspicion) reservation(row *reservationRow) {
	about := aboutReservation(row)
	for _, f := range row.Flaws {
		s.wrong(about, f)
	}
	archived := 0
	for _, id := range row.holds() {
		hold, left := s.t.rows.Holds[id]
		if left && hold.Reservation != row.ID {
			s.wrong(about, linkBroken("P5", "its hold %s is of reservation %q", id, hold.Reservation))
		}
		if !left || hold.Archived {
			archived++
		}
	}
	switch {
	case archived == row.HoldsArchived:
	case row.HoldsArchived == 0:
		s.wrong(about, linkBroken("P5", "%d of its holds are archived or not there, and none is noted as archived", archived))
	default:
		s.wrong(about, flawed(FindingArchiveMismatch, "P5", "the archive's mark counted wrong", "%d of its holds are archived or not there, and %d are noted as archived", archived, row.HoldsArchived))
	}
	if row.Archived {
		return
	}
	if !row.Told {
		s.untold(about, ledger.Event{Reservation: &ledger.Reservation{ID: row.ID}}.Subject(), row.Version)
	}
	s.sale(row)
}

// sale requires that a reservation which keeps its money has a hold that was sold.
func (s *suspicion) sale(row *reservationRow) {
	switch row.Status {
	case ledger.ReservationConfirmed, ledger.ReservationCaptured, ledger.ReservationCompleted:
	default:
		return
	}
	hold, left := s.t.rows.Holds[row.SoldHold]
	if !left && row.HoldsArchived > 0 {
		return // that it is archived is noted, and compared with the reservation
	}
	if !left || hold.Reservation != row.ID || !sold(hold.Status) {
		s.wrong(aboutReservation(row), linkBroken("P8", "it is %s, and its sold hold %q is %q", row.Status, row.SoldHold, statusOf(hold)))
	}
}

// untold tells of a thing that has not one event for each of its versions.
func (s *suspicion) untold(about Finding, subject string, last ledger.Version) {
	count := map[ledger.Version]int{}
	if told := s.t.rows.Histories[subject]; told != nil {
		for _, v := range told.Versions {
			count[v]++
		}
	}
	var without, more []ledger.Version
	for v := ledger.Version(1); v <= last; v++ {
		if count[v] == 0 {
			without = append(without, v)
		}
	}
	for _, v := range slices.Sorted(maps.Keys(count)) {
		if count[v] > 1 || v > last {
			more = append(more, v)
		}
	}
	// What is said stays the same while the thing takes further steps.
	s.wrong(about, flawed(FindingEventMissing, "P5", "an event was lost, or written twice, or the item was written without one",
		"versions without an event: %v, with one too many: %v", without, more))
}

// histories tells of events of nothing, and of things other than holds and reservations whose
// events are not complete.
func (s *suspicion) histories() {
	for _, row := range s.t.rows.Slots {
		if !row.Told {
			s.untold(Finding{Subject: "slot " + string(row.ID), Slot: row.ID, Proof: Proof{Version: row.Version}},
				ledger.Event{Slot: &ledger.Slot{ID: row.ID}}.Subject(), row.Version)
		}
	}
	for subject, version := range s.t.rows.Things {
		if version > 0 {
			s.untold(Finding{Subject: wordsOf(subject)}, subject, version)
		}
	}
	for subject, told := range s.t.rows.Histories {
		if !s.owned(told) {
			about := Finding{Subject: wordsOf(subject), Hold: told.Hold, Reservation: told.Reservation, Slot: told.Slot}
			s.wrong(about, flawed(FindingEventMissing, "P5", "the item was lost, or an event was written of nothing",
				"there are events of the versions %v, which are not versions of it", told.Versions))
		}
	}
}

// owned reports whether the thing of the events is there, and was looked at with them.
func (s *suspicion) owned(told *history) bool {
	hold, isHold := s.t.rows.Holds[told.Hold]
	reservation, isReservation := s.t.rows.Reservations[told.Reservation]
	slot, isSlot := s.t.rows.Slots[told.Slot]
	return isHold && !hold.Told || isReservation && !reservation.Told || isSlot && !slot.Told || s.t.rows.Things[told.Subject] > 0
}

// wordsOf names the subject of events for people.
func wordsOf(subject string) string {
	for i, c := range subject {
		if c == '/' {
			return subject[:i] + " " + subject[i+1:]
		}
	}
	return subject
}

// items tells of items that can't be read, are overdue to be published, or would be deleted.
func (s *suspicion) items() {
	for _, item := range s.t.rows.Unreadable {
		s.wrong(Finding{Subject: "item " + item.String(), Event: item}, flawed(FindingUnreadable, "P5", "the item was written by something else than this ledger, or by a later one",
			"it can't be read as what its keys say that it is"))
	}
	for _, u := range s.t.rows.Unpublished {
		s.wrong(Finding{Subject: "event " + string(u.ID), Event: u.Item}, flawed(FindingEventUnpublished, "P7", "the stream lost it, and no redrive has come",
			"it occurred at %s, and is not published", u.OccurredAt.Format("2006-01-02T15:04:05Z07:00")))
	}
	for _, m := range s.t.rows.Mortal {
		about := Finding{Subject: "item " + m.Item.String(), Hold: m.Hold, Reservation: m.Reservation, Slot: m.Slot, Shard: m.Shard}
		switch hold, reservation, slot := s.t.rows.Holds[m.Hold], s.t.rows.Reservations[m.Reservation], s.t.rows.Slots[m.Slot]; {
		case hold != nil:
			about.Proof.Version = hold.Version
		case reservation != nil:
			about.Proof.Version = reservation.Version
		case slot != nil:
			about.Proof.Version = slot.Version
		}
		if m.Hold == "" && m.Reservation == "" && m.Slot == "" {
			about.Event = m.Item
		}
		s.wrong(about, flawed(FindingTimeToLive, "P9", "the item was written with a time to live that only what is archived may have",
			"it is in use, and will be deleted at %s", m.At.Format("2006-01-02T15:04:05Z07:00")))
	}
}

// stockSum is what everything adds to one stock item.
type stockSum struct {
	counters ledger.Counters
	// denied is how much more it is by the events of holds that contradict their own lines. That
	// is found with the holds; the stock item agrees with one of the two.
	denied ledger.Counters
	// doubtful says that something adds to it that is not told whole.
	doubtful bool
}

// sums adds up what everything adds to each stock item.
func (s *suspicion) sums() map[item]*stockSum {
	sums := map[item]*stockSum{}
	at := func(c share) *stockSum {
		key := item{c.Slot, c.Shard}
		if sums[key] == nil {
			sums[key] = &stockSum{}
		}
		return sums[key]
	}
	add := func(shares []share, certain bool) {
		for _, c := range shares {
			sum := at(c)
			sum.counters = sum.counters.Plus(c.counters())
			sum.doubtful = sum.doubtful || !certain
		}
	}
	for _, row := range s.t.rows.Holds {
		certain := row.Told && !slices.ContainsFunc(row.Flaws, func(f flaw) bool { return f.Kind == FindingEventMismatch })
		add(row.Shares, certain)
		add(row.Carry, certain)
		for _, c := range row.Touches {
			at(c).doubtful = true
		}
		for _, c := range row.Denied {
			at(c).denied = at(c).denied.Plus(c.counters())
			at(c).doubtful = true
		}
	}
	for _, row := range s.t.rows.Reservations {
		add(row.Granted, !slices.ContainsFunc(row.Flaws, func(f flaw) bool { return f.Kind == FindingEventMismatch }))
	}
	for _, row := range s.t.rows.Slots {
		add(row.Shares, true)
	}
	for _, told := range s.t.rows.Histories {
		if told.Slot != "" || told.Reservation != "" {
			add(told.Moved, false)
			continue
		}
		for _, c := range told.Moved {
			at(c).doubtful = true
		}
	}
	return sums
}

// stock compares the counters of each stock item with what everything adds to it.
func (s *suspicion) stock() {
	sums := s.sums()
	found := map[item]bool{}
	for _, row := range s.t.rows.Stock {
		key := item{row.Slot, row.Shard}
		found[key] = true
		sum := stockSum{}
		if sums[key] != nil {
			sum = *sums[key]
		}
		s.stockItem(key, row, sum)
	}
	for key, sum := range sums {
		if !found[key] && sum.counters != (ledger.Counters{}) {
			s.wrong(Finding{Subject: key.String(), Slot: key.slot, Shard: key.shard},
				flawed(FindingStockMismatch, "P2", "the stock item was lost", "something adds %s to it, and it does not exist", inWords(sum.counters)))
		}
	}
	for _, row := range s.t.rows.Slots {
		s.slot(row, found)
	}
}

// slot requires that all of the slot's stock items are there, those that a reshard has retired
// too, and that nobody sells what is oversold.
func (s *suspicion) slot(row *slotRow, found map[item]bool) {
	for shard := range stockItems(row.Terms) {
		if key := (item{row.ID, ledger.Shard(shard)}); !found[key] {
			s.wrong(Finding{Subject: key.String(), Slot: key.slot, Shard: key.shard}, flawed(FindingStockTerms, "P1", "the stock item was lost",
				"the slot has %d shards and %d retired ones, and this stock item is missing", row.Terms.Shards, row.Terms.Retired))
		}
	}
	if row.Oversold < 0 || row.Oversold > 0 && row.Terms.Open {
		s.wrong(Finding{Subject: "slot " + string(row.ID), Slot: row.ID, Proof: Proof{Version: row.Version}},
			flawed(FindingOversold, "P1", "the slot was opened although it was marked", "it is oversold by %d, and open: %t", row.Oversold, row.Terms.Open))
	}
}

func (s *suspicion) stockItem(key item, row stockRow, sum stockSum) {
	about := Finding{Subject: key.String(), Slot: key.slot, Shard: key.shard}
	slot, known := s.t.rows.Slots[key.slot]
	if known {
		about.Proof.Version, about.Proof.Certain = slot.Version, !sum.doubtful && slot.Told
	}
	c, want := row.Counters, sum.counters.Plus(row.Archived)
	excess := ledger.Counters{
		Available: c.Available - want.Available, Held: c.Held - want.Held, Confirmed: c.Confirmed - want.Confirmed, Capacity: c.Capacity - want.Capacity,
	}
	switch {
	case !known || slot.Terms != row.Terms:
		s.wrong(about, flawed(FindingStockTerms, "P1", "an edit of the slot did not reach the item, or it was written by itself", "its terms are not those of its slot"))
	case int(key.shard) >= stockItems(slot.Terms):
		s.wrong(about, flawed(FindingStockTerms, "P1", "the item was written by itself", "the slot has %d stock items, and this is another one", stockItems(slot.Terms)))
	}
	about.Proof.Excess = excess
	evidence := fmt.Sprintf("the counters are %s, and all that adds to them is %s, with %s of what is archived", inWords(c), inWords(want), inWords(row.Archived))
	impossible := c.Available < 0 || c.Held < 0 || c.Confirmed < 0 || c.Available+c.Held+c.Confirmed != c.Capacity
	kept := excess.Held + excess.Confirmed
	switch {
	case impossible:
		s.wrong(about, flaw{FindingStockImpossible, "P1", evidence, "the counters were written by something else than a step of the ledger"})
	case excess == ledger.Counters{}, excess == sum.denied:
	case excess.Held >= 0 && excess.Confirmed >= 0 && kept > 0 && excess.Available == -kept:
		s.wrong(about, flaw{FindingTerminalStock, "P2", evidence, fmt.Sprintf("%d units are kept for a hold that has ended, or for none", kept)})
	case excess.Held != 0 || excess.Confirmed != 0:
		s.wrong(about, flaw{FindingStockMismatch, "P2", evidence, "the counters were written without a step that tells of it"})
	default:
		s.wrong(about, flaw{FindingStockMismatch, "P3", evidence, "the counters were written without a step that tells of it"})
	}
	if a := row.Archived; a.Confirmed < 0 || a.Available+a.Held+a.Confirmed != a.Capacity {
		s.wrong(Finding{Subject: key.String(), Slot: key.slot, Shard: key.shard},
			flawed(FindingArchiveMismatch, "P1", "a mark of the archive counted wrong", "archived counters %s", inWords(a)))
	}
}

// oversold lists the slots that are marked, which is nothing wrong: somebody has said so,
// and works on it.
func (t *Tally) oversold() []Oversold {
	var out []Oversold
	for _, id := range slices.Sorted(maps.Keys(t.rows.Slots)) {
		if row := t.rows.Slots[id]; row.Oversold > 0 {
			out = append(out, Oversold{id, row.Oversold})
		}
	}
	return out
}
