package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

const (
	seatSlot   = "concert-2027-05-20:B12"
	shirtSlot  = "shirt:L:black"
	couponSlot = "coupon:spring"
	pointsSlot = "points:mia"

	shirtPrice  = 2500
	seatPrice   = 8000
	miasPoints  = 3000
	pointsSpent = 500
)

// basket tells of things of different kinds in one hold: a seat, an option of a product, a
// coupon and points.
func (s *story) basket(ctx context.Context) error {
	if err := s.openShop(ctx); err != nil {
		return err
	}
	mia, err := s.buyer("mia")
	if err != nil {
		return err
	}
	lines := []wanted{{seatSlot, 1, seatPrice}, {shirtSlot, 1, shirtPrice}, {couponSlot, 1, 0}, {pointsSlot, pointsSpent, 0}}
	var hold struct {
		holdAnswer
		HoldSeconds  int64 `json:"hold_seconds"`
		GraceSeconds int64 `json:"grace_seconds"`
	}
	if err := s.hold(ctx, mia, lines, http.StatusCreated, &hold); err != nil {
		return err
	}
	s.say("mia holds a seat, a shirt, a coupon and %d points in one hold: it lives %d s with %d s of grace, the shortest of the four",
		pointsSpent, hold.HoldSeconds, hold.GraceSeconds)
	if err := s.basketIsRefused(ctx); err != nil {
		return err
	}
	done, err := s.pay(ctx, mia, hold.holdAnswer)
	if err != nil {
		return err
	}
	s.say("mia pays: %s", done.Message)
	if err := s.expectSlot(ctx, pointsSlot, slotNumbers{Capacity: miasPoints, Available: miasPoints - pointsSpent, Confirmed: pointsSpent}); err != nil {
		return err
	}
	var refused problemAnswer
	if err := s.hold(ctx, mia, []wanted{{couponSlot, 1, 0}}, http.StatusTooManyRequests, &refused); err != nil {
		return err
	}
	s.say("mia wants the coupon once more: refused, one for each customer")
	return refused.expectCode("limit_reached")
}

// openShop defines what the basket has. The shirt has a slot for each combination of its
// options: one may be sold out while the others are not.
func (s *story) openShop(ctx context.Context) error {
	slots := []struct {
		id   string
		body object
	}{
		{seatSlot, object{"resource_type": "concert", "resource_id": "concert-2027-05-20", "capacity": 1, "unit_amount": seatPrice, "policy": object{"hold_seconds": 300, "grace_seconds": 60}}},
		{shirtSlot, object{"resource_type": "product", "resource_id": "shirt", "capacity": 1, "unit_amount": shirtPrice, "attributes": object{"size": "L", "color": "black"}}},
		{"shirt:M:black", object{"resource_type": "product", "resource_id": "shirt", "capacity": 20, "unit_amount": shirtPrice, "attributes": object{"size": "M", "color": "black"}}},
		{couponSlot, object{"resource_type": "coupon", "resource_id": "spring", "capacity": 100, "unit_amount": 0, "policy": object{"quantity_max_per_owner": 1, "grace_seconds": 30}}},
		{pointsSlot, object{"resource_type": "points", "resource_id": "mia", "capacity": miasPoints, "unit_amount": 0}},
	}
	for _, slot := range slots {
		slot.body["open"], slot.body["currency"] = true, demoCurrency
		if err := s.put(ctx, "/v1/slots/"+slot.id, slot.body); err != nil {
			return err
		}
	}
	return nil
}

// basketIsRefused: what is short in one line keeps all lines from being taken, and another
// size of the same shirt is proposed.
func (s *story) basketIsRefused(ctx context.Context) error {
	leo, err := s.buyer("leo")
	if err != nil {
		return err
	}
	var refused problemAnswer
	if err := s.hold(ctx, leo, []wanted{{shirtSlot, 1, shirtPrice}, {couponSlot, 1, 0}}, http.StatusConflict, &refused); err != nil {
		return err
	}
	if err := refused.expectCode("insufficient_stock"); err != nil {
		return err
	}
	var instead []string
	for _, other := range refused.Alternatives {
		instead = append(instead, other.Slot)
	}
	if len(instead) == 0 {
		return errors.New("no other size was proposed")
	}
	s.say("leo wants the same shirt with a coupon: refused as a whole; %s is proposed, and his coupon is not touched", strings.Join(instead, ", "))
	return s.expectSlot(ctx, couponSlot, slotNumbers{Capacity: 100, Available: 99, Held: 1})
}
