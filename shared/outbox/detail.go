package outbox

import (
	"encoding/json"
	"fmt"
	"time"

	"holdfast/shared/ledger"
)

// timeLayout is RFC 3339 in UTC with exactly three decimals, so that times sort as text.
const timeLayout = "2006-01-02T15:04:05.000Z"

// eventDetail is an event as consumers get it. The schemas in the folder events are its
// contract: a member that is not in them fails a test.
type eventDetail struct {
	EventID     ledger.EventID     `json:"event_id"`
	Type        ledger.EventType   `json:"type"`
	Version     ledger.Version     `json:"version"`
	OccurredAt  string             `json:"occurred_at"`
	Stage       string             `json:"stage"`
	Actor       ledger.Actor       `json:"actor"`
	Command     ledger.Command     `json:"command"`
	RequestID   ledger.RequestID   `json:"request_id"`
	Hold        *holdDetail        `json:"hold,omitempty"`
	Reservation *reservationDetail `json:"reservation,omitempty"`
	Slot        *slotDetail        `json:"slot,omitempty"`
	Policy      *scopePolicyDetail `json:"policy,omitempty"`
	Review      *reviewDetail      `json:"review,omitempty"`
	Movements   []movementDetail   `json:"movements"`
}

// holdDetail is a hold as consumers get it. In which counts of its owner it is, and
// whether it is counted if it expires, is left out: the limits of an owner are between the
// owner and the shop, and each of these counts is of one moment, which no event tells of.
type holdDetail struct {
	ID             ledger.HoldID  `json:"hold_id"`
	Owner          ledger.OwnerID `json:"owner"`
	Status         ledger.Status  `json:"status"`
	Lines          []lineDetail   `json:"lines"`
	Total          moneyDetail    `json:"total"`
	CreatedAt      string         `json:"created_at"`
	ExpiresAt      string         `json:"expires_at"`
	ReleaseAt      string         `json:"release_at"`
	EndedAt        string         `json:"ended_at,omitempty"`
	HoldSeconds    int64          `json:"hold_seconds"`
	HoldMaxSeconds int64          `json:"hold_max_seconds"`
	GraceSeconds   int64          `json:"grace_seconds"`
	paymentTermsDetail
	Scarce           bool                    `json:"scarce"`
	Reservation      ledger.ReservationID    `json:"reservation_id,omitempty"`
	AttemptOpen      ledger.AttemptNumber    `json:"attempt_open,omitempty"`
	Reacquires       ledger.HoldID           `json:"reacquires,omitempty"`
	PaymentReference ledger.PaymentReference `json:"payment_reference,omitempty"`
	Version          ledger.Version          `json:"version"`
}

type lineDetail struct {
	Slot        ledger.SlotID      `json:"slot_id"`
	Quantity    ledger.Units       `json:"quantity"`
	UnitAmount  int64              `json:"unit_amount"`
	Amount      int64              `json:"amount"`
	Shards      []allocationDetail `json:"shards"`
	Returned    []allocationDetail `json:"returned,omitempty"`
	CancelUntil string             `json:"cancel_until,omitempty"`
	Restock     bool               `json:"restock"`
	GrantTo     ledger.SlotID      `json:"grant_to_slot_id,omitempty"`
}

type allocationDetail struct {
	Shard    ledger.Shard `json:"shard"`
	Quantity ledger.Units `json:"quantity"`
}

type moneyDetail struct {
	Amount   int64           `json:"amount"`
	Currency ledger.Currency `json:"currency"`
}

// paymentTermsDetail is what a payment does to a hold, fixed when the hold was made.
type paymentTermsDetail struct {
	OnDecline         ledger.OnDecline    `json:"on_decline"`
	LatePayment       ledger.LatePayment  `json:"late_payment"`
	LateByProvider    bool                `json:"late_payment_by_provider"`
	UnknownMaxSeconds int64               `json:"unknown_max_seconds"`
	Delivery          ledger.DeliveryKind `json:"delivery"`
}

type movementDetail struct {
	Slot     ledger.SlotID `json:"slot_id"`
	Shard    ledger.Shard  `json:"shard"`
	From     ledger.Bucket `json:"from"`
	To       ledger.Bucket `json:"to"`
	Quantity ledger.Units  `json:"quantity"`
}

// renderDetail is e as JSON.
func renderDetail(e ledger.Event, stage string) ([]byte, error) {
	detail := eventDetail{
		EventID: e.ID, Type: e.Type, Version: e.Version, OccurredAt: formatTime(e.OccurredAt), Stage: stage,
		Actor: publishedActor(e), Command: e.Origin.Command, RequestID: e.Origin.RequestID,
		Movements: make([]movementDetail, 0, len(e.Movements)),
	}
	if e.Hold != nil {
		detail.Hold = newHoldDetail(*e.Hold)
	}
	if e.Reservation != nil {
		detail.Reservation = newReservationDetail(*e.Reservation)
	}
	if e.Slot != nil {
		detail.Slot = newSlotDetail(*e.Slot)
	}
	if e.Policy != nil {
		detail.Policy = newScopePolicyDetail(*e.Policy)
	}
	if e.Review != nil {
		detail.Review = newReviewDetail(*e.Review)
	}
	for _, m := range e.Movements {
		detail.Movements = append(detail.Movements, movementDetail(m))
	}
	body, err := json.Marshal(detail)
	if err != nil {
		return nil, fmt.Errorf("event %s as JSON: %w", e.ID, err)
	}
	return body, nil
}

func newHoldDetail(h ledger.Hold) *holdDetail {
	total := h.Total()
	detail := &holdDetail{
		ID: h.ID, Owner: h.Owner, Status: h.Status, Lines: make([]lineDetail, 0, len(h.Lines)),
		Total:     moneyDetail{total.AmountMinor, total.Currency},
		CreatedAt: formatTime(h.CreatedAt), ExpiresAt: formatTime(h.ExpiresAt),
		ReleaseAt: formatTime(h.ReleaseAt), EndedAt: formatTime(h.EndedAt),
		HoldSeconds: seconds(h.HoldFor), HoldMaxSeconds: seconds(h.HoldForMax), GraceSeconds: seconds(h.GraceFor),
		paymentTermsDetail: newPaymentTermsDetail(h.Terms), Scarce: h.Scarce,
		Reservation: h.Reservation, AttemptOpen: h.AttemptOpen, Reacquires: h.Reacquires,
		PaymentReference: h.PaymentReference, Version: h.Version,
	}
	for _, l := range h.Lines {
		detail.Lines = append(detail.Lines, lineDetail{
			Slot: l.Slot, Quantity: l.Quantity,
			UnitAmount: l.UnitPrice.AmountMinor, Amount: l.UnitPrice.Times(l.Quantity).AmountMinor,
			Shards: allocationDetails(l.Shards), Returned: allocationDetails(l.Returned),
			CancelUntil: formatTime(l.CancelUntil), Restock: !l.NoRestock, GrantTo: l.GrantTo,
		})
	}
	return detail
}

func allocationDetails(allocations []ledger.Allocation) []allocationDetail {
	out := make([]allocationDetail, 0, len(allocations))
	for _, a := range allocations {
		out = append(out, allocationDetail(a))
	}
	return out
}

func newPaymentTermsDetail(t ledger.PaymentTerms) paymentTermsDetail {
	return paymentTermsDetail{
		OnDecline: t.OnDecline, LatePayment: t.LatePayment, LateByProvider: t.LateByProvider,
		UnknownMaxSeconds: seconds(t.UnknownFor), Delivery: t.Delivery,
	}
}

// formatTime is "" for the zero time, which stands for "not so" in the ledger.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeLayout)
}

// seconds is d in whole seconds, as the API takes and shows it.
func seconds(d time.Duration) int64 { return int64(d / time.Second) }
