package saga

import (
	"context"
	"log/slog"

	"holdfast/shared/ledger"
	"holdfast/shared/telemetry"
)

// report tells of a step that somebody should know of.
func (w *drive) report(ctx context.Context, decision Decision) {
	if len(decision.Change.Reservations) == 0 {
		return
	}
	write := decision.Change.Reservations[0]
	w.ports.Logger.InfoContext(ctx, "reservation step",
		slog.String(telemetry.KeyReservationID, string(w.id)), slog.String("from", string(write.From)),
		slog.String("to", string(write.Next.Status)), slog.String("reason", string(write.Next.Reason)),
		slog.String("provider_says", string(decision.Cell.Row)), slog.String("hold_is", string(decision.Cell.Column)))
	if count, counted := countOf(decision.Change.Events); counted {
		w.count(ctx, count)
	}
}

// count counts one reservation. That it can't changes nothing for the reservation.
func (w *drive) count(ctx context.Context, metric telemetry.MetricName) {
	if err := w.ports.Metrics.Emit(telemetry.Properties{telemetry.KeyReservationID: string(w.id)}, telemetry.Count(metric, 1)); err != nil {
		w.ports.Logger.ErrorContext(ctx, "a reservation could not be counted", slog.Any("error", err))
	}
}

// countOf is the metric of a step that somebody should know of.
func countOf(events []ledger.Event) (telemetry.MetricName, bool) {
	for _, e := range events {
		switch e.Type {
		case ledger.EventReservationReview:
			return telemetry.MetricReservationsReview, true
		case ledger.EventReservationRefundRequired:
			return telemetry.MetricReservationsRefundRequired, true
		case ledger.EventReservationCompensating:
			return telemetry.MetricReservationsCompensating, true
		default:
		}
	}
	return "", false
}
