package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/system"
)

const (
	// IndexLagMax is how far an index may be behind its table. AWS names no bound; it is well
	// under a second but for an index that is being throttled.
	IndexLagMax = 10 * time.Second
	// LooksAgreeing is in how many looks, each at a moment at which nothing about it was under
	// way, a suspect must be wrong. From the first to the last of them IndexLagMax passes.
	LooksAgreeing = 3
	// LookPause is between two looks.
	LookPause = IndexLagMax / (LooksAgreeing - 1)
	// LooksMax bounds the looks at what is never in peace.
	LooksMax = 8
)

// Reader reads what is looked at again: items strongly consistent, and lists that may lag. A
// dynamo.Store and a memory.Store are both.
type Reader interface {
	// Records returns all that is stored of one thing: itself and its events.
	Records(ctx context.Context, of ledger.RecordsOf) (ledger.Records, error)
	// Holds returns those of these holds that there are, at most ledger.PageItemsMax.
	Holds(ctx context.Context, ids []ledger.HoldID) ([]ledger.Hold, error)
	HoldsOfOwner(ctx context.Context, owner ledger.OwnerID, page ledger.Page) ([]ledger.Hold, ledger.Cursor, error)
	Quota(ctx context.Context, owner ledger.OwnerID) (ledger.Quota, error)
	// Claimed returns who claimed the value, and whether anybody has.
	Claimed(ctx context.Context, kind ledger.UniquenessKind, value string) (ledger.Uniqueness, bool, error)
	// Due and Parked list what is HELD, and EndedHolds what has ended since a time, and some
	// that ended before.
	Due(ctx context.Context, shard int, now time.Time, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error)
	Parked(ctx context.Context, shard int, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error)
	EndedHolds(ctx context.Context, shard int, since time.Time, page ledger.Page) ([]ledger.HoldID, ledger.Cursor, error)
}

// Payments lists the payments that the provider has. A stripe.Provider does.
type Payments = payment.Lister

// Examiner looks again at what a tally makes suspicious. All but Payments must be set.
type Examiner struct {
	Store    Reader
	Payments Payments // nil for an audit that asks no provider
	Clock    system.Clock
	Wait     func(context.Context, time.Duration) error
}

// suspect is something that did not agree when it was first read.
type suspect struct {
	of subject
	// wrong counts the looks that have found the same wrong about it at a stable moment. Of a
	// slot that is busy each look may see another stock item in peace, so that what they find
	// is counted apart.
	wrong map[sameWrong]int
}

// sameWrong says what is wrong, and by how much: a difference stays the same while the thing is
// busy, and what is only under way is another one at each look.
type sameWrong struct {
	of     findingKey
	excess ledger.Counters
	above  ledger.Units
}

func sameWrongOf(f Finding) sameWrong {
	return sameWrong{keyOf(f), f.Proof.Excess, f.Proof.Was - f.Proof.Want}
}

// subject is what is looked at as a whole. One of its parts is set.
type subject struct {
	hold        ledger.HoldID
	reservation ledger.ReservationID
	slot        ledger.SlotID
	owner       ledger.OwnerID
	count       ledger.QuotaKey  // over all owners
	thing       string           // the subject of a policy's events, or of a case's
	item        ledger.EventItem // one that is not published, has a time to live, or can't be read
}

// subjectOf is what has to be looked at again for a finding.
func subjectOf(f Finding) subject {
	switch {
	case f.Owner != "":
		return subject{owner: f.Owner}
	case f.Count != "":
		return subject{count: f.Count}
	case f.Slot != "":
		return subject{slot: f.Slot}
	case f.Hold != "":
		return subject{hold: f.Hold}
	case f.Reservation != "":
		return subject{reservation: f.Reservation}
	}
	return subject{thing: strings.Replace(f.Subject, " ", "/", 1)}
}

// examination is one examination of a tally.
type examination struct {
	*Examiner
	t         *Tally
	resources map[ledger.SlotID]resource
	gone      map[ledger.QuotaKey]ledger.Units
	learned   map[ledger.QuotaKey]bool // of which gone was read anew
	pending   []*suspect
	confirmed []Finding
	// recent are holds that the tally does not know, or not as they are now, and seen those
	// that need not be read again: their units stay where they are.
	recent map[ledger.HoldID]*holdRow
	seen   map[ledger.HoldID]bool
	places places
}

// Examine finds out which suspects of the tally are findings: those that are wrong whenever
// nothing about them is under way. What never comes to rest is counted as unsettled.
func (e *Examiner) Examine(ctx context.Context, t *Tally) (Report, error) {
	x := newExamination(e, t)
	report := t.report()
	report.Suspects = len(x.pending)
	for look := 1; len(x.pending) > 0 && look <= LooksMax; look++ {
		if look > 1 {
			if err := e.Wait(ctx, LookPause); err != nil {
				return Report{}, fmt.Errorf("audit: %w", err)
			}
		}
		if err := x.look(ctx, look); err != nil {
			return Report{}, fmt.Errorf("audit: looking at suspects: %w", err)
		}
	}
	report.Unsettled = len(x.pending)
	if e.Payments != nil {
		payments, err := e.payments(ctx, t)
		switch failure := (*payment.Error)(nil); {
		case errors.As(err, &failure) && ctx.Err() == nil:
			// A provider that does not answer, or has no key yet, keeps nothing else from being told.
			report.Uncompared = failure.Error()
			report.Unsettled++
		case err != nil:
			return Report{}, fmt.Errorf("audit: comparing with the provider: %w", err)
		}
		x.confirmed = append(x.confirmed, payments...)
	}
	report.Findings = inOneOrder(x.confirmed)
	return report, nil
}

func newExamination(e *Examiner, t *Tally) *examination {
	x := &examination{
		Examiner: e, t: t, gone: t.salesGone(), recent: map[ledger.HoldID]*holdRow{}, seen: map[ledger.HoldID]bool{},
		resources: map[ledger.SlotID]resource{}, learned: map[ledger.QuotaKey]bool{},
	}
	for id, row := range t.rows.Slots {
		x.resources[id] = row.Resource
	}
	known := map[subject]bool{}
	suspectOnce := func(of subject) {
		if !known[of] {
			known[of] = true
			x.pending = append(x.pending, &suspect{of: of, wrong: map[sameWrong]int{}})
		}
	}
	for _, f := range t.Suspects() {
		if f.Kind != FindingEventUnpublished && f.Kind != FindingTimeToLive && f.Kind != FindingUnreadable {
			suspectOnce(subjectOf(f))
		}
	}
	for _, u := range t.rows.Unpublished {
		suspectOnce(subject{item: u.Item})
	}
	for _, m := range t.rows.Mortal {
		suspectOnce(subject{item: m.Item})
	}
	for _, item := range t.rows.Unreadable {
		suspectOnce(subject{item: item})
	}
	x.places = newPlaces(t, x.pending)
	return x
}

// look looks once at each suspect.
func (x *examination) look(ctx context.Context, look int) error {
	var slots, later []*suspect
	for _, s := range x.pending {
		if s.of.slot != "" {
			slots = append(slots, s)
			continue
		}
		stable, found, err := x.lookAt(ctx, s.of)
		if len(x.t.rows.Unreadable) > 0 && ledger.CodeOf(err) == ledger.CodeInternal {
			// It needs an item that can't be read, which is told by itself.
			stable, found, err = false, nil, nil
		}
		if err != nil {
			return err
		}
		if x.decide(s, stable, found) {
			later = append(later, s)
		}
	}
	left, err := x.lookAtSlots(ctx, slots, look)
	x.pending = slices.Concat(later, left)
	return err
}

// decide takes a look into account, and reports whether the suspect is to be looked at again.
func (x *examination) decide(s *suspect, stable bool, found []Finding) bool {
	switch {
	case !stable:
		return true
	case len(found) == 0:
		return false
	}
	left, at := false, x.Clock.Now()
	for _, f := range found {
		same := sameWrongOf(f)
		s.wrong[same]++
		switch looks := s.wrong[same]; {
		case looks < LooksAgreeing:
			left = true
		case looks == LooksAgreeing:
			f.Proof.At = at
			x.confirmed = append(x.confirmed, f)
		}
	}
	return left
}

// lookAt looks at anything but a slot. It reports whether nothing about it was under way.
func (x *examination) lookAt(ctx context.Context, of subject) (bool, []Finding, error) {
	switch {
	case of.hold != "" || of.reservation != "":
		return x.lookAtDeal(ctx, of)
	case of.owner != "":
		return x.lookAtOwner(ctx, of.owner)
	case of.count != "":
		return x.lookAtCount(ctx, of.count)
	case of.thing != "":
		return x.lookAtThing(ctx, of.thing)
	}
	found, err := x.lookAtItem(ctx, of.item)
	return true, found, err
}

// tally is an empty tally for a look at something.
func (x *examination) tally() *Tally {
	t := NewTally(x.t.rows.At)
	t.resources, t.gone = x.resources, x.gone
	return t
}
