package telemetry

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"time"

	"holdfast/shared/ledger"
)

// The names of the ids that connect log lines, metrics and events with each other. A line
// that is about one of these things has its id: by these names one query finds a hold's way
// through all functions.
const (
	KeyRequestID     = "request_id" // one call of a function
	KeyHoldID        = "hold_id"
	KeyReservationID = "reservation_id"
	KeyAttempt       = "attempt" // the number of a payment attempt within its reservation
	KeyEventID       = "event_id"
	KeyReviewID      = "review_id" // a case that a person must decide
	KeySlotID        = "slot_id"
	// KeyMessageID and KeyProviderEventID are how a queue and the payment provider call what
	// they deliver.
	KeyMessageID       = "message_id"
	KeyProviderEventID = "provider_event_id"
)

// logTimeLayout is RFC 3339 in UTC with milliseconds, as everywhere in Holdfast.
const logTimeLayout = "2006-01-02T15:04:05.000Z07:00"

// NewLogger returns a logger that writes one line of JSON per record to w, with the
// stage, the function, and the correlation ids of the record's context.
func NewLogger(w io.Writer, source Source) *slog.Logger {
	lines := slog.NewJSONHandler(w, &slog.HandlerOptions{
		Level: slog.LevelInfo,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
				return slog.String(slog.TimeKey, a.Value.Time().UTC().Format(logTimeLayout))
			}
			return a
		},
	})
	return slog.New(correlated{lines}).With(
		slog.String(DimensionStage, source.Stage), slog.String(propertyFunction, source.Function))
}

// aboutHold is the hold, and its reservation if it has one.
func aboutHold(h ledger.Hold) []slog.Attr {
	out := []slog.Attr{slog.String(KeyHoldID, string(h.ID))}
	if h.Reservation != "" {
		out = append(out, slog.String(KeyReservationID, string(h.Reservation)))
	}
	return out
}

// AboutReservation is the reservation, with its hold and its current attempt.
func AboutReservation(r ledger.Reservation) []slog.Attr {
	out := []slog.Attr{slog.String(KeyReservationID, string(r.ID)), slog.String(KeyHoldID, string(r.Hold))}
	if current, begun := r.Current(); begun {
		out = append(out, slog.Int(KeyAttempt, int(current.Number)))
	}
	return out
}

// AboutEvent is the event, with what it is of. One that could not be read has nothing.
func AboutEvent(e ledger.Event) []slog.Attr {
	if e.ID == "" {
		return nil
	}
	out := []slog.Attr{slog.String(KeyEventID, string(e.ID))}
	switch {
	case e.Hold != nil:
		out = append(out, aboutHold(*e.Hold)...)
	case e.Reservation != nil:
		out = append(out, AboutReservation(*e.Reservation)...)
	case e.Slot != nil:
		out = append(out, slog.String(KeySlotID, string(e.Slot.ID)))
	case e.Review != nil:
		out = append(out, slog.String(KeyReviewID, string(e.Review.ID)))
	}
	return out
}

type correlationKey struct{}

// WithCorrelation returns a context whose log records carry attributes, beside those
// that ctx carries already. One of the same name stands in place of the other: a line that
// says one thing twice can't be searched for it.
func WithCorrelation(ctx context.Context, attributes ...slog.Attr) context.Context {
	kept := slices.DeleteFunc(slices.Clone(correlation(ctx)), func(a slog.Attr) bool { return named(attributes, a.Key) })
	return context.WithValue(ctx, correlationKey{}, append(kept, attributes...))
}

func named(attributes []slog.Attr, key string) bool {
	return slices.ContainsFunc(attributes, func(a slog.Attr) bool { return a.Key == key })
}

func correlation(ctx context.Context) []slog.Attr {
	attributes, _ := ctx.Value(correlationKey{}).([]slog.Attr)
	return attributes
}

// correlated adds the context's correlation ids to each record.
type correlated struct{ next slog.Handler }

// Enabled asks the handler behind.
func (h correlated) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle adds the ids that the record does not have itself, and hands it on.
func (h correlated) Handle(ctx context.Context, record slog.Record) error {
	attributes := slices.Clone(correlation(ctx))
	record.Attrs(func(own slog.Attr) bool {
		attributes = slices.DeleteFunc(attributes, func(a slog.Attr) bool { return a.Key == own.Key })
		return true
	})
	if len(attributes) > 0 {
		// A record may share its attributes with a copy of it.
		record = record.Clone()
		record.AddAttrs(attributes...)
	}
	return h.next.Handle(ctx, record)
}

// WithAttrs keeps the ids coming.
func (h correlated) WithAttrs(attributes []slog.Attr) slog.Handler {
	return correlated{h.next.WithAttrs(attributes)}
}

// WithGroup keeps the ids coming.
func (h correlated) WithGroup(name string) slog.Handler {
	return correlated{h.next.WithGroup(name)}
}

// Duration is d as a log attribute in seconds, which every reader of JSON understands.
func Duration(key string, d time.Duration) slog.Attr { return slog.Float64(key, d.Seconds()) }
