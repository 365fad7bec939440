package saga

import (
	"context"
	"log/slog"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/telemetry"
)

// report tells of a step that somebody should know of.
func (w *drive) report(ctx context.Context, decision Decision) {
	if len(decision.Change.Reservations) == 0 {
		return
	}
	write := decision.Change.Reservations[0]
	if status, after, left := write.Left(); left {
		telemetry.AddDwell(w.ports.Dwells, status, after)
	}
	w.ports.Logger.LogAttrs(ctx, slog.LevelInfo, "reservation step", append(telemetry.AboutReservation(write.Next),
		slog.String(telemetry.KeyEventID, string(eventOf(decision.Change))),
		slog.String("from", string(write.From)), slog.String("to", string(write.Next.Status)),
		slog.String("reason", string(write.Next.Reason)),
		slog.String("provider_says", string(decision.Cell.Row)), slog.String("hold_is", string(decision.Cell.Column)))...)
	for _, metric := range w.countsOf(decision) {
		w.count(ctx, metric)
	}
}

// eventOf is the event of the reservation's step in the change.
func eventOf(change ledger.Change) ledger.EventID {
	for _, e := range change.Events {
		if e.Reservation != nil {
			return e.ID
		}
	}
	return ""
}

// tellDwell tells of a reservation that stays in its status for long.
func (w *drive) tellDwell(now time.Time) {
	since := w.reservation.StatusSince
	if dwell := now.Sub(since); !since.IsZero() && dwell > DwellTold {
		telemetry.AddDwell(w.ports.Dwells, w.reservation.Status, dwell)
	}
}

// count counts one reservation. That it can't changes nothing for the reservation.
func (w *drive) count(ctx context.Context, metric telemetry.MetricName) {
	if err := w.ports.Metrics.Emit(telemetry.Properties{telemetry.KeyReservationID: string(w.id)}, telemetry.Count(metric, 1)); err != nil {
		w.ports.Logger.ErrorContext(ctx, "a reservation could not be counted", slog.Any("error", err))
	}
}

// countsOf are the metrics of a step that somebody should know of.
func (w *drive) countsOf(decision Decision) []telemetry.MetricName {
	var out []telemetry.MetricName
	for _, e := range decision.Change.Events {
		switch e.Type {
		case ledger.EventReservationReview:
			out = append(out, telemetry.MetricReservationsReview)
		case ledger.EventReservationRefundRequired:
			out = append(out, telemetry.MetricReservationsRefundRequired)
		case ledger.EventReservationCompensating:
			out = append(out, telemetry.MetricReservationsCompensating)
		default:
		}
	}
	write := decision.Change.Reservations[0]
	if write.From != ledger.ReservationAuthorized || decision.Cell.Column == ColumnLive || !write.Next.ApprovedAt.IsZero() {
		return out // it was in time, or it was counted before a person was asked
	}
	soldOut := write.Next.Reason == ledger.ReasonSoldOut
	if soldOut || write.Next.Reason == ledger.ReasonLate || write.Next.Status == ledger.ReservationConfirmed {
		out = append(out, telemetry.MetricConfirmsLate)
	}
	if soldOut && !w.closed {
		// A slot that is closed refuses a late payment for another reason.
		out = append(out, telemetry.MetricOversellPrevented)
	}
	return out
}
