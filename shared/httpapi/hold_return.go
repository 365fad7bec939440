package httpapi

import (
	"net/http"

	"holdfast/shared/ledger"
)

// ReturnHold takes back what a trusted service has sold on its own.
func (a *API) ReturnHold(_ http.ResponseWriter, r *http.Request, id HoldID, params ReturnHoldParams) {
	x := exchangeOf(r)
	var body HoldReturnRequest
	if err := decode(x.body, &body); err != nil {
		x.fail(err)
		return
	}
	if err := orderLines(body.Lines, func(l HoldReturnLine) string { return l.SlotID }); err != nil {
		x.fail(err)
		return
	}
	request, err := x.request("service", params.IdempotencyKey, meaning{ID: id, Body: body})
	if err != nil {
		x.fail(err)
		return
	}
	var lines []ledger.ReturnLine
	for _, line := range body.Lines {
		lines = append(lines, ledger.ReturnLine{
			Slot: ledger.SlotID(line.SlotID), Quantity: ledger.Units(line.Quantity), Restock: restockOf(line.Restock),
		})
	}
	answer, err := a.commands.ReturnHold(r.Context(), request, ledger.HoldID(id), lines, renderHold(http.StatusOK))
	if err != nil {
		x.fail(err)
		return
	}
	x.answerCommand(answer)
}

// restockOf leaves to the policy what the body does not say.
func restockOf(restock *bool) ledger.Restock {
	switch {
	case restock == nil:
		return ledger.RestockByPolicy
	case *restock:
		return ledger.RestockAlways
	default:
		return ledger.RestockNever
	}
}
