package ledger

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// ActorAudit is the actor of what the audit opens and puts right by itself.
const ActorAudit Actor = "system:audit"

// StockRepair sets the counters and the terms of one stock item to what the rest of the
// ledger says. It moves nothing: the events have told the truth all along, and the item has
// not kept to it. So no event may have movements of it.
type StockRepair struct {
	Slot  SlotID
	Shard Shard
	// Replaces is the version of the item that was found to be wrong. A step in between
	// makes the repair void.
	Replaces Version
	Counters Counters
	Terms    Terms
}

// RepairStock puts stock items of a slot right. The slot takes a step, so that the repair
// has its event and its place in the slot's story.
func RepairStock(slot Slot, repairs []StockRepair, origin Origin, now time.Time) Change {
	next := slot
	next.Version, next.UpdatedAt = slot.Version+1, now
	return Change{
		At: now, Slots: []SlotWrite{{Next: next, Replaces: slot.Version}}, StockRepairs: repairs,
		Events: []Event{slotEvent(EventAuditRepaired, next, origin, now)},
	}
}

// RepairHold writes a hold as it is: into the lists of the due index where it belongs, and
// without a time to live that it may not have. The hold takes a step.
func RepairHold(h Hold, origin Origin, now time.Time) Change {
	next := h
	next.Version++
	return Change{
		At: now, Holds: []HoldWrite{{Next: next, Replaces: h.Version, From: h.Status}},
		Events: []Event{holdEvent(EventAuditRepaired, next, origin, nil, now)},
	}
}

// RepairReservation writes a reservation as it is, as RepairHold does. One that has
// something left to do is looked at now.
func RepairReservation(r Reservation, origin Origin, now time.Time) Change {
	next := r.Clone()
	next.Version, next.UpdatedAt = r.Version+1, now
	if !r.AtRest() && r.Status != ReservationReview {
		next.LookAt = now
	}
	return Change{
		At: now, Reservations: []ReservationWrite{{Next: next, Replaces: r.Version, From: r.Status}},
		Events: []Event{{
			ID: origin.EventID, Type: EventAuditRepaired, Version: next.Version, OccurredAt: now, Origin: origin, Reservation: &next,
		}},
	}
}

// RepairQuota sets counts of an owner to what the owner's holds say. Each must still be as
// it was found. An owner has no events, so the case of the finding, which this decides, tells
// the story; stored is its record, zero for none. The Change is empty if no count differs.
func RepairQuota(found Quota, want map[QuotaKey]Units, stored, finding Review, origin Origin, now time.Time) Change {
	write := QuotaWrite{Owner: found.Owner}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		was := found.Counts[key]
		if was != want[key] {
			write.Deltas = append(write.Deltas, QuotaDelta{Key: key, Units: want[key] - was, Was: &was})
		}
	}
	if len(write.Deltas) == 0 {
		return Change{}
	}
	finding.Evidence = Shorten(finding.Evidence, EvidenceCharactersMax)
	finding.Status, finding.Decision, finding.DecidedBy, finding.DecidedAt = ReviewDecided, DecisionRepaired, origin.Actor, now
	finding.Why = origin.Why
	c := reviewStep(stored, finding, EventAuditRepaired, origin, now)
	c.Quotas = []QuotaWrite{write}
	return c
}

// validateRepairs returns an error for a repair that would break a promise, or that nobody
// would hear of.
func (c Change) validateRepairs() error {
	for _, r := range c.StockRepairs {
		if err := r.Counters.Check(); err != nil {
			return fmt.Errorf("change: repaired stock of %s: %w", r.Slot, err)
		}
		if r.Replaces < 1 {
			return errors.New("change: a repair of stock that does not exist")
		}
		if !slices.ContainsFunc(c.Events, func(e Event) bool { return e.Type == EventAuditRepaired && e.Slot != nil && e.Slot.ID == r.Slot }) {
			return fmt.Errorf("change: stock of %s is repaired without its event", r.Slot)
		}
	}
	return nil
}
