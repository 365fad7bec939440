package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"holdfast/scripts/internal/localrun"
	"holdfast/shared/topology"
)

// show is one example of what can be sold, told from a table of its own.
type show struct {
	name, about string
	of          func(s *story) telling
}

// telling tells a story to its end.
type telling func(ctx context.Context) error

// shows are the examples, in the order in which they are told.
func shows() []show {
	return []show{
		{"flights", "a day of real flights: the last seat, a hold that runs out, payments", func(s *story) telling { return s.flights }},
		{"hotel", "a stay of several nights, a longer stay, a night given back", func(s *story) telling { return s.hotel }},
		{"cinema", "seats side by side, two families who want the same, a limit for each customer", func(s *story) telling { return s.cinema }},
		{"basket", "a seat, a shirt, a coupon and points in one hold, all or nothing", func(s *story) telling { return s.basket }},
		{"drop", "a sale that opens, and more buyers than there are units", func(s *story) telling { return s.drop }},
	}
}

// showFlag is the flag -demo: alone it stands for the flights, and -demo=NAME for another.
type showFlag struct{ name string }

func (f *showFlag) String() string { return f.name }

// IsBoolFlag lets the flag stand alone.
func (f *showFlag) IsBoolFlag() bool { return true }

// Set chooses a show by its name.
func (f *showFlag) Set(value string) error {
	switch value {
	case "true":
		f.name = shows()[0].name
	case "false":
		f.name = ""
	default:
		if !slices.ContainsFunc(shows(), func(s show) bool { return s.name == value }) {
			return fmt.Errorf("there is no demo %q; there is %s", value, strings.Join(showNames(), ", "))
		}
		f.name = value
	}
	return nil
}

func showNames() []string {
	var names []string
	for _, s := range shows() {
		names = append(names, s.name)
	}
	return names
}

// showUsage says what the flag -demo takes.
func showUsage() string {
	var lines strings.Builder
	lines.WriteString("tell a story on data of its own, check the books, and end; -demo=NAME chooses it:")
	for _, s := range shows() {
		fmt.Fprintf(&lines, "\n%-8s %s", s.name, s.about)
	}
	return lines.String()
}

// runDemo tells the stories of these names on a system of its own, so that it never touches
// the user's data. It returns an error if anything is not as it must be.
func runDemo(ctx context.Context, out io.Writer, names ...string) (err error) {
	system, err := localrun.Start(ctx, localrun.Options{SweepEvery: demoSweepEvery, Progress: out})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, system.Close()) }()
	s := &story{system: system, out: out}
	if s.catalog, err = system.Caller("catalogue", topology.ScopeCatalog); err != nil {
		return err
	}
	if s.shop, err = system.Caller("shop", topology.ScopeConfirm); err != nil {
		return err
	}
	for _, one := range shows() {
		if !slices.Contains(names, one.name) {
			continue
		}
		if err := one.of(s)(ctx); err != nil {
			return fmt.Errorf("the demo %s: %w", one.name, err)
		}
	}
	if err := s.eventsArrive(ctx); err != nil {
		return err
	}
	return s.closeBooks(ctx)
}

// object is a JSON object as it is sent.
type object map[string]any

// wanted is a line of a hold as a buyer asks for it.
type wanted struct {
	Slot       string `json:"slot_id"`
	Quantity   int64  `json:"quantity"`
	UnitAmount int64  `json:"unit_amount"`
}

// call makes a request and reads its answer into out, unless that is nil. An answer with
// another status is an error.
func (s *story) call(ctx context.Context, caller *localrun.Caller, method, path string, body object, status int, out any) error {
	text := ""
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		text = string(encoded)
	}
	request := localrun.Request{Method: method, Path: path, Body: text}
	if method == http.MethodPost || method == http.MethodPatch {
		request.Key = s.key()
	}
	answer, err := caller.Do(ctx, request)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if answer.Status != status {
		return fmt.Errorf("%s %s: answer %d %s, expected %d", method, path, answer.Status, answer.Body, status)
	}
	if out == nil {
		return nil
	}
	return answer.Decode(out)
}

// put defines a slot or a policy.
func (s *story) put(ctx context.Context, path string, body object) error {
	return s.call(ctx, s.catalog, http.MethodPut, path, body, http.StatusCreated, nil)
}

// heldLines asks for a hold of lines and expects the status.
func (s *story) heldLines(ctx context.Context, b buyer, lines []wanted, status int, out any) error {
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

// expectSlot returns an error unless the slot has these numbers.
func (s *story) expectSlot(ctx context.Context, slot string, want slotNumbers) error {
	var have slotNumbers
	if err := s.call(ctx, s.catalog, http.MethodGet, "/v1/slots/"+slot, nil, http.StatusOK, &have); err != nil {
		return err
	}
	if have != want {
		return fmt.Errorf("slot %s has %+v, expected %+v", slot, have, want)
	}
	return nil
}

// pay lets the buyer pay for the hold, and waits until the reservation is COMPLETED.
func (s *story) pay(ctx context.Context, b buyer, hold holdAnswer) (reservationAnswer, error) {
	started, err := s.startPayment(ctx, b, hold)
	if err != nil {
		return started, err
	}
	if _, err := s.system.Payments.Bank().Pay(started.ClientSecret); err != nil {
		return started, err
	}
	return s.waitForReservation(ctx, b, started.ReservationID, "COMPLETED")
}
