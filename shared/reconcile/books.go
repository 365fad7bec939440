package reconcile

import (
	"cmp"
	"fmt"
	"slices"

	"holdfast/shared/ledger"
)

// item names one stock item.
type item struct {
	slot  ledger.SlotID
	shard ledger.Shard
}

func (i item) String() string { return fmt.Sprintf("stock of %s, shard %d", i.slot, i.shard) }

// version names one state of a hold, reservation, slot or policy.
type version struct {
	subject string
	number  ledger.Version
}

// books are the sums of an audit while it reads.
type books struct {
	slots        map[ledger.SlotID]ledger.Slot
	stock        map[item]ledger.Stock
	holds        map[ledger.HoldID]ledger.StoredHold
	reservations map[ledger.ReservationID]ledger.StoredReservation
	policies     map[ledger.PolicyScope]ledger.ScopePolicy
	quotas       []ledger.Quota
	events       map[version]int
	// promised is what holds say of each stock item, told what the events of each subject
	// say of it.
	promised map[item]ledger.Counters
	told     map[string]map[item]ledger.Counters
	// archived are the subjects that lie in the archive.
	archived map[string]bool
	// granted is what the events of each reservation added to each stock item.
	granted map[ledger.ReservationID]map[item]ledger.Units
	money   map[ledger.Currency]Money
	// counted is what the holds of each owner say of each count, and archivedSales what those
	// among them that lie in the archive sold of each slot.
	counted       map[ownerCount]ledger.Units
	archivedSales map[ledger.SlotID]ledger.Units

	violations []Violation
}

func newBooks() *books {
	return &books{
		slots: map[ledger.SlotID]ledger.Slot{}, stock: map[item]ledger.Stock{},
		holds: map[ledger.HoldID]ledger.StoredHold{}, events: map[version]int{},
		reservations: map[ledger.ReservationID]ledger.StoredReservation{}, policies: map[ledger.PolicyScope]ledger.ScopePolicy{},
		counted: map[ownerCount]ledger.Units{}, archivedSales: map[ledger.SlotID]ledger.Units{},
		promised: map[item]ledger.Counters{}, told: map[string]map[item]ledger.Counters{}, archived: map[string]bool{},
		granted: map[ledger.ReservationID]map[item]ledger.Units{}, money: map[ledger.Currency]Money{},
	}
}

func (b *books) add(r ledger.Records) {
	for _, s := range r.Slots {
		b.slots[s.ID] = s
	}
	for _, s := range r.Stock {
		b.stock[item{s.Slot, s.Shard}] = s
	}
	for _, p := range r.Policies {
		b.policies[p.Scope] = p
	}
	b.quotas = append(b.quotas, r.Quotas...)
	for _, h := range r.Holds {
		b.holds[h.Hold.ID] = h
		if h.Hold.ArchivedIn != "" {
			b.archived["hold "+string(h.Hold.ID)] = true
		}
	}
	for _, r := range r.Reservations {
		b.reservations[r.Reservation.ID] = r
		if r.Reservation.ArchivedIn != "" {
			b.archived["reservation "+string(r.Reservation.ID)] = true
		}
	}
	for _, e := range r.Events {
		who := subject(e)
		b.events[version{who, e.Version}]++
		for _, m := range e.Movements {
			key := item{m.Slot, m.Shard}
			if b.told[who] == nil {
				b.told[who] = map[item]ledger.Counters{}
			}
			b.told[who][key] = move(move(b.told[who][key], m.From, -m.Quantity), m.To, m.Quantity)
			if e.Reservation != nil {
				moved := move(move(ledger.Counters{}, m.From, -m.Quantity), m.To, m.Quantity)
				b.grant(e.Reservation.ID, key, moved.Available)
			}
		}
	}
}

// move adds units to one bucket. It is written out here, and not taken from the ledger,
// so that a mistake there can't hide itself.
func move(c ledger.Counters, bucket ledger.Bucket, units ledger.Units) ledger.Counters {
	switch bucket {
	case ledger.BucketAvailable:
		c.Available += units
	case ledger.BucketHeld:
		c.Held += units
	case ledger.BucketConfirmed:
		c.Confirmed += units
	case ledger.BucketOutside:
	}
	return c
}

func subject(e ledger.Event) string {
	switch {
	case e.Hold != nil:
		return "hold " + string(e.Hold.ID)
	case e.Reservation != nil:
		return "reservation " + string(e.Reservation.ID)
	case e.Policy != nil:
		return policySubject(e.Policy.Scope)
	default:
		return "slot " + string(e.Slot.ID)
	}
}

func policySubject(s ledger.PolicyScope) string {
	return "policy " + string(s.ResourceType) + "/" + string(s.ResourceID)
}

func (b *books) violated(promise, who, format string, args ...any) {
	b.violations = append(b.violations, Violation{promise, who, fmt.Sprintf(format, args...)})
}

// close adds up and compares.
func (b *books) close() Report {
	report := Report{
		Slots: len(b.slots), Policies: len(b.policies), Events: b.liveEvents(), Archived: len(b.archived),
		Money: b.money, Oversold: b.oversold(),
	}
	for _, h := range b.holds {
		b.closeCounts(h.Hold)
		if h.Hold.ArchivedIn != "" {
			b.closeArchivedHold(h)
			continue
		}
		report.Holds++
		b.closeHold(h)
		b.closePayment(h.Hold)
	}
	for _, r := range b.reservations {
		if r.Reservation.ArchivedIn != "" {
			b.closeArchivedReservation(r)
			continue
		}
		report.Reservations++
		b.closeReservation(r)
	}
	for _, s := range b.slots {
		b.closeSlot(s)
	}
	for scope, p := range b.policies {
		b.wantEvents(policySubject(scope), p.Version)
	}
	b.closeQuotas()
	told := b.toldByLive()
	for key, s := range b.stock {
		b.closeStock(key, s, told[key])
	}
	for key := range b.promised {
		if _, found := b.stock[key]; !found {
			b.violated("P2", key.String(), "holds have taken from it and it does not exist")
		}
	}
	for v, n := range b.events {
		if !b.archived[v.subject] {
			b.violated("P5", v.subject, "%d events of version %d, which is not a version of it", n, v.number)
		}
	}
	slices.SortFunc(b.violations, func(x, y Violation) int { return cmp.Compare(x.String(), y.String()) })
	report.Violations = b.violations
	return report
}

func (b *books) closeHold(stored ledger.StoredHold) {
	h := stored.Hold
	who := "hold " + string(h.ID)
	b.wantEvents(who, h.Version)
	held := h.Status == ledger.StatusHeld
	if held != stored.Due {
		b.violated("P9", who, "it is %s, and in the due index: %t", h.Status, stored.Due)
	}
	if held == stored.Archivable {
		b.violated("P9", who, "it is %s, and in the archive's list: %t", h.Status, stored.Archivable)
	}
	for _, line := range h.Lines {
		var units ledger.Units
		for _, a := range line.Shards {
			units += a.Quantity
			key := item{line.Slot, a.Shard}
			switch h.Status {
			case ledger.StatusHeld:
				b.promised[key] = move(b.promised[key], ledger.BucketHeld, a.Quantity)
			case ledger.StatusConfirmed, ledger.StatusReturned:
				b.promised[key] = move(b.promised[key], ledger.BucketConfirmed, a.Quantity)
			case ledger.StatusCanceled, ledger.StatusExpired:
			case ledger.StatusPaymentChecking:
				b.violated("P3", who, "it is stored as %s, which is only shown", h.Status)
			}
		}
		if units != line.Quantity {
			b.violated("P2", who, "its line of %s has %d units, its shards %d", line.Slot, line.Quantity, units)
		}
		b.closeReturns(h, line)
	}
}

// closeReturns takes what was given back of a line off what the hold has.
func (b *books) closeReturns(h ledger.Hold, line ledger.Line) {
	who := "hold " + string(h.ID)
	var back ledger.Units
	for _, a := range line.Returned {
		back += a.Quantity
		key := item{line.Slot, a.Shard}
		b.promised[key] = move(b.promised[key], ledger.BucketConfirmed, -a.Quantity)
	}
	switch {
	case back > 0 && h.Status != ledger.StatusConfirmed && h.Status != ledger.StatusReturned:
		b.violated("P3", who, "it is %s, and %d units of %s were given back", h.Status, back, line.Slot)
	case back > line.Quantity, h.Status == ledger.StatusReturned && back != line.Quantity:
		b.violated("P3", who, "it is %s, and %d of %d units of %s were given back", h.Status, back, line.Quantity, line.Slot)
	}
}

// wantEvents expects one event for each version from 1 to last, and takes them out, so
// that what is left over belongs to nothing.
func (b *books) wantEvents(who string, last ledger.Version) {
	for n := ledger.Version(1); n <= last; n++ {
		key := version{who, n}
		if found := b.events[key]; found != 1 {
			b.violated("P5", who, "%d events of version %d", found, n)
		}
		delete(b.events, key)
	}
}

func (b *books) closeStock(key item, s ledger.Stock, told ledger.Counters) {
	c, archived := s.Counters, s.Archived
	if c.Available < 0 || c.Held < 0 || c.Confirmed < 0 || c.Available+c.Held+c.Confirmed != c.Capacity {
		b.violated("P1", key.String(), "counters %+v", c)
	}
	switch slot, found := b.slots[key.slot]; {
	case !found || slot.Terms != s.Terms:
		b.violated("P1", key.String(), "its terms are not those of its slot")
	case int(key.shard) >= stockItems(slot):
		b.violated("P1", key.String(), "the slot has %d stock items, and this is another one", stockItems(slot))
	}
	if want := b.promised[key]; c.Held != want.Held || c.Confirmed != want.Confirmed+archived.Confirmed {
		b.violated("P2", key.String(), "held %d and confirmed %d, but its holds have %d and %d, and the archived ones confirmed %d",
			c.Held, c.Confirmed, want.Held, want.Confirmed, archived.Confirmed)
	}
	if c.Available != told.Available+archived.Available || c.Held != told.Held+archived.Held || c.Confirmed != told.Confirmed+archived.Confirmed {
		b.violated("P3", key.String(), "counters %+v, but its events tell %+v, and the archived ones %+v", c, told, archived)
	}
	if archived.Confirmed < 0 || archived.Available+archived.Held+archived.Confirmed != archived.Capacity {
		b.violated("P1", key.String(), "archived counters %+v", archived)
	}
}
