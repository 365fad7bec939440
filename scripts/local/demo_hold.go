package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"holdfast/scripts/internal/localrun"
	"holdfast/scripts/local/flights"
	"holdfast/shared/topology"
)

// buyersOfLastSeat is how many want the last seat at once.
const buyersOfLastSeat = 40

// buyer is one owner of holds.
type buyer struct {
	name   string
	caller *localrun.Caller
}

func (s *story) buyer(name string) (buyer, error) {
	caller, err := s.system.Caller(name, topology.ScopeHolds)
	return buyer{name, caller}, err
}

// ask asks for seats of a flight.
func (b buyer) ask(ctx context.Context, key string, flight flights.Flight, seats int64) (localrun.Answer, error) {
	body := mustEncode(object{
		"slot_ids": []string{string(flight.SlotID)}, "quantity": seats, "quoted_price": flight.Terms.Price.AmountMinor,
	})
	return b.caller.Do(ctx, localrun.Request{Method: http.MethodPost, Path: "/v1/holds", Key: key, Body: body})
}

// mustHold asks for seats that are there.
func (s *story) mustHold(ctx context.Context, b buyer, flight flights.Flight, seats int64) (holdAnswer, error) {
	answer, err := b.ask(ctx, s.key(), flight, seats)
	return readHold(answer, err, http.StatusCreated)
}

// end confirms or cancels a hold.
func (s *story) end(ctx context.Context, caller *localrun.Caller, hold holdAnswer, verb string) (localrun.Answer, error) {
	return caller.Do(ctx, localrun.Request{Method: http.MethodPost, Path: "/v1/holds/" + hold.HoldID + "/" + verb, Key: s.key()})
}

// lastSeat sells all seats of a flight but one, lets a crowd race for the last one, and
// follows that seat until it is sold.
func (s *story) lastSeat(ctx context.Context, flight flights.Flight) error {
	early, err := s.buyer("early-buyer")
	if err != nil {
		return err
	}
	first, err := s.mustHold(ctx, early, flight, int64(flight.Capacity)-1)
	if err != nil {
		return fmt.Errorf("hold all seats but one: %w", err)
	}
	answer, err := s.end(ctx, s.shop, first, "confirm")
	if _, err := readHold(answer, err, http.StatusOK); err != nil {
		return fmt.Errorf("confirm the first hold: %w", err)
	}
	s.say("%s has %d seats; %d is sold", flight.SlotID, flight.Capacity, flight.Capacity-1)
	winner, key, err := s.race(ctx, flight)
	if err != nil {
		return err
	}
	again, err := winner.ask(ctx, key, flight, 1)
	hold, err := readHold(again, err, http.StatusCreated)
	if err != nil {
		return fmt.Errorf("ask again: %w", err)
	}
	if again.Header.Get("Idempotent-Replayed") != "true" {
		return fmt.Errorf("the same request with the same key was not answered as a repeated one: %s", again.Body)
	}
	s.say("%s asks again with the same key: the same hold %s, and no second seat", winner.name, hold.HoldID)
	answer, err = s.end(ctx, winner.caller, hold, "cancel")
	if _, err := readHold(answer, err, http.StatusOK); err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	late, err := s.buyer("late-buyer")
	if err != nil {
		return err
	}
	second, err := s.mustHold(ctx, late, flight, 1)
	if err != nil {
		return fmt.Errorf("hold the seat again: %w", err)
	}
	answer, err = s.end(ctx, s.shop, second, "confirm")
	if _, err := readHold(answer, err, http.StatusOK); err != nil {
		return fmt.Errorf("confirm the last seat: %w", err)
	}
	s.say("%s cancels; %s holds the seat and pays; the shop confirms it", winner.name, late.name)
	return s.expectSlot(ctx, string(flight.SlotID), slotNumbers{Capacity: int64(flight.Capacity), Confirmed: int64(flight.Capacity)})
}

// race lets many buyers want the last seat at the same moment, and returns the one who got
// it, with the key of that request.
func (s *story) race(ctx context.Context, flight flights.Flight) (winner buyer, key string, err error) {
	buyers := make([]buyer, buyersOfLastSeat)
	keys := make([]string, buyersOfLastSeat)
	for i := range buyers {
		if buyers[i], err = s.buyer(fmt.Sprintf("buyer-%d", i+1)); err != nil {
			return buyer{}, "", err
		}
		keys[i] = s.key()
	}
	answers := make([]localrun.Answer, len(buyers))
	failures := make([]error, len(buyers))
	start := make(chan struct{})
	var racing sync.WaitGroup
	for i := range buyers {
		racing.Go(func() {
			<-start
			answers[i], failures[i] = buyers[i].ask(ctx, keys[i], flight, 1)
		})
	}
	close(start)
	racing.Wait()
	outcomes := make(map[string]int)
	for i, answer := range answers {
		if failures[i] != nil {
			return buyer{}, "", fmt.Errorf("the race for the last seat: %w", failures[i])
		}
		outcomes[strings.TrimSpace(fmt.Sprintf("%d %s", answer.Status, answer.ProblemCode()))]++
		if answer.Status == http.StatusCreated {
			winner, key = buyers[i], keys[i]
		}
	}
	s.say("%d buyers want the last seat at the same moment: %s", len(buyers), counted(outcomes))
	if outcomes["201"] != 1 || outcomes["409 insufficient_stock"] != len(buyers)-1 {
		return buyer{}, "", fmt.Errorf("the last seat must be held exactly once, and refused with insufficient_stock to all others")
	}
	return winner, key, nil
}

// leftToExpire lets holds run out and shows that they end, with nobody's help, and that the
// seats can be sold again. The flight has no grace from here on: see paidTooLate.
func (s *story) leftToExpire(ctx context.Context, flight flights.Flight) error {
	const holdSeconds, holds = 2, 2
	short := object{"policy": object{"hold_seconds": holdSeconds, "grace_seconds": 0}}
	if err := s.call(ctx, s.catalog, http.MethodPatch, slotPath(flight), short, http.StatusOK, nil); err != nil {
		return fmt.Errorf("shorten the holds of %s: %w", flight.SlotID, err)
	}
	undecided, err := s.buyer("undecided-buyer")
	if err != nil {
		return err
	}
	var last holdAnswer
	left := int64(flight.Capacity)
	for n := range int64(holds) {
		seats := left / (holds - n)
		if last, err = s.mustHold(ctx, undecided, flight, seats); err != nil {
			return fmt.Errorf("hold all seats: %w", err)
		}
		left -= seats
	}
	s.say("%s has %d seats; %s holds all of them, in %d holds of %d seconds, and does not pay",
		flight.SlotID, flight.Capacity, undecided.name, holds, holdSeconds)
	err = s.waitUntil(ctx, "the holds are over", func() (bool, error) {
		answer, err := undecided.caller.Do(ctx, localrun.Request{Method: http.MethodGet, Path: "/v1/holds/" + last.HoldID})
		hold, err := readHold(answer, err, http.StatusOK)
		return hold.Status == "EXPIRED", err
	})
	if err != nil {
		return err
	}
	answer, err := s.end(ctx, s.shop, last, "confirm")
	if err != nil {
		return err
	}
	if answer.Status != http.StatusConflict || answer.ProblemCode() != "hold_not_active" {
		return fmt.Errorf("a confirm after the release time was answered with %d %s", answer.Status, answer.Body)
	}
	s.say("the shop confirms too late: %d %s", answer.Status, answer.ProblemCode())
	err = s.waitUntil(ctx, "the seats are given back", func() (bool, error) {
		numbers, err := s.numbers(ctx, string(flight.SlotID))
		return numbers.Available == numbers.Capacity, err
	})
	if err != nil {
		return err
	}
	s.say("all %d seats are given back", flight.Capacity)
	late, err := s.buyer("late-buyer")
	if err != nil {
		return err
	}
	sold, err := s.mustHold(ctx, late, flight, 1)
	if err != nil {
		return fmt.Errorf("hold an expired seat again: %w", err)
	}
	answer, err = s.end(ctx, s.shop, sold, "confirm")
	if _, err := readHold(answer, err, http.StatusOK); err != nil {
		return fmt.Errorf("sell an expired seat again: %w", err)
	}
	s.say("one of them is sold again, to %s", late.name)
	return s.expectSlot(ctx, string(flight.SlotID), slotNumbers{Capacity: int64(flight.Capacity), Available: int64(flight.Capacity) - 1, Confirmed: 1})
}
