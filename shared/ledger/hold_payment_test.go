package ledger_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"holdfast/shared/ledger"
)

const theReservation = ledger.ReservationID("rsv_00000000000000000000000001")

// heldHold is a hold of two units of slot A, on two shards, and one of slot B. Its
// release time is its expiry.
func heldHold(t testing.TB) ledger.Hold { return mustNewHold(t).Holds[0].Next }

// payingHold is heldHold with an open payment attempt.
func payingHold(t testing.TB) ledger.Hold {
	t.Helper()
	return mustStep(t)(ledger.StartAttempt(heldHold(t), theReservation, 1, originOf("start"), noon))
}

// soldHold is heldHold, sold to its reservation.
func soldHold(t testing.TB) ledger.Hold {
	t.Helper()
	return mustStep(t)(ledger.ConfirmPaid(payingHold(t), originOf("sale"), noon))
}

// mustStep checks a change that was built and gives the hold that it makes.
func mustStep(t testing.TB) func(ledger.Change, error) ledger.Hold {
	return func(c ledger.Change, err error) ledger.Hold {
		t.Helper()
		if err == nil {
			err = c.Validate()
		}
		if err != nil {
			t.Fatal(err)
		}
		return c.Holds[0].Next
	}
}

// refusedWith requires that a change was refused with the code and builds nothing.
func refusedWith(t testing.TB, what string, c ledger.Change, err error, code ledger.Code) {
	t.Helper()
	if ledger.CodeOf(err) != code || !c.Empty() {
		t.Errorf("%s: %d actions, error %v, want code %s", what, c.Actions(), err, code)
	}
}

func TestStartAttemptGivesTheGraceOnce(t *testing.T) {
	hold := heldHold(t)
	change, err := ledger.StartAttempt(hold, theReservation, 1, originOf("start"), noon)
	first := mustStep(t)(change, err)
	want := hold
	want.Reservation, want.AttemptOpen, want.Version = theReservation, 1, 2
	want.ReleaseAt = hold.ExpiresAt.Add(hold.GraceFor)
	if !reflect.DeepEqual(first, want) {
		t.Errorf("got %+v\nwant %+v", first, want)
	}
	write := change.Holds[0]
	if write.When != ledger.BeforeExpiry || !write.NoOpenAttempt || write.Of == nil || *write.Of != "" || write.Status() != ledger.StatusHeld {
		t.Errorf("the write's conditions are %+v", write)
	}
	if len(change.Stock) != 0 || change.Events[0].Type != ledger.EventHoldPaymentStarted {
		t.Errorf("the start of a payment moves stock or tells %s", change.Events[0].Type)
	}

	closed := mustStep(t)(ledger.CloseAttempt(first, originOf("close"), noon), nil)
	if closed.AttemptOpen != 0 || closed.ReleaseAt != first.ReleaseAt || closed.Status != ledger.StatusHeld {
		t.Errorf("after its attempt is closed the hold is %+v", closed)
	}
	later := noon.Add(time.Minute)
	second := mustStep(t)(ledger.StartAttempt(closed, theReservation, 2, originOf("again"), later))
	if second.ReleaseAt != first.ReleaseAt || second.AttemptOpen != 2 {
		t.Errorf("the second attempt %d moves the release time from %v to %v", second.AttemptOpen, first.ReleaseAt, second.ReleaseAt)
	}
}

func TestStartAttemptRefuses(t *testing.T) {
	hold, paying := heldHold(t), payingHold(t)
	closed := paying
	closed.AttemptOpen = 0
	for name, test := range map[string]struct {
		hold ledger.Hold
		of   ledger.ReservationID
		at   time.Time
		code ledger.Code
	}{
		"just in time":               {hold, theReservation, hold.ExpiresAt.Add(-time.Millisecond), ""},
		"when it expires":            {hold, theReservation, hold.ExpiresAt, ledger.CodeHoldNotActive},
		"in its grace":               {closed, theReservation, hold.ExpiresAt, ledger.CodeHoldNotActive},
		"while an attempt is open":   {paying, theReservation, noon, ledger.CodePaymentInProgress},
		"for another reservation":    {closed, "rsv_another", noon, ledger.CodePaymentInProgress},
		"for the same one again":     {closed, theReservation, noon, ""},
		"of a hold that was sold":    {soldHold(t), theReservation, noon, ledger.CodeHoldNotActive},
		"of a hold that was expired": {ledger.Hold{Status: ledger.StatusExpired, ExpiresAt: hold.ExpiresAt}, theReservation, noon, ledger.CodeHoldNotActive},
	} {
		change, err := ledger.StartAttempt(test.hold, test.of, 2, originOf("start"), test.at)
		if test.code != "" {
			refusedWith(t, name, change, err, test.code)
		} else {
			mustStep(t)(change, err)
		}
	}
}

// While an attempt may succeed, nobody but the reservation ends the hold.
func TestP4_OpenAttemptKeepsTheHold(t *testing.T) {
	hold := payingHold(t)
	over := hold.ReleaseAt
	change, err := ledger.Cancel(hold, originOf("cancel"), noon)
	refusedWith(t, "cancel", change, err, ledger.CodePaymentInProgress)
	change, err = ledger.Cancel(hold, originOf("cancel"), over)
	refusedWith(t, "cancel when it is over", change, err, ledger.CodePaymentInProgress)
	change, err = ledger.Expire(hold, originOf("expire"), over)
	refusedWith(t, "expire", change, err, ledger.CodePaymentInProgress)
	change, err = ledger.Expire(hold, originOf("expire"), over.Add(-time.Millisecond))
	refusedWith(t, "expire before it is over", change, err, ledger.CodeHoldNotDue)
	change, err = ledger.Confirm(hold, "", originOf("confirm"), noon)
	refusedWith(t, "confirm by the shop", change, err, ledger.CodePaymentInProgress)

	for at, want := range map[time.Time]ledger.Status{
		over.Add(-time.Millisecond): ledger.StatusHeld, over: ledger.StatusPaymentChecking,
	} {
		if got := hold.StatusAt(at); got != want {
			t.Errorf("at %v the hold reads as %s, want %s", at, got, want)
		}
	}
	if due, waits := hold.DueAt(); !waits || due != over.Add(hold.Terms.UnknownFor) {
		t.Errorf("it is due at %v, %t", due, waits)
	}
	hold.AttemptOpen = 0
	if due, waits := hold.DueAt(); !waits || due != over {
		t.Errorf("without an attempt it is due at %v, %t", due, waits)
	}
	if got := hold.StatusAt(over); got != ledger.StatusExpired {
		t.Errorf("without an attempt it reads as %s", got)
	}
	change, err = ledger.Confirm(hold, "", originOf("confirm"), noon)
	refusedWith(t, "confirm by the shop after a closed attempt", change, err, ledger.CodePaymentInProgress)
	change, err = ledger.Confirm(heldHold(t), "", originOf("confirm"), noon)
	mustStep(t)(change, err)
	if of := change.Holds[0].Of; of == nil || *of != "" {
		t.Error("the write of a shop's confirm does not look for a reservation")
	}
	for _, ended := range []struct {
		change ledger.Change
		err    error
	}{
		built(ledger.Cancel(hold, originOf("cancel"), noon)), built(ledger.Expire(hold, originOf("expire"), over)),
	} {
		mustStep(t)(ended.change, ended.err)
		if !ended.change.Holds[0].NoOpenAttempt {
			t.Errorf("the write of %s does not look for an open attempt", ended.change.Events[0].Type)
		}
	}
}

func built(c ledger.Change, err error) struct {
	change ledger.Change
	err    error
} {
	return struct {
		change ledger.Change
		err    error
	}{c, err}
}

func TestP4_ConfirmPaidUntilTheReleaseTime(t *testing.T) {
	hold := payingHold(t)
	change, err := ledger.ConfirmPaid(hold, originOf("sale"), hold.ReleaseAt.Add(-time.Millisecond))
	sold := mustStep(t)(change, err)
	if sold.Status != ledger.StatusConfirmed || sold.AttemptOpen != 0 || sold.Reservation != theReservation {
		t.Errorf("the sold hold is %+v", sold)
	}
	write := change.Holds[0]
	if write.When != ledger.BeforeRelease || write.Of == nil || *write.Of != theReservation || write.NoOpenAttempt {
		t.Errorf("the write's conditions are %+v", write)
	}
	change, err = ledger.ConfirmPaid(hold, originOf("sale"), hold.ReleaseAt)
	refusedWith(t, "at its release time", change, err, ledger.CodeHoldNotActive)
	change, err = ledger.ConfirmPaid(sold, originOf("sale"), noon)
	refusedWith(t, "a second time", change, err, ledger.CodeHoldNotActive)
}

func TestReleaseUnpaidEndsAsTheTimeSays(t *testing.T) {
	hold := payingHold(t)
	for at, want := range map[time.Time]struct {
		status ledger.Status
		event  ledger.EventType
		when   ledger.ReleaseCondition
	}{
		hold.ReleaseAt.Add(-time.Millisecond): {ledger.StatusCanceled, ledger.EventHoldCanceled, ledger.AnyTime},
		hold.ReleaseAt:                        {ledger.StatusExpired, ledger.EventHoldExpired, ledger.FromRelease},
	} {
		change, err := ledger.ReleaseUnpaid(hold, originOf("release"), at)
		next := mustStep(t)(change, err)
		write := change.Holds[0]
		if next.Status != want.status || next.AttemptOpen != 0 || change.Events[0].Type != want.event || write.When != want.when || *write.Of != theReservation {
			t.Errorf("at %v it becomes %s by %s under %+v", at, next.Status, change.Events[0].Type, write)
		}
		wantMovements(t, change, ledger.BucketHeld, ledger.BucketAvailable, 3)
	}
	change, err := ledger.ReleaseUnpaid(soldHold(t), originOf("release"), noon)
	refusedWith(t, "a sold hold", change, err, ledger.CodeHoldNotActive)
}

// wantMovements requires that all of the change's movements go between these buckets and
// are so many units together, on three stock items.
func wantMovements(t testing.TB, c ledger.Change, from, to ledger.Bucket, units ledger.Units) {
	t.Helper()
	var total ledger.Units
	for _, event := range c.Events {
		for _, m := range event.Movements {
			total += m.Quantity
			if m.From != from || m.To != to {
				t.Errorf("%s moves from %s to %s, want %s to %s", event.Type, m.From, m.To, from, to)
			}
		}
	}
	if total != units {
		t.Errorf("%d units move, want %d", total, units)
	}
}

func TestExpireUnknownWaitsAsItsTermsSay(t *testing.T) {
	hold := payingHold(t)
	over := hold.ReleaseAt.Add(hold.Terms.UnknownFor)
	for name, early := range map[string]time.Time{"at its release time": hold.ReleaseAt, "a millisecond early": over.Add(-time.Millisecond)} {
		change, err := ledger.ExpireUnknown(hold, originOf("expire"), early)
		refusedWith(t, name, change, err, ledger.CodeHoldNotDue)
	}
	change, err := ledger.ExpireUnknown(hold, originOf("expire"), over)
	next := mustStep(t)(change, err)
	write := change.Holds[0]
	if next.Status != ledger.StatusExpired || next.AttemptOpen != 0 || write.When != ledger.FromRelease || write.OverFor != hold.Terms.UnknownFor || *write.Of != theReservation {
		t.Errorf("it becomes %s under %+v", next.Status, write)
	}
	change, err = ledger.ExpireUnknown(next, originOf("expire"), over)
	refusedWith(t, "a second time", change, err, ledger.CodeHoldNotActive)
}

// A hold that is over and still has its units moves them once, to the hold in its place.
func TestP3_ReacquireWhileHeldMovesOnce(t *testing.T) {
	hold := payingHold(t)
	change, err := ledger.Reacquire(hold, nil, originOf("late"), hold.ReleaseAt.Add(-time.Millisecond))
	refusedWith(t, "before it is over", change, err, ledger.CodeHoldNotDue)
	now := hold.ReleaseAt
	change, err = ledger.Reacquire(hold, nil, originOf("late"), now)
	if err == nil {
		err = change.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	old, born := change.Holds[0].Next, change.Holds[1].Next
	if old.ID != hold.ID || old.Status != ledger.StatusExpired || old.Version != hold.Version+1 || old.AttemptOpen != 0 {
		t.Errorf("the old hold is %+v", old)
	}
	want := hold
	want.ID, want.Status, want.Version, want.AttemptOpen = ledger.ReacquiredID(hold), ledger.StatusConfirmed, 1, 0
	want.CreatedAt, want.EndedAt, want.Reacquires = now, now, hold.ID
	if !reflect.DeepEqual(born, want) {
		t.Errorf("born is %+v\nwant %+v", born, want)
	}
	if write := change.Holds[0]; write.When != ledger.FromRelease || *write.Of != theReservation || change.Holds[1].Replaces != 0 {
		t.Errorf("the writes' conditions are %+v", change.Holds)
	}
	if len(change.Events[0].Movements) != 0 || change.Events[1].Type != ledger.EventHoldReacquired || change.Events[0].ID == change.Events[1].ID {
		t.Errorf("the events are %+v", change.Events)
	}
	wantMovements(t, change, ledger.BucketHeld, ledger.BucketConfirmed, 3)
	for _, write := range change.Stock {
		if !write.Open || write.Sale != nil || write.Delta.Available != 0 {
			t.Errorf("the write on %s is %+v", write.Slot, write)
		}
	}
	again, err := ledger.Reacquire(hold, nil, originOf("late"), now)
	if err != nil || !reflect.DeepEqual(again, change) {
		t.Errorf("the same origin builds another change: %+v, error %v", again, err)
	}
}

func TestReacquireAfterItsEndTakesAnew(t *testing.T) {
	hold := mustStep(t)(ledger.ReleaseUnpaid(payingHold(t), originOf("release"), noon))
	allocations := map[ledger.SlotID][]ledger.Allocation{"A": {{Shard: 1, Quantity: 2}}, "B": {{Shard: 0, Quantity: 1}}}
	change, err := ledger.Reacquire(hold, allocations, originOf("late"), noon)
	born := mustStep(t)(change, err)
	if len(change.Holds) != 1 || len(change.Events) != 1 || !reflect.DeepEqual(born.Lines[0].Shards, allocations["A"]) {
		t.Errorf("born is %+v of %d holds", born, len(change.Holds))
	}
	wantMovements(t, change, ledger.BucketAvailable, ledger.BucketConfirmed, 3)
	for _, write := range change.Stock {
		if !write.Open || write.Sale != nil {
			t.Errorf("the write on %s is %+v", write.Slot, write)
		}
	}
	most := make([]ledger.Allocation, ledger.StockActionsMax)
	for shard := range most {
		most[shard] = ledger.Allocation{Shard: ledger.Shard(shard), Quantity: 1}
	}
	change, err = ledger.Reacquire(hold, map[ledger.SlotID][]ledger.Allocation{"A": most, "B": allocations["B"]}, originOf("late"), noon)
	refusedWith(t, "on too many stock items", change, err, ledger.CodeInsufficientStock)
}

// What is sold, or was sold and given back, is not sold again to the same payment.
func TestP3_ReacquireRefusesWhatWasSold(t *testing.T) {
	sold := soldHold(t)
	returned := mustStep(t)(ledger.Return(sold, nil, originOf("return"), noon))
	allocations := map[ledger.SlotID][]ledger.Allocation{"A": {{Shard: 1, Quantity: 2}}, "B": {{Shard: 0, Quantity: 1}}}
	for _, hold := range []ledger.Hold{sold, returned} {
		change, err := ledger.Reacquire(hold, allocations, originOf("late"), hold.ReleaseAt)
		refusedWith(t, string(hold.Status), change, err, ledger.CodeHoldNotActive)
	}
}

// P2 and P3: what is given back is counted once, from the shards that it was taken from.
func TestP3_ReturnInParts(t *testing.T) {
	hold := soldHold(t)
	change, err := ledger.Return(hold, []ledger.ReturnLine{{Slot: "A", Quantity: 1}}, originOf("part"), noon)
	part := mustStep(t)(change, err)
	if part.Status != ledger.StatusConfirmed || !reflect.DeepEqual(part.Lines[0].Returned, []ledger.Allocation{{Shard: 0, Quantity: 1}}) {
		t.Errorf("after a part it is %+v", part)
	}
	if hold.Lines[0].Returned != nil {
		t.Error("the hold that was given has changed")
	}
	if write := change.Holds[0]; write.From != ledger.StatusConfirmed || write.Replaces != hold.Version {
		t.Errorf("the write's conditions are %+v", write)
	}
	wantMovements(t, change, ledger.BucketConfirmed, ledger.BucketAvailable, 1)
	if left, want := part.Unreturned(), []ledger.ReturnLine{{Slot: "A", Quantity: 1}, {Slot: "B", Quantity: 1}}; !slices.Equal(left, want) {
		t.Errorf("left are %v, want %v", left, want)
	}
	change, err = ledger.Return(part, []ledger.ReturnLine{{Slot: "A", Quantity: 2}}, originOf("over"), noon)
	refusedWith(t, "more than is left", change, err, ledger.CodeReturnOverSale)

	change, err = ledger.Return(part, nil, originOf("rest"), noon)
	whole := mustStep(t)(change, err)
	if whole.Status != ledger.StatusReturned || len(whole.Unreturned()) != 0 || whole.EndedAt != hold.EndedAt {
		t.Errorf("after the rest it is %+v", whole)
	}
	wantMovements(t, change, ledger.BucketConfirmed, ledger.BucketAvailable, 2)
	change, err = ledger.Return(whole, nil, originOf("again"), noon)
	refusedWith(t, "a second time", change, err, ledger.CodeHoldNotActive)
}

func TestReturnRefuses(t *testing.T) {
	hold := soldHold(t)
	for name, test := range map[string]struct {
		lines []ledger.ReturnLine
		code  ledger.Code
	}{
		"a line that is not there": {[]ledger.ReturnLine{{Slot: "C", Quantity: 1}}, ledger.CodeInvalid},
		"a line that is named twice": {[]ledger.ReturnLine{{Slot: "A", Quantity: 1}, {Slot: "A", Quantity: 1}},
			ledger.CodeInvalid},
		"no unit":             {[]ledger.ReturnLine{{Slot: "A", Quantity: 0}}, ledger.CodeInvalid},
		"a negative quantity": {[]ledger.ReturnLine{{Slot: "A", Quantity: -1}}, ledger.CodeInvalid},
		"more than was sold":  {[]ledger.ReturnLine{{Slot: "A", Quantity: 3}}, ledger.CodeReturnOverSale},
		"one of two too many": {[]ledger.ReturnLine{{Slot: "A", Quantity: 1}, {Slot: "B", Quantity: 2}}, ledger.CodeReturnOverSale},
	} {
		change, err := ledger.Return(hold, test.lines, originOf("return"), noon)
		refusedWith(t, name, change, err, test.code)
	}
	change, err := ledger.Return(payingHold(t), nil, originOf("return"), noon)
	refusedWith(t, "what is not sold", change, err, ledger.CodeHoldNotActive)
}

func TestReturnWithoutRestockLeavesTheCapacity(t *testing.T) {
	hold := soldHold(t)
	hold.Lines[0].NoRestock = true
	change, err := ledger.Return(hold, []ledger.ReturnLine{{Slot: "A", Quantity: 2}}, originOf("return"), noon)
	mustStep(t)(change, err)
	wantMovements(t, change, ledger.BucketConfirmed, ledger.BucketOutside, 2)
	for _, write := range change.Stock {
		if want := (ledger.Counters{Confirmed: -1, Capacity: -1}); write.Delta != want {
			t.Errorf("shard %d changes by %+v, want %+v", write.Shard, write.Delta, want)
		}
	}
}
