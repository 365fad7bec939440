package ledgertest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"holdfast/shared/ledger"
)

var reviewRules = []rule{
	{"IsKeptAsItWasWritten", reviewIsKept},
	{"OpenedTwiceIsRefused", reviewOpenedTwiceIsRefused},
	{"ClaimIsUnderTheVersion", claimIsUnderTheVersion},
	{"OpensAgainAfterTheDecision", reviewOpensAgain},
	{"RepeatedAfterALostAnswer", repeatedReviewIsRecognised},
	{"IsReadForSeveral", reviewsAreReadForSeveral},
	{"P5_DecisionGoesWithWhatItDoes", decisionGoesWithWhatItDoes},
	{"ListsWhatWaits", listsWhatWaits},
	{"ListForgetsWhatIsDecided", listForgetsWhatIsDecided},
	{"ListsReservationsThatWait", listsReservationsThatWait},
	{"Race_OneClaimWins", raceToClaim},
}

// opened builds the change that opens the case of a finding about that subject.
func (f *fixture) opened(subject string) ledger.Change {
	f.Helper()
	review := ledger.NewReview(ledger.ReviewFinding, "money_mismatch/"+subject, f.now)
	review.Finding, review.Evidence = "money_mismatch", "500 were taken, 300 given back, \u2713 and 100 kept"
	stored := f.reviews(review.ID)
	origin := f.origin(ledger.CommandOpenReview)
	if len(stored) == 0 {
		return ledger.OpenReview(ledger.Review{}, review, origin, f.now)
	}
	return ledger.OpenReview(stored[0], review, origin, f.now)
}

func (f *fixture) reviews(ids ...ledger.ReviewID) []ledger.Review {
	f.Helper()
	stored, err := f.store.Reviews(f.ctx, ids)
	f.read(err)
	return stored
}

// inReview commits the opening of a case and returns it.
func (f *fixture) inReview(subject string) ledger.Review {
	f.Helper()
	change := f.opened(subject)
	f.commit(change)
	return change.Reviews[0].Next
}

// operator is the origin of what that person does, with a reason.
func (f *fixture) operator(name string, command ledger.Command) ledger.Origin {
	origin := f.origin(command)
	origin.Actor, origin.Why = ledger.Actor("operator:"+name), "the buyer has called; \u20ac 5 are back"
	return origin
}

func (f *fixture) claim(r ledger.Review, who string) ledger.Change {
	f.Helper()
	return f.built(ledger.ClaimReview(r, f.operator(who, ledger.CommandClaimReview), f.now))
}

func (f *fixture) decide(r ledger.Review, d ledger.ReviewDecision, who string) ledger.Change {
	f.Helper()
	return f.built(ledger.DecideReview(r, d, f.operator(who, ledger.CommandDecideReview), f.now))
}

func (f *fixture) refusedReview(id ledger.ReviewID) ledger.RefusedLeg {
	f.Helper()
	stored := f.reviews(id)
	return ledger.RefusedLeg{Kind: ledger.LegReview, Review: &stored[0]}
}

// waiting is the whole list of what waits for a person.
func (f *fixture) waiting(limit int) []ledger.InReview {
	f.Helper()
	return walk(f, limit, func(page ledger.Page) ([]ledger.InReview, ledger.Cursor, error) { return f.store.InReview(f.ctx, page) })
}

// reviewEvents requires the case to have these events, the versions of which count from 1,
// and the last of which tells the case as it is.
func (f *fixture) reviewEvents(id ledger.ReviewID, want ...ledger.EventType) []ledger.Event {
	f.Helper()
	events, err := f.store.ReviewEvents(f.ctx, id)
	f.read(err)
	var types []ledger.EventType
	for i, e := range events {
		types = append(types, e.Type)
		f.equal("version of an event of the case", e.Version, ledger.Version(i+1))
	}
	f.equal("events of the case", types, want)
	f.equal("the case as its last event tells it", *events[len(events)-1].Review, f.reviews(id)[0])
	return events
}

func reviewIsKept(f *fixture) {
	open := f.inReview("rsv_1")
	f.equal("case", f.reviews(open.ID), []ledger.Review{open})
	f.now = f.now.Add(time.Minute)
	change := f.claim(open, "lee")
	f.commit(change)
	claimed := change.Reviews[0].Next
	f.equal("case, claimed", f.reviews(open.ID), []ledger.Review{claimed})
	f.now = f.now.Add(time.Minute)
	change = f.decide(claimed, ledger.DecisionDismiss, "lee")
	f.commit(change)
	f.equal("case, decided", f.reviews(open.ID), []ledger.Review{change.Reviews[0].Next})
	events := f.reviewEvents(open.ID, ledger.EventReviewOpened, ledger.EventReviewClaimed, ledger.EventReviewDecided)
	f.equal("who decided, from where and why", events[2].Origin, change.Events[0].Origin)
	none, err := f.store.ReviewEvents(f.ctx, ledger.ReviewIDOf(ledger.ReviewFinding, "nothing"))
	f.read(err)
	f.equal("events of a case that is not there", none, []ledger.Event{})
}

func reviewOpenedTwiceIsRefused(f *fixture) {
	first, second := f.opened("rsv_1"), f.opened("rsv_1")
	f.commit(first)
	f.refuse(second, f.refusedReview(first.Reviews[0].Next.ID), f.refusedReviewEvent(first))
	f.reviewEvents(first.Reviews[0].Next.ID, ledger.EventReviewOpened)
}

// refusedReviewEvent is the leg of the event of a change that was there before.
func (f *fixture) refusedReviewEvent(c ledger.Change) ledger.RefusedLeg {
	return ledger.RefusedLeg{Kind: ledger.LegEvent, Event: &c.Events[0]}
}

func claimIsUnderTheVersion(f *fixture) {
	open := f.inReview("rsv_1")
	mine, theirs := f.claim(open, "lee"), f.claim(open, "kim")
	f.commit(mine)
	f.refuse(theirs, f.refusedReview(open.ID), f.refusedReviewEvent(mine))
	late := f.decide(open, ledger.DecisionDismiss, "kim") // decided before the claim was seen
	f.refuse(late, f.refusedReview(open.ID), f.refusedReviewEvent(mine))

	claimed := f.reviews(open.ID)[0]
	_, err := ledger.ClaimReview(claimed, f.operator("kim", ledger.CommandClaimReview), f.now.Add(ledger.ReviewClaimFor-time.Millisecond))
	f.equal("code of a claim against it", ledger.CodeOf(err), ledger.CodeReviewClaimed)
	f.now = f.now.Add(ledger.ReviewClaimFor)
	f.commit(f.claim(claimed, "kim"))
	f.equal("who works on it after half an hour", f.reviews(open.ID)[0].ClaimedBy, ledger.Actor("operator:kim"))
	missing := f.claim(ledger.NewReview(ledger.ReviewExpiry, "hold_1", f.now), "lee")
	missing.Reviews[0].Next.Version, missing.Events[0].Version, missing.Reviews[0].Replaces = 2, 2, 1
	f.refuse(missing, ledger.RefusedLeg{Kind: ledger.LegReview})
}

func reviewOpensAgain(f *fixture) {
	open := f.inReview("rsv_1")
	f.equal("change for what waits already", f.opened("rsv_1").Empty(), true)
	f.commit(f.decide(open, ledger.DecisionRepaired, "lee"))
	f.equal("waits after the decision", f.waiting(10), []ledger.InReview{})
	f.now = f.now.Add(time.Hour)
	again := f.inReview("rsv_1")
	f.equal("case", f.reviews(open.ID), []ledger.Review{again})
	f.equal("waits", f.waiting(10), []ledger.InReview{{Review: open.ID, Since: f.now}})
	f.reviewEvents(open.ID, ledger.EventReviewOpened, ledger.EventReviewDecided, ledger.EventReviewOpened)
}

func repeatedReviewIsRecognised(f *fixture) {
	open := f.opened("rsv_1")
	for range 2 {
		f.commit(open)
	}
	claim := f.claim(open.Reviews[0].Next, "lee")
	for range 2 {
		f.commit(claim)
	}
	f.reviewEvents(open.Reviews[0].Next.ID, ledger.EventReviewOpened, ledger.EventReviewClaimed)
}

func reviewsAreReadForSeveral(f *fixture) {
	a, b := f.inReview("a"), f.inReview("b")
	byID := func(x, y ledger.Review) int { return cmp.Compare(x.ID, y.ID) }
	got := f.reviews(b.ID, ledger.ReviewIDOf(ledger.ReviewFinding, "nothing"), a.ID, b.ID)
	f.equal("cases", slices.SortedFunc(slices.Values(got), byID), slices.SortedFunc(slices.Values([]ledger.Review{a, b}), byID))
	f.equal("cases of no ids", f.reviews(), []ledger.Review{})
	_, err := f.store.Reviews(f.ctx, make([]ledger.ReviewID, ledger.PageItemsMax+1))
	f.equal("code for too many", ledger.CodeOf(err), ledger.CodeInvalid)
}

// decisionGoesWithWhatItDoes: who releases a hold by a decision has both written or none.
func decisionGoesWithWhatItDoes(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	hold := f.held(one(slot, 2))
	parked := ledger.NewReview(ledger.ReviewExpiry, string(hold.ID), f.now)
	f.now = hold.ReleaseAt
	both := ledger.Together(f.expire(hold), f.decide(parked, ledger.DecisionRelease, "lee"))
	claim := f.claim(parked, "kim")
	f.commit(claim)
	f.refuse(both, f.refusedReview(parked.ID), f.refusedReviewEvent(claim))
	f.counters(slot, ledger.Counters{Available: 2, Held: 2, Capacity: 4})
	f.now = f.now.Add(ledger.ReviewClaimFor)
	f.commit(ledger.Together(f.expire(hold), f.decide(f.reviews(parked.ID)[0], ledger.DecisionRelease, "lee")))
	f.counters(slot, ledger.Counters{Available: 4, Capacity: 4})
	f.equal("decision", f.reviews(parked.ID)[0].Decision, ledger.DecisionRelease)
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

func listsWhatWaits(f *fixture) {
	var want []ledger.InReview
	for i, offset := range []int{0, 7, 77, 777, 877, 877, 10_000} {
		f.now = noon.Add(time.Duration(offset) * time.Millisecond)
		want = append(want, ledger.InReview{Review: f.inReview(fmt.Sprintf("subject-%d", i)).ID, Since: f.now})
	}
	slices.SortFunc(want, func(a, b ledger.InReview) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Review, b.Review))
	})
	for _, limit := range walkLimits {
		f.equal(fmt.Sprintf("what waits, in pages of %d", limit), f.waiting(limit), want)
	}
	for _, page := range []ledger.Page{{Limit: 0}, {Limit: ledger.PageItemsMax + 1}, {Limit: 1, After: "nonsense"}} {
		_, _, err := f.store.InReview(f.ctx, page)
		f.equal(fmt.Sprintf("code for the page %+v", page), ledger.CodeOf(err), ledger.CodeInvalid)
	}
}

// listForgetsWhatIsDecided: also in the middle of a walk, and a cursor on it stays good.
func listForgetsWhatIsDecided(f *fixture) {
	var all []ledger.InReview
	for i := range 5 {
		f.now = f.now.Add(time.Second)
		all = append(all, ledger.InReview{Review: f.inReview(fmt.Sprintf("subject-%d", i)).ID, Since: f.now})
	}
	f.commit(f.claim(f.reviews(all[3].Review)[0], "lee"))
	f.equal("what waits, one of it claimed", f.waiting(2), all)
	_, next, err := f.store.InReview(f.ctx, ledger.Page{Limit: 2})
	f.read(err)
	for _, gone := range all[1:3] {
		f.commit(f.decide(f.reviews(gone.Review)[0], ledger.DecisionDismiss, "lee"))
	}
	rest, _, err := f.store.InReview(f.ctx, ledger.Page{Limit: 5, After: next})
	f.read(err)
	f.equal("the rest of the walk", rest, all[3:])
	f.equal("what waits, from the beginning", f.waiting(1), []ledger.InReview{all[0], all[3], all[4]})
	f.commit(f.claim(ledger.NewReview(ledger.ReviewExpiry, "hold_1", f.now), "lee"))
	f.equal("what waits, beside a case of another kind", f.waiting(5), []ledger.InReview{all[0], all[3], all[4]})
}

// listsReservationsThatWait: they are cases without a record, in one list with the findings.
func listsReservationsThatWait(f *fixture) {
	finding := ledger.InReview{Review: f.inReview("rsv_1").ID, Since: f.now}
	next := ledger.Reservation{ID: f.reservationID(), Owner: theOwner, Hold: f.holdID(), Status: ledger.ReservationPaymentPending}
	f.commit(f.step(ledger.Reservation{}, next, ledger.EventReservationPaymentStarted, f.origin(ledger.CommandStartPayment)))
	f.equal("what waits", f.waiting(5), []ledger.InReview{finding})
	into := func(status ledger.ReservationStatus, event ledger.EventType) time.Time {
		f.now = f.now.Add(time.Minute)
		stored := f.storedReservation(next.ID)
		step := stored.Clone()
		step.Status = status
		f.commit(f.step(stored, step, event, f.origin(ledger.CommandDriveReservation)))
		return f.now
	}
	since := into(ledger.ReservationReview, ledger.EventReservationReview)
	f.equal("what waits, with a review", f.waiting(1), []ledger.InReview{finding, {Reservation: next.ID, Since: since}})
	into(ledger.ReservationCompensating, ledger.EventReservationCompensating)
	f.equal("what waits, the review over", f.waiting(1), []ledger.InReview{finding})
	since = into(ledger.ReservationRefundRequired, ledger.EventReservationRefundRequired)
	f.equal("what waits, with a refund", f.waiting(1), []ledger.InReview{finding, {Reservation: next.ID, Since: since}})
	into(ledger.ReservationRefunded, ledger.EventReservationRefunded)
	f.equal("what waits, the refund done", f.waiting(1), []ledger.InReview{finding})
}

// raceToClaim: of many people who take one case at once, one has it.
func raceToClaim(f *fixture) {
	for round := range raceRounds {
		open := f.inReview(fmt.Sprintf("subject-%d", round))
		changes := make([]ledger.Change, raceCallers)
		for i := range changes {
			changes[i] = f.claim(open, fmt.Sprintf("operator-%d", i))
		}
		won := f.winner(f.race(changes), ledger.LegReview)
		f.equal("who works on it", f.reviews(open.ID)[0].ClaimedBy, changes[won].Events[0].Origin.Actor)
	}
}
