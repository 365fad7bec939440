package memory

import (
	"bytes"
	"maps"
	"slices"

	"holdfast/shared/ledger"
)

func cloneHold(h ledger.Hold) ledger.Hold {
	h.Lines, h.CountsIn = slices.Clone(h.Lines), slices.Clone(h.CountsIn)
	for i := range h.Lines {
		h.Lines[i].Shards = slices.Clone(h.Lines[i].Shards)
		h.Lines[i].Returned = slices.Clone(h.Lines[i].Returned)
		h.Lines[i].CountsIn = slices.Clone(h.Lines[i].CountsIn)
	}
	return h
}

func cloneSlot(s ledger.Slot) ledger.Slot {
	s.Attributes = maps.Clone(s.Attributes)
	return s
}

func cloneEvent(e ledger.Event) ledger.Event {
	if e.Hold != nil {
		hold := cloneHold(*e.Hold)
		e.Hold = &hold
	}
	if e.Reservation != nil {
		reservation := e.Reservation.Clone()
		e.Reservation = &reservation
	}
	if e.Slot != nil {
		slot := cloneSlot(*e.Slot)
		e.Slot = &slot
	}
	if e.Policy != nil {
		policy := *e.Policy
		e.Policy = &policy
	}
	if e.Review != nil {
		review := *e.Review
		e.Review = &review
	}
	e.Movements = slices.Clone(e.Movements)
	return e
}

func cloneRecord(r ledger.IdempotencyRecord) ledger.IdempotencyRecord {
	r.Response.Body = bytes.Clone(r.Response.Body)
	return r
}
