package commands

import (
	"context"
	"time"

	"holdfast/shared/ledger"
)

// Counter is told how commands meet each other, and the stock. It is called from several
// goroutines at once, and must be quick. Nothing depends on what it does with it.
type Counter interface {
	// DecidedAnew: somebody else had changed the same thing, and the command decides again.
	DecidedAnew()
	// Probed: the stock items of so many slots were read to find units.
	Probed(slots int)
	// Split: a line was taken from more than one stock item.
	Split()
	// ConfirmedLate: a confirm was refused because the hold was over.
	ConfirmedLate()
	// Short: a command was refused because less was left than it wanted.
	Short()
	// Left: a reservation has left the status after that time.
	Left(status ledger.ReservationStatus, after time.Duration)
}

// Uncounted is the Counter of commands that nobody counts.
type Uncounted struct{}

// DecidedAnew does nothing.
func (Uncounted) DecidedAnew() {}

// Probed does nothing.
func (Uncounted) Probed(int) {}

// Split does nothing.
func (Uncounted) Split() {}

// ConfirmedLate does nothing.
func (Uncounted) ConfirmedLate() {}

// Short does nothing.
func (Uncounted) Short() {}

// Left does nothing.
func (Uncounted) Left(ledger.ReservationStatus, time.Duration) {}

// write commits the change, and tells the counter which statuses it ended.
func (c *Commands) write(ctx context.Context, change ledger.Change) error {
	if err := c.store.Commit(ctx, change); err != nil {
		return err
	}
	for _, w := range change.Reservations {
		if status, after, left := w.Left(); left {
			c.counter.Left(status, after)
		}
	}
	return nil
}

// count tells the counter what came of a command that takes units.
func (a *allocator) count(answer Answer, err error) {
	if ledger.CodeOf(err) == ledger.CodeInsufficientStock {
		a.commands.counter.Short()
	}
	if err != nil || answer.Replayed {
		return
	}
	for _, allocations := range a.allocations {
		if len(allocations) > 1 {
			a.commands.counter.Split()
		}
	}
}
