package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"holdfast/shared/archive"
	"holdfast/shared/config"
	"holdfast/shared/ledger"
)

// lookIntoArchive lists batches, or verifies one.
func lookIntoArchive(ctx context.Context, o *operator, arguments []string) error {
	if len(arguments) < 2 {
		return errors.New("archive: say `list KIND` or `verify KIND BATCH`")
	}
	kind, err := kindOf(arguments[1])
	if err != nil {
		return err
	}
	switch {
	case arguments[0] == "list" && len(arguments) == 2:
		return o.listBatches(ctx, kind)
	case arguments[0] == "verify" && len(arguments) == 3:
		return o.verifyBatch(ctx, kind, ledger.BatchID(arguments[2]))
	}
	return errors.New("archive: say `list KIND` or `verify KIND BATCH`")
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
	client := s3.NewFromConfig(o.aws, func(options *s3.Options) {
		if o.config.Local() {
			options.BaseEndpoint = config.Endpoint(o.config.LocalS3Endpoint)
			options.UsePathStyle = true
		}
	})
	return archive.New(archive.NewBucket(client, o.config.ArchiveBucketName, o.clock, o.random), o.store, o.clock)
}

func (o *operator) listBatches(ctx context.Context, kind ledger.ArchiveKind) error {
	type row struct {
		Batch ledger.BatchID `json:"batch_id"`
		Begun time.Time      `json:"begun"`
	}
	rows := []row{}
	of, after := o.archive(), archive.Cursor("")
	for {
		batches, next, err := of.Batches(ctx, kind, after)
		if err != nil {
			return err
		}
		for _, b := range batches {
			rows = append(rows, row{b.ID, b.Begun})
		}
		if after = next; after == "" {
			break
		}
	}
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
		if kind == ledger.ArchiveHolds {
			subjects = append(subjects, ledger.ArchiveSubject{Hold: ledger.HoldID(id)})
		} else {
			subjects = append(subjects, ledger.ArchiveSubject{Reservation: ledger.ReservationID(id)})
		}
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
