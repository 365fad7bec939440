package httpapi

import (
	"net/http"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
)

// EditHold changes the lines and the time of the caller's hold. Like a new hold it promises
// units until a time, so a machine whose clock is too wrong to say until when refuses it.
func (a *API) EditHold(_ http.ResponseWriter, r *http.Request, id HoldID, params EditHoldParams) {
	x := exchangeOf(r)
	var body HoldPatch
	if err := decode(x.body, &body); err != nil {
		x.fail(err)
		return
	}
	wish := commands.EditWish{ExtendFor: durationOrZero(body.HoldSeconds)}
	if body.Lines != nil {
		var err error
		if wish.Quotes, err = ledger.NormalizeQuotes(quotesOfLines(body.Lines)); err != nil {
			x.fail(err)
			return
		}
		body.Lines = linesOf(wish.Quotes)
	}
	request, err := x.request("owner", params.IdempotencyKey, meaning{ID: id, Body: body})
	if err != nil {
		x.fail(err)
		return
	}
	if err := a.refuseByClock(r.Context(), ledger.SlotID(id)); err != nil {
		x.fail(err)
		return
	}
	answer, err := a.commands.EditHold(r.Context(), request, ledger.HoldID(id), wish, renderHold(http.StatusOK))
	if err != nil {
		a.refuseEdit(r.Context(), x, ledger.HoldID(id), wish.Quotes, err)
		return
	}
	x.answerCommand(answer)
}

// ExtendHold gives the caller's hold more time.
func (a *API) ExtendHold(_ http.ResponseWriter, r *http.Request, id HoldID, params ExtendHoldParams) {
	x := exchangeOf(r)
	var body ExtendRequest
	if err := decode(x.body, &body); err != nil {
		x.fail(err)
		return
	}
	request, err := x.request("owner", params.IdempotencyKey, meaning{ID: id, Body: body})
	if err != nil {
		x.fail(err)
		return
	}
	if err := a.refuseByClock(r.Context(), ledger.SlotID(id)); err != nil {
		x.fail(err)
		return
	}
	answer, err := a.commands.ExtendHold(r.Context(), request, ledger.HoldID(id), durationOrZero(body.HoldSeconds), renderHold(http.StatusOK))
	if err != nil {
		x.fail(err)
		return
	}
	x.answerCommand(answer)
}

// durationOrZero is zero for a time that is not named.
func durationOrZero(seconds *int64) time.Duration {
	if d := duration(seconds); d != nil {
		return *d
	}
	return 0
}
