package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"holdfast/shared/dynamo"
	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// writeUnitsCeiling is what one life may cost: a hold is made, confirmed, and both of
// its events are published.
const writeUnitsCeiling = 26

// bought is a row of the table: what one step wrote, and what for.
type bought struct {
	step  string
	where string // the table, or one of its indexes
	what  string
	units float64
}

// purposes says what each place is written for, by step and place.
var purposes = map[string]string{
	"hold/table":          "stock moved, the hold, its event, its idempotency record: 4 items, 2 units each",
	"hold/due":            "the sweep finds the hold when it is over",
	"hold/owner":          "the owner finds the hold",
	"hold/unpublished":    "a lost event is found again",
	"confirm/table":       "stock moved, the hold, its event, its idempotency record: 4 items, 2 units each",
	"confirm/due":         "it leaves the sweep's list and enters the archive's",
	"confirm/unpublished": "a lost event is found again",
	"publish/table":       "each event is marked as published",
	"publish/unpublished": "each event leaves the index",
	"start/table":         "hold, reservation, their events, the key, the claims; then the payment's id, its event and claim, the key",
	"start/due":           "the hold waits longer, the reservation is looked at",
	"start/owner":         "the owner finds the reservation",
	"start/unpublished":   "a lost event is found again",
	"saga/table":          "authorized, sold, captured, completed, the notices recorded: each with its event",
	"saga/due":            "when it is looked at again, and at its end when it is archived",
	"saga/unpublished":    "a lost event is found again",
}

// measureWriteUnits prints the write units of one hold's life, as the engine counts them.
func (b *bench) measureWriteUnits(ctx context.Context, out io.Writer) error {
	meter := &meter{Client: b.client}
	api, err := apiOn(meter)
	if err != nil {
		return err
	}
	id, err := makeHold(ctx, api, b.createEvent())
	if err != nil {
		return err
	}
	rows := meter.take("hold")
	confirm := request(http.MethodPost, "/v1/holds/"+id+"/confirm", "confirm", "bench-confirm", "{}")
	if answer, err := invoke(ctx, api, confirm); err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("confirm a hold: %d %s: %w", answer.StatusCode, answer.Body, err)
	}
	rows = append(rows, meter.take("confirm")...)
	store := dynamo.NewStore(meter, tableName, system.RealClock{}, system.RealRandom{})
	if err := publishAll(ctx, store, ledger.HoldID(id), ""); err != nil {
		return err
	}
	rows = append(rows, meter.take("publish")...)
	return printUnits(out, "write units of one hold of one line: held, confirmed, both events published", rows, writeUnitsCeiling)
}

func makeHold(ctx context.Context, api *httpapi.API, event json.RawMessage) (string, error) {
	answer, err := invoke(ctx, api, event)
	if err != nil || answer.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("create a hold: %d %s: %w", answer.StatusCode, answer.Body, err)
	}
	var hold httpapi.Hold
	err = json.Unmarshal([]byte(answer.Body), &hold)
	return hold.HoldID, err
}

// publishAll marks the events of the hold, and of its reservation if it has one, as the
// outbox does once the bus has them.
func publishAll(ctx context.Context, store *dynamo.Store, id ledger.HoldID, reservation ledger.ReservationID) error {
	events, err := store.HoldEvents(ctx, id)
	if err != nil {
		return err
	}
	if reservation != "" {
		ofReservation, err := store.ReservationEvents(ctx, reservation)
		if err != nil {
			return err
		}
		events = append(events, ofReservation...)
	}
	for _, e := range events {
		if err := store.MarkPublished(ctx, e, system.Millisecond(system.RealClock{})); err != nil {
			return err
		}
	}
	return nil
}

func printUnits(out io.Writer, title string, rows []bought, ceiling float64) error {
	fmt.Fprintf(out, "\n%s\n", title)
	var total float64
	for _, row := range rows {
		fmt.Fprintf(out, "%8s %-12s %5.0f  %s\n", row.step, row.where, row.units, row.what)
		total += row.units
	}
	fmt.Fprintf(out, "%8s %-12s %5.0f  (at most %.0f)\n", "total", "", total, ceiling)
	if total > ceiling {
		return fmt.Errorf("a life costs %.0f write units, more than %.0f", total, ceiling)
	}
	return nil
}
