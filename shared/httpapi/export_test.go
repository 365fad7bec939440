package httpapi

import (
	"time"

	"holdfast/shared/ledger"
)

// The limits that tests go up to.
const (
	GroupReadSlots      = groupReadSlots
	GroupSlotsLookedMax = groupSlotsLookedMax
	AlternativesLooked  = alternativesLooked
	TallyEvery          = tallyEvery
)

func offeredAll(slots []ledger.Slot) []offeredSlot {
	out := make([]offeredSlot, len(slots))
	for i, slot := range slots {
		out[i] = offeredSlot{Slot: slot}
	}
	return out
}

func idsOf(groups [][]offeredSlot) [][]ledger.SlotID {
	var out [][]ledger.SlotID
	for _, group := range groups {
		var ids []ledger.SlotID
		for _, slot := range group {
			ids = append(ids, slot.ID)
		}
		out = append(out, ids)
	}
	return out
}

// Stays are the stays that begin with firsts and go on with slots.
func Stays(nights int, firsts, slots []ledger.Slot) [][]ledger.SlotID {
	p := newStayPlan(nights, offeredAll(firsts))
	p.add(offeredAll(slots))
	return idsOf(p.stays())
}

// StayNeeds says which starts could go on with the stays that begin with firsts.
func StayNeeds(nights int, firsts, slots []ledger.Slot) (first, last, ahead time.Time) {
	p := newStayPlan(nights, offeredAll(firsts))
	p.add(offeredAll(slots))
	return p.needs()
}

// SeatsSideBySide are the groups of n seats among the slots.
func SeatsSideBySide(slots []ledger.Slot, n int) [][]ledger.SlotID {
	return idsOf(seatsSideBySide(offeredAll(slots), n))
}

// ReadCache is a cache of numbers by text.
type ReadCache = readCache[string, int]

// NewReadCache returns a cache of so many entries at the most.
func NewReadCache(entriesMax int) *ReadCache { return newReadCache[string, int](entriesMax) }

// Get is what was read under the key, when, and whether it may be used at now.
func (c *readCache[K, V]) Get(key K, now time.Time) (V, time.Time, bool) {
	e, fresh := c.get(key, now)
	return e.value, e.at, fresh
}

// Put keeps what was read at that time.
func (c *readCache[K, V]) Put(key K, value V, at time.Time) { c.put(key, value, at) }
