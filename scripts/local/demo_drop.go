package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/scripts/internal/localrun"
)

const (
	dropSlot     = "sneaker-42"
	dropUnits    = 60
	dropShards   = 16
	dropBuyers   = 100
	dropAtOnce   = 25
	dropPrice    = 19900
	dropOpensFor = time.Hour
)

// drop tells of a sale that many wait for: it opens at its time, is spread over many shards,
// and sells exactly what there is.
func (s *story) drop(ctx context.Context) error {
	opens := time.Now().Add(dropOpensFor)
	err := s.put(ctx, "/v1/slots/"+dropSlot, object{
		"resource_type": "drop", "resource_id": "sneaker", "capacity": dropUnits, "open": true,
		"unit_amount": dropPrice, "currency": demoCurrency,
		"policy": object{"quantity_max_per_owner": 1, "hold_seconds": 120, "sale_from": opens, "sale_time_zone": "Asia/Seoul", "scarce": true},
	})
	if err != nil {
		return err
	}
	early, err := s.buyer("early-bird")
	if err != nil {
		return err
	}
	var refused problemAnswer
	if err := s.hold(ctx, early, []wanted{{dropSlot, 1, dropPrice}}, http.StatusConflict, &refused); err != nil {
		return err
	}
	if err := refused.expectCode("sale_not_open"); err != nil {
		return err
	}
	s.say("%d pairs; who comes before the sale opens is told when it does", dropUnits)
	open := object{"shards": dropShards, "policy": object{"inherit": []string{"sale_from"}}}
	if err := s.call(ctx, s.catalog, http.MethodPatch, "/v1/slots/"+dropSlot, open, http.StatusOK, nil); err != nil {
		return err
	}
	s.say("the operator opens it now, and spreads its stock over %d shards", dropShards)
	return s.rush(ctx)
}

// rush lets more buyers than there are pairs ask at once, after the functions have forgotten
// that the sale was not open.
func (s *story) rush(ctx context.Context) error {
	first, err := s.buyer("buyer-0")
	if err != nil {
		return err
	}
	body := mustEncode(object{"lines": []wanted{{dropSlot, 1, dropPrice}}})
	err = s.waitUntil(ctx, "the sale is open", func() (bool, error) {
		answer, err := first.caller.Do(ctx, localrun.Request{Method: http.MethodPost, Path: "/v1/holds", Key: s.key(), Body: body})
		return answer.Status == http.StatusCreated, err
	})
	if err != nil {
		return err
	}
	statuses := make([]int, dropBuyers)
	statuses[0] = http.StatusCreated
	var rushing errgroup.Group
	rushing.SetLimit(dropAtOnce)
	for i := 1; i < dropBuyers; i++ {
		b, err := s.buyer(fmt.Sprintf("buyer-%d", i))
		if err != nil {
			return err
		}
		key := s.key()
		rushing.Go(func() error {
			answer, err := b.caller.Do(ctx, localrun.Request{Method: http.MethodPost, Path: "/v1/holds", Key: key, Body: body})
			statuses[i] = answer.Status
			return err
		})
	}
	if err := rushing.Wait(); err != nil {
		return err
	}
	got, late := 0, 0
	for _, status := range statuses {
		switch status {
		case http.StatusCreated:
			got++
		case http.StatusConflict:
			late++
		}
	}
	s.say("%d buyers, %d at a time: %d × 201, %d × 409; each pair was promised once", dropBuyers, dropAtOnce, got, late)
	if got != dropUnits || late != dropBuyers-dropUnits {
		return fmt.Errorf("%d got a pair and %d came too late, expected %d and %d", got, late, dropUnits, dropBuyers-dropUnits)
	}
	return s.expectSlot(ctx, dropSlot, slotNumbers{Capacity: dropUnits, Held: dropUnits})
}
