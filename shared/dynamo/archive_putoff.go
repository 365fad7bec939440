package dynamo

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"holdfast/shared/ledger"
)

// PutOff moves the entry's place in the archive's list to a later time. It does nothing if
// the subject is not listed there at the entry's time any more: it was archived, changed, or
// put off by another worker. It needs no readable item, changes no promise, so it is not a
// Change, and may be repeated.
func (s *Store) PutOff(ctx context.Context, entry ledger.ArchiveEntry, until time.Time) error {
	dueShard := dueShardKey(kindArchiveHold, ledger.DueShard(entry.Subject.Hold))
	if entry.Subject.Kind() == ledger.ArchiveReservations {
		dueShard = dueShardKey(kindArchiveReservation, ledger.ReservationDueShard(entry.Subject.Reservation))
	}
	key, dueAt := subjectKey(entry.Subject), expression.Name(AttributeDueAtMs)
	condition := expression.Name(AttributeDueShard).Equal(expression.Value(dueShard)).
		And(dueAt.Equal(expression.Value(milliseconds(entry.From))))
	if _, err := s.updateIf(ctx, key, condition, expression.Set(dueAt, expression.Value(milliseconds(until)))); err != nil {
		return readFailed("putting "+key.PartitionKey+" off for the archive", err)
	}
	return nil
}
