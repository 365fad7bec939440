package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/shared/archive"
	"holdfast/shared/ledger"
)

// errArchiveUse is the error of an archive command that says something else.
var errArchiveUse = errors.New("archive: say `list KIND`, `find KIND ID` or `verify KIND BATCH`")

// lookIntoArchive lists batches, finds the one of a record, or verifies one.
func lookIntoArchive(ctx context.Context, o *operator, arguments []string) error {
	if len(arguments) < 2 {
		return errArchiveUse
	}
	kind, err := kindOf(arguments[1])
	if err != nil {
		return err
	}
	switch {
	case arguments[0] == "list" && len(arguments) == 2:
		return o.listBatches(ctx, kind)
	case arguments[0] == "find" && len(arguments) == 3:
		return o.findBatch(ctx, subjectOf(kind, arguments[2]))
	case arguments[0] == "verify" && len(arguments) == 3:
		return o.verifyBatch(ctx, kind, ledger.BatchID(arguments[2]))
	}
	return errArchiveUse
}

func kindOf(text string) (ledger.ArchiveKind, error) {
	switch kind := ledger.ArchiveKind(text); kind {
	case ledger.ArchiveHolds, ledger.ArchiveReservations:
		return kind, nil
	}
	return "", fmt.Errorf("there is no kind %q; it is %s or %s", text, ledger.ArchiveHolds, ledger.ArchiveReservations)
}

// archive is the archive of the stage.
func (o *operator) archive() *archive.Archive {
	return archive.New(archive.NewBucket(o.objects(), o.config.ArchiveBucketName, o.clock, o.random), o.store, o.clock)
}

// subjectOf is the record of that kind with that id.
func subjectOf(kind ledger.ArchiveKind, id string) ledger.ArchiveSubject {
	if kind == ledger.ArchiveHolds {
		return ledger.ArchiveSubject{Hold: ledger.HoldID(id)}
	}
	return ledger.ArchiveSubject{Reservation: ledger.ReservationID(id)}
}

// listed is a batch of the archive.
type listed struct {
	Batch ledger.BatchID `json:"batch_id"`
	Begun time.Time      `json:"begun"`
}

func (o *operator) listBatches(ctx context.Context, kind ledger.ArchiveKind) error {
	rows := []listed{}
	of := o.archive()
	err := eachPage(func(after archive.Cursor) (archive.Cursor, error) {
		batches, next, err := of.Batches(ctx, kind, after)
		for _, b := range batches {
			rows = append(rows, listed{b.ID, b.Begun})
		}
		return next, err
	})
	if err != nil {
		return err
	}
	return o.printBatches(rows)
}

// findBatch reads one manifest after another, the oldest batch first.
func (o *operator) findBatch(ctx context.Context, subject ledger.ArchiveSubject) error {
	b, err := o.archive().FindSubject(ctx, subject)
	if err != nil {
		return err
	}
	return o.printBatches([]listed{{b.ID, b.Begun}})
}

func (o *operator) printBatches(rows []listed) error {
	return o.table(rows, "BATCH\tBEGUN", func(print func(...any)) {
		for _, r := range rows {
			print(r.Batch, r.Begun.Format(time.DateOnly))
		}
	})
}

func (o *operator) verifyBatch(ctx context.Context, kind ledger.ArchiveKind, id ledger.BatchID) error {
	of := o.archive()
	batch, err := of.Find(ctx, kind, id)
	if err != nil {
		return err
	}
	manifest, err := of.Verify(ctx, batch)
	if err != nil {
		return err
	}
	return o.table(manifest, "BATCH\tKIND\tCOUNT\tBYTES\tSHA-256", func(print func(...any)) {
		print(manifest.Batch, manifest.Kind, manifest.Count, manifest.DataBytes, manifest.DataSHA256)
	})
}

// restore puts archived records back into the table, where they can be read for a month.
// They stay archived: their stock does not move, and nothing can be done with them. It may
// be repeated.
func restore(ctx context.Context, o *operator, arguments []string) error {
	if len(arguments) < 2 {
		return errors.New("restore: say KIND BATCH, and the ids if not all of the batch is wanted")
	}
	kind, err := kindOf(arguments[0])
	if err != nil {
		return err
	}
	var subjects []ledger.ArchiveSubject
	for _, id := range arguments[2:] {
		subjects = append(subjects, subjectOf(kind, id))
	}
	of := o.archive()
	batch, err := of.Find(ctx, kind, ledger.BatchID(arguments[1]))
	if err != nil {
		return err
	}
	items, err := of.Restore(ctx, batch, subjects...)
	if err != nil {
		return err
	}
	return o.table(map[string]int{"items_restored": items}, "ITEMS RESTORED", func(print func(...any)) { print(items) })
}
