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
	At    time.Time
	Holds []HoldWrite
	Slots []SlotWrite
	// NewStock are stock items that must not exist yet.
	NewStock []Stock
	Stock    []StockWrite
	Events   []Event
	// Idempotency makes the request behind the change repeatable. A change may consist
	// of it alone: a command that found nothing left to do still owns its key.
	Idempotency *IdempotencyRecord
	Uniqueness  []Uniqueness
}

// ReleaseCondition says on which side of its release time a hold must be at Change.At.
type ReleaseCondition int

// The conditions.
const (
	// AnyTime does not look at the release time.
	AnyTime ReleaseCondition = iota
	// BeforeRelease requires release_at > Change.At: the hold is alive.
	BeforeRelease
	// FromRelease requires release_at <= Change.At: the hold is over.
	FromRelease
)

// HoldWrite puts Next in place of the hold of that id at version Replaces. With
// Replaces zero, no hold of that id may exist. Otherwise the hold must be HELD and on
// the named side of its release time: the store checks that in the write itself, beside
// the version, so that the rule holds even for a caller who decided on a stale value.
type HoldWrite struct {
	Next     Hold
	Replaces Version
	When     ReleaseCondition
}

// SlotWrite puts Next in place of the slot at version Replaces, or creates it.
type SlotWrite struct {
	Next     Slot
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
	// SetTerms, if set, replaces the item's terms.
	SetTerms *Terms
}

// Uniqueness claims a value for one hold for ever. A second claim by another hold is
// refused; by the same hold it is too, so a transition is never repeated under it.
type Uniqueness struct {
	Kind  UniquenessKind
	Value string
	Hold  HoldID
}

// UniquenessKind says what kind of value is unique.
type UniquenessKind string

// UniquePaymentReference keeps one payment from confirming two holds.
const UniquePaymentReference UniquenessKind = "payment_reference"

// Empty reports whether c would write nothing.
func (c Change) Empty() bool { return c.Actions() == 0 }

// Actions is how many items c writes.
func (c Change) Actions() int {
	n := len(c.Holds) + len(c.Slots) + len(c.NewStock) + len(c.Stock) + len(c.Events) + len(c.Uniqueness)
	if c.Idempotency != nil {
		n++
	}
	return n
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
	for shard := range terms.Shards {
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
// line that is not the sum of its shards, a hold without its event. A store calls it before it writes; an error is a fault of the
// code that built c.
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
	for _, w := range c.Slots {
		failures = append(failures, claim("slot", string(w.Next.ID)))
	}
	for _, s := range c.NewStock {
		failures = append(failures, claim("stock", string(s.Slot)+"/"+s.Shard.String()))
	}
	for _, w := range c.Stock {
		failures = append(failures, claim("stock", string(w.Slot)+"/"+w.Shard.String()))
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
		if e.ID == "" || e.Version < 1 || (e.Hold == nil) == (e.Slot == nil) {
			return fmt.Errorf("change: event %q at version %d is not of one hold or slot", e.ID, e.Version)
		}
		if _, twice := told[e.subject()]; twice {
			return fmt.Errorf("change: two events of %s", e.subject())
		}
		told[e.subject()] = e.Version
	}
	for _, w := range c.Holds {
		if err := w.Next.checkLines(); err != nil {
			return fmt.Errorf("change: %w", err)
		}
		if told["hold/"+string(w.Next.ID)] != w.Next.Version || w.Next.Version != w.Replaces+1 {
			return fmt.Errorf("change: hold %s goes to version %d without its event", w.Next.ID, w.Next.Version)
		}
	}
	for _, w := range c.Slots {
		if told["slot/"+string(w.Next.ID)] != w.Next.Version || w.Next.Version != w.Replaces+1 {
			return fmt.Errorf("change: slot %s goes to version %d without its event", w.Next.ID, w.Next.Version)
		}
	}
	if len(told) != len(c.Holds)+len(c.Slots) {
		return errors.New("change: an event without its hold or slot")
	}
	return nil
}

func (e Event) subject() string {
	if e.Hold != nil {
		return "hold/" + string(e.Hold.ID)
	}
	return "slot/" + string(e.Slot.ID)
}
