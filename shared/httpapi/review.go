package httpapi

import (
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// ListReviews answers with one page of what waits for a person.
func (a *API) ListReviews(_ http.ResponseWriter, r *http.Request, params ListReviewsParams) {
	x := exchangeOf(r)
	limit, cursor := pageOf(params.Limit, params.Cursor)
	var kind ledger.ReviewKind
	if params.Kind != nil {
		kind = ledger.ReviewKind(*params.Kind)
	}
	cases, next, err := a.reviews.List(r.Context(), kind, ledger.Page{Limit: limit, After: cursor})
	if err != nil {
		x.fail(err)
		return
	}
	now := system.Millisecond(a.clock)
	list := ReviewList{ServerTime: Time(now), Reviews: make([]Review, len(cases)), NextCursor: cursorOrNil(next)}
	for i, c := range cases {
		list.Reviews[i] = reviewAt(c, now)
	}
	x.answerJSON(http.StatusOK, list)
}

// GetReview answers with one case and what is needed to decide it.
func (a *API) GetReview(_ http.ResponseWriter, r *http.Request, id CaseID) {
	x := exchangeOf(r)
	found, err := a.reviews.Case(r.Context(), id)
	if err != nil {
		x.fail(err)
		return
	}
	x.answerJSON(http.StatusOK, wholeReviewAt(found, system.Millisecond(a.clock)))
}

// ClaimReview takes the case for the caller.
func (a *API) ClaimReview(_ http.ResponseWriter, r *http.Request, id CaseID, params ClaimReviewParams) {
	x := exchangeOf(r)
	request, err := x.request("operator", params.IdempotencyKey, meaning{ID: id})
	if err != nil {
		x.fail(err)
		return
	}
	answer, err := a.reviews.Claim(r.Context(), request, id, renderReview)
	if err != nil {
		x.fail(err)
		return
	}
	x.answerCommand(answer)
}

// DecideReview carries out what the caller decides about the case.
func (a *API) DecideReview(_ http.ResponseWriter, r *http.Request, id CaseID, params DecideReviewParams) {
	x := exchangeOf(r)
	var body DecisionRequest
	if err := decode(x.body, &body); err != nil {
		x.fail(err)
		return
	}
	request, err := x.request("operator", params.IdempotencyKey, meaning{ID: id, Body: body})
	if err != nil {
		x.fail(err)
		return
	}
	request.Why = body.Why
	answer, err := a.reviews.Decide(r.Context(), request, id, ledger.ReviewDecision(body.Decision), renderReview)
	if err != nil {
		x.fail(err)
		return
	}
	x.answerCommand(answer)
}

func renderReview(c commands.Case, now time.Time) (ledger.Response, error) {
	body, err := json.Marshal(wholeReviewAt(c, now))
	return ledger.Response{Status: http.StatusOK, Body: body}, err
}

// reviewAt is the case as a list shows it at now.
func reviewAt(c commands.Case, now time.Time) Review {
	r := c.Review
	out := Review{
		CaseID: c.Name, ReviewID: string(r.ID), Kind: ReviewKind(r.Kind), Status: ReviewStatus(r.Status), Waits: c.Waits,
		WaitingSince: timeOrNil(c.Since), Summary: c.Summary(), Facts: []ReviewFact{}, Decisions: []ReviewOption{}, ServerTime: Time(now),
	}
	if until := r.ClaimedAt.Add(ledger.ReviewClaimFor); r.Status == ledger.ReviewClaimed && now.Before(until) {
		out.ClaimedBy, out.ClaimedUntil = textOrNil[string](r.ClaimedBy), timeOrNil(until)
	} else if r.Status == ledger.ReviewClaimed {
		out.Status = ReviewStatus(ledger.ReviewOpen) // whoever claimed it has gone home
	}
	if r.Decision != "" {
		out.LastDecision, out.DecidedBy = textOrNil[string](r.Decision), textOrNil[string](r.DecidedBy)
		out.DecidedAt, out.Why = timeOrNil(r.DecidedAt), textOrNil[string](r.Why)
	}
	return out
}

// wholeReviewAt is the case at now with what is needed to decide it.
func wholeReviewAt(c commands.Case, now time.Time) Review {
	out := reviewAt(c, now)
	for _, fact := range c.Facts() {
		out.Facts = append(out.Facts, ReviewFact{Name: fact.Name, Text: fact.Text})
	}
	for _, option := range c.Options(now) {
		out.Decisions = append(out.Decisions, ReviewOption{
			Decision: ReviewDecision(option.Decision), Effect: option.Effect, NotPossible: textOrNil[string](option.NotPossible),
		})
	}
	return out
}
