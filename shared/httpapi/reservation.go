package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/topology"
)

const (
	// reservationPath, with the id after it, is where a reservation is read.
	reservationPath = "/v1/reservations/"
	// momentReadsMax bounds how often a reservation and its hold are read until they are of
	// one moment. A sale happens once, so the second time is the last that finds one.
	momentReadsMax = 3
)

// GetReservation answers with one reservation, and changes nothing.
func (a *API) GetReservation(_ http.ResponseWriter, r *http.Request, id ReservationID) {
	x := exchangeOf(r)
	reservation, err := a.store.Reservation(r.Context(), ledger.ReservationID(id))
	if err != nil {
		x.fail(err)
		return
	}
	p := x.caller.Principal
	if reservation.Owner != p.Subject && !p.has(topology.ScopeConfirm) && !p.isOperator(a.operatorGroup) {
		x.fail(ledger.ReservationNotFound())
		return
	}
	reservation, hold, err := a.withHold(r.Context(), reservation)
	if err != nil {
		x.fail(err)
		return
	}
	x.answerJSON(http.StatusOK, reservationAt(reservation, hold, system.Millisecond(a.clock)))
}

// ListReservations answers with one page of an owner's reservations. As in a list of
// holds, the next cursor is where the reading ended.
func (a *API) ListReservations(_ http.ResponseWriter, r *http.Request, params ListReservationsParams) {
	x := exchangeOf(r)
	owner, err := a.listedOwner(x.caller.Principal, params.Owner)
	if err != nil {
		x.fail(err)
		return
	}
	limit, cursor := pageOf(params.Limit, params.Cursor)
	now := system.Millisecond(a.clock)
	list := ReservationList{ServerTime: Time(now), Reservations: []Reservation{}}
	for range pageReadsMax {
		page := ledger.Page{Limit: limit - len(list.Reservations), After: cursor}
		var reservations []ledger.Reservation
		if reservations, cursor, err = a.store.ReservationsOfOwner(r.Context(), owner, page); err != nil {
			x.fail(err)
			return
		}
		for _, reservation := range reservations {
			if params.Status != nil && string(reservation.Status) != string(*params.Status) {
				continue
			}
			reservation, hold, err := a.withHold(r.Context(), reservation)
			if err != nil {
				x.fail(err)
				return
			}
			list.Reservations = append(list.Reservations, reservationAt(reservation, hold, now))
		}
		if cursor == "" || len(list.Reservations) == limit {
			break
		}
	}
	list.NextCursor = cursorOrNil(cursor)
	x.answerJSON(http.StatusOK, list)
}

// withHold reads the hold that tells what happened to the units, and the reservation again
// if a sale came between the two reads. What does not fit after momentReadsMax is answered
// as it is: an operator must be able to see it.
func (a *API) withHold(ctx context.Context, r ledger.Reservation) (ledger.Reservation, ledger.Hold, error) {
	var hold ledger.Hold
	for read := range momentReadsMax {
		var err error
		if read > 0 {
			if r, err = a.store.Reservation(ctx, r.ID); err != nil {
				return r, hold, err
			}
		}
		hold, err = ledger.HoldOf(ctx, a.store, r, shownHold(r))
		if ledger.CodeOf(err) == ledger.CodeHoldNotFound {
			// Its code would tell the caller that there is no reservation.
			return r, hold, fmt.Errorf("reservation %s has no hold %s", r.ID, shownHold(r))
		}
		if err != nil || ofOneMoment(r, hold) {
			return r, hold, err
		}
	}
	return r, hold, nil
}

// CancelReservation cancels a reservation, or gives back parts of what was bought. Who is
// an operator cancels as one, also the own reservations.
func (a *API) CancelReservation(_ http.ResponseWriter, r *http.Request, id ReservationID, params CancelReservationParams) {
	x := exchangeOf(r)
	var body ReservationCancelRequest
	if err := decode(x.body, &body); err != nil {
		x.fail(err)
		return
	}
	lines, err := returnLinesOf(body)
	if err != nil {
		x.fail(err)
		return
	}
	kind, by := "owner", commands.CancelByOwner
	if x.caller.Principal.isOperator(a.operatorGroup) {
		kind, by = "operator", commands.CancelByOperator
	}
	request, err := x.request(kind, params.IdempotencyKey, meaning{ID: id, Body: body})
	if err != nil {
		x.fail(err)
		return
	}
	answer, err := a.commands.CancelReservation(r.Context(), request, ledger.ReservationID(id), lines, by, renderReservation(http.StatusOK))
	if err != nil {
		x.fail(err)
		return
	}
	x.answerCommand(answer)
}

// returnLinesOf reads what is given back, and puts it in the order of the slots.
func returnLinesOf(body ReservationCancelRequest) ([]ledger.ReturnLine, error) {
	if err := orderLines(body.Lines, func(l ReturnLine) string { return l.SlotID }); err != nil {
		return nil, err
	}
	var lines []ledger.ReturnLine
	for _, line := range body.Lines {
		lines = append(lines, ledger.ReturnLine{Slot: ledger.SlotID(line.SlotID), Quantity: ledger.Units(line.Quantity)})
	}
	return lines, nil
}

// DeliverReservation records what an external delivery came to.
func (a *API) DeliverReservation(_ http.ResponseWriter, r *http.Request, id ReservationID, params DeliverReservationParams) {
	x := exchangeOf(r)
	var body DeliveryRequest
	if err := decode(x.body, &body); err != nil {
		x.fail(err)
		return
	}
	request, err := x.request("service", params.IdempotencyKey, meaning{ID: id, Body: body})
	if err != nil {
		x.fail(err)
		return
	}
	answer, err := a.commands.DeliverReservation(r.Context(), request, ledger.ReservationID(id), body.Delivered, renderReservation(http.StatusOK))
	if err != nil {
		x.fail(err)
		return
	}
	x.answerCommand(answer)
}

// renderReservation makes the answer that a command gives and keeps. It has no secret.
func renderReservation(status int) commands.RenderReservation {
	return func(r ledger.Reservation, h ledger.Hold, now time.Time) (ledger.Response, error) {
		body, err := json.Marshal(reservationAt(r, h, now))
		return ledger.Response{Status: status, Body: body}, err
	}
}

// reservationAt is the reservation as a reader is shown it at now. h is the hold that
// shownHold names.
func reservationAt(r ledger.Reservation, h ledger.Hold, now time.Time) Reservation {
	o := outcomeOf(r, h, now)
	out := Reservation{
		ReservationID: string(r.ID), HoldID: string(r.Hold), SoldHoldID: textOrNil[string](r.SoldHold),
		Status: ReservationStatus(r.Status), StatusURL: reservationPath + string(r.ID),
		Reason: textOrNil[ReservationReason](r.Reason),
		Amount: Money{Amount: r.Amount.AmountMinor, Currency: string(r.Amount.Currency)},
		Stock:  o.stock, Money: o.money, Message: o.message,
		Attempts: int32(len(r.Attempts)),
		Refunds:  make([]Refund, len(r.Refunds)),

		CapturedAmount: o.capturedMinor, RefundedAmount: o.refundedMinor, OwedAmount: o.owedMinor,
		ServerTime: Time(now), CreatedAt: Time(r.CreatedAt), UpdatedAt: Time(r.UpdatedAt),
		Version: int64(r.Version),
	}
	for i, refund := range r.Refunds {
		out.Refunds[i] = Refund{
			Amount: refund.AmountMinor, State: RefundState(refund.State), Reason: ReservationReason(refund.Reason),
		}
	}
	return out
}

// textOrNil is nil for the empty text, which stands for "none".
func textOrNil[To, From ~string](text From) *To {
	if text == "" {
		return nil
	}
	out := To(text)
	return &out
}
