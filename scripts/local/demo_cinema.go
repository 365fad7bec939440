package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"holdfast/scripts/internal/localrun"
)

const (
	cinemaRows        = 2
	cinemaSeats       = 8
	cinemaPrice       = 1400
	cinemaFamily      = 3
	cinemaPerCustomer = 4
)

// cinema tells of seats side by side: each seat is a slot with one unit.
func (s *story) cinema(ctx context.Context) error {
	if err := s.openCinema(ctx); err != nil {
		return err
	}
	query := fmt.Sprintf("resource_type=cinema&resource_id=hall-7-evening&adjacent=%d", cinemaFamily)
	found, err := s.search(ctx, query)
	if err != nil {
		return err
	}
	wants := found.Groups[0]
	s.say("%d places for %d side by side are free; two families want %s", len(found.Groups), cinemaFamily, strings.Join(wants, ", "))
	winner, hold, err := s.familiesRace(ctx, found.lines(wants))
	if err != nil {
		return err
	}
	if err := s.limitReached(ctx, winner, wants); err != nil {
		return err
	}
	if err := s.call(ctx, winner.caller, http.MethodPost, "/v1/holds/"+hold.HoldID+"/extend", nil, http.StatusOK, &hold); err != nil {
		return err
	}
	done, err := s.pay(ctx, winner, hold)
	if err != nil {
		return err
	}
	s.say("%s takes a little longer, extends the hold and pays: %s", winner.name, done.Message)
	return nil
}

func (s *story) openCinema(ctx context.Context) error {
	policy := object{"hold_seconds": 300, "hold_max_seconds": 900, "quantity_max_per_owner_of_resource": cinemaPerCustomer}
	if err := s.put(ctx, "/v1/policies/cinema", policy); err != nil {
		return err
	}
	starts := time.Date(2027, time.March, 5, 19, 30, 0, 0, time.UTC)
	for row := range cinemaRows {
		for seat := range cinemaSeats {
			err := s.put(ctx, fmt.Sprintf("/v1/slots/hall-7-evening:%c%d", 'A'+row, seat+1), object{
				"resource_type": "cinema", "resource_id": "hall-7-evening", "capacity": 1, "open": true, "starts_at": starts,
				"unit_amount": cinemaPrice, "currency": demoCurrency,
				"attributes": object{"row": string(rune('A' + row)), "seat": fmt.Sprint(seat + 1)},
			})
			if err != nil {
				return err
			}
		}
	}
	s.say("hall 7 has %d rows of %d seats, and a customer may have %d of them", cinemaRows, cinemaSeats, cinemaPerCustomer)
	return nil
}

// familiesRace lets two families want the same seats at the same moment. One gets all of
// them, the other none, and takes what is proposed instead.
func (s *story) familiesRace(ctx context.Context, lines []wanted) (buyer, holdAnswer, error) {
	var families [2]buyer
	var answers [2]localrun.Answer
	var failures [2]error
	for i, name := range []string{"the Parks", "the Moors"} {
		var err error
		if families[i], err = s.buyer(name); err != nil {
			return buyer{}, holdAnswer{}, err
		}
	}
	body := mustEncode(object{"lines": lines})
	keys := []string{s.key(), s.key()}
	var racing sync.WaitGroup
	for i := range families {
		racing.Go(func() {
			answers[i], failures[i] = families[i].caller.Do(ctx, localrun.Request{Method: http.MethodPost, Path: "/v1/holds", Key: keys[i], Body: body})
		})
	}
	racing.Wait()
	first := 0
	if answers[1].Status == http.StatusCreated {
		first = 1
	}
	hold, err := readHold(answers[first], failures[first], http.StatusCreated)
	if err != nil {
		return buyer{}, hold, err
	}
	var refused problemAnswer
	if err := read(answers[1-first], failures[1-first], http.StatusConflict, &refused); err != nil {
		return buyer{}, hold, fmt.Errorf("the other family: %w", err)
	}
	s.say("%s get all %d seats; %s get none of them, and are told of %d others", families[first].name, len(lines), families[1-first].name, len(refused.Alternatives))
	return families[first], hold, refused.expectCode("insufficient_stock")
}

// limitReached: a customer who has three seats may have one more, and not two.
func (s *story) limitReached(ctx context.Context, b buyer, taken []string) error {
	var lines []wanted
	for seat := 1; len(lines) < cinemaPerCustomer-len(taken)+1; seat++ {
		lines = append(lines, wanted{fmt.Sprintf("hall-7-evening:B%d", seat), 1, cinemaPrice})
	}
	var refused problemAnswer
	if err := s.hold(ctx, b, lines, http.StatusTooManyRequests, &refused); err != nil {
		return err
	}
	s.say("%s want %d more seats: refused, because a customer may have %d", b.name, len(lines), cinemaPerCustomer)
	return refused.expectCode("limit_reached")
}
