package saga_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/saga"
)

const (
	seat    ledger.SlotID = "seat"
	dinner  ledger.SlotID = "dinner"
	credits ledger.SlotID = "credits"

	// settleRoundsMax bounds the rounds until nothing is due: about twenty looks of a
	// waiting payment, twenty of one that the provider does not give up, and the last looks.
	settleRoundsMax = 300
	// settleFor is longer than every wait of the terms here together. What is due later is
	// due every hour for ever, because it waits for a person.
	settleFor = 3 * time.Hour
)

var (
	errRequestLost = errors.New("the request was lost")
	errAnswerLost  = errors.New("the answer was lost")
)

// hookedStore is a store between whose decision and write something may happen.
type hookedStore struct {
	saga.Store
	before, after func(ledger.Change) error // nil for nothing
}

// Commit runs the hooks around the write.
func (s *hookedStore) Commit(ctx context.Context, c ledger.Change) error {
	if s.before != nil {
		if err := s.before(c); err != nil {
			return err
		}
	}
	if err := s.Store.Commit(ctx, c); err != nil {
		return err
	}
	if s.after != nil {
		return s.after(c)
	}
	return nil
}

// Postpone runs the hooks around the note, with an empty Change.
func (s *hookedStore) Postpone(ctx context.Context, id ledger.ReservationID, version ledger.Version, lookAt time.Time, tries int) error {
	if s.before != nil {
		if err := s.before(ledger.Change{}); err != nil {
			return err
		}
	}
	if err := s.Store.Postpone(ctx, id, version, lookAt, tries); err != nil {
		return err
	}
	if s.after != nil {
		return s.after(ledger.Change{})
	}
	return nil
}

// setting is what a history takes place in.
type setting struct {
	onDecline      ledger.OnDecline
	latePayment    ledger.LatePayment
	lateByProvider bool
	delivery       ledger.DeliveryKind
	grants         bool
	capacity       ledger.Units
	shards         int
	script         paymenttest.Script
}

// history is one course of events around one hold and its reservation.
type history struct {
	*world
	setting
	dice    *rand.Rand
	hooks   *hookedStore
	held    ledger.HoldID
	id      ledger.ReservationID // "" before the first attempt
	told    []*payment.Notice    // what the provider told and nobody has heard yet
	keys    int
	faults  faults
	trace   []string
	refunds bool // a refund was made to fail
	lied    bool // a payment succeeded that was voided
	// wrap, if set, is put around each drive.
	wrap func(func() error) error
	// captured are the payments that the saga has captured, and tookByItself those that the
	// bank has.
	captured, tookByItself map[ledger.PaymentID]bool
}

// faults are what goes wrong with the next calls.
type faults struct {
	outage                  bool
	requestLost, answerLost int // of so many calls
	commitLost              bool
}

func newHistory(t testing.TB, store saga.Store, s setting, dice *rand.Rand) *history {
	t.Helper()
	hooks := &hookedStore{Store: store}
	h := &history{world: newWorldOn(t, hooks), setting: s, dice: dice, hooks: hooks,
		captured: map[ledger.PaymentID]bool{}, tookByItself: map[ledger.PaymentID]bool{}}
	h.bank.SetDefaultScript(s.script)
	change := func(d *ledger.SlotDefinition) {
		d.Terms.Shards = s.shards
		d.Policy.Payment = ledger.PaymentTerms{
			OnDecline: s.onDecline, LatePayment: s.latePayment, LateByProvider: s.lateByProvider,
			UnknownFor: ledger.UnknownForDefault, Delivery: s.delivery,
		}
		if s.grants {
			d.Policy.GrantTo = string(credits)
		}
	}
	if s.grants {
		h.slot(credits, 3, nil)
	}
	h.slot(seat, s.capacity, change)
	h.slot(dinner, 4, change)
	h.held = h.hold("U-1", ledger.Quote{Slot: seat, Quantity: 2, UnitAmount: 1000}, ledger.Quote{Slot: dinner, Quantity: 1, UnitAmount: 1000})
	h.provider.Before = func(context.Context, paymenttest.Call) error {
		switch {
		case h.faults.outage:
			return errRequestLost
		case h.faults.requestLost > 0:
			h.faults.requestLost--
			return errRequestLost
		}
		return nil
	}
	h.provider.After = func(_ context.Context, c paymenttest.Call) error {
		if c.Method == paymenttest.MethodCapture {
			h.noteCapture(c.Payment)
		}
		if h.faults.answerLost > 0 {
			h.faults.answerLost--
			return errAnswerLost
		}
		return nil
	}
	return h
}

// fail reports what is wrong, with all that has happened.
func (h *history) fail(format string, args ...any) {
	h.t.Helper()
	h.t.Fatalf("%s\nsetting: %+v\ncourse: %s\nreservation: %+v\nhold: %+v\nbank: %+v", fmt.Sprintf(format, args...), h.setting,
		strings.Join(h.trace, ", "), h.current(), h.storedHold(h.held), h.bank.Payments())
}

// Errorf lets an audit report to the history.
func (h *history) Errorf(format string, args ...any) { h.fail(format, args...) }

// Fatalf lets an audit report to the history.
func (h *history) Fatalf(format string, args ...any) { h.fail(format, args...) }

// Helper is for the audit.
func (h *history) Helper() { h.t.Helper() }

// Context is for the audit.
func (h *history) Context() context.Context { return h.t.Context() }

func (h *history) note(format string, args ...any) {
	h.trace = append(h.trace, fmt.Sprintf(format, args...))
}

// current is the reservation, or none before the first attempt.
func (h *history) current() ledger.Reservation {
	if h.id == "" {
		return ledger.Reservation{}
	}
	return h.reservation(h.id)
}

// allow fails the history unless err is nil or has one of the codes.
func (h *history) allow(err error, codes ...ledger.Code) {
	h.t.Helper()
	if err != nil && !slices.Contains(codes, ledger.CodeOf(err)) {
		h.fail("a command gives %v", err)
	}
}

// listen takes over what the provider has told.
func (h *history) listen() { h.told = append(h.told, h.notices()...) }

// startAttempt is the buyer going to pay.
func (h *history) startAttempt(sameKey bool) {
	if !sameKey || h.keys == 0 {
		h.keys++
	}
	_, _, err := h.payments.Start(h.t.Context(), commands.Request{
		Actor: "owner", Owner: "U-1", Key: ledger.IdempotencyKey(fmt.Sprintf("key-%d", h.keys)), Fingerprint: "start",
	}, h.held, renderNothing)
	h.allow(err, ledger.CodeHoldNotActive, ledger.CodePaymentInProgress, ledger.CodeReservationNotActive,
		ledger.CodePaymentUnavailable, ledger.CodeKeyInProgress, ledger.CodeInvalid, ledger.CodeOutcomeUnknown)
	h.id = h.storedHold(h.held).Reservation
}

// run drives the reservation. A write whose answer was lost is an error that the queue
// or the next look repeats.
func (h *history) run(notice *payment.Notice) {
	if h.id == "" {
		return
	}
	h.allow(h.driveOnce(h.id, notice), ledger.CodeOutcomeUnknown)
}

func (h *history) driveOnce(id ledger.ReservationID, notice *payment.Notice) error {
	run := func() error { return h.driver.Drive(h.t.Context(), id, notice, "request") }
	if h.wrap != nil {
		return h.wrap(run)
	}
	return run()
}

// hear delivers a notice. One that was not recorded is delivered again, as the queue does
// with a message whose handling has failed.
func (h *history) hear(i int, again bool) {
	told := h.told[i]
	notice := *told
	if notice.Reservation != h.id {
		h.id = notice.Reservation
	}
	err := h.driveOnce(notice.Reservation, &notice)
	h.allow(err, ledger.CodeOutcomeUnknown)
	if err == nil && !again {
		h.told = slices.DeleteFunc(h.told, func(n *payment.Notice) bool { return n == told })
	}
}

// cancel is a wish to take the reservation back.
func (h *history) cancel(by commands.CancelBy, lines ...ledger.ReturnLine) {
	if h.id == "" {
		return
	}
	_, err := h.commands.CancelReservation(h.t.Context(), commands.Request{Actor: "owner", Owner: "U-1"}, h.id, lines, by, renderNothing)
	h.allow(err, ledger.CodeReservationNotActive, ledger.CodePaymentInProgress, ledger.CodeAlreadyUsed, ledger.CodeReturnOverSale,
		ledger.CodeInvalid, ledger.CodeHoldNotActive, ledger.CodeOutcomeUnknown)
}

func (h *history) cancelHold() {
	_, err := h.commands.CancelHold(h.t.Context(), commands.Request{Actor: "owner", Owner: "U-1"}, h.held, renderHold)
	h.allow(err, ledger.CodeHoldNotActive, ledger.CodePaymentInProgress, ledger.CodeOutcomeUnknown)
}

func renderHold(ledger.Hold, time.Time) (ledger.Response, error) { return ledger.Response{}, nil }

// courier tells what became of the delivery.
func (h *history) courier(delivered bool) {
	if h.id == "" {
		return
	}
	_, err := h.commands.DeliverReservation(h.t.Context(), commands.Request{Actor: "courier"}, h.id, delivered, renderNothing)
	h.allow(err, ledger.CodeReservationNotActive, ledger.CodeHoldNotActive, ledger.CodeOutcomeUnknown, ledger.CodeAlreadyUsed)
}

// rival is another buyer, who takes what is free and gives it back at random.
func (h *history) rival(slot ledger.SlotID, quantity ledger.Units) {
	var made ledger.HoldID
	_, err := h.commands.CreateHold(h.t.Context(), commands.Request{Actor: "owner", Owner: "U-2"}, commands.HoldWish{Quotes: []ledger.Quote{{Slot: slot, Quantity: quantity, UnitAmount: 1000}}},
		func(hold ledger.Hold, _ time.Time) (ledger.Response, error) {
			made = hold.ID
			return ledger.Response{}, nil
		})
	h.allow(err, ledger.CodeInsufficientStock, ledger.CodeSlotClosed, ledger.CodeOutcomeUnknown)
	if err != nil && ledger.CodeOf(err) != ledger.CodeOutcomeUnknown {
		return
	}
	h.holds = append(h.holds, made)
	if err == nil && h.dice.IntN(2) == 0 {
		_, err := h.commands.ConfirmHold(h.t.Context(), commands.Request{Actor: "shop"}, made, "", nil, renderHold)
		h.allow(err, ledger.CodeOutcomeUnknown)
	}
}

// open opens or closes the slot to new holds and late payments.
func (h *history) open(slot ledger.SlotID, open bool) {
	_, err := h.commands.PatchSlot(h.t.Context(), commands.Request{Actor: "catalog"}, slot, ledger.SlotPatch{Open: &open},
		func(ledger.Slot, ledger.Policy, ledger.Counters, bool) (ledger.Response, error) {
			return ledger.Response{}, nil
		})
	h.allow(err, ledger.CodeOutcomeUnknown)
}

// nextDue is when the reservation or a hold is due for the first time.
func (h *history) nextDue() (time.Time, bool) {
	var next time.Time
	earlier := func(at time.Time) {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, id := range h.holds {
		if at, held := h.storedHold(id).DueAt(); held {
			earlier(at)
		}
	}
	if h.id != "" {
		earlier(h.current().LookAt)
	}
	return next, !next.IsZero()
}

// sweepDue does what the sweep and the tick do, on the partitions where something is.
func (h *history) sweepDue() {
	now, shards := h.clock.Now(), map[int]bool{}
	for _, id := range h.holds {
		shards[ledger.DueShard(id)] = true
	}
	if h.id != "" {
		shards[ledger.ReservationDueShard(h.id)] = true
	}
	for shard := range ledger.DueShards {
		if !shards[shard] {
			continue
		}
		holds, _, err := h.store.Due(h.t.Context(), shard, now, ledger.Page{Limit: ledger.PageItemsMax})
		h.must(err)
		for _, due := range holds {
			_, err := h.commands.ExpireHold(h.t.Context(), due.ID, "sweep")
			h.allow(err, ledger.CodeHoldNotDue, ledger.CodeOutcomeUnknown)
		}
		reservations, _, err := h.store.DueReservations(h.t.Context(), shard, now, ledger.Page{Limit: ledger.PageItemsMax})
		h.must(err)
		for _, due := range reservations {
			h.allow(h.driveOnce(due.ID, nil), ledger.CodeOutcomeUnknown)
		}
	}
}

// untilNothingIsDue lets ticks and sweeps run until nothing is due but what waits for a person.
func (h *history) untilNothingIsDue() {
	h.t.Helper()
	end := h.clock.Now().Add(settleFor)
	for range settleRoundsMax {
		next, due := h.nextDue()
		if !due || next.After(end) {
			return
		}
		if next.After(h.clock.Now()) {
			h.clock.Set(next)
		}
		h.sweepDue()
	}
	h.fail("something is due after %d rounds", settleRoundsMax)
}

// finish ends the history: the provider is back, everything is told and delivered.
func (h *history) finish() {
	h.t.Helper()
	h.faults = faults{}
	h.hooks.before, h.hooks.after = nil, nil
	h.listen()
	h.hearRest()
	for range 3 { // one settles the payment, one its delivery, one what that has told
		h.untilNothingIsDue()
		h.courier(true)
		h.listen()
		h.hearRest()
	}
	h.untilNothingIsDue()
	h.checkEnd()
}

// hearRest delivers what is left of the notices in any order. All of them may be lost
// only while everything that they tell will be looked at anyway.
func (h *history) hearRest() {
	if h.looksByItself() && h.dice.IntN(2) == 0 {
		h.note("lost %d notices", len(h.told))
		h.told = nil
		return
	}
	for len(h.told) > 0 {
		h.hear(h.dice.IntN(len(h.told)), false)
	}
}

// looksByItself reports whether the saga needs no notice to learn how the payments stand.
// The attempts before the current one, and what was completed, it looks at only when it is
// told of them.
func (h *history) looksByItself() bool {
	r := h.current()
	switch r.Status {
	case ledger.ReservationPaymentPending, ledger.ReservationAuthorized, ledger.ReservationCompensating:
		return len(r.Attempts) == 1 && !h.refunds || !h.lied && !h.refunds
	case ledger.ReservationCanceled, ledger.ReservationRefunded:
		return len(r.Attempts) == 1 && !r.LookAt.IsZero()
	default:
		return !h.lied && !h.refunds && !r.LookAt.IsZero()
	}
}

// checkStep audits what must be true at every moment.
func (h *history) checkStep() {
	h.t.Helper()
	if h.id == "" {
		return
	}
	r := h.reservation(h.id)
	kept := 0
	for _, p := range h.bank.Payments() {
		if p.Captures > 1 {
			h.fail("P8: payment %s was captured %d times", p.ID, p.Captures)
		}
		if p.CapturedMinor == p.RefundedMinor || !h.captured[p.ID] {
			continue
		}
		kept++
		if p.Asked != r.Amount || p.CapturedMinor != r.Amount.AmountMinor || p.Amount.Currency != r.Amount.Currency {
			h.fail("P8: payment %s of %+v was captured for a quote of %+v", p.ID, p.Amount, r.Amount)
		}
		if !h.accountedFor(r) {
			h.fail("P8: payment %s was captured for a reservation that is %s", p.ID, r.Status)
		}
	}
	if kept > 1 {
		h.fail("P8: the money of %d payments was taken", kept)
	}
}

// noteCapture keeps which payment the saga has captured. What a bank that lies took by
// itself is known only once it is heard of.
func (h *history) noteCapture(id ledger.PaymentID) {
	for _, p := range h.bank.Payments() {
		if p.ID == id && p.Captures > 0 && !h.tookByItself[id] && !h.captured[id] {
			h.captured[id] = true
			if r := h.reservation(p.Reservation); !h.accountedFor(r) {
				h.fail("P8: payment %s is captured for a reservation that is %s", id, r.Status)
			}
		}
	}
}

// accountedFor reports whether money that was captured has a sold hold, or is owed back.
func (h *history) accountedFor(r ledger.Reservation) bool {
	switch r.Status {
	case ledger.ReservationConfirmed, ledger.ReservationCaptured, ledger.ReservationCompleted:
		return h.storedHold(r.SoldHold).Status == ledger.StatusConfirmed
	case ledger.ReservationCompensating, ledger.ReservationRefundRequired, ledger.ReservationReview:
		return true
	default:
		// A refund that has failed is known only once it is heard of.
		return r.OwedMinor() > 0 || h.refunds
	}
}

// sold is the value of what is sold and not returned.
func (h *history) sold(r ledger.Reservation) int64 {
	if r.SoldHold == "" {
		return 0
	}
	var value int64
	for _, line := range h.storedHold(r.SoldHold).Lines {
		value += line.UnitPrice.Times(line.Quantity - line.ReturnedQuantity()).AmountMinor
	}
	return value
}

// mismatched reports whether the bank takes other money than was asked for.
func (s setting) mismatched() bool { return s.script.AmountMinor != 0 || s.script.Currency != "" }

// checkEnd audits what must be true when nothing is due any more.
func (h *history) checkEnd() {
	h.t.Helper()
	h.checkStep()
	h.checkHolds()
	var reservations []ledger.ReservationID
	if h.id != "" {
		h.checkMoney(h.reservation(h.id))
		reservations = append(reservations, h.id)
	}
	holds := append(slices.Clone(h.holds), ledger.ReacquiredID(h.storedHold(h.held)))
	ledgertest.CheckBooks(h, h.store, h.slots, holds, reservations...)
}

func (h *history) checkHolds() {
	h.t.Helper()
	if held := h.storedHold(h.held); held.Status == ledger.StatusConfirmed && !held.EndedAt.Before(held.ReleaseAt) {
		h.fail("P4: the hold was over at %s and confirmed at %s", held.ReleaseAt, held.EndedAt)
	}
	for _, id := range h.holds {
		if at, held := h.storedHold(id).DueAt(); held {
			h.fail("P9: hold %s is HELD, due at %s, and it is %s", id, at, h.clock.Now())
		}
	}
}

// checkMoney compares the bank's own book with what the reservation says.
func (h *history) checkMoney(r ledger.Reservation) {
	h.t.Helper()
	var kept, reserved int64
	for _, b := range h.bank.Books() {
		kept += b.CapturedMinor - b.RefundedMinor
		reserved += b.AuthorizedMinor
	}
	person := h.script.RefundRefused || h.refunds // a refund may be left to a person
	if r.OwedMinor() > 0 && !person {
		h.fail("%d is owed", r.OwedMinor())
	}
	if want := h.sold(r) + r.OwedMinor(); r.Status != ledger.ReservationReview && (kept != want || reserved != 0) {
		h.fail("P8: the bank keeps %d and reserves %d, want %d and nothing", kept, reserved, want)
	}
	switch r.Status {
	case ledger.ReservationCompleted:
	case ledger.ReservationCanceled:
		if h.sold(r) != 0 {
			h.fail("a CANCELED reservation has sold")
		}
	case ledger.ReservationRefunded:
		if r.OwedMinor() != 0 {
			h.fail("a REFUNDED reservation owes %d", r.OwedMinor())
		}
	case ledger.ReservationRefundRequired:
		if !person || r.OwedMinor() == 0 {
			h.fail("a person is asked for a refund that nobody refused")
		}
	case ledger.ReservationReview:
		h.checkReview(r, kept, reserved)
	default:
		h.fail("the reservation has not ended")
	}
}

func (h *history) checkReview(r ledger.Reservation, kept, reserved int64) {
	h.t.Helper()
	switch {
	case r.Reason == ledger.ReasonLate && h.latePayment == ledger.LatePaymentReview:
		if kept-r.OwedMinor()+reserved > r.Amount.AmountMinor {
			h.fail("P8: the bank keeps %d and reserves %d of one quote", kept, reserved)
		}
	case r.Reason == ledger.ReasonMismatch && h.mismatched():
		if kept != r.OwedMinor() || reserved != 0 {
			h.fail("K3: the bank keeps %d and reserves %d of money that was not asked for", kept, reserved)
		}
	default:
		h.fail("nothing in the setting needs a person")
	}
}
