package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ActionsMax is the limit of one DynamoDB transaction.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
const ActionsMax = 100

// Change is one atomic step of the ledger, as a value: everything in it becomes true
// together, or nothing does (promise P5). Pure functions build it and Store.Commit
// applies it.
//
// Each item occurs once in a Change, because DynamoDB refuses two actions on one item.
type Change struct {
	// At is the one time of the step. Conditions about time compare with it.
	At           time.Time
	Holds        []HoldWrite
	Reservations []ReservationWrite
	Slots        []SlotWrite
	Policies     []PolicyWrite
	// NewStock are stock items that must not exist yet.
	NewStock []Stock
	Stock    []StockWrite
	// StockRepairs set stock items to what the rest of the ledger says.
	StockRepairs []StockRepair
	Reviews      []ReviewWrite
	// Quotas and Signals count against the limits of an owner.
	Quotas  []QuotaWrite
	Signals []SignalWrite
	Events  []Event
	// Idempotency makes the request behind the change repeatable. A change may consist
	// of it alone: a command that found nothing left to do still owns its key.
	Idempotency *IdempotencyRecord
	Uniqueness  []Uniqueness
	// Archives marks what lies in the archive.
	Archives []ArchiveMark
	// AtRest are the reservations of the holds that are marked. Each must still be as it is
	// here, with nothing to do, and takes note that one more of its holds is archived.
	AtRest []Reservation
	// Lease, if set, requires that nobody has taken over the work that the Change is of.
	Lease *LeaseHeld
}

// LeaseHeld requires that the lease of a shard of some work still has the fencing number
// that the worker was given. It keeps out a worker that stood still for longer than its
// lease, where being late would do harm although every record is as it was read.
type LeaseHeld struct {
	Kind  string
	Shard int
	Fence int64
}

// ReleaseCondition says on which side of its release time a hold must be at Change.At.
type ReleaseCondition int

// The conditions.
const (
	// AnyTime does not look at the release time.
	AnyTime ReleaseCondition = iota
	// BeforeRelease requires release_at > Change.At: the hold is alive.
	BeforeRelease
	// FromRelease requires release_at + OverFor <= Change.At: the hold is over.
	FromRelease
	// BeforeExpiry requires expires_at > Change.At: the user still sees it alive.
	BeforeExpiry
)

// HoldWrite puts Next in place of the hold of that id at version Replaces. With
// Replaces zero, no hold of that id may exist. Otherwise the hold must be as the other
// fields say: the store checks that in the write itself, beside the version, so that the
// rule holds even for a caller who decided on a stale value.
type HoldWrite struct {
	Next     Hold
	Replaces Version
	// From is the status that it leaves; "" stands for HELD.
	From Status
	When ReleaseCondition
	// OverFor goes with FromRelease: for how long the hold must have been over.
	OverFor time.Duration
	// NoOpenAttempt requires that no payment attempt is open.
	NoOpenAttempt bool
	// Of, if set, requires the hold to be of that reservation, or of none for "".
	Of *ReservationID
}

// Status is the status that w requires of the hold that it replaces.
func (w HoldWrite) Status() Status {
	if w.From == "" {
		return StatusHeld
	}
	return w.From
}

// ReservationWrite puts Next in place of the reservation of that id at version Replaces,
// which must have the status From. With Replaces zero there may be none.
type ReservationWrite struct {
	Next     Reservation
	Replaces Version
	From     ReservationStatus
	// Since is when it came to From, as far as that is known. No store needs it: it is for who
	// counts how long reservations take.
	Since time.Time
}

// Left is the status that the reservation leaves, and how long it was in it. It is false for
// a first step, for one within its status, and where it is not known how long.
func (w ReservationWrite) Left() (ReservationStatus, time.Duration, bool) {
	if w.From == "" || w.From == w.Next.Status || w.Since.IsZero() {
		return "", 0, false
	}
	return w.From, w.Next.StatusSince.Sub(w.Since), true
}

// SlotWrite puts Next in place of the slot at version Replaces, or creates it.
type SlotWrite struct {
	Next     Slot
	Replaces Version
}

// ReviewWrite puts Next in place of the case at version Replaces, or creates its record.
type ReviewWrite struct {
	Next     Review
	Replaces Version
}

// StockWrite changes the counters of one stock item. Each counter that falls must be at
// least as large as it falls by: that is the condition that makes an oversell
// impossible.
type StockWrite struct {
	Slot  SlotID
	Shard Shard
	Delta Counters
	// Sale, if set, requires the item's terms to be equal: open, at the quoted price,
	// with the assumed number of shards.
	Sale *Terms
	// Open requires the item to be open, whatever its other terms are.
	Open bool
	// SetTerms, if set, replaces the item's terms.
	SetTerms *Terms
	// Archived is what events moved that are archived now, net. It is added to the item's
	// archived counters, under no condition; the counters stay.
	Archived Counters
}

// Uniqueness claims a value for one hold or one reservation for ever. A second claim is
// refused, whoever makes it, so a transition is never repeated under it.
type Uniqueness struct {
	Kind        UniquenessKind
	Value       string
	Hold        HoldID        // of a hold's claim
	Reservation ReservationID // of a reservation's claim
}

// UniquenessKind says what kind of value is unique.
type UniquenessKind string

// The kinds.
const (
	// UniquePaymentReference keeps one payment from confirming two holds.
	UniquePaymentReference UniquenessKind = "payment_reference"
	// UniqueHoldReservation keeps one hold from being paid by two reservations.
	UniqueHoldReservation UniquenessKind = "hold_reservation"
	// UniqueProviderPayment leads from the provider's payment to its reservation.
	UniqueProviderPayment UniquenessKind = "provider_payment"
	// UniqueProviderEvent says that an event of the provider has been taken up.
	UniqueProviderEvent UniquenessKind = "provider_event"
)

// Empty reports whether c would write nothing.
func (c Change) Empty() bool { return c.Actions() == 0 }

// Actions is how many items c writes.
func (c Change) Actions() int {
	n := len(c.Holds) + len(c.Reservations) + len(c.Slots) + len(c.Policies) + len(c.NewStock) + len(c.Stock) +
		len(c.StockRepairs) + len(c.Reviews) + len(c.Quotas) + len(c.Signals) + len(c.Events) + len(c.Uniqueness) + len(c.Archives) + len(c.AtRest)
	if c.Idempotency != nil {
		n++
	}
	if c.Lease != nil {
		n++
	}
	return n
}

// Together is one Change of both a and b, which are of the same moment and write to
// different holds, reservations, slots and policies. What both do to one stock item or to
// one owner's quota becomes one write. At most one of them may have an idempotency record, a
// lease, or the terms of a sale on an item that both write.
func Together(a, b Change) Change {
	a.Holds = slices.Concat(a.Holds, b.Holds)
	a.Reservations = slices.Concat(a.Reservations, b.Reservations)
	a.Slots = slices.Concat(a.Slots, b.Slots)
	a.Policies = slices.Concat(a.Policies, b.Policies)
	a.NewStock = slices.Concat(a.NewStock, b.NewStock)
	a.Stock = togetherStock(a.Stock, b.Stock)
	a.StockRepairs = slices.Concat(a.StockRepairs, b.StockRepairs)
	a.Reviews = slices.Concat(a.Reviews, b.Reviews)
	a.Quotas = togetherQuotas(a.Quotas, b.Quotas)
	a.Signals = slices.Concat(a.Signals, b.Signals)
	a.Events = slices.Concat(a.Events, b.Events)
	a.Uniqueness = slices.Concat(a.Uniqueness, b.Uniqueness)
	a.Archives = slices.Concat(a.Archives, b.Archives)
	a.AtRest = slices.Concat(a.AtRest, b.AtRest)
	a.Idempotency = cmp.Or(a.Idempotency, b.Idempotency)
	a.Lease = cmp.Or(a.Lease, b.Lease)
	return a
}

// togetherStock is what both a and b do, with one write for each stock item.
func togetherStock(a, b []StockWrite) []StockWrite {
	out := slices.Clone(a)
	for _, w := range b {
		i := slices.IndexFunc(out, func(o StockWrite) bool { return o.Slot == w.Slot && o.Shard == w.Shard })
		if i < 0 {
			out = append(out, w)
			continue
		}
		out[i].Delta = out[i].Delta.Plus(w.Delta)
		out[i].Archived = out[i].Archived.Plus(w.Archived)
		out[i].Open = out[i].Open || w.Open
		out[i].Sale = cmp.Or(out[i].Sale, w.Sale)
		out[i].SetTerms = cmp.Or(out[i].SetTerms, w.SetTerms)
	}
	sortStockWrites(out)
	return out
}

// stockWrites sums movements into one write per stock item, in a fixed order so that
// the same decision always has the same bytes. sale gives the terms that each slot is
// sold under, where the write is a sale.
func stockWrites(movements []Movement, sale map[SlotID]Terms) []StockWrite {
	var out []StockWrite
	for _, m := range movements {
		i := slices.IndexFunc(out, func(w StockWrite) bool { return w.Slot == m.Slot && w.Shard == m.Shard })
		if i < 0 {
			w := StockWrite{Slot: m.Slot, Shard: m.Shard}
			if terms, sold := sale[m.Slot]; sold {
				w.Sale = &terms
			}
			i, out = len(out), append(out, w)
		}
		out[i].Delta = out[i].Delta.Plus(m.Delta())
	}
	sortStockWrites(out)
	return out
}

// setTerms makes every shard of the slot take over terms, beside what moves on it.
func setTerms(writes []StockWrite, slot SlotID, terms Terms) []StockWrite {
	for shard := range terms.StockItems() {
		i := slices.IndexFunc(writes, func(w StockWrite) bool { return w.Slot == slot && w.Shard == Shard(shard) })
		if i < 0 {
			i, writes = len(writes), append(writes, StockWrite{Slot: slot, Shard: Shard(shard)})
		}
		writes[i].SetTerms = &terms
	}
	sortStockWrites(writes)
	return writes
}

func sortStockWrites(writes []StockWrite) {
	slices.SortFunc(writes, func(a, b StockWrite) int {
		return cmp.Or(cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Shard, b.Shard))
	})
}

// Validate returns an error if c could not be right whatever the store holds: too many
// actions, one item twice, counters that do not follow from the events' movements, a
// line that is not the sum of its shards, a hold without lines, a hold, reservation, slot,
// policy or case without its event, a move that a reservation does not have, a count that
// changes by nothing or that no limit could allow, stock that is repaired unheard of or to
// numbers that break P1. A store calls it before it writes; an error is a fault of the code
// that built c.
func (c Change) Validate() error {
	if c.Empty() {
		return errors.New("change: writes nothing")
	}
	if n := c.Actions(); n > ActionsMax {
		return fmt.Errorf("change: %d actions are more than %d", n, ActionsMax)
	}
	if c.At.IsZero() || !c.At.Equal(c.At.Truncate(time.Millisecond)) {
		return fmt.Errorf("change: the time %s is not in whole milliseconds", c.At)
	}
	if err := c.validateUnique(); err != nil {
		return err
	}
	if err := c.validateStock(); err != nil {
		return err
	}
	if err := c.validateArchives(); err != nil {
		return err
	}
	if err := c.validateRepairs(); err != nil {
		return err
	}
	return c.validateEvents()
}

func (c Change) validateUnique() error {
	seen := make(map[string]bool, c.Actions())
	claim := func(kind, id string) error {
		key := kind + "/" + id
		if seen[key] {
			return fmt.Errorf("change: two actions on %s", key)
		}
		seen[key] = true
		return nil
	}
	var failures []error
	for _, w := range c.Holds {
		failures = append(failures, claim("hold", string(w.Next.ID)))
	}
	for _, w := range c.Reservations {
		failures = append(failures, claim("reservation", string(w.Next.ID)))
	}
	for _, m := range c.Archives {
		if m.Hold != "" {
			failures = append(failures, claim("hold", string(m.Hold)))
		} else {
			failures = append(failures, claim("reservation", string(m.Reservation)))
		}
	}
	for _, r := range c.AtRest {
		failures = append(failures, claim("reservation", string(r.ID)))
	}
	for _, w := range c.Slots {
		failures = append(failures, claim("slot", string(w.Next.ID)))
	}
	for _, w := range c.Policies {
		failures = append(failures, claim("policy", string(w.Next.Scope.ResourceType)+"/"+string(w.Next.Scope.ResourceID)))
	}
	for _, w := range c.Quotas {
		failures = append(failures, claim("quota", string(w.Owner)), w.validate())
	}
	for _, w := range c.Signals {
		failures = append(failures, claim("signal", string(w.Signal.Kind)+"/"+w.Signal.Hash), w.validate())
	}
	for _, s := range c.NewStock {
		failures = append(failures, claim("stock", string(s.Slot)+"/"+s.Shard.String()))
	}
	for _, w := range c.Stock {
		failures = append(failures, claim("stock", string(w.Slot)+"/"+w.Shard.String()))
	}
	for _, r := range c.StockRepairs {
		failures = append(failures, claim("stock", string(r.Slot)+"/"+r.Shard.String()))
	}
	for _, w := range c.Reviews {
		failures = append(failures, claim("review", string(w.Next.ID)))
	}
	for _, u := range c.Uniqueness {
		failures = append(failures, claim(string(u.Kind), u.Value))
	}
	for _, e := range c.Events {
		failures = append(failures, claim("event", string(e.ID)))
	}
	return errors.Join(failures...)
}

// validateStock compares what the stock items gain and lose with what the events tell.
func (c Change) validateStock() error {
	type item struct {
		slot  SlotID
		shard Shard
	}
	told := make(map[item]Counters)
	for _, e := range c.Events {
		for _, m := range e.Movements {
			if m.Quantity <= 0 || m.From == m.To {
				return fmt.Errorf("change: movement %+v moves nothing", m)
			}
			key := item{m.Slot, m.Shard}
			told[key] = told[key].Plus(m.Delta())
		}
	}
	written := make(map[item]Counters)
	for _, s := range c.NewStock {
		if err := s.Counters.Check(); err != nil {
			return fmt.Errorf("change: new stock of %s: %w", s.Slot, err)
		}
		written[item{s.Slot, s.Shard}] = s.Counters
	}
	for _, w := range c.Stock {
		written[item{w.Slot, w.Shard}] = w.Delta
	}
	for key, delta := range written {
		if told[key] != delta {
			return fmt.Errorf("change: stock %v moves by %+v, but its events tell %+v", key, delta, told[key])
		}
		delete(told, key)
	}
	if len(told) > 0 {
		return fmt.Errorf("change: events tell of stock that is not written: %v", told)
	}
	return nil
}

func (c Change) validateEvents() error {
	told := make(map[string]Version, len(c.Events))
	for _, e := range c.Events {
		if e.ID == "" || e.Version < 1 || !e.OfOne() {
			return fmt.Errorf("change: event %q at version %d is not of one hold, reservation, slot, policy or case", e.ID, e.Version)
		}
		if _, twice := told[e.Subject()]; twice {
			return fmt.Errorf("change: two events of %s", e.Subject())
		}
		told[e.Subject()] = e.Version
	}
	for _, w := range c.Holds {
		if err := w.Next.checkLines(); err != nil {
			return fmt.Errorf("change: %w", err)
		}
		if told["hold/"+string(w.Next.ID)] != w.Next.Version || w.Next.Version != w.Replaces+1 {
			return fmt.Errorf("change: hold %s goes to version %d without its event", w.Next.ID, w.Next.Version)
		}
	}
	for _, w := range c.Reservations {
		if err := w.validate(); err != nil {
			return fmt.Errorf("change: %w", err)
		}
		if told["reservation/"+string(w.Next.ID)] != w.Next.Version || w.Next.Version != w.Replaces+1 {
			return fmt.Errorf("change: reservation %s goes to version %d without its event", w.Next.ID, w.Next.Version)
		}
	}
	for _, w := range c.Slots {
		if told["slot/"+string(w.Next.ID)] != w.Next.Version || w.Next.Version != w.Replaces+1 {
			return fmt.Errorf("change: slot %s goes to version %d without its event", w.Next.ID, w.Next.Version)
		}
	}
	for _, w := range c.Policies {
		if told[w.Next.Scope.subject()] != w.Next.Version || w.Next.Version != w.Replaces+1 {
			return fmt.Errorf("change: the policy of %s goes to version %d without its event", w.Next.Scope.subject(), w.Next.Version)
		}
	}
	for _, w := range c.Reviews {
		if told["review/"+string(w.Next.ID)] != w.Next.Version || w.Next.Version != w.Replaces+1 {
			return fmt.Errorf("change: the case %s goes to version %d without its event", w.Next.ID, w.Next.Version)
		}
	}
	if len(told) != len(c.Holds)+len(c.Reservations)+len(c.Slots)+len(c.Policies)+len(c.Reviews) {
		return errors.New("change: an event without what it is of")
	}
	return nil
}

// validate returns an error for a move that the state machine does not have.
func (w ReservationWrite) validate() error {
	if (w.Replaces == 0) != (w.From == "") {
		return fmt.Errorf("reservation %s replaces version %d in status %q", w.Next.ID, w.Replaces, w.From)
	}
	moves, known := reservationMoves[w.From]
	stays := w.From == w.Next.Status && w.From != ""
	if !known || (!stays && !slices.Contains(moves, w.Next.Status)) {
		return fmt.Errorf("reservation %s can't go from %s to %s", w.Next.ID, w.From, w.Next.Status)
	}
	return w.Next.check()
}
