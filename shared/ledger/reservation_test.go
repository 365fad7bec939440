package ledger_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
)

// allStatuses are the statuses of a reservation, "" for one that is not there.
var allStatuses = []ledger.ReservationStatus{
	"", ledger.ReservationPaymentPending, ledger.ReservationAuthorized, ledger.ReservationConfirmed, ledger.ReservationCaptured,
	ledger.ReservationCompleted, ledger.ReservationCompensating, ledger.ReservationCanceled, ledger.ReservationRefunded,
	ledger.ReservationRefundRequired, ledger.ReservationReview,
}

// moves are the steps to another status that a reservation may make. Every other pair is
// refused by Change.Validate.
var moves = map[ledger.ReservationStatus]string{
	"":                               "PAYMENT_PENDING AUTHORIZED",
	ledger.ReservationPaymentPending: "AUTHORIZED COMPENSATING CANCELED REVIEW",
	ledger.ReservationAuthorized:     "CONFIRMED COMPENSATING REVIEW",
	ledger.ReservationConfirmed:      "CAPTURED COMPENSATING REVIEW",
	ledger.ReservationCaptured:       "COMPLETED COMPENSATING REVIEW",
	ledger.ReservationCompleted:      "COMPENSATING REVIEW",
	ledger.ReservationCompensating:   "AUTHORIZED CANCELED REFUNDED REFUND_REQUIRED REVIEW",
	ledger.ReservationCanceled:       "AUTHORIZED COMPENSATING REFUND_REQUIRED",
	ledger.ReservationRefunded:       "COMPENSATING REFUND_REQUIRED",
	ledger.ReservationRefundRequired: "REFUNDED CANCELED COMPENSATING",
	ledger.ReservationReview:         "AUTHORIZED CAPTURED COMPENSATING",
}

// reservationAt is a reservation in that status, or none for "".
func reservationAt(status ledger.ReservationStatus) ledger.Reservation {
	if status == "" {
		return ledger.Reservation{}
	}
	return ledger.Reservation{ID: theReservation, Owner: "U-1", Hold: "hold_1", Status: status, Version: 1, CreatedAt: noon}
}

func TestReservationMoves(t *testing.T) {
	for _, from := range allStatuses {
		for _, to := range append(allStatuses, "BOGUS") {
			next := reservationAt(to)
			next.ID = theReservation
			err := ledger.ReservationStep(reservationAt(from), next, ledger.EventReservationPaymentNoticed, nil, originOf("step"), noon).Validate()
			allowed := slices.Contains(strings.Fields(moves[from]), string(to)) || (from == to && from != "")
			if allowed != (err == nil) {
				t.Errorf("from %q to %q: error %v, allowed %t", from, to, err, allowed)
			}
		}
	}
}

func TestReservationEnded(t *testing.T) {
	ended := "COMPLETED CANCELED REFUNDED REVIEW"
	for _, status := range allStatuses[1:] {
		if want := slices.Contains(strings.Fields(ended), string(status)); status.Ended() != want {
			t.Errorf("%s has ended: %t, want %t", status, status.Ended(), want)
		}
	}
}

// Each refusal of Validate is shown once, by one fault in a step that is else right.
func TestChangeValidateRefusesReservations(t *testing.T) {
	for _, test := range []struct {
		name  string
		want  string
		fault func(*ledger.Change)
	}{
		{"nothing", "", func(*ledger.Change) {}},
		{"one reservation twice", "two actions on reservation/", func(c *ledger.Change) { c.Reservations = append(c.Reservations, c.Reservations[0]) }},
		{"a first step from a status", "replaces version 0", func(c *ledger.Change) { c.Reservations[0].Replaces = 0 }},
		{"a later step from none", `in status ""`, func(c *ledger.Change) { c.Reservations[0].From = "" }},
		{"a status that is none", "can't go", func(c *ledger.Change) {
			c.Reservations[0].From, c.Reservations[0].Next.Status = "BOGUS", "BOGUS"
		}},
		{"no event", "without its event", func(c *ledger.Change) { c.Events = nil }},
		{"an event of another version", "without its event", func(c *ledger.Change) { c.Events[0].Version = 9 }},
		{"a skipped version", "without its event", func(c *ledger.Change) {
			c.Reservations[0].Next.Version, c.Events[0].Version = 3, 3
		}},
		{"an event without its reservation", "an event without", func(c *ledger.Change) { c.Reservations = nil }},
		{"an event of a hold too", "is not of one", func(c *ledger.Change) { c.Events[0].Hold = &ledger.Hold{ID: "H"} }},
		{"too many attempts", "21 attempts", func(c *ledger.Change) {
			next := &c.Reservations[0].Next
			next.Attempts = nil
			for n := range ledger.AttemptsMax + 1 {
				next.Attempts = append(next.Attempts, ledger.Attempt{Number: ledger.AttemptNumber(n + 1)})
			}
		}},
		{"too many refunds", "71 refunds", func(c *ledger.Change) {
			c.Reservations[0].Next.Refunds = make([]ledger.Refund, ledger.RefundsMax+1)
		}},
		{"attempts out of order", "attempt 1 is numbered 2", func(c *ledger.Change) { c.Reservations[0].Next.Attempts[0].Number = 2 }},
		{"P8: two captures are kept", "keeps the money of 2 attempts", func(c *ledger.Change) {
			c.Reservations[0].Next.Attempts = append(slices.Clone(c.Reservations[0].Next.Attempts), ledger.Attempt{Number: 2, State: ledger.AttemptCaptured})
		}},
		{"P8: a second capture that is not kept", "", func(c *ledger.Change) {
			c.Reservations[0].Next.Attempts = append(slices.Clone(c.Reservations[0].Next.Attempts), ledger.Attempt{Number: 2, State: ledger.AttemptCaptured, Unwanted: true})
		}},
		{"P8: all of it is given back", "", func(c *ledger.Change) { c.Reservations[0].Next.Owe(1, 900, ledger.ReasonReturned, noon) }},
		{"P8: more is given back than was taken", "took 1000 and owes 1001", func(c *ledger.Change) {
			c.Reservations[0].Next.Owe(1, 901, ledger.ReasonReturned, noon)
		}},
	} {
		r := reservationAt(ledger.ReservationCaptured)
		r.Attempts = []ledger.Attempt{{Number: 1, State: ledger.AttemptCaptured, CapturedMinor: 1000}}
		r.Refunds = []ledger.Refund{{Number: 1, Attempt: 1, AmountMinor: 100, State: ledger.RefundDone}}
		change := ledger.ReservationStep(r, r, ledger.EventReservationPaymentNoticed, nil, originOf("step"), noon)
		test.fault(&change)
		err := change.Validate()
		if (test.want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: error is %v, want it to say %q", test.name, err, test.want)
		}
	}
}

func TestReservationStepKeepsAndResets(t *testing.T) {
	first := ledger.ReservationStep(ledger.Reservation{}, ledger.Reservation{ID: theReservation, Status: ledger.ReservationPaymentPending, Tries: 7},
		ledger.EventReservationPaymentStarted, nil, originOf("first"), noon)
	r := first.Reservations[0].Next
	if r.Version != 1 || r.Tries != 0 || r.CreatedAt != noon || r.UpdatedAt != noon || first.Reservations[0].From != "" || first.Reservations[0].Replaces != 0 {
		t.Errorf("the first step is %+v", first.Reservations[0])
	}
	later := noon.Add(time.Minute)
	next := r
	next.Status, next.Tries, next.LookAt = ledger.ReservationAuthorized, 3, later
	second := ledger.ReservationStep(r, next, ledger.EventReservationAuthorized, nil, originOf("second"), later)
	want := next
	want.Version, want.Tries, want.UpdatedAt, want.StatusSince = 2, 0, later, later
	if write := second.Reservations[0]; !reflect.DeepEqual(write.Next, want) || write.From != ledger.ReservationPaymentPending || write.Replaces != 1 {
		t.Errorf("the second step is %+v\nwant %+v", write, want)
	}
	if event := second.Events[0]; !reflect.DeepEqual(*event.Reservation, want) || event.Version != 2 || event.Type != ledger.EventReservationAuthorized || event.Origin != originOf("second") {
		t.Errorf("the event tells %+v", event)
	}
}

func TestReservationMoney(t *testing.T) {
	r := ledger.Reservation{Attempts: []ledger.Attempt{{Number: 1}, {Number: 2}}}
	r.Owe(1, 100, ledger.ReasonReturned, noon)
	r.Owe(1, 20, ledger.ReasonReturned, noon)
	r.Owe(2, 3, ledger.ReasonSurplus, noon)
	r.Refunds[0].State, r.Refunds[1].State = ledger.RefundDone, ledger.RefundFailed
	one, other := r, r // their list has room for one more, which is not to be shared
	one.Refunds, other.Refunds = r.Refunds[:2], r.Refunds[:2]
	one.Owe(1, 7, ledger.ReasonReturned, noon)
	other.Owe(1, 8, ledger.ReasonReturned, noon)
	if one.Refunds[2].AmountMinor != 7 || r.Refunds[2].AmountMinor != 3 {
		t.Errorf("a refund that is added shares its list: %+v and %+v", one.Refunds, r.Refunds)
	}
	if got := r.OwedMinor(); got != 23 {
		t.Errorf("owed are %d, want the failed 20 and the owed 3", got)
	}
	if got := r.RefundedMinor(1, ledger.RefundDone); got != 100 {
		t.Errorf("attempt 1 was given back %d", got)
	}
	if got := r.RefundedMinor(1, ledger.RefundDone, ledger.RefundFailed); got != 120 {
		t.Errorf("attempt 1 has refunds of %d", got)
	}
	for i, refund := range r.Refunds {
		if refund.Number != i+1 || refund.OwedAt != noon {
			t.Errorf("refund %d is %+v", i+1, refund)
		}
	}
	if current, found := r.Current(); !found || current.Number != 2 {
		t.Errorf("the current attempt is %+v, %t", current, found)
	}
	if _, found := (ledger.Reservation{}).Current(); found {
		t.Error("a reservation without an attempt has a current one")
	}
	if r.Attempt(0) != nil || r.Attempt(3) != nil || r.Attempt(2) != &r.Attempts[1] {
		t.Error("an attempt is not found by its number")
	}
	clone := r.Clone()
	clone.Attempts[0].Payment, clone.Refunds[0].AmountMinor = "changed", 9
	if r.Attempts[0].Payment != "" || r.Refunds[0].AmountMinor != 100 {
		t.Error("a clone shares its parts")
	}
}

func TestReservationClaims(t *testing.T) {
	r := ledger.Reservation{ID: theReservation, Hold: "hold_1"}
	for _, test := range []struct {
		got  ledger.Uniqueness
		kind ledger.UniquenessKind
		text string
	}{
		{r.ClaimHold(), ledger.UniqueHoldReservation, "hold_1"},
		{r.ClaimPayment("pi_1"), ledger.UniqueProviderPayment, "pi_1"},
		{r.ClaimEvent("evt_1"), ledger.UniqueProviderEvent, "evt_1"},
	} {
		if want := (ledger.Uniqueness{Kind: test.kind, Value: test.text, Reservation: theReservation}); test.got != want {
			t.Errorf("got %+v, want %+v", test.got, want)
		}
	}
}

// What was returned is not granted, and a slot's grant goes to one shard of it.
func TestGrantSteps(t *testing.T) {
	r := ledger.Reservation{ID: theReservation}
	sold := ledger.Hold{Lines: []ledger.Line{
		{Slot: "A", Quantity: 5, GrantTo: "points", Returned: []ledger.Allocation{{Quantity: 2}}},
		{Slot: "B", Quantity: 4, GrantTo: "points"},
		{Slot: "C", Quantity: 1},
		{Slot: "D", Quantity: 2, GrantTo: "items", Returned: []ledger.Allocation{{Quantity: 2}}},
	}}
	stock := []ledger.Stock{{Slot: "points", Shard: 0}, {Slot: "points", Shard: 1}, {Slot: "points", Shard: 2}, {Slot: "other"}}
	movements, grants, err := ledger.GrantSteps(r, sold, stock)
	if err != nil || len(movements) != 2 || len(grants) != 2 {
		t.Fatalf("movements %+v, grants %+v, error %v", movements, grants, err)
	}
	shard := ledger.PickShard(ledger.HoldID(theReservation), "points", 3)
	for i, units := range []ledger.Units{3, 4} {
		if want := (ledger.Movement{Slot: "points", Shard: shard, From: ledger.BucketOutside, To: ledger.BucketAvailable, Quantity: units}); movements[i] != want {
			t.Errorf("got %+v, want %+v", movements[i], want)
		}
		if want := (ledger.Grant{Slot: "points", Shard: shard, Quantity: units}); grants[i] != want {
			t.Errorf("got %+v, want %+v", grants[i], want)
		}
	}
	captured := reservationAt(ledger.ReservationCaptured)
	change := ledger.ReservationStep(captured, captured, ledger.EventReservationCaptured, movements, originOf("grant"), noon)
	if err := change.Validate(); err != nil || len(change.Stock) != 1 || change.Stock[0].Delta != (ledger.Counters{Available: 7, Capacity: 7}) {
		t.Errorf("the stock changes by %+v, error %v", change.Stock, err)
	}
	if _, _, err := ledger.GrantSteps(r, sold, stock[3:]); ledger.CodeOf(err) != ledger.CodeSlotNotFound {
		t.Errorf("a grant to a slot without stock: %v", err)
	}
}

// What both changes do to one stock item is one write, and neither change is altered.
func TestTogether(t *testing.T) {
	hold := payingHold(t)
	late, err := ledger.Reacquire(hold, nil, originOf("late"), hold.ReleaseAt)
	if err != nil {
		t.Fatal(err)
	}
	movements := []ledger.Movement{
		{Slot: "A", Shard: 1, From: ledger.BucketOutside, To: ledger.BucketAvailable, Quantity: 5},
		{Slot: "0", Shard: 0, From: ledger.BucketOutside, To: ledger.BucketAvailable, Quantity: 1},
	}
	r := reservationAt(ledger.ReservationCaptured)
	step := ledger.ReservationStep(r, r, ledger.EventReservationCaptured, movements, originOf("step"), hold.ReleaseAt)
	step.Uniqueness = []ledger.Uniqueness{r.ClaimEvent("evt_1")}
	before := len(late.Stock)
	for _, both := range []ledger.Change{ledger.Together(late, step), ledger.Together(step, late)} {
		if err := both.Validate(); err != nil {
			t.Error(err)
		}
		if both.Actions() != late.Actions()+step.Actions()-1 || len(both.Events) != 3 || len(both.Holds) != 2 || len(both.Reservations) != 1 || len(both.Uniqueness) != 1 {
			t.Errorf("together they write %+v", both)
		}
		i := slices.IndexFunc(both.Stock, func(w ledger.StockWrite) bool { return w.Slot == "A" && w.Shard == 1 })
		want := ledger.StockWrite{Slot: "A", Shard: 1, Delta: ledger.Counters{Available: 5, Held: -1, Confirmed: 1, Capacity: 5}, Open: true}
		if both.Stock[i] != want {
			t.Errorf("got %+v, want %+v", both.Stock[i], want)
		}
		if both.Stock[0].Slot != "0" {
			t.Errorf("the stock is not in order: %+v", both.Stock)
		}
	}
	if len(late.Stock) != before || late.Stock[1].Delta.Available != 0 {
		t.Error("a change that was put together with another one has changed")
	}
}

func TestEventsBesideEachOtherHaveTheirOwnIDs(t *testing.T) {
	origin := originOf("one")
	hold, again, other := origin.Beside("hold"), origin.Beside("hold"), origin.Beside("other")
	if hold != again || hold.EventID == other.EventID || hold.EventID == origin.EventID || hold.EventID == originOf("two").Beside("hold").EventID {
		t.Errorf("the ids are %s, %s, %s", hold.EventID, again.EventID, other.EventID)
	}
	hold.EventID = origin.EventID
	if hold != origin {
		t.Errorf("another origin: %+v, want %+v", hold, origin)
	}
}

// Only a step to another status begins its time anew.
func TestAReservationKnowsSinceWhenItIsInItsStatus(t *testing.T) {
	stored := reservationAt(ledger.ReservationCompensating)
	stored.StatusSince = noon
	for _, test := range []struct {
		to   ledger.ReservationStatus
		want time.Time
		left bool
	}{
		{ledger.ReservationCompensating, noon, false},
		{ledger.ReservationRefundRequired, noon.Add(time.Hour), true},
	} {
		next := stored.Clone()
		next.Status = test.to
		step := ledger.ReservationStep(stored, next, ledger.EventReservationRefundOwed, nil, originOf("step"), noon.Add(time.Hour))
		if got := step.Reservations[0].Next.StatusSince; !got.Equal(test.want) {
			t.Errorf("%s since %s, want %s", test.to, got, test.want)
		}
		status, after, left := step.Reservations[0].Left()
		if left != test.left || left && (status != ledger.ReservationCompensating || after != time.Hour) {
			t.Errorf("to %s: left %s after %s: %t", test.to, status, after, left)
		}
	}
	older := stored
	older.StatusSince = time.Time{}
	for name, write := range map[string]ledger.ReservationWrite{
		"a first step":    {Next: stored},
		"an older record": {Next: stored, From: ledger.ReservationCaptured, Since: older.StatusSince},
	} {
		if status, after, left := write.Left(); left {
			t.Errorf("%s has left %s after %s", name, status, after)
		}
	}
}
