package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"holdfast/shared/ledger"
)

// Store is a ledger.Store in memory. Use New; it is safe for concurrent use.
type Store struct {
	mutex      sync.Mutex
	holds      map[ledger.HoldID]ledger.Hold
	slots      map[ledger.SlotID]ledger.Slot
	stock      map[stockKey]ledger.Stock
	events     map[eventKey]ledger.Event
	records    map[ledger.IdempotencyID]ledger.IdempotencyRecord
	uniqueness map[uniquenessKey]ledger.Uniqueness
	policies   map[ledger.PolicyScope]ledger.ScopePolicy
	quotas     map[ledger.OwnerID]ledger.Quota
	reviews    map[ledger.ReviewID]ledger.Review
	signals    map[signalKey]ledger.Units

	reservations map[ledger.ReservationID]ledger.Reservation
	parking      map[ledger.HoldID]parking

	// waiting are the holds of each due shard that wait for their end, and versions those
	// of the events of each thing, so that a list of few among many is not slow.
	waiting  map[int]map[ledger.HoldID]struct{}
	versions map[string][]ledger.Version
}

type stockKey struct {
	slot  ledger.SlotID
	shard ledger.Shard
}

// eventKey names the event that a thing has for one of its versions.
type eventKey struct {
	subject string // as ledger.Event.Subject gives it
	version ledger.Version
}

type uniquenessKey struct {
	kind  ledger.UniquenessKind
	value string
}

type signalKey struct {
	signal   ledger.Signal
	windowMs int64
}

var _ ledger.Store = (*Store)(nil)

// New returns a store without anything in it.
func New() *Store {
	return &Store{
		holds:      make(map[ledger.HoldID]ledger.Hold),
		slots:      make(map[ledger.SlotID]ledger.Slot),
		stock:      make(map[stockKey]ledger.Stock),
		events:     make(map[eventKey]ledger.Event),
		records:    make(map[ledger.IdempotencyID]ledger.IdempotencyRecord),
		uniqueness: make(map[uniquenessKey]ledger.Uniqueness),
		policies:   make(map[ledger.PolicyScope]ledger.ScopePolicy),
		quotas:     make(map[ledger.OwnerID]ledger.Quota),
		reviews:    make(map[ledger.ReviewID]ledger.Review),
		signals:    make(map[signalKey]ledger.Units),

		reservations: make(map[ledger.ReservationID]ledger.Reservation),
		parking:      make(map[ledger.HoldID]parking),

		waiting:  make(map[int]map[ledger.HoldID]struct{}),
		versions: make(map[string][]ledger.Version),
	}
}

// begin locks the store, or returns a CodeUnavailable error when ctx is over.
func (s *Store) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &ledger.Error{Code: ledger.CodeUnavailable, Message: "the caller has given up; nothing was written", Cause: err}
	}
	s.mutex.Lock()
	return nil
}

// Hold implements ledger.Store.
func (s *Store) Hold(ctx context.Context, id ledger.HoldID) (ledger.Hold, error) {
	if err := s.begin(ctx); err != nil {
		return ledger.Hold{}, err
	}
	defer s.mutex.Unlock()
	hold, found := s.holds[id]
	if !found {
		return ledger.Hold{}, ledger.HoldNotFound()
	}
	return cloneHold(hold), nil
}

// Holds returns the holds of these ids, in their order. An id without a hold is left out.
func (s *Store) Holds(ctx context.Context, ids []ledger.HoldID) ([]ledger.Hold, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.mutex.Unlock()
	var holds []ledger.Hold
	for _, id := range ids {
		if hold, found := s.holds[id]; found {
			holds = append(holds, cloneHold(hold))
		}
	}
	return holds, nil
}

// Slots implements ledger.Store.
func (s *Store) Slots(ctx context.Context, ids []ledger.SlotID) ([]ledger.Slot, error) {
	if len(ids) > ledger.PageItemsMax {
		return nil, invalid(fmt.Sprintf("%d slots are more than %d; ask for fewer at once", len(ids), ledger.PageItemsMax))
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.mutex.Unlock()
	found := make(map[ledger.SlotID]ledger.Slot, len(ids))
	for _, id := range ids {
		if slot, exists := s.slots[id]; exists {
			found[id] = cloneSlot(slot)
		}
	}
	return slices.Collect(maps.Values(found)), nil
}

// Stock implements ledger.Store. Here it is of one moment too.
func (s *Store) Stock(ctx context.Context, slots []ledger.Slot) ([]ledger.Stock, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.mutex.Unlock()
	var out []ledger.Stock
	for _, slot := range slots {
		for shard := range slot.Terms.StockItems() {
			if stock, exists := s.stock[stockKey{slot.ID, ledger.Shard(shard)}]; exists {
				out = append(out, stock)
			}
		}
	}
	slices.SortFunc(out, func(a, b ledger.Stock) int {
		return cmp.Or(cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Shard, b.Shard))
	})
	return out, nil
}

// StockAtOneMoment implements ledger.Store.
func (s *Store) StockAtOneMoment(ctx context.Context, slot ledger.Slot) ([]ledger.Stock, error) {
	return s.Stock(ctx, []ledger.Slot{slot})
}

// HoldEvents implements ledger.Store.
func (s *Store) HoldEvents(ctx context.Context, id ledger.HoldID) ([]ledger.Event, error) {
	return s.eventsOf(ctx, ledger.Event{Hold: &ledger.Hold{ID: id}}.Subject())
}

// SlotEvents implements ledger.Store.
func (s *Store) SlotEvents(ctx context.Context, id ledger.SlotID) ([]ledger.Event, error) {
	return s.eventsOf(ctx, ledger.Event{Slot: &ledger.Slot{ID: id}}.Subject())
}

// ReservationEvents implements ledger.Store.
func (s *Store) ReservationEvents(ctx context.Context, id ledger.ReservationID) ([]ledger.Event, error) {
	return s.eventsOf(ctx, ledger.Event{Reservation: &ledger.Reservation{ID: id}}.Subject())
}

func (s *Store) eventsOf(ctx context.Context, subject string) ([]ledger.Event, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.mutex.Unlock()
	var out []ledger.Event
	for _, version := range s.versions[subject] {
		out = append(out, cloneEvent(s.events[eventKey{subject, version}]))
	}
	slices.SortFunc(out, func(a, b ledger.Event) int { return cmp.Compare(a.Version, b.Version) })
	return out[:min(len(out), ledger.PageItemsMax)], nil
}

// IdempotencyRecord implements ledger.Store.
func (s *Store) IdempotencyRecord(ctx context.Context, id ledger.IdempotencyID) (ledger.IdempotencyRecord, bool, error) {
	if err := s.begin(ctx); err != nil {
		return ledger.IdempotencyRecord{}, false, err
	}
	defer s.mutex.Unlock()
	record, found := s.records[id]
	return cloneRecord(record), found, nil
}

func invalid(message string) *ledger.Error {
	return &ledger.Error{Code: ledger.CodeInvalid, Message: message}
}
