package ledgertest

import (
	"errors"
	"time"

	"holdfast/shared/ledger"
)

// readable is everything that the reads of a store tell of what a change is about.
type readable struct {
	Holds               map[ledger.HoldID]ledger.Hold
	HoldEvents          map[ledger.HoldID][]ledger.Event
	HoldsOfOwner        map[ledger.OwnerID][]ledger.Hold
	Due                 map[int][]ledger.DueHold
	Reservations        map[ledger.ReservationID]ledger.Reservation
	ReservationEvents   map[ledger.ReservationID][]ledger.Event
	ReservationsOfOwner map[ledger.OwnerID][]ledger.Reservation
	DueReservations     map[int][]ledger.DueReservation
	Claims              map[string]ledger.Uniqueness
	Slots               map[ledger.SlotID]ledger.Slot
	SlotEvents          map[ledger.SlotID][]ledger.Event
	SlotsOfThing        map[ledger.ResourceID][]ledger.Slot
	Stock               map[ledger.SlotID][]ledger.Stock
	StockTogether       map[ledger.SlotID][]ledger.Stock
	Records             map[ledger.IdempotencyID]ledger.IdempotencyRecord
	Policies            map[string]ledger.ScopePolicy
	PolicyEvents        map[string][]ledger.Event
	Quotas              map[ledger.OwnerID]ledger.Quota
	Reviews             map[ledger.ReviewID][]ledger.Review
	ReviewEvents        map[ledger.ReviewID][]ledger.Event
	InReview            []ledger.InReview
}

// never is after every release time that a rule uses.
var never = time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC)

// snapshot reads whatever c names, through every read of the store. Two snapshots of
// one change are equal if nothing that it names has changed between them.
func (f *fixture) snapshot(c ledger.Change) readable {
	f.Helper()
	r := readable{
		Holds: make(map[ledger.HoldID]ledger.Hold), HoldEvents: make(map[ledger.HoldID][]ledger.Event),
		HoldsOfOwner: make(map[ledger.OwnerID][]ledger.Hold), Due: make(map[int][]ledger.DueHold),
		Reservations: make(map[ledger.ReservationID]ledger.Reservation), ReservationEvents: make(map[ledger.ReservationID][]ledger.Event),
		ReservationsOfOwner: make(map[ledger.OwnerID][]ledger.Reservation), DueReservations: make(map[int][]ledger.DueReservation),
		Claims: make(map[string]ledger.Uniqueness),
		Slots:  make(map[ledger.SlotID]ledger.Slot), SlotEvents: make(map[ledger.SlotID][]ledger.Event),
		SlotsOfThing: make(map[ledger.ResourceID][]ledger.Slot),
		Stock:        make(map[ledger.SlotID][]ledger.Stock), StockTogether: make(map[ledger.SlotID][]ledger.Stock),
		Records:  make(map[ledger.IdempotencyID]ledger.IdempotencyRecord),
		Policies: make(map[string]ledger.ScopePolicy), PolicyEvents: make(map[string][]ledger.Event),
		Quotas:  make(map[ledger.OwnerID]ledger.Quota),
		Reviews: make(map[ledger.ReviewID][]ledger.Review), ReviewEvents: make(map[ledger.ReviewID][]ledger.Event),
	}
	for _, write := range c.Holds {
		f.snapshotHold(&r, write.Next)
	}
	for _, write := range c.Reservations {
		f.snapshotReservation(&r, write.Next)
	}
	for _, mark := range c.Archives {
		f.snapshotSubject(&r, mark.Subject())
	}
	for _, reservation := range c.AtRest {
		f.snapshotReservation(&r, reservation)
	}
	for _, claim := range c.Uniqueness {
		stored, found, err := f.store.Claimed(f.ctx, claim.Kind, claim.Value)
		f.read(err)
		if found {
			r.Claims[string(claim.Kind)+" "+claim.Value] = stored
		}
	}
	for _, write := range c.Slots {
		f.snapshotSlot(&r, write.Next)
	}
	for _, write := range c.Policies {
		f.snapshotPolicy(&r, write.Next.Scope)
	}
	for _, write := range c.Quotas {
		r.Quotas[write.Owner] = f.quota(write.Owner)
	}
	for _, stock := range c.NewStock {
		f.snapshotStock(&r, stock.Slot)
	}
	for _, write := range c.Stock {
		f.snapshotStock(&r, write.Slot)
	}
	for _, repair := range c.StockRepairs {
		f.snapshotStock(&r, repair.Slot)
	}
	for _, write := range c.Reviews {
		f.snapshotReview(&r, write.Next.ID)
	}
	if c.Idempotency != nil {
		record, found, err := f.store.IdempotencyRecord(f.ctx, c.Idempotency.ID)
		f.read(err)
		if found {
			r.Records[record.ID] = record
		}
	}
	return r
}

func (f *fixture) snapshotHold(r *readable, hold ledger.Hold) {
	f.Helper()
	stored, err := f.store.Hold(f.ctx, hold.ID)
	if ledger.CodeOf(err) != ledger.CodeHoldNotFound {
		f.read(err)
		r.Holds[hold.ID] = stored
	}
	r.HoldEvents[hold.ID], err = f.store.HoldEvents(f.ctx, hold.ID)
	f.read(err)
	r.HoldsOfOwner[hold.Owner], _, err = f.store.HoldsOfOwner(f.ctx, hold.Owner, ledger.Page{Limit: ledger.PageItemsMax})
	f.read(err)
	shard := ledger.DueShard(hold.ID)
	r.Due[shard], _, err = f.store.Due(f.ctx, shard, never, ledger.Page{Limit: ledger.PageItemsMax})
	f.read(err)
}

// snapshotSubject reads what an archive mark is of.
func (f *fixture) snapshotSubject(r *readable, subject ledger.ArchiveSubject) {
	f.Helper()
	if subject.Hold != "" {
		hold, err := f.store.Hold(f.ctx, subject.Hold)
		if ledger.CodeOf(err) != ledger.CodeHoldNotFound {
			f.read(err)
			f.snapshotHold(r, hold)
		}
		return
	}
	reservation, err := f.store.Reservation(f.ctx, subject.Reservation)
	if ledger.CodeOf(err) != ledger.CodeReservationNotFound {
		f.read(err)
		f.snapshotReservation(r, reservation)
	}
}

func (f *fixture) snapshotReservation(r *readable, reservation ledger.Reservation) {
	f.Helper()
	stored, err := f.store.Reservation(f.ctx, reservation.ID)
	if ledger.CodeOf(err) != ledger.CodeReservationNotFound {
		f.read(err)
		r.Reservations[reservation.ID] = stored
	}
	r.ReservationEvents[reservation.ID], err = f.store.ReservationEvents(f.ctx, reservation.ID)
	f.read(err)
	r.ReservationsOfOwner[reservation.Owner], _, err = f.store.ReservationsOfOwner(f.ctx, reservation.Owner, ledger.Page{Limit: ledger.PageItemsMax})
	f.read(err)
	shard := ledger.ReservationDueShard(reservation.ID)
	r.DueReservations[shard], _, err = f.store.DueReservations(f.ctx, shard, never, ledger.Page{Limit: ledger.PageItemsMax})
	f.read(err)
}

func (f *fixture) snapshotSlot(r *readable, slot ledger.Slot) {
	f.Helper()
	var err error
	r.SlotEvents[slot.ID], err = f.store.SlotEvents(f.ctx, slot.ID)
	f.read(err)
	r.SlotsOfThing[slot.ResourceID], _, err = f.store.SlotsOfResource(f.ctx, slot.ResourceType, slot.ResourceID,
		time.Time{}, time.Time{}, ledger.Page{Limit: ledger.PageItemsMax})
	f.read(err)
	f.snapshotStock(r, slot.ID)
}

func (f *fixture) snapshotPolicy(r *readable, scope ledger.PolicyScope) {
	f.Helper()
	name := string(scope.ResourceType) + "/" + string(scope.ResourceID)
	policies, err := f.store.Policies(f.ctx, []ledger.PolicyScope{scope})
	f.read(err)
	for _, policy := range policies {
		r.Policies[name] = policy
	}
	r.PolicyEvents[name], err = f.store.PolicyEvents(f.ctx, scope)
	f.read(err)
}

func (f *fixture) snapshotReview(r *readable, id ledger.ReviewID) {
	f.Helper()
	var err error
	r.Reviews[id] = f.reviews(id)
	r.ReviewEvents[id], err = f.store.ReviewEvents(f.ctx, id)
	f.read(err)
	r.InReview, _, err = f.store.InReview(f.ctx, ledger.Page{Limit: ledger.PageItemsMax})
	f.read(err)
}

// snapshotStock reads a slot and its stock. Without a slot there is no telling how many
// shards to read.
func (f *fixture) snapshotStock(r *readable, id ledger.SlotID) {
	f.Helper()
	if _, seen := r.Slots[id]; seen {
		return
	}
	slots, err := f.store.Slots(f.ctx, []ledger.SlotID{id})
	f.read(err)
	for _, slot := range slots {
		r.Slots[id] = slot
		r.Stock[id], err = f.store.Stock(f.ctx, []ledger.Slot{slot})
		f.read(err)
		r.StockTogether[id], err = f.store.StockAtOneMoment(f.ctx, slot)
		f.read(err)
	}
}

// read requires that a read worked.
func (f *fixture) read(err error) {
	f.Helper()
	if err == nil {
		return
	}
	var failure *ledger.Error
	if !errors.As(err, &failure) {
		f.Fatalf("a read failed with an error that has no code: %v", err)
	}
	f.Fatalf("read: %v", err)
}
