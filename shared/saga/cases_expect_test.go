package saga_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
)

// at puts the clock to that long after ten o'clock.
func (w *world) at(after time.Duration) { w.clock.Set(tenOClock.Add(after)) }

// minutes lets time pass with the sweep running once a minute.
func (w *world) minutes(n int) {
	w.t.Helper()
	for range n {
		w.clock.Advance(time.Minute)
		w.sweep()
	}
}

// deliver drives the reservation with each notice, as the queue would.
func (w *world) deliver(id ledger.ReservationID, notices ...*payment.Notice) {
	w.t.Helper()
	for _, n := range notices {
		w.drive(id, n)
	}
}

// settle delivers what the provider tells until it has nothing more to tell.
func (w *world) settle(id ledger.ReservationID) {
	w.t.Helper()
	for range 10 {
		told := w.notices()
		if len(told) == 0 {
			return
		}
		w.deliver(id, told...)
	}
	w.t.Fatal("the provider does not stop telling")
}

// pay is a buyer who pays; what the provider tells of it waits.
func (w *world) pay(secret payment.Secret) {
	w.t.Helper()
	_, err := w.bank.Pay(secret.Reveal())
	w.must(err)
}

// buy holds the lines and pays for them, to the end.
func (w *world) buy(owner ledger.OwnerID, lines ...ledger.Quote) (ledger.HoldID, ledger.ReservationID) {
	w.t.Helper()
	hold := w.hold(owner, lines...)
	id, secret := w.start(owner, hold, ledger.IdempotencyKey("buy-"+string(hold)))
	w.pay(secret)
	w.settle(id)
	w.wantReservation(id, ledger.ReservationCompleted, "")
	return hold, id
}

func renderNoHold(ledger.Hold, time.Time) (ledger.Response, error) {
	return ledger.Response{Status: 200}, nil
}

// cancelHold is the owner giving the hold up.
func (w *world) cancelHold(owner ledger.OwnerID, hold ledger.HoldID) error {
	_, err := w.commands.CancelHold(w.t.Context(), commands.Request{Actor: "owner", Owner: owner}, hold, renderNoHold)
	return err
}

// confirmHold is a shop that was paid elsewhere.
func (w *world) confirmHold(hold ledger.HoldID) error {
	_, err := w.commands.ConfirmHold(w.t.Context(), commands.Request{Actor: "shop"}, hold, "", nil, renderNoHold)
	return err
}

// cancel takes the reservation back for its owner, as a whole or by line.
func (w *world) cancel(id ledger.ReservationID, lines ...ledger.ReturnLine) error {
	_, err := w.commands.CancelReservation(w.t.Context(),
		commands.Request{Actor: "owner", Owner: w.reservation(id).Owner}, id, lines, commands.CancelByOwner, renderNothing)
	return err
}

func (w *world) wantReservation(id ledger.ReservationID, status ledger.ReservationStatus, reason ledger.Reason) {
	w.t.Helper()
	if r := w.reservation(id); r.Status != status || r.Reason != reason {
		w.t.Errorf("the reservation is %s (%q), want %s (%q): %+v", r.Status, r.Reason, status, reason, r)
	}
}

func (w *world) wantHold(id ledger.HoldID, status ledger.Status) {
	w.t.Helper()
	if h := w.storedHold(id); h.Status != status {
		w.t.Errorf("the hold is %s, want %s", h.Status, status)
	}
}

// wantCounters compares the slot with available/held/confirmed/capacity, as the cases
// write them.
func (w *world) wantCounters(slot ledger.SlotID, want string) {
	w.t.Helper()
	c := w.counters(slot)
	if got := fmt.Sprintf("%d/%d/%d/%d", c.Available, c.Held, c.Confirmed, c.Capacity); got != want {
		w.t.Errorf("slot %s is at %s, want %s", slot, got, want)
	}
}

// wantMoney compares what the bank itself took and gave back; nothing may be left
// reserved.
func (w *world) wantMoney(id ledger.ReservationID, currency ledger.Currency, captured, refunded int64) {
	w.t.Helper()
	b := w.bank.Book(id, currency)
	if b.CapturedMinor != captured || b.RefundedMinor != refunded || b.AuthorizedMinor != 0 {
		w.t.Errorf("the bank's book is %+v, want %d captured, %d refunded, nothing reserved", b, captured, refunded)
	}
}

func (w *world) wantCode(err error, code ledger.Code) {
	w.t.Helper()
	if got := ledger.CodeOf(err); got != code {
		w.t.Errorf("the answer is %q (%v), want %q", got, err, code)
	}
}

// releases counts the hold's events that gave its units back.
func (w *world) releases(hold ledger.HoldID) int {
	w.t.Helper()
	events, err := w.store.HoldEvents(w.t.Context(), hold)
	w.must(err)
	n := 0
	for _, e := range events {
		if slices.ContainsFunc(e.Movements, func(m ledger.Movement) bool { return m.To == ledger.BucketAvailable }) {
			n++
		}
	}
	return n
}

// steps counts the reservation's events by type.
func (w *world) steps(id ledger.ReservationID) map[ledger.EventType]int {
	w.t.Helper()
	events, err := w.store.ReservationEvents(w.t.Context(), id)
	w.must(err)
	out := map[ledger.EventType]int{}
	for _, e := range events {
		out[e.Type]++
	}
	return out
}

// path is each status that the reservation has had, in order.
func (w *world) path(id ledger.ReservationID) []ledger.ReservationStatus {
	w.t.Helper()
	events, err := w.store.ReservationEvents(w.t.Context(), id)
	w.must(err)
	var out []ledger.ReservationStatus
	for _, e := range events {
		out = append(out, e.Reservation.Status)
	}
	return slices.Compact(out)
}

func (w *world) wantPath(id ledger.ReservationID, want ...ledger.ReservationStatus) {
	w.t.Helper()
	if got := w.path(id); !slices.Equal(got, want) {
		w.t.Errorf("the reservation went %v, want %v", got, want)
	}
}

// calls counts the provider's calls of one method.
func (w *world) calls(m paymenttest.Method) int {
	n := 0
	for _, c := range w.provider.Calls() {
		if c.Method == m {
			n++
		}
	}
	return n
}

// of gives the notices of one type.
func of(kind string, notices []*payment.Notice) []*payment.Notice {
	return slices.DeleteFunc(slices.Clone(notices), func(n *payment.Notice) bool { return n.Type != kind })
}

var errNoAnswer = errors.New("no answer")

// permutations are all orders of n things.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var out [][]int
	for _, shorter := range permutations(n - 1) {
		for at := range n {
			out = append(out, slices.Insert(slices.Clone(shorter), at, n-1))
		}
	}
	return out
}

// slotWith changes the payment terms of a slot.
func slotWith(change func(*ledger.Policy)) func(*ledger.SlotDefinition) {
	return func(d *ledger.SlotDefinition) { change(&d.Policy) }
}

// fifteenMinutes is how long a hold of the cases lives, and it has no grace.
func fifteenMinutes(p *ledger.Policy) { p.HoldFor, p.GraceFor = 15*time.Minute, 0 }

func TestPermutationsAreAllOrders(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range permutations(4) {
		seen[fmt.Sprint(p)] = true
	}
	if len(seen) != 24 {
		t.Errorf("%d orders of 4 things", len(seen))
	}
}
