package httpapi

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/topology"
)

const (
	// pageItemsDefault is the limit of a list that names none.
	pageItemsDefault = 20
	// pageReadsMax bounds the store's pages that one page of an answer may read while it
	// looks for items that fit.
	pageReadsMax = 5
)

// CreateHold holds units for the caller, unless this machine's clock is too wrong to say
// until when.
func (a *API) CreateHold(_ http.ResponseWriter, r *http.Request, params CreateHoldParams) {
	x := exchangeOf(r)
	var body HoldRequest
	if err := decode(x.body, &body); err != nil {
		x.fail(err)
		return
	}
	quotes, err := quotesOf(body)
	if err == nil {
		quotes, err = ledger.NormalizeQuotes(quotes)
	}
	if err != nil {
		x.fail(err)
		return
	}
	// The signals are no part of the meaning. A device may well be known by another text when
	// an honest client asks again, and one key makes at most one hold whatever they say.
	request, err := x.request("owner", params.IdempotencyKey, meaning{Body: linesOf(quotes)})
	if err != nil {
		x.fail(err)
		return
	}
	if err := a.refuseByClock(r.Context(), quotes[0].Slot); err != nil {
		x.fail(err)
		return
	}
	wish := commands.HoldWish{Quotes: quotes, Signals: signalsOf(body.Signals, system.Millisecond(a.clock))}
	answer, err := a.commands.CreateHold(r.Context(), request, wish, renderHold(http.StatusCreated))
	if err != nil {
		a.refuseHold(r.Context(), x, quotes, err)
		return
	}
	x.answerCommand(answer)
}

// quotesOf reads either form of a request for a hold.
func quotesOf(body HoldRequest) ([]ledger.Quote, error) {
	short := body.SlotIds != nil || body.Quantity != nil || body.QuotedPrice != nil
	switch {
	case body.Lines != nil && short:
		return nil, invalid("body", "/lines", "send either lines, or slot_ids with quantity and quoted_price, not both")
	case body.Lines != nil:
		return quotesOfLines(body.Lines), nil
	case body.SlotIds == nil || body.Quantity == nil || body.QuotedPrice == nil:
		return nil, invalid("body", "", "send either lines, or slot_ids with quantity and quoted_price")
	}
	quotes := make([]ledger.Quote, len(body.SlotIds))
	for i, id := range body.SlotIds {
		quotes[i] = ledger.Quote{Slot: ledger.SlotID(id), Quantity: ledger.Units(*body.Quantity), UnitAmount: *body.QuotedPrice}
	}
	return quotes, nil
}

func quotesOfLines(lines []HoldRequestLine) []ledger.Quote {
	quotes := make([]ledger.Quote, len(lines))
	for i, line := range lines {
		quotes[i] = ledger.Quote{Slot: ledger.SlotID(line.SlotID), Quantity: ledger.Units(line.Quantity), UnitAmount: line.UnitAmount}
	}
	return quotes
}

// linesOf says normalized quotes in the words of the contract, which never change; the
// fingerprint of a request must not change with a name in our code.
func linesOf(quotes []ledger.Quote) []HoldRequestLine {
	lines := make([]HoldRequestLine, len(quotes))
	for i, q := range quotes {
		lines[i] = HoldRequestLine{SlotID: string(q.Slot), Quantity: int64(q.Quantity), UnitAmount: q.UnitAmount}
	}
	return lines
}

// ConfirmHold sells what the hold promises, or the lines of it that the body names.
func (a *API) ConfirmHold(_ http.ResponseWriter, r *http.Request, id HoldID, params ConfirmHoldParams) {
	x := exchangeOf(r)
	var body ConfirmRequest
	if err := decode(x.body, &body); err != nil {
		x.fail(err)
		return
	}
	lines, err := soldLinesOf(body)
	if err != nil {
		x.fail(err)
		return
	}
	request, err := x.request("service", params.IdempotencyKey, meaning{ID: id, Body: body})
	if err != nil {
		x.fail(err)
		return
	}
	var reference ledger.PaymentReference
	if body.PaymentReference != nil {
		reference = ledger.PaymentReference(*body.PaymentReference)
	}
	answer, err := a.commands.ConfirmHold(r.Context(), request, ledger.HoldID(id), reference, lines, renderHold(http.StatusOK))
	if err != nil {
		x.fail(err)
		return
	}
	x.answerCommand(answer)
}

// soldLinesOf reads what is sold, and puts it in the order of the slots; nil for all of it.
func soldLinesOf(body ConfirmRequest) ([]ledger.ReturnLine, error) {
	if err := orderLines(body.Lines, func(l ConfirmLine) string { return l.SlotID }); err != nil {
		return nil, err
	}
	var lines []ledger.ReturnLine
	for _, line := range body.Lines {
		lines = append(lines, ledger.ReturnLine{Slot: ledger.SlotID(line.SlotID), Quantity: ledger.Units(line.Quantity)})
	}
	return lines, nil
}

// orderLines puts lines in the order of their slots, so that two requests that mean the
// same are the same. A slot that is named twice is refused: whether the quantities are to
// be added up is not said.
func orderLines[Line any](lines []Line, slotOf func(Line) string) error {
	named := make(map[string]bool, len(lines))
	for i, line := range lines {
		if named[slotOf(line)] {
			return invalid("body", fmt.Sprintf("/lines/%d/slot_id", i), "must be a slot that no earlier line names")
		}
		named[slotOf(line)] = true
	}
	slices.SortFunc(lines, func(x, y Line) int { return cmp.Compare(slotOf(x), slotOf(y)) })
	return nil
}

// CancelHold gives the caller's hold back.
func (a *API) CancelHold(_ http.ResponseWriter, r *http.Request, id HoldID, params CancelHoldParams) {
	x := exchangeOf(r)
	request, err := x.request("owner", params.IdempotencyKey, meaning{ID: id})
	if err != nil {
		x.fail(err)
		return
	}
	answer, err := a.commands.CancelHold(r.Context(), request, ledger.HoldID(id), renderHold(http.StatusOK))
	if err != nil {
		x.fail(err)
		return
	}
	x.answerCommand(answer)
}

// GetHold answers with one hold, and changes nothing.
func (a *API) GetHold(_ http.ResponseWriter, r *http.Request, id HoldID) {
	x := exchangeOf(r)
	hold, err := a.store.Hold(r.Context(), ledger.HoldID(id))
	if err != nil {
		x.fail(err)
		return
	}
	p := x.caller.Principal
	if hold.Owner != p.Subject && !p.has(topology.ScopeConfirm) && !p.isOperator(a.operatorGroup) {
		x.fail(ledger.HoldNotFound())
		return
	}
	x.answerJSON(http.StatusOK, holdAt(hold, system.Millisecond(a.clock)))
}

// ListHolds answers with one page of an owner's holds. The next cursor is where the
// reading ended, not where the last hold that fits was, so that each hold is seen once.
func (a *API) ListHolds(_ http.ResponseWriter, r *http.Request, params ListHoldsParams) {
	x := exchangeOf(r)
	owner, err := a.listedOwner(x.caller.Principal, params.Owner)
	if err != nil {
		x.fail(err)
		return
	}
	limit, cursor := pageOf(params.Limit, params.Cursor)
	now := system.Millisecond(a.clock)
	list := HoldList{ServerTime: Time(now), Holds: []Hold{}}
	for range pageReadsMax {
		page := ledger.Page{Limit: limit - len(list.Holds), After: cursor}
		var holds []ledger.Hold
		if holds, cursor, err = a.store.HoldsOfOwner(r.Context(), owner, page); err != nil {
			x.fail(err)
			return
		}
		for _, h := range holds {
			if params.Status == nil || string(h.StatusAt(now)) == string(*params.Status) {
				list.Holds = append(list.Holds, holdAt(h, now))
			}
		}
		if cursor == "" || len(list.Holds) == limit {
			break
		}
	}
	list.NextCursor = cursorOrNil(cursor)
	x.answerJSON(http.StatusOK, list)
}

// listedOwner is whose holds or reservations the caller may list.
func (a *API) listedOwner(p Principal, named *string) (ledger.OwnerID, error) {
	switch {
	case named == nil && p.has(topology.ScopeHolds):
		return p.Subject, nil
	case named == nil:
		return "", invalid("query", "owner", "an operator names whose list to read")
	case p.isOperator(a.operatorGroup):
		return ledger.OwnerID(*named), nil
	}
	return "", &refusal{code: codeForbidden, detail: "only an operator may name an owner; leave it out for your own list"}
}

// request says who asks and makes the command repeatable. kind says what kind of caller
// the route is for.
func (x *exchange) request(kind, key string, m meaning) (commands.Request, error) {
	x.keyed = key != ""
	m.Method, m.Route = x.method, x.route
	print, err := fingerprint(m)
	return commands.Request{
		Actor:     x.actor(kind),
		RequestID: x.caller.RequestID,
		Owner:     x.caller.Principal.Subject,
		Key:       ledger.IdempotencyKey(key), Fingerprint: print,
	}, err
}

func (x *exchange) actor(kind string) ledger.Actor {
	return ledger.Actor(kind + ":" + string(x.caller.Principal.Subject))
}

// renderHold makes the answer that a command gives and keeps.
func renderHold(status int) commands.RenderHold {
	return func(h ledger.Hold, now time.Time) (ledger.Response, error) {
		body, err := json.Marshal(holdAt(h, now))
		return ledger.Response{Status: status, Body: body}, err
	}
}

// holdAt is the hold as a reader is shown it at now.
func holdAt(h ledger.Hold, now time.Time) Hold {
	total := h.Total()
	out := Hold{
		HoldID: string(h.ID), Status: HoldStatus(h.StatusAt(now)),
		CreatedAt: Time(h.CreatedAt), ExpiresAt: Time(h.ExpiresAt), ReleaseAt: Time(h.ReleaseAt),
		EndedAt: timeOrNil(h.EndedAt), ServerTime: Time(now),
		HoldSeconds: seconds(h.HoldFor), GraceSeconds: seconds(h.GraceFor),
		Lines: make([]HoldLine, len(h.Lines)),
		Total: Money{Amount: total.AmountMinor, Currency: string(total.Currency)},

		PaymentReference: textOrNil[string](h.PaymentReference),
		ReservationID:    textOrNil[string](h.Reservation), PaymentOpen: h.AttemptOpen != 0,
		Reacquires: textOrNil[string](h.Reacquires),
		Version:    int64(h.Version),
	}
	if h.StatusAt(now) == ledger.StatusHeld && h.Reservation == "" {
		out.ExtendableUntil = timeOrNil(h.CreatedAt.Add(h.HoldForMax))
	}
	for i, line := range h.Lines {
		out.Lines[i] = HoldLine{
			SlotID: string(line.Slot), Quantity: int64(line.Quantity),
			UnitAmount: line.UnitPrice.AmountMinor, Amount: line.UnitPrice.Times(line.Quantity).AmountMinor,
			ReturnedQuantity: int64(line.ReturnedQuantity()), CancelUntil: timeOrNil(line.CancelUntil),
			GrantToSlotID: textOrNil[string](line.GrantTo),
		}
	}
	return out
}

func seconds(d time.Duration) Seconds { return Seconds(d / time.Second) }

// pageOf reads the parameters of a page, which the document has bounded.
func pageOf(limit *Limit, cursor *Cursor) (int, ledger.Cursor) {
	items, after := pageItemsDefault, ledger.Cursor("")
	if limit != nil {
		items = int(*limit)
	}
	if cursor != nil {
		after = ledger.Cursor(*cursor)
	}
	return items, after
}

func cursorOrNil(c ledger.Cursor) *string {
	if c == "" {
		return nil
	}
	text := string(c)
	return &text
}
