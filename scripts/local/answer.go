package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"holdfast/scripts/internal/localrun"
)

// object is a JSON object as it is sent.
type object map[string]any

// wanted is a line of a hold as a buyer asks for it.
type wanted struct {
	Slot       string `json:"slot_id"`
	Quantity   int64  `json:"quantity"`
	UnitAmount int64  `json:"unit_amount"`
}

// mustEncode writes values of our own, which can always be written.
func mustEncode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// read reads the answer into out, unless that is nil. An answer with another status is an
// error; failure is why there is none.
func read(answer localrun.Answer, failure error, status int, out any) error {
	switch {
	case failure != nil:
		return failure
	case answer.Status != status:
		return fmt.Errorf("answer %d %s, expected %d", answer.Status, answer.Body, status)
	case out == nil:
		return nil
	}
	return answer.Decode(out)
}

// call makes a request and reads its answer as read does.
func (s *story) call(ctx context.Context, caller *localrun.Caller, method, path string, body object, status int, out any) error {
	request := localrun.Request{Method: method, Path: path}
	if body != nil {
		request.Body = mustEncode(body)
	}
	if method == http.MethodPost || method == http.MethodPatch {
		request.Key = s.key()
	}
	answer, err := caller.Do(ctx, request)
	if err := read(answer, err, status, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// put defines a slot or a policy.
func (s *story) put(ctx context.Context, path string, body object) error {
	return s.call(ctx, s.catalog, http.MethodPut, path, body, http.StatusCreated, nil)
}

// hold asks for a hold of lines and expects the status.
func (s *story) hold(ctx context.Context, b buyer, lines []wanted, status int, out any) error {
	return s.call(ctx, b.caller, http.MethodPost, "/v1/holds", object{"lines": lines}, status, out)
}

// problemAnswer is the part of a refusal that the stories look at.
type problemAnswer struct {
	Code  string `json:"code"`
	Slots []struct {
		Slot string `json:"slot_id"`
	} `json:"slots"`
	Alternatives []struct {
		Slot string `json:"slot_id"`
	} `json:"alternatives"`
}

// shortSlots are the slots that a refusal names as short.
func (p problemAnswer) shortSlots() []string {
	var out []string
	for _, slot := range p.Slots {
		out = append(out, slot.Slot)
	}
	return out
}

// expectCode returns an error unless the refusal has that code.
func (p problemAnswer) expectCode(code string) error {
	if p.Code != code {
		return fmt.Errorf("refused with %q, expected %q", p.Code, code)
	}
	return nil
}

// availabilityAnswer is the part of a search's answer that the stories look at.
type availabilityAnswer struct {
	Slots []struct {
		Slot       string `json:"slot_id"`
		Remaining  int64  `json:"remaining_hint"`
		UnitAmount int64  `json:"unit_amount"`
	} `json:"slots"`
	Groups [][]string `json:"groups"`
}

// lines are one unit of each slot of a group, at the price that was shown.
func (a availabilityAnswer) lines(group []string) []wanted {
	var out []wanted
	for _, slot := range a.Slots {
		if slices.Contains(group, slot.Slot) {
			out = append(out, wanted{slot.Slot, 1, slot.UnitAmount})
		}
	}
	return out
}

// search looks for groups of slots, and returns an error if there is none.
func (s *story) search(ctx context.Context, query string) (availabilityAnswer, error) {
	var found availabilityAnswer
	err := s.call(ctx, s.catalog, http.MethodGet, "/v1/availability?"+query, nil, http.StatusOK, &found)
	if err == nil && len(found.Groups) == 0 {
		err = fmt.Errorf("nothing fits %s", query)
	}
	return found, err
}

// slotNumbers is the part of a slot's answer that the story looks at.
type slotNumbers struct {
	Capacity  int64 `json:"capacity"`
	Available int64 `json:"available"`
	Held      int64 `json:"held"`
	Confirmed int64 `json:"confirmed"`
}

// holdAnswer is the part of a hold's answer that the story looks at.
type holdAnswer struct {
	HoldID string `json:"hold_id"`
	Status string `json:"status"`
}

func readHold(answer localrun.Answer, failure error, status int) (holdAnswer, error) {
	var hold holdAnswer
	err := read(answer, failure, status, &hold)
	return hold, err
}

// numbers are those of the slot now.
func (s *story) numbers(ctx context.Context, slot string) (slotNumbers, error) {
	var numbers slotNumbers
	err := s.call(ctx, s.catalog, http.MethodGet, "/v1/slots/"+slot, nil, http.StatusOK, &numbers)
	return numbers, err
}

// expectSlot returns an error unless the slot has these numbers.
func (s *story) expectSlot(ctx context.Context, slot string, want slotNumbers) error {
	got, err := s.numbers(ctx, slot)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("slot %s is at %+v, the story says %+v", slot, got, want)
	}
	return nil
}

// reservationAnswer is the part of a reservation's answer that the story looks at.
type reservationAnswer struct {
	ReservationID string `json:"reservation_id"`
	Status        string `json:"status"`
	Message       string `json:"message"`
	ClientSecret  string `json:"client_secret"`
}

func readReservation(answer localrun.Answer, failure error, status int) (reservationAnswer, error) {
	var reservation reservationAnswer
	err := read(answer, failure, status, &reservation)
	return reservation, err
}
