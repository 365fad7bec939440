package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"holdfast/shared/system"
)

// The reasons of a quarantine that the relay finds by itself. A refusal has another one,
// with who refused and the code; see reason.
const (
	ReasonUnreadable = "unreadable" // the item can't be read as an event
	ReasonTooLarge   = "too_large"  // no call to the bus can carry it
)

// reason is what is kept in the table of why a record is set aside. It is made of words of
// ours and of codes that are known here, never of what the item, the bus or the queue say:
// those may repeat a part of the event (promise P12).
func reason(err error) string {
	var refused *entryError
	switch {
	case errors.As(err, &refused):
		return "refused by the " + refused.by + ": " + refused.code
	case errors.Is(err, errTooLarge):
		return ReasonTooLarge
	default:
		return ReasonUnreadable
	}
}

// setAside takes a record that no retry can publish into the quarantine. It is not lost:
// the stored event is all that is needed to publish it later. Handing it back instead
// would hold up every event behind it for as long as the stream tries.
//
// An error says that the record could not even be set aside: it counts as failed, and
// comes again.
func (d *delivery) setAside(ctx context.Context, r record, cause error) error {
	if err := d.ports.Marker.Quarantine(ctx, r.item, reason(cause), system.Millisecond(d.ports.Clock)); err != nil {
		err = errors.Join(cause, fmt.Errorf("quarantine: %w", err))
		d.reportFailure(ctx, r, err)
		return err
	}
	d.aside++
	d.ports.Logger.LogAttrs(ctx, slog.LevelError, "an event can't be published as it is; it is in quarantine", r.logged(cause)...)
	return nil
}

// setAsideAlone sets aside a record that goes into no call.
func (d *delivery) setAsideAlone(ctx context.Context, r record) error {
	ctx, cancel := context.WithTimeout(ctx, MarkFor)
	defer cancel()
	return d.setAside(ctx, r, r.err)
}
