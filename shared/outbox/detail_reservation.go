package outbox

import "holdfast/shared/ledger"

// reservationDetail is a reservation as consumers get it. When it is looked at next, and
// how often it was, are of no concern to them.
type reservationDetail struct {
	ID          ledger.ReservationID     `json:"reservation_id"`
	Owner       ledger.OwnerID           `json:"owner"`
	Hold        ledger.HoldID            `json:"hold_id"`
	SoldHold    ledger.HoldID            `json:"sold_hold_id,omitempty"`
	Status      ledger.ReservationStatus `json:"status"`
	Reason      ledger.Reason            `json:"reason,omitempty"`
	Amount      moneyDetail              `json:"amount"`
	Attempts    []attemptDetail          `json:"attempts"`
	Refunds     []refundDetail           `json:"refunds"`
	Grants      []grantDetail            `json:"grants"`
	CreatedAt   string                   `json:"created_at"`
	UpdatedAt   string                   `json:"updated_at"`
	DeliveredAt string                   `json:"delivered_at,omitempty"`
	Version     ledger.Version           `json:"version"`
}

type attemptDetail struct {
	Number         ledger.AttemptNumber `json:"number"`
	State          ledger.AttemptState  `json:"state"`
	Payment        ledger.PaymentID     `json:"payment_id,omitempty"`
	Unwanted       bool                 `json:"unwanted"`
	CapturedAmount int64                `json:"captured_amount"`
	OpenedAt       string               `json:"opened_at"`
	AuthorizedAt   string               `json:"authorized_at,omitempty"`
}

type refundDetail struct {
	Number  int                  `json:"number"`
	Attempt ledger.AttemptNumber `json:"attempt"`
	Amount  int64                `json:"amount"`
	Reason  ledger.Reason        `json:"reason"`
	State   ledger.RefundState   `json:"state"`
	OwedAt  string               `json:"owed_at"`
	EndedAt string               `json:"ended_at,omitempty"`
}

type grantDetail struct {
	Slot     ledger.SlotID `json:"slot_id"`
	Shard    ledger.Shard  `json:"shard"`
	Quantity ledger.Units  `json:"quantity"`
}

func newReservationDetail(r ledger.Reservation) *reservationDetail {
	detail := &reservationDetail{
		ID: r.ID, Owner: r.Owner, Hold: r.Hold, SoldHold: r.SoldHold, Status: r.Status, Reason: r.Reason,
		Amount:   moneyDetail{r.Amount.AmountMinor, r.Amount.Currency},
		Attempts: make([]attemptDetail, 0, len(r.Attempts)), Refunds: make([]refundDetail, 0, len(r.Refunds)),
		Grants:    make([]grantDetail, 0, len(r.Grants)),
		CreatedAt: formatTime(r.CreatedAt), UpdatedAt: formatTime(r.UpdatedAt), DeliveredAt: formatTime(r.DeliveredAt),
		Version: r.Version,
	}
	for _, a := range r.Attempts {
		detail.Attempts = append(detail.Attempts, attemptDetail{
			Number: a.Number, State: a.State, Payment: a.Payment, Unwanted: a.Unwanted, CapturedAmount: a.CapturedMinor,
			OpenedAt: formatTime(a.OpenedAt), AuthorizedAt: formatTime(a.AuthorizedAt),
		})
	}
	for _, f := range r.Refunds {
		detail.Refunds = append(detail.Refunds, refundDetail{
			Number: f.Number, Attempt: f.Attempt, Amount: f.AmountMinor, Reason: f.Reason, State: f.State,
			OwedAt: formatTime(f.OwedAt), EndedAt: formatTime(f.EndedAt),
		})
	}
	for _, g := range r.Grants {
		detail.Grants = append(detail.Grants, grantDetail(g))
	}
	return detail
}
