package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
)

// toldStore answers reads of one reservation and one hold as it is told to, so that every
// state can be shown, also those that take a saga to reach.
type toldStore struct {
	*memory.Store
	reservation ledger.Reservation
	hold        ledger.Hold
}

func (s *toldStore) Reservation(context.Context, ledger.ReservationID) (ledger.Reservation, error) {
	return s.reservation, nil
}

func (s *toldStore) Hold(context.Context, ledger.HoldID) (ledger.Hold, error) { return s.hold, nil }

const toldAmount = 2000

// toldHolds are the states that a hold can be found in at noon.
func toldHolds() map[string]ledger.Hold {
	line := ledger.Line{
		Slot: "seat", Quantity: 2, UnitPrice: ledger.Money{AmountMinor: toldAmount / 2, Currency: "KRW"},
		Shards: []ledger.Allocation{{Shard: 0, Quantity: 2}},
	}
	hold := func(status ledger.Status, releaseAt time.Time, open ledger.AttemptNumber, returned ledger.Units) ledger.Hold {
		l := line
		if returned > 0 {
			l.Returned = []ledger.Allocation{{Shard: 0, Quantity: returned}}
		}
		return ledger.Hold{
			ID: "hold_1", Owner: "U", Status: status, ExpiresAt: releaseAt, ReleaseAt: releaseAt,
			AttemptOpen: open, Reservation: "rsv_1", Lines: []ledger.Line{l}, Version: 1,
		}
	}
	before, after := noon.Add(-time.Minute), noon.Add(time.Minute)
	return map[string]ledger.Hold{
		"held":            hold(ledger.StatusHeld, after, 1, 0),
		"held, closed":    hold(ledger.StatusHeld, after, 0, 0),
		"over, open":      hold(ledger.StatusHeld, before, 1, 0),
		"over, closed":    hold(ledger.StatusHeld, before, 0, 0),
		"confirmed":       hold(ledger.StatusConfirmed, after, 0, 0),
		"partly returned": hold(ledger.StatusConfirmed, after, 0, 1),
		"returned":        hold(ledger.StatusReturned, after, 0, 2),
		"canceled":        hold(ledger.StatusCanceled, after, 0, 0),
		"expired":         hold(ledger.StatusExpired, before, 0, 0),
	}
}

// purse is what a reservation's attempts and refunds say.
type purse struct {
	attempts []ledger.Attempt
	refunds  []ledger.Refund
}

func toldPurses() map[string]purse {
	attempt := func(n int, state ledger.AttemptState, unwanted bool) ledger.Attempt {
		a := ledger.Attempt{Number: ledger.AttemptNumber(n), State: state, Unwanted: unwanted}
		if state == ledger.AttemptCaptured {
			a.CapturedMinor = toldAmount
		}
		return a
	}
	only := func(state ledger.AttemptState, unwanted bool, refunds ...ledger.Refund) purse {
		return purse{[]ledger.Attempt{attempt(1, state, unwanted)}, refunds}
	}
	refund := func(amount int64, state ledger.RefundState) ledger.Refund {
		return ledger.Refund{Number: 1, Attempt: 1, AmountMinor: amount, Reason: ledger.ReasonReturned, State: state}
	}
	surplus := func(state ledger.RefundState) purse {
		return purse{
			[]ledger.Attempt{attempt(1, ledger.AttemptCaptured, true), attempt(2, ledger.AttemptCaptured, false)},
			[]ledger.Refund{refund(toldAmount, state)},
		}
	}
	return map[string]purse{
		"free":             {},
		"open":             only(ledger.AttemptOpen, false),
		"open, unwanted":   only(ledger.AttemptOpen, true),
		"voided":           only(ledger.AttemptVoided, false),
		"voided, unwanted": only(ledger.AttemptVoided, true),
		"voided, open": {attempts: []ledger.Attempt{
			attempt(1, ledger.AttemptVoided, true), attempt(2, ledger.AttemptOpen, false),
		}},
		"authorized":           only(ledger.AttemptAuthorized, false),
		"authorized, unwanted": only(ledger.AttemptAuthorized, true),
		"captured":             only(ledger.AttemptCaptured, false),
		"captured, unwanted":   only(ledger.AttemptCaptured, true),
		"part owed":            only(ledger.AttemptCaptured, false, refund(toldAmount/2, ledger.RefundOwed)),
		"part done":            only(ledger.AttemptCaptured, false, refund(toldAmount/2, ledger.RefundDone)),
		"part failed":          only(ledger.AttemptCaptured, false, refund(toldAmount/2, ledger.RefundFailed)),
		"all owed":             only(ledger.AttemptCaptured, true, refund(toldAmount, ledger.RefundOwed)),
		"all done":             only(ledger.AttemptCaptured, true, refund(toldAmount, ledger.RefundDone)),
		"all failed":           only(ledger.AttemptCaptured, true, refund(toldAmount, ledger.RefundFailed)),
		"half of it done": only(ledger.AttemptCaptured, true,
			refund(toldAmount/2, ledger.RefundDone), refund(toldAmount/2, ledger.RefundOwed)),
		"surplus owed": surplus(ledger.RefundOwed),
		"surplus done": surplus(ledger.RefundDone),
	}
}

// combination is what of design section 2 can be found together.
type combination struct {
	status  ledger.ReservationStatus
	reasons []ledger.Reason
	holds   []string
	purses  []string
	// What may be answered, of each of the two.
	stock, money []string
}

func combinations() []combination {
	endings := []ledger.Reason{
		"", ledger.ReasonDeclined, ledger.ReasonRefused, ledger.ReasonExpired, ledger.ReasonHoldCanceled, ledger.ReasonOwnerCanceled,
		ledger.ReasonOperatorCanceled, ledger.ReasonPaymentUnknown, ledger.ReasonLate, ledger.ReasonMismatch,
		ledger.ReasonAuthorizationLost, ledger.ReasonDeliveryFailed, ledger.ReasonSurplus, ledger.ReasonReturned,
	}
	// Late money finds the units gone only when its hold has ended.
	goneReasons := []ledger.Reason{ledger.ReasonSoldOut}
	ended := []string{"canceled", "expired", "returned"}
	return []combination{
		{
			ledger.ReservationPaymentPending, []ledger.Reason{"", ledger.ReasonDeclined, ledger.ReasonRefused},
			[]string{"held", "over, open"}, []string{"open", "voided, open"},
			[]string{"held", "checking"}, []string{"expected", "checking"},
		},
		{
			ledger.ReservationPaymentPending, []ledger.Reason{"", ledger.ReasonDeclined, ledger.ReasonRefused},
			[]string{"held, closed", "over, closed", "canceled", "expired"}, []string{"voided", "voided, unwanted"},
			[]string{"held", "released"}, []string{"expected", "none"},
		},
		{
			ledger.ReservationAuthorized, []ledger.Reason{"", ledger.ReasonDeclined, ledger.ReasonLate},
			[]string{"held", "over, open", "over, closed", "expired"}, []string{"authorized"},
			[]string{"held", "checking"}, []string{"authorized"},
		},
		{
			ledger.ReservationConfirmed, []ledger.Reason{"", ledger.ReasonDeclined, ledger.ReasonLate},
			[]string{"confirmed"}, []string{"authorized"}, []string{"confirmed"}, []string{"authorized"},
		},
		{
			ledger.ReservationAuthorized, []ledger.Reason{""}, []string{"held", "held, closed"}, []string{"free"},
			[]string{"held"}, []string{"none"},
		},
		{
			ledger.ReservationCompleted, []ledger.Reason{"", ledger.ReasonReturned},
			[]string{"confirmed", "partly returned"}, []string{"free"}, []string{"confirmed", "partly_returned"}, []string{"none"},
		},
		{
			ledger.ReservationCaptured, []ledger.Reason{"", ledger.ReasonLate, ledger.ReasonSurplus},
			[]string{"confirmed"}, []string{"captured", "surplus owed", "surplus done"},
			[]string{"confirmed"}, []string{"captured", "refund_on_its_way"},
		},
		{
			ledger.ReservationCompleted, []ledger.Reason{"", ledger.ReasonLate, ledger.ReasonSurplus, ledger.ReasonReturned},
			[]string{"confirmed", "partly returned", "returned"},
			[]string{"captured", "part owed", "part done", "part failed", "surplus owed", "surplus done"},
			[]string{"confirmed", "partly_returned", "returned"}, []string{"captured", "refund_on_its_way", "refund_needs_help"},
		},
		{
			ledger.ReservationCompensating, goneReasons, []string{"canceled", "expired"},
			[]string{"authorized", "authorized, unwanted", "captured", "captured, unwanted", "all owed", "all done"},
			[]string{"released"}, []string{"authorized", "refund_on_its_way", "refunded"},
		},
		{
			ledger.ReservationCompensating, endings,
			[]string{"held", "held, closed", "over, open", "over, closed", "canceled", "expired", "returned"},
			[]string{
				"open", "open, unwanted", "voided, unwanted", "authorized", "authorized, unwanted", "captured", "captured, unwanted",
				"all owed", "all done", "half of it done",
			},
			[]string{"held", "checking", "released", "returned"},
			[]string{"checking", "none", "authorized", "refund_on_its_way", "refunded"},
		},
		{
			ledger.ReservationCanceled, append(goneReasons, endings...), ended, []string{"voided", "voided, unwanted"},
			[]string{"released", "returned"}, []string{"none"},
		},
		{
			ledger.ReservationRefunded, append(goneReasons, endings...), ended, []string{"all done"},
			[]string{"released", "returned"}, []string{"refunded"},
		},
		{
			ledger.ReservationRefundRequired, append(goneReasons, endings...), ended,
			[]string{"all failed", "all owed", "half of it done", "authorized, unwanted", "open, unwanted"},
			[]string{"released", "returned"}, []string{"refund_needs_help"},
		},
		{
			ledger.ReservationReview,
			[]ledger.Reason{"", ledger.ReasonLate, ledger.ReasonMismatch, ledger.ReasonPaymentUnknown, ledger.ReasonAuthorizationLost},
			[]string{"held", "held, closed", "over, open", "over, closed", "canceled", "expired", "confirmed"},
			[]string{"open", "voided", "authorized", "authorized, unwanted", "captured", "captured, unwanted", "all owed", "all done", "all failed"},
			[]string{"held", "checking", "released", "confirmed"},
			[]string{"checking", "none", "authorized", "captured", "refund_on_its_way", "refunded", "refund_needs_help"},
		},
	}
}

// What the message must say, and what it must not say, for each answer about the units and
// about the money. It is written without a look at the code.
var (
	stockWords = map[string][2]*regexp.Regexp{
		"held":            {regexp.MustCompile(`held for you|units are being released`), regexp.MustCompile(`no longer held|are yours|units w[a-z]+ given back|gone`)},
		"released":        {regexp.MustCompile(`no longer held|units were gone`), regexp.MustCompile(`are held for you|are yours|units are being released`)},
		"confirmed":       {regexp.MustCompile(`units are yours`), regexp.MustCompile(`held|gone|units was given back`)},
		"returned":        {regexp.MustCompile(`All units were given back`), regexp.MustCompile(`held|yours`)},
		"partly_returned": {regexp.MustCompile(`A part of the units was given back`), regexp.MustCompile(`held|All units`)},
		"checking":        {regexp.MustCompile(`units is being checked|get the units is being|units are being released`), regexp.MustCompile(`no longer held|are yours|gone`)},
	}
	moneyWords = map[string][2]*regexp.Regexp{
		"none":              {regexp.MustCompile(`No money was taken|Nothing has to be paid`), regexp.MustCompile(`refund|payment was taken|is reserved`)},
		"expected":          {regexp.MustCompile(`has not been made yet`), regexp.MustCompile(`refund|was taken|is reserved`)},
		"checking":          {regexp.MustCompile(`payment was made is being checked|payment is being stopped`), regexp.MustCompile(`refund|was taken|No money`)},
		"authorized":        {regexp.MustCompile(`money is reserved`), regexp.MustCompile(`refund|payment was taken|No money`)},
		"captured":          {regexp.MustCompile(`payment was taken`), regexp.MustCompile(`No money|on its way|All of the money`)},
		"refund_on_its_way": {regexp.MustCompile(`refund.* is on its way`), regexp.MustCompile(`No money|refunded`)},
		"refunded":          {regexp.MustCompile(`All of the money was refunded`), regexp.MustCompile(`No money|on its way|payment was taken`)},
		"refund_needs_help": {regexp.MustCompile(`a person is taking care`), regexp.MustCompile(`No money|on its way|refunded`)},
	}
	reasonWords = map[ledger.Reason]string{
		ledger.ReasonDeclined: "declined", ledger.ReasonRefused: "could not be started", ledger.ReasonExpired: "time was over",
		ledger.ReasonHoldCanceled: "gave the hold up", ledger.ReasonOwnerCanceled: "You cancelled", ledger.ReasonOperatorCanceled: "seller cancelled",
		ledger.ReasonPaymentUnknown: "made sure of", ledger.ReasonLate: "after the reservation was over", ledger.ReasonSoldOut: "units were gone",
		ledger.ReasonMismatch: "not the one", ledger.ReasonAuthorizationLost: "could not be taken", ledger.ReasonDeliveryFailed: "could not be delivered",
		ledger.ReasonSurplus: "more than once", ledger.ReasonReturned: "", "": "",
	}
	// purseMoney is what some purses mean whatever the status is. REFUND_REQUIRED alone turns
	// what is owed into what needs help.
	purseMoney = map[string]string{
		"captured, unwanted": "refund_on_its_way", "part owed": "refund_on_its_way", "part done": "captured", "part failed": "refund_needs_help",
		"all owed": "refund_on_its_way", "all done": "refunded", "all failed": "refund_needs_help", "half of it done": "refund_on_its_way",
		"surplus owed": "refund_on_its_way", "surplus done": "captured", "free": "none",
	}
	plainMessage = regexp.MustCompile(`^[A-Z][a-z ;,]+\.( [A-Z][a-z ;,]+\.)*$`)
)

// Every status with every reason, hold and purse that can be found together is told
// without a gap and without a contradiction.
func TestEveryOutcomeIsToldWhole(t *testing.T) {
	store := &toldStore{Store: memory.New()}
	f := newFixtureOn(t, store)
	holds, purses := toldHolds(), toldPurses()
	told, used := 0, map[string]bool{}
	for _, c := range combinations() {
		for _, reason := range c.reasons {
			for _, holdName := range c.holds {
				for _, purseName := range c.purses {
					told++
					used[holdName], used[purseName] = true, true
					store.hold = holds[holdName]
					store.reservation = reservationOf(c.status, reason, purses[purseName])
					what := fmt.Sprintf("%s, reason %q, hold %s, money %s", c.status, reason, holdName, purseName)
					a := f.toldWhole(what, c)
					if want := purseMoney[purseName]; want != "" && c.status != ledger.ReservationRefundRequired && a.text("money") != want {
						t.Errorf("%s: told %s, want %s", what, a.text("money"), want)
					}
					if words, known := reasonWords[reason]; !known || !strings.Contains(a.text("message"), words) {
						t.Errorf("%s: %q is not in %q", what, words, a.text("message"))
					}
				}
			}
		}
	}
	for name := range holds {
		if !used[name] {
			t.Errorf("no combination has a hold that is %s", name)
		}
	}
	for name := range purses {
		if !used[name] {
			t.Errorf("no combination has money that is %s", name)
		}
	}
	if told < 1000 {
		t.Errorf("only %d combinations", told)
	}
}

func reservationOf(status ledger.ReservationStatus, reason ledger.Reason, p purse) ledger.Reservation {
	amount := int64(toldAmount)
	if len(p.attempts) == 0 {
		amount = 0
	}
	return ledger.Reservation{
		ID: "rsv_1", Owner: "U", Hold: "hold_1", Status: status, Reason: reason,
		Amount: ledger.Money{AmountMinor: amount, Currency: "KRW"}, Attempts: p.attempts, Refunds: p.refunds,
		CreatedAt: noon, UpdatedAt: noon, Version: 3,
	}
}

// toldWhole checks the answer about one combination, and returns it.
func (f *fixture) toldWhole(what string, c combination) answer {
	f.t.Helper()
	a := f.get("/v1/reservations/rsv_1", "", owner("U"))
	a.want(http.StatusOK)
	stock, money, message := a.text("stock"), a.text("money"), a.text("message")
	if !slices.Contains(c.stock, stock) || !slices.Contains(c.money, money) {
		f.t.Errorf("%s: stock %s, money %s", what, stock, money)
	}
	captured, refunded, owed := a.number("captured_amount"), a.number("refunded_amount"), a.number("owed_amount")
	kept := captured - refunded - owed
	consistent := map[string]bool{
		"none": captured == 0, "expected": captured == 0, "checking": captured == 0, "authorized": captured == 0,
		"captured": kept > 0 && owed == 0, "refund_on_its_way": owed > 0, "refunded": owed == 0 && kept == 0 && refunded > 0,
		"refund_needs_help": captured == 0 || owed > 0,
	}
	if !consistent[money] || kept < 0 || owed < 0 {
		f.t.Errorf("%s: money %s, but captured %d, refunded %d, owed %d", what, money, captured, refunded, owed)
	}
	for word, words := range map[string][2]*regexp.Regexp{stock: stockWords[stock], money: moneyWords[money]} {
		if words[0] == nil || !words[0].MatchString(message) || words[1].MatchString(message) {
			f.t.Errorf("%s: %s is told as %q", what, word, message)
		}
	}
	if !plainMessage.MatchString(message) {
		f.t.Errorf("%s: the message is %q", what, message)
	}
	return a
}

// number is a member that is a whole number.
func (a answer) number(member string) int64 {
	a.t.Helper()
	var n int64
	if _, err := fmt.Sscan(fmt.Sprint(a.json()[member]), &n); err != nil {
		a.t.Fatalf("%s: %v in %s", member, err, a.body)
	}
	return n
}

// The messages that buyers meet most, to the letter.
func TestMessages(t *testing.T) {
	store := &toldStore{Store: memory.New()}
	f := newFixtureOn(t, store)
	holds, purses := toldHolds(), toldPurses()
	for _, test := range []struct {
		status      ledger.ReservationStatus
		reason      ledger.Reason
		hold, purse string
		want        string
	}{
		{ledger.ReservationPaymentPending, "", "held", "open", "The units are held for you. The payment has not been made yet."},
		{ledger.ReservationPaymentPending, ledger.ReasonDeclined, "held", "open", "The payment was declined. The units are held for you. The payment has not been made yet."},
		{ledger.ReservationPaymentPending, "", "over, open", "open", "Whether you get the units is being checked. Whether the payment was made is being checked."},
		{ledger.ReservationConfirmed, "", "confirmed", "authorized", "The units are yours. The money is reserved and was not taken yet."},
		{ledger.ReservationCaptured, "", "confirmed", "captured", "The units are yours. The payment was taken. What you bought is being delivered."},
		{ledger.ReservationCompleted, "", "confirmed", "captured", "The units are yours. The payment was taken."},
		{ledger.ReservationCompleted, ledger.ReasonReturned, "partly returned", "part owed", "A part of the units was given back, and the rest is yours. The payment was taken, and a refund of a part of it is on its way."},
		{ledger.ReservationCompensating, ledger.ReasonSoldOut, "expired", "all owed", "The payment was received after the reservation was over and the units were gone. A refund is on its way."},
		{ledger.ReservationCompensating, ledger.ReasonOwnerCanceled, "held", "open, unwanted", "You cancelled the reservation. The units are being released. The payment is being stopped; if it succeeds all the same, the money is given back."},
		{ledger.ReservationCanceled, ledger.ReasonDeclined, "canceled", "voided", "The payment was declined. The units are no longer held for you. No money was taken."},
		{ledger.ReservationRefunded, ledger.ReasonOwnerCanceled, "returned", "all done", "You cancelled the reservation. All units were given back. All of the money was refunded."},
		{ledger.ReservationRefundRequired, ledger.ReasonSoldOut, "expired", "all failed", "The payment was received after the reservation was over and the units were gone. The refund could not be made by itself; a person is taking care of it."},
		{ledger.ReservationReview, ledger.ReasonMismatch, "held, closed", "voided", "The payment was not the one that was asked for. The units are held for you. No money was taken. A person is looking at it and will decide."},
	} {
		store.hold, store.reservation = holds[test.hold], reservationOf(test.status, test.reason, purses[test.purse])
		if got := f.get("/v1/reservations/rsv_1", "", owner("U")).text("message"); got != test.want {
			t.Errorf("%s %s:\ngot  %s\nwant %s", test.status, test.reason, got, test.want)
		}
	}
}

// Every reason that the ledger has is one that the contract names, and the other way round.
func TestEveryReasonIsDescribed(t *testing.T) {
	contract := mustLoad(t)
	var described []string
	for _, value := range contract.Components.Schemas["ReservationReason"].Value.Enum {
		described = append(described, fmt.Sprint(value))
	}
	var told []string
	for _, c := range combinations() {
		for _, reason := range c.reasons {
			if reason != "" && !slices.Contains(told, string(reason)) {
				told = append(told, string(reason))
			}
		}
	}
	slices.Sort(told)
	slices.Sort(described)
	if !slices.Equal(told, described) {
		t.Errorf("described %s\ntold %s", strings.Join(described, " "), strings.Join(told, " "))
	}
}
