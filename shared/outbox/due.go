package outbox

import (
	"context"
	"log/slog"
	"time"

	"holdfast/shared/due"
	"holdfast/shared/ledger"
)

const (
	// DueFor bounds one call to the due queue.
	DueFor = time.Second
	// DueTriesMax bounds how often a due message is sent in one run.
	DueTriesMax = 2
	// DueSpentMax is how much of a run's time may go into due messages, so that a queue that
	// is slow takes nothing from the bus. The last call may go beyond it by its own bounds.
	DueSpentMax = 3 * time.Second
	// DueOverdueMax is how long a hold may be overdue and still get a message. The sweep
	// looks every minute, so what is older has been ended, and in the news of a long outage
	// there are many of them: their messages would only stand before those of today.
	DueOverdueMax = 2 * time.Minute
)

// dueMessage is the message that has the hold of e looked at when it is due, or none.
func (r *Relay) dueMessage(e ledger.Event) (message, error) {
	if e.Hold == nil {
		return message{}, nil
	}
	dueAt, waits := e.Hold.DueAt()
	if !waits || r.ports.Clock.Now().Sub(dueAt) > DueOverdueMax {
		return message{}, nil
	}
	body, err := due.Message{Hold: e.Hold.ID, DueAt: dueAt}.Encode()
	if err != nil {
		return message{}, err
	}
	return message{queueURL: r.settings.DueQueueURL, body: body, dueAt: dueAt}, nil
}

// duty is how sending due messages has gone in one run.
type duty struct {
	unsent int
	spent  time.Duration
	// refused says that the queue has taken nothing of a call. It is left alone for the rest
	// of the run.
	refused bool
}

// tellDue sends the due messages of the records of call whose failure is nil. They are
// sent as well as can be done in little time, and nothing fails with them: the minute's
// sweep ends the holds a little later.
func (d *delivery) tellDue(ctx context.Context, call []record, failures []error) {
	var ready []record
	unsent, cause := 0, error(nil)
	for i, r := range call {
		switch {
		case failures[i] != nil:
		case r.dueErr != nil:
			unsent, cause = unsent+1, r.dueErr
		case r.due != (message{}) && !d.told[r.due]:
			ready = append(ready, r)
		}
	}
	if d.duty.refused || d.duty.spent >= DueSpentMax || d.late(ctx) {
		d.duty.unsent += unsent + len(ready)
		return
	}
	began, refused := d.ports.Clock.Now(), 0
	for _, err := range d.tell(ctx, ready, func(r record) message { return r.due }, effort{DueTriesMax, DueFor}) {
		if err != nil {
			refused, cause = refused+1, err
		}
	}
	d.duty.spent += d.ports.Clock.Now().Sub(began)
	d.duty.refused = refused > 0 && refused == len(ready)
	if unsent += refused; unsent == 0 {
		return
	}
	d.duty.unsent += unsent
	d.ports.Logger.WarnContext(ctx, "the due queue did not take all messages; the sweep ends their holds",
		slog.Int("messages", unsent), slog.Any("error", cause))
}
