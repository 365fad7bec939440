package ledger_test

import (
	"slices"
	"testing"
	"time"

	"holdfast/shared/ledger"
)

// soldToReservation is a hold that was sold to a completed reservation, with the events of
// both.
func soldToReservation(t *testing.T) (ledger.Hold, ledger.Reservation, []ledger.Event, []ledger.Event) {
	t.Helper()
	created := mustNewHold(t)
	hold := created.Holds[0].Next
	hold.Reservation = "rsv_1"
	sold, err := ledger.ConfirmPaid(hold, originOf("sold"), noon)
	if err != nil {
		t.Fatal(err)
	}
	r := ledger.Reservation{ID: "rsv_1", Hold: hold.ID, SoldHold: hold.ID, Status: ledger.ReservationAuthorized}
	begun := ledger.ReservationStep(ledger.Reservation{}, r, ledger.EventReservationAuthorized, nil, originOf("begun"), noon)
	r = begun.Reservations[0].Next
	r.Status = ledger.ReservationCompleted
	return sold.Holds[0].Next, r, append(created.Events, sold.Events...), begun.Events
}

// Case M3: nothing is archived while it is in use, money may be on it, or a part of its
// history is missing.
func TestCaseM3_ArchiveTakesOnlyWhatIsAtRest(t *testing.T) {
	for _, c := range []struct {
		name string
		want ledger.Code
		how  func(h *ledger.Hold, r *ledger.Reservation, events, ofReservation *[]ledger.Event)
		of   ledger.ArchiveKind
	}{
		{"a sold hold", "", nil, ledger.ArchiveHolds},
		{"a HELD hold", ledger.CodeNotArchivable, func(h *ledger.Hold, _ *ledger.Reservation, _, _ *[]ledger.Event) { h.Status = ledger.StatusHeld }, ledger.ArchiveHolds},
		{"an archived hold", ledger.CodeHoldArchived, func(h *ledger.Hold, _ *ledger.Reservation, _, _ *[]ledger.Event) { h.ArchivedIn = "batch" }, ledger.ArchiveHolds},
		{"a hold of another reservation", ledger.CodeNotArchivable, func(h *ledger.Hold, _ *ledger.Reservation, _, _ *[]ledger.Event) { h.Reservation = "rsv_2" }, ledger.ArchiveHolds},
		{"a missing event", ledger.CodeNotArchivable, func(_ *ledger.Hold, _ *ledger.Reservation, e, _ *[]ledger.Event) { *e = (*e)[:1] }, ledger.ArchiveHolds},
		{"events out of order", ledger.CodeNotArchivable, func(_ *ledger.Hold, _ *ledger.Reservation, e, _ *[]ledger.Event) { slices.Reverse(*e) }, ledger.ArchiveHolds},
		{"an event of another", ledger.CodeNotArchivable, func(_ *ledger.Hold, _ *ledger.Reservation, e, of *[]ledger.Event) { (*e)[0] = (*of)[0] }, ledger.ArchiveHolds},
		{"a reservation to be looked at", ledger.CodeNotArchivable, func(_ *ledger.Hold, r *ledger.Reservation, _, _ *[]ledger.Event) { r.LookAt = noon }, ledger.ArchiveHolds},
		{"a reservation in REVIEW", ledger.CodeNotArchivable, func(_ *ledger.Hold, r *ledger.Reservation, _, _ *[]ledger.Event) { r.Status = ledger.ReservationReview }, ledger.ArchiveHolds},
		{"a reservation with the buyer's money", ledger.CodeNotArchivable, func(_ *ledger.Hold, r *ledger.Reservation, _, _ *[]ledger.Event) {
			r.Refunds = []ledger.Refund{{State: ledger.RefundFailed, AmountMinor: 1}}
		}, ledger.ArchiveHolds},
		{"a reservation that is archived before it", ledger.CodeNotArchivable, func(_ *ledger.Hold, r *ledger.Reservation, _, _ *[]ledger.Event) { r.ArchivedIn = "batch" }, ledger.ArchiveHolds},
		{"a reservation after its hold", "", func(_ *ledger.Hold, r *ledger.Reservation, _, _ *[]ledger.Event) { r.HoldsArchived = 1 }, ledger.ArchiveReservations},
		{"a reservation before its hold", ledger.CodeNotArchivable, nil, ledger.ArchiveReservations},
		{"a reservation before one of two holds", ledger.CodeNotArchivable, func(_ *ledger.Hold, r *ledger.Reservation, _, _ *[]ledger.Event) {
			r.HoldsArchived, r.SoldHold = 1, "hold_born"
		}, ledger.ArchiveReservations},
		{"an archived reservation", ledger.CodeReservationArchived, func(_ *ledger.Hold, r *ledger.Reservation, _, _ *[]ledger.Event) {
			r.HoldsArchived, r.ArchivedIn = 1, "batch"
		}, ledger.ArchiveReservations},
	} {
		t.Run(c.name, func(t *testing.T) {
			hold, r, events, ofReservation := soldToReservation(t)
			if c.how != nil {
				c.how(&hold, &r, &events, &ofReservation)
			}
			change, err := ledger.ArchiveHold(hold, &r, events, "batch", noon.Add(time.Hour), noon)
			if c.of == ledger.ArchiveReservations {
				change, err = ledger.ArchiveReservation(r, ofReservation, "batch", noon.Add(time.Hour), noon)
			}
			if ledger.CodeOf(err) != c.want {
				t.Fatalf("answered %v, want code %q", err, c.want)
			}
			if err == nil {
				if err := change.Validate(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	hold, r, events, _ := soldToReservation(t)
	if _, err := ledger.ArchiveHold(hold, nil, events, "batch", noon, noon); ledger.CodeOf(err) != ledger.CodeNotArchivable {
		t.Errorf("a hold without its reservation %s is archived: %v", r.ID, err)
	}
}

// A sale is kept until the last of its slots is over; what was given back is not.
func TestRetentionCountsFromTheLastSlot(t *testing.T) {
	over := noon.Add(240 * time.Hour)
	hold := ledger.Hold{Status: ledger.StatusConfirmed, EndedAt: noon, Lines: []ledger.Line{{OverAt: over}, {OverAt: noon.Add(time.Hour)}, {}}}
	for _, c := range []struct {
		status  ledger.Status
		changed time.Time
		want    time.Time
	}{
		{ledger.StatusConfirmed, noon, over},
		{ledger.StatusConfirmed, over.Add(time.Minute), over.Add(time.Minute)},
		{ledger.StatusReturned, noon.Add(time.Minute), noon.Add(time.Minute)},
		{ledger.StatusReturned, noon.Add(-time.Minute), noon}, // by a clock that is behind
		{ledger.StatusExpired, noon, noon},
	} {
		hold.Status = c.status
		if from, archivable := hold.ArchiveFrom(c.changed); !archivable || !from.Equal(c.want) {
			t.Errorf("%s changed at %s: from %s, %t; want %s", c.status, c.changed, from, archivable, c.want)
		}
	}
}

// A mark that no batch can have made is a fault of ours, and is never written.
func TestChangeValidateRefusesWrongMarks(t *testing.T) {
	for _, c := range []struct {
		name string
		how  func(*ledger.Change)
	}{
		{"of nothing", func(c *ledger.Change) { c.Archives[0].Hold = "" }},
		{"of two things", func(c *ledger.Change) { c.Archives[0].Reservation = "rsv_2" }},
		{"of no version", func(c *ledger.Change) { c.Archives[0].Version = 0 }},
		{"in no batch", func(c *ledger.Change) { c.Archives[0].Batch = "" }},
		{"twice", func(c *ledger.Change) { c.Archives = append(c.Archives, c.Archives[0]) }},
		{"purged before", func(c *ledger.Change) { c.Archives[0].PurgeAt = noon.Add(-time.Second) }},
		{"purged never", func(c *ledger.Change) {
			c.Archives[0].PurgeAt = noon.Add(ledger.ArchiveRetainMax + time.Second)
		}},
		{"purged between two seconds", func(c *ledger.Change) { c.Archives[0].PurgeAt = noon.Add(time.Millisecond) }},
		{"a reservation that is not at rest", func(c *ledger.Change) { c.AtRest[0].LookAt = noon }},
		{"an archived reservation", func(c *ledger.Change) { c.AtRest[0].ArchivedIn = "batch" }},
		{"no mark beside the reservation", func(c *ledger.Change) { c.Archives, c.Stock = nil, nil }},
		{"no mark beside the stock", func(c *ledger.Change) { c.Archives, c.AtRest = nil, nil }},
		{"stock that moves", func(c *ledger.Change) { c.Stock[0].Delta.Held = 1 }},
		{"archived units from nowhere", func(c *ledger.Change) { c.Stock[0].Archived.Capacity++ }},
		{"a step that archives", func(c *ledger.Change) {
			other := mustNewHold(t)
			other.Holds[0].Next.ArchivedIn = "batch"
			c.Archives, c.AtRest, c.Stock = nil, nil, other.Stock
			c.Holds, c.Events = other.Holds, other.Events
		}},
	} {
		hold, r, events, _ := soldToReservation(t)
		change, err := ledger.ArchiveHold(hold, &r, events, "batch", noon.Add(time.Hour), noon)
		if err != nil {
			t.Fatal(err)
		}
		if err := change.Validate(); err != nil {
			t.Fatal(err)
		}
		if c.how(&change); change.Validate() == nil {
			t.Errorf("a change is valid with a mark %s", c.name)
		}
	}
}

// What a reservation says of a hold that has left the table: how it ended, and that it can
// neither be changed nor sold again. Without an archived hold it says nothing.
func TestAReservationKnowsHowAGoneHoldEnded(t *testing.T) {
	for _, c := range []struct {
		status ledger.ReservationStatus
		id     ledger.HoldID
		want   ledger.Status
	}{
		{ledger.ReservationCompleted, "hold_sold", ledger.StatusConfirmed},
		{ledger.ReservationCompleted, "hold_paid", ledger.StatusExpired},
		{ledger.ReservationRefunded, "hold_sold", ledger.StatusReturned},
		{ledger.ReservationCanceled, "hold_paid", ledger.StatusExpired},
		{ledger.ReservationCompleted, "hold_other", ""},
	} {
		r := ledger.Reservation{ID: "rsv_1", Owner: "U", Hold: "hold_paid", SoldHold: "hold_sold", Status: c.status, HoldsArchived: 1}
		gone, known := r.HoldGone(c.id)
		if gone.Status != c.want || known != (c.want != "") {
			t.Errorf("%s of a %s reservation is %q, known: %t; want %q", c.id, c.status, gone.Status, known, c.want)
		}
		if known && (gone.Owner != "U" || gone.Reservation != "rsv_1" || gone.ArchivedIn == "" || gone.Terms.LatePayment != ledger.LatePaymentRefund) {
			t.Errorf("the gone hold is %+v", gone)
		}
		if r.HoldsArchived = 0; c.want != "" {
			if _, known := r.HoldGone(c.id); known {
				t.Errorf("%s is known although none is archived", c.id)
			}
		}
	}
}
