package saga

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/telemetry"
)

// learnStock: what was read of the stock is out of date, or a slot is closed.
func (w *drive) learnStock(refused *ledger.Refused) {
	w.stock = nil
	for _, leg := range refused.LegsOf(ledger.LegStock) {
		if leg.Stock == nil || !leg.Stock.Terms.Open {
			w.closed = true
		}
	}
}

// perform carries the effect out and keeps what it showed.
func (w *drive) perform(ctx context.Context, e Effect) error {
	if e.Kind == EffectReadStock {
		return w.readStock(ctx, e.Slots)
	}
	seen, err := w.call(ctx, e)
	before := w.sightings[e.Attempt.Number]
	var failure *payment.Error
	switch {
	case err == nil:
		if e.Kind == EffectRefund {
			// The provider's sum may lag behind its own answer. Taken as it is, the refund
			// would count as one that has failed since.
			given := w.reservation.ProviderRefundedMinor(e.Attempt.Number) + e.AmountMinor
			seen.RefundedMinor = max(seen.RefundedMinor, given)
		}
		w.sightings[e.Attempt.Number] = Sighting{Seen: true, Payment: seen, Refused: before.Refused, Refunded: e.Refund}
	case !errors.As(err, &failure) || failure.Kind == payment.KindUnreachable:
		w.sightings[e.Attempt.Number] = Sighting{Unreachable: true}
	case failure.Kind == payment.KindNotFound:
		w.sightings[e.Attempt.Number] = Sighting{NotFound: true}
	case failure.Kind == payment.KindConflict && w.retries < RetriesMax:
		// The payment is not as it was thought to be. How it is decides what to do instead.
		w.retries++
		return w.perform(ctx, Effect{Kind: EffectLookUp, Attempt: e.Attempt})
	case failure.Kind == payment.KindConflict:
		w.sightings[e.Attempt.Number] = Sighting{Unreachable: true}
	case e.Kind == EffectLookUp:
		// The provider answers, and does not tell. Looking again at once would only repeat it.
		w.sightings[e.Attempt.Number] = Sighting{NotFound: true}
	default:
		before.Refused = e.Kind
		w.sightings[e.Attempt.Number] = before
	}
	if err != nil {
		w.ports.Logger.WarnContext(ctx, "the payment provider did not do what was asked",
			slog.String(telemetry.KeyHoldID, string(w.reservation.Hold)), slog.Int(telemetry.KeyAttempt, int(e.Attempt.Number)),
			slog.String("effect", string(e.Kind)), slog.Any("error", err))
	}
	return ctx.Err()
}

// call makes the provider's call that e stands for.
func (w *drive) call(ctx context.Context, e Effect) (payment.Payment, error) {
	p, id, n := w.ports.Provider, w.id, e.Attempt.Number
	switch e.Kind {
	case EffectCreate:
		return p.Create(ctx, payment.NewCreation(id, n, w.reservation.Amount))
	case EffectCapture:
		return p.Capture(ctx, payment.CaptureKey(id, n), e.Attempt.Payment, e.AmountMinor)
	case EffectVoid:
		return p.Void(ctx, w.voidKey(n), e.Attempt.Payment)
	case EffectRefund:
		return p.Refund(ctx, payment.RefundAgainKey(id, n, e.Refund, e.Again), e.Attempt.Payment, e.AmountMinor)
	default:
		return p.LookUp(ctx, e.Attempt.Payment)
	}
}

// voidKey is another one after each step. Under one key the provider would repeat
// "voided" for a day, also of a payment that has succeeded since. A second void under a
// new key does no harm: the payment's own status lets it happen once.
func (w *drive) voidKey(n ledger.AttemptNumber) payment.Key {
	return payment.Key(fmt.Sprintf("%s/%d", payment.VoidKey(w.id, n), w.reservation.Version))
}

func (w *drive) readStock(ctx context.Context, ids []ledger.SlotID) error {
	slots, err := w.ports.Store.Slots(ctx, ids)
	if err != nil {
		return err
	}
	w.stock = []ledger.Stock{}
	for _, slot := range slots {
		stock, err := w.ports.Store.StockAtOneMoment(ctx, slot)
		if err != nil {
			return err
		}
		w.stock = append(w.stock, stock...)
	}
	return nil
}
