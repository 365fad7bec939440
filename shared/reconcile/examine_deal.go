package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast/shared/ledger"
)

// dealThingsMax bounds what belongs together: a reservation, the hold that was paid, the one
// that a late payment made, and what wrong links add to them.
const dealThingsMax = 8

// deal is a hold or a reservation with all that it must agree with.
type deal struct {
	tally *Tally
	// states are how each of them was: its version, and what changes beside it.
	states map[string]string
}

// lookAtDeal reads a hold or a reservation, with all that it must agree with, twice. If all
// are alike in both reads, then they were like that together in between, and the events of
// the second read are all of theirs.
func (x *examination) lookAtDeal(ctx context.Context, of subject) (bool, []Finding, error) {
	first, err := x.readDeal(ctx, of)
	if err != nil {
		return false, nil, err
	}
	second, err := x.readDeal(ctx, of)
	if err != nil {
		return false, nil, err
	}
	found := slices.DeleteFunc(second.tally.Suspects(), func(f Finding) bool {
		return f.Kind == FindingEventUnpublished || f.Kind == FindingTimeToLive || f.Slot != "" || f.Owner != "" ||
			f.Hold != of.hold || f.Reservation != of.reservation
	})
	return maps.Equal(first.states, second.states), found, nil
}

func (x *examination) readDeal(ctx context.Context, of subject) (deal, error) {
	d := deal{tally: x.tally(), states: map[string]string{}}
	next := []ledger.RecordsOf{{Hold: of.hold, Reservation: of.reservation}}
	for len(next) > 0 && len(d.states) < dealThingsMax {
		what := next[0]
		next = next[1:]
		name := string(what.Hold) + string(what.Reservation)
		if _, read := d.states[name]; read || name == "" {
			continue
		}
		r, err := x.Store.Records(ctx, what)
		if err != nil {
			return d, err
		}
		d.states[name] = "none"
		for _, h := range r.Holds {
			if err := x.learnResources(ctx, h.Hold); err != nil {
				return d, err
			}
			d.states[name] = fmt.Sprintf("%d %s", h.Hold.Version, h.Hold.ArchivedIn)
			next = append(next, ledger.RecordsOf{Reservation: h.Hold.Reservation}, ledger.RecordsOf{Hold: h.Hold.Reacquires})
		}
		for _, r := range r.Reservations {
			d.states[name] = fmt.Sprintf("%d %s %d", r.Reservation.Version, r.Reservation.ArchivedIn, r.Reservation.HoldsArchived)
			next = append(next, ledger.RecordsOf{Hold: r.Reservation.Hold}, ledger.RecordsOf{Hold: r.Reservation.SoldHold})
		}
		d.tally.add(r)
	}
	return d, nil
}

// learnResources reads the resources of those slots of a hold that the tally does not know: it
// may have read the place of a slot before the slot was made.
func (x *examination) learnResources(ctx context.Context, h ledger.Hold) error {
	for _, line := range h.Lines {
		if _, known := x.resources[line.Slot]; known {
			continue
		}
		r, err := x.Store.Records(ctx, ledger.RecordsOf{Slot: line.Slot})
		if err != nil {
			return err
		}
		for _, s := range r.Slots {
			x.resources[s.ID] = resource{s.ResourceType, s.ResourceID}
		}
	}
	return nil
}

// lookAtThing looks at a policy or a case and its events.
func (x *examination) lookAtThing(ctx context.Context, thing string) (bool, []Finding, error) {
	kind, name, _ := strings.Cut(thing, "/")
	of := ledger.RecordsOf{Review: ledger.ReviewID(name)}
	if kind == "policy" {
		resourceType, id, _ := strings.Cut(name, "/")
		of = ledger.RecordsOf{Policy: ledger.PolicyScope{ResourceType: ledger.ResourceType(resourceType), ResourceID: ledger.ResourceID(id)}}
	}
	first, err := x.Store.Records(ctx, of)
	if err != nil {
		return false, nil, err
	}
	second, err := x.Store.Records(ctx, of)
	if err != nil {
		return false, nil, err
	}
	t := x.tally()
	t.add(second)
	found := slices.DeleteFunc(t.Suspects(), func(f Finding) bool { return f.Kind != FindingEventMissing })
	return versionOf(first) == versionOf(second), found, nil
}

// versionOf is the version of the policy or case among the records, zero for none.
func versionOf(r ledger.Records) ledger.Version {
	var version ledger.Version
	for _, p := range r.Policies {
		version = p.Version
	}
	for _, v := range r.Reviews {
		version = v.Version
	}
	return version
}

// lookAtItem looks whether an item still waits to be published, has a time to live, or can't be
// read.
func (x *examination) lookAtItem(ctx context.Context, of ledger.EventItem) ([]Finding, error) {
	r, err := x.Store.Records(ctx, ledger.RecordsOf{Item: of})
	if err != nil {
		return nil, err
	}
	t := x.tally()
	for _, u := range r.Unpublished {
		if u.Item == of && t.overdue(u.OccurredAt, UnpublishedFor) {
			t.rows.Unpublished = append(t.rows.Unpublished, u)
		}
	}
	for _, m := range r.Mortal {
		if m.Item == of {
			t.rows.Mortal = append(t.rows.Mortal, m)
		}
	}
	for _, item := range r.Unreadable {
		if item == of {
			t.rows.Unreadable = append(t.rows.Unreadable, item)
		}
	}
	found := t.Suspects()
	for i := range found {
		if found[i].Kind == FindingTimeToLive {
			if found[i].Proof.Version, err = x.versionOf(ctx, r); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// versionOf is the version by which the thing among the records is rewritten: its own, or that
// of the slot of a stock item.
func (x *examination) versionOf(ctx context.Context, r ledger.Records) (ledger.Version, error) {
	for _, h := range r.Holds {
		return h.Hold.Version, nil
	}
	for _, r := range r.Reservations {
		return r.Reservation.Version, nil
	}
	for _, s := range r.Stock {
		of, err := x.Store.Records(ctx, ledger.RecordsOf{Slot: s.Slot})
		if err != nil {
			return 0, err
		}
		r.Slots = of.Slots
	}
	for _, s := range r.Slots {
		return s.Version, nil
	}
	return 0, nil
}
