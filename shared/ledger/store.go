package ledger

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// PageItemsMax bounds every page that a store returns.
const PageItemsMax = 500

// Cursor is where the next page of a list begins. It is opaque, and "" stands for the
// beginning and for the end.
type Cursor string

// Page says which part of a list to read. A limit out of bounds, and a cursor that no
// list gave, are CodeInvalid errors.
type Page struct {
	Limit int // 1 to PageItemsMax
	After Cursor
}

// DueHold is an entry of the due index: a hint that this hold may be over. The hold
// itself decides.
type DueHold struct {
	ID    HoldID
	DueAt time.Time
	// TryAt is set for a hold that is parked, because it could not be ended: the time of
	// the next try, by which the index lists it instead of DueAt.
	TryAt time.Time
}

// EndFailures is what is known of a hold that could not be ended.
type EndFailures struct {
	// Count is how often ending it has failed since its last step.
	Count int
	// DueAt is the due time of a hold that is parked, and zero for one that is not.
	DueAt time.Time
}

// ListedAt is the time by which the index lists the entry.
func (d DueHold) ListedAt() time.Time {
	if d.TryAt.IsZero() {
		return d.DueAt
	}
	return d.TryAt
}

// DueReservation is an entry of the due index: a hint that this reservation should be
// looked at.
type DueReservation struct {
	ID    ReservationID
	DueAt time.Time
}

// InReview is an entry of the list of what waits for a person: a hint. The reservation or
// the case itself decides.
type InReview struct {
	Reservation ReservationID // of a reservation
	Review      ReviewID      // of a finding
	Since       time.Time
}

// Store keeps the ledger. Commit is its only write.
//
// Reads of single items are strongly consistent. Lists come from indexes that may lag
// behind; they name items, and the items are read consistently before they are
// returned. Every method may be called again after any error.
type Store interface {
	// Commit applies c completely or not at all. It returns nil once c is applied, also
	// when an earlier try of the same c, recognised by its event ids, was applied and
	// its answer lost. A false condition gives a *Refused that names the legs. Otherwise
	// the error's code is CodeUnavailable when nothing was written, CodeOutcomeUnknown
	// when that could not be found out, or CodeInternal when c itself is at fault.
	Commit(ctx context.Context, c Change) error

	// Hold returns CodeHoldNotFound for an id without a hold.
	Hold(ctx context.Context, id HoldID) (Hold, error)
	// HoldsOfOwner lists the owner's holds, the newest first.
	HoldsOfOwner(ctx context.Context, owner OwnerID, page Page) ([]Hold, Cursor, error)
	// Slots returns the slots of these ids in no fixed order; an id without a slot is
	// left out, and a repeated one counts once. More than PageItemsMax ids are a
	// CodeInvalid error.
	Slots(ctx context.Context, ids []SlotID) ([]Slot, error)
	// SlotsOfResource lists a resource's slots in the order of their start. Slots
	// without a start come first, and are left out if from or to is set. from and to
	// are inclusive; a zero time is no bound.
	SlotsOfResource(ctx context.Context, t ResourceType, id ResourceID, from, to time.Time, page Page) ([]Slot, Cursor, error)
	// Stock returns all shards of the slots, each item strongly consistent but not all
	// of one moment, ordered by slot and shard. It is a hint.
	Stock(ctx context.Context, slots []Slot) ([]Stock, error)
	// StockAtOneMoment returns all shards of one slot as they were together at one
	// moment, in shard order. Only this proves "sold out" (promise P10).
	StockAtOneMoment(ctx context.Context, slot Slot) ([]Stock, error)
	// Due lists the holds of one due shard whose due time is at or before now, the
	// oldest first.
	Due(ctx context.Context, shard int, now time.Time, page Page) ([]DueHold, Cursor, error)
	// Reservation returns CodeReservationNotFound for an id without a reservation.
	Reservation(ctx context.Context, id ReservationID) (Reservation, error)
	// ReservationsOfOwner lists the owner's reservations, the newest first.
	ReservationsOfOwner(ctx context.Context, owner OwnerID, page Page) ([]Reservation, Cursor, error)
	// DueReservations lists the reservations of one due shard that are to be looked at at
	// or before now, the oldest first.
	DueReservations(ctx context.Context, shard int, now time.Time, page Page) ([]DueReservation, Cursor, error)
	// ReservationEvents returns the events of one reservation, the oldest first, at most
	// PageItemsMax.
	ReservationEvents(ctx context.Context, id ReservationID) ([]Event, error)
	// Claimed returns who claimed the value, and whether anybody has.
	Claimed(ctx context.Context, kind UniquenessKind, value string) (Uniqueness, bool, error)
	// HoldEvents and SlotEvents return the events of one thing, the oldest first, at
	// most PageItemsMax.
	HoldEvents(ctx context.Context, id HoldID) ([]Event, error)
	SlotEvents(ctx context.Context, id SlotID) ([]Event, error)
	// Policies returns what is said for these scopes, in no fixed order. A scope for which
	// nothing is said is left out. More than PageItemsMax scopes are a CodeInvalid error.
	Policies(ctx context.Context, scopes []PolicyScope) ([]ScopePolicy, error)
	// PolicyEvents returns the events of the policy of one scope, the oldest first, at most
	// PageItemsMax.
	PolicyEvents(ctx context.Context, scope PolicyScope) ([]Event, error)
	// Reviews returns the records of these cases, in no fixed order. A case without a record
	// is left out. More than PageItemsMax ids are a CodeInvalid error.
	Reviews(ctx context.Context, ids []ReviewID) ([]Review, error)
	// ReviewEvents returns the events of one case, the oldest first, at most PageItemsMax.
	ReviewEvents(ctx context.Context, id ReviewID) ([]Event, error)
	// InReview lists what the table itself knows to wait for a person, the longest waiting
	// first: cases that are not decided and have a record of their own, which are findings,
	// and reservations in REVIEW and in REFUND_REQUIRED. Parked holds and quarantined events
	// have lists of their own.
	InReview(ctx context.Context, page Page) ([]InReview, Cursor, error)
	// Quota returns what is counted of the owner; nothing for an owner of whom nothing is.
	Quota(ctx context.Context, owner OwnerID) (Quota, error)
	// IdempotencyRecord returns the record of that id, live or not, and whether there
	// is one.
	IdempotencyRecord(ctx context.Context, id IdempotencyID) (IdempotencyRecord, bool, error)
}

// LegKind says which part of a Change a refusal is about.
type LegKind string

// The kinds of legs.
const (
	LegHold        LegKind = "hold"
	LegReservation LegKind = "reservation"
	LegSlot        LegKind = "slot"
	LegStock       LegKind = "stock"
	LegEvent       LegKind = "event"
	LegIdempotency LegKind = "idempotency"
	LegUniqueness  LegKind = "uniqueness"
	LegLease       LegKind = "lease"
	LegPolicy      LegKind = "policy"
	LegQuota       LegKind = "quota"
	LegReview      LegKind = "review"
	LegSignal      LegKind = "signal"
)

// RefusedLeg is one action of a Change whose condition was false, with the item as it
// was at that moment. At most one of the pointers is set; none is when there was no
// such item.
type RefusedLeg struct {
	Kind  LegKind
	Slot  SlotID // of a stock leg
	Shard Shard  // of a stock leg

	Hold        *Hold
	Reservation *Reservation
	StoredSlot  *Slot
	Stock       *Stock
	Event       *Event
	Idempotency *IdempotencyRecord
	Uniqueness  *Uniqueness
	Policy      *ScopePolicy
	Quota       *Quota
	Review      *Review
	Signal      *SignalWrite // its Max is the count that there is
}

// Refused is the error of a Commit whose conditions were not all true. Nothing was
// written. A refused condition is an answer, not a failure.
type Refused struct {
	Legs []RefusedLeg
	// Contended says that other legs met a running transaction, so the legs named here
	// may not be all, and may be out of date: read again before telling anybody.
	Contended bool
}

func (r *Refused) Error() string {
	kinds := make([]string, len(r.Legs))
	for i, leg := range r.Legs {
		kinds[i] = string(leg.Kind)
	}
	return fmt.Sprintf("change refused by its conditions on: %s", strings.Join(kinds, ", "))
}

// IdempotencyRecord returns the record that refused the change, if that is what did.
func (r *Refused) IdempotencyRecord() (IdempotencyRecord, bool) {
	for _, leg := range r.Legs {
		if leg.Kind == LegIdempotency && leg.Idempotency != nil {
			return *leg.Idempotency, true
		}
	}
	return IdempotencyRecord{}, false
}

// LegsOf returns the refused legs of one kind.
func (r *Refused) LegsOf(kind LegKind) []RefusedLeg {
	var out []RefusedLeg
	for _, leg := range r.Legs {
		if leg.Kind == kind {
			out = append(out, leg)
		}
	}
	return out
}
