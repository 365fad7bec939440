package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	hotelNights  = 7
	hotelRooms   = 2
	hotelPrice   = 12000
	hotelWeekend = 15000
	stayNights   = 3
	groupRooms   = hotelRooms
)

// hotel tells of a stay: each night is a slot, and a stay is all of its nights or none.
func (s *story) hotel(ctx context.Context) error {
	first := time.Date(2027, time.July, 1, 15, 0, 0, 0, time.UTC)
	if err := s.openHotel(ctx, first); err != nil {
		return err
	}
	query := fmt.Sprintf("resource_type=hotel&resource_id=seaside-double&from=%s&to=%s&nights=%d",
		first.Format(time.RFC3339), first.AddDate(0, 0, hotelNights).Format(time.RFC3339), stayNights)
	found, err := s.search(ctx, query)
	if err != nil {
		return err
	}
	stay := found.Groups[0]
	s.say("%d stays of %d nights are free; the first is %s", len(found.Groups), stayNights, strings.Join(stay, ", "))

	nora, err := s.buyer("nora")
	if err != nil {
		return err
	}
	var hold holdAnswer
	lines := found.lines(stay)
	if err := s.hold(ctx, nora, lines, http.StatusCreated, &hold); err != nil {
		return err
	}
	longer := slices.Concat(lines, []wanted{{hotelNight(first, stayNights), 1, hotelNightPrice(first, stayNights)}})
	if err := s.call(ctx, nora.caller, http.MethodPatch, "/v1/holds/"+hold.HoldID, object{"lines": longer}, http.StatusOK, &hold); err != nil {
		return err
	}
	s.say("nora holds %d nights, and makes them %d in the same hold", stayNights, len(longer))
	if err := s.groupIsRefused(ctx, lines); err != nil {
		return err
	}
	return s.nightGivenBack(ctx, nora, hold, hotelNight(first, stayNights))
}

// openHotel says once for the hotel what all of its nights have in common, and defines them.
func (s *story) openHotel(ctx context.Context, first time.Time) error {
	policy := object{"hold_seconds": 900, "grace_seconds": 120, "cancel_until_seconds": 86400, "quantity_max_per_hold": 4}
	if err := s.put(ctx, "/v1/policies/hotel", policy); err != nil {
		return err
	}
	for n := range hotelNights {
		starts := first.AddDate(0, 0, n)
		err := s.put(ctx, "/v1/slots/"+hotelNight(first, n), object{
			"resource_type": "hotel", "resource_id": "seaside-double", "capacity": hotelRooms, "open": true,
			"starts_at": starts, "ends_at": starts.AddDate(0, 0, 1),
			"unit_amount": hotelNightPrice(first, n), "currency": demoCurrency,
		})
		if err != nil {
			return err
		}
	}
	s.say("the hotel has %d rooms for %d nights; hold, grace and cancellation are said once, for all hotels", hotelRooms, hotelNights)
	return nil
}

func hotelNight(first time.Time, n int) string {
	return "seaside-double-" + first.AddDate(0, 0, n).Format(time.DateOnly)
}

func hotelNightPrice(first time.Time, n int) int64 {
	if day := first.AddDate(0, 0, n).Weekday(); day == time.Friday || day == time.Saturday {
		return hotelWeekend
	}
	return hotelPrice
}

// groupIsRefused: a group wants more rooms than are left for the same nights, and takes
// nothing at all.
func (s *story) groupIsRefused(ctx context.Context, lines []wanted) error {
	group, err := s.buyer("group")
	if err != nil {
		return err
	}
	more := make([]wanted, len(lines))
	for i, line := range lines {
		line.Quantity = groupRooms
		more[i] = line
	}
	more = append(more, wanted{"seaside-double-2027-07-06", groupRooms, hotelPrice})
	var refused problemAnswer
	if err := s.hold(ctx, group, more, http.StatusConflict, &refused); err != nil {
		return err
	}
	if err := refused.expectCode("insufficient_stock"); err != nil {
		return err
	}
	s.say("a group wants %d rooms: refused, because %s are short; the night that was free stays free", groupRooms, strings.Join(refused.shortSlots(), ", "))
	return s.expectSlot(ctx, "seaside-double-2027-07-06", slotNumbers{Capacity: hotelRooms, Available: hotelRooms})
}

// nightGivenBack: the stay is paid, and its last night is given back, with its money.
func (s *story) nightGivenBack(ctx context.Context, b buyer, hold holdAnswer, night string) error {
	paid, err := s.pay(ctx, b, hold)
	if err != nil {
		return err
	}
	back := object{"lines": []object{{"slot_id": night, "quantity": 1}}}
	if err := s.call(ctx, b.caller, http.MethodPost, "/v1/reservations/"+paid.ReservationID+"/cancel", back, http.StatusOK, nil); err != nil {
		return err
	}
	s.say("%s pays, and gives the night %s back: the room is free again, and the money is on its way", b.name, night)
	if err := s.refundsDone(ctx); err != nil {
		return err
	}
	return s.expectSlot(ctx, night, slotNumbers{Capacity: hotelRooms, Available: hotelRooms})
}

// refundsDone waits until no refund is owed any more.
func (s *story) refundsDone(ctx context.Context) error {
	return s.waitUntil(ctx, "nothing is owed", func() (bool, error) {
		report, err := s.system.Audit(ctx)
		return err == nil && report.Money[demoCurrency].Owed == 0, err
	})
}
