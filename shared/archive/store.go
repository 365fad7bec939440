package archive

import (
	"context"
	"time"

	"holdfast/shared/lease"
	"holdfast/shared/ledger"
)

// Store is what the archive reads and writes in the table. A dynamo.Store is one. Every
// method may be called again after any error.
type Store interface {
	lease.Leases

	// Archivable lists the subjects of one kind and shard whose retention counts from before
	// or earlier, the oldest first. It is a hint.
	Archivable(ctx context.Context, kind ledger.ArchiveKind, shard int, before time.Time, page ledger.Page) ([]ledger.ArchiveEntry, ledger.Cursor, error)
	// PutOff moves the entry's place in that list to a later time, if the subject still has
	// the place that the entry says. Nothing else of the subject changes.
	PutOff(ctx context.Context, entry ledger.ArchiveEntry, until time.Time) error
	// ArchiveItems returns the subject's events in their order and its own item, strongly
	// consistent; none for a subject that is not there.
	ArchiveItems(ctx context.Context, subject ledger.ArchiveSubject) ([]ledger.ArchiveItem, error)
	// Reservation returns CodeReservationNotFound for an id without a reservation.
	Reservation(ctx context.Context, id ledger.ReservationID) (ledger.Reservation, error)
	// Commit applies a mark completely or not at all. See ledger.Store.
	Commit(ctx context.Context, c ledger.Change) error
	// PurgeEvents makes the events of an archived subject leave the table after purgeAt. It
	// returns CodeNotArchivable for an event that is not published, and leaves it.
	PurgeEvents(ctx context.Context, subject ledger.ArchiveSubject, batch ledger.BatchID, purgeAt time.Time) error
	// TidyQuota takes those of the counts out of the owner's item that are zero.
	TidyQuota(ctx context.Context, owner ledger.OwnerID, keys []ledger.QuotaKey) error
	// RestoreItems puts archived items back where they were, marked as archived in the batch,
	// until purgeAt, and returns how many: one that is still there stays as it is.
	RestoreItems(ctx context.Context, items []ledger.ArchiveItem, batch ledger.BatchID, purgeAt time.Time) (int, error)

	// Plan returns the plan of a shard, and whether there is one.
	Plan(ctx context.Context, kind ledger.ArchiveKind, shard int) (ledger.ArchivePlan, bool, error)
	// SavePlan writes the plan of a shard. It reports false if a worker with a later lease
	// has written one, or another batch is planned and not done.
	SavePlan(ctx context.Context, plan ledger.ArchivePlan, fence lease.Fence) (bool, error)
	// ClearPlan says that the plan is done. It reports false if a worker with a later lease
	// has written there, or another batch is planned.
	ClearPlan(ctx context.Context, plan ledger.ArchivePlan, fence lease.Fence) (bool, error)
}
