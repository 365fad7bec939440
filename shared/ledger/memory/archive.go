package memory

import "holdfast/shared/ledger"

// marked reports whether an earlier try of the archive marks of c was applied.
func (s *Store) marked(c ledger.Change) bool {
	for _, m := range c.Archives {
		in := s.holds[m.Hold].ArchivedIn
		if m.Reservation != "" {
			in = s.reservations[m.Reservation].ArchivedIn
		}
		if in != m.Batch {
			return false
		}
	}
	return len(c.Archives) > 0
}

func (s *Store) refusedArchives(c ledger.Change) []ledger.RefusedLeg {
	var legs []ledger.RefusedLeg
	for _, m := range c.Archives {
		if m.Hold != "" {
			if stored, exists := s.holds[m.Hold]; !exists || stored.Version != m.Version || stored.ArchivedIn != "" {
				legs = append(legs, s.holdLeg(m.Hold))
			}
			continue
		}
		stored, exists := s.reservations[m.Reservation]
		if !exists || stored.Version != m.Version || stored.ArchivedIn != "" || !stored.LookAt.IsZero() {
			legs = append(legs, s.reservationLeg(m.Reservation))
		}
	}
	for _, r := range c.AtRest {
		stored := s.reservations[r.ID]
		if stored.Version != r.Version || stored.Status != r.Status || !stored.LookAt.IsZero() ||
			stored.ArchivedIn != "" || stored.HoldsArchived != r.HoldsArchived {
			legs = append(legs, s.reservationLeg(r.ID))
		}
	}
	if c.Lease != nil { // this store has no leases, so nobody has one
		legs = append(legs, ledger.RefusedLeg{Kind: ledger.LegLease})
	}
	return legs
}

func (s *Store) applyArchives(c ledger.Change) {
	for _, m := range c.Archives {
		if m.Hold != "" {
			hold := s.holds[m.Hold]
			hold.ArchivedIn = m.Batch
			s.holds[m.Hold] = hold
			continue
		}
		reservation := s.reservations[m.Reservation]
		reservation.ArchivedIn = m.Batch
		s.reservations[m.Reservation] = reservation
	}
	for _, r := range c.AtRest {
		stored := s.reservations[r.ID]
		stored.HoldsArchived++
		s.reservations[r.ID] = stored
	}
}

// holdLeg is the refusal by a hold as it is, or by its absence.
func (s *Store) holdLeg(id ledger.HoldID) ledger.RefusedLeg {
	leg := ledger.RefusedLeg{Kind: ledger.LegHold}
	if stored, exists := s.holds[id]; exists {
		stored = cloneHold(stored)
		leg.Hold = &stored
	}
	return leg
}

// reservationLeg is the refusal by a reservation as it is, or by its absence.
func (s *Store) reservationLeg(id ledger.ReservationID) ledger.RefusedLeg {
	leg := ledger.RefusedLeg{Kind: ledger.LegReservation}
	if stored, exists := s.reservations[id]; exists {
		stored = stored.Clone()
		leg.Reservation = &stored
	}
	return leg
}
