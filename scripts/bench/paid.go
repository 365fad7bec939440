package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"holdfast/shared/dynamo"
	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/saga"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
)

// paidUnitsCeiling is what the life of a paid hold may cost: held, its payment begun,
// authorized, confirmed, captured and completed, the provider's three notices recorded,
// and every event published.
const paidUnitsCeiling = 116

// measurePaidUnits prints the write units of one paid hold's life.
func (b *bench) measurePaidUnits(ctx context.Context, out io.Writer) error {
	bank := paymenttest.NewBank(time.Now)
	meter := &meter{Client: b.client}
	store := dynamo.NewStore(meter, tableName, system.RealClock{}, system.RealRandom{})
	api, err := httpapi.New(httpapi.Options{
		Store: store, Clock: system.RealClock{}, Random: system.RealRandom{}, Provider: paymenttest.NewProvider(bank),
		OperatorGroup: "ops", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	holdID, err := makeHold(ctx, api, b.createEvent())
	if err != nil {
		return err
	}
	rows := meter.take("hold")
	reservation, secret, err := startPayment(ctx, api, holdID)
	if err != nil {
		return err
	}
	rows = append(rows, meter.take("start")...)
	if _, err := bank.Pay(secret); err != nil {
		return err
	}
	if err := driveNotices(ctx, store, bank, reservation); err != nil {
		return err
	}
	rows = append(rows, meter.take("saga")...)
	if err := publishAll(ctx, store, ledger.HoldID(holdID), reservation); err != nil {
		return err
	}
	rows = append(rows, meter.take("publish")...)
	return printUnits(out, "write units of one hold of one line that is paid: to COMPLETED, all events published", rows, paidUnitsCeiling)
}

// startPayment opens a payment attempt through the handler, and gives its secret.
func startPayment(ctx context.Context, api *httpapi.API, holdID string) (ledger.ReservationID, string, error) {
	answer, err := invoke(ctx, api, request(http.MethodPost, "/v1/holds/"+holdID+"/payment", "holds", "bench-payment", ""))
	if err != nil || answer.StatusCode != http.StatusAccepted {
		return "", "", fmt.Errorf("begin a payment: %d %s: %w", answer.StatusCode, answer.Body, err)
	}
	var started struct {
		ReservationID ledger.ReservationID `json:"reservation_id"`
		ClientSecret  string               `json:"client_secret"`
	}
	err = json.Unmarshal([]byte(answer.Body), &started)
	return started.ReservationID, started.ClientSecret, err
}

// driveNotices drives the reservation with what the bank tells, as the worker does, until
// the bank has nothing more to tell.
func driveNotices(ctx context.Context, store *dynamo.Store, bank *paymenttest.Bank, id ledger.ReservationID) error {
	driver := saga.NewDriver(saga.Ports{
		Store: store, Provider: paymenttest.NewProvider(bank), Clock: system.RealClock{}, Random: system.RealRandom{},
		Metrics: noMetrics{}, Dwells: &telemetry.Spread{}, Logger: slog.New(slog.DiscardHandler),
	})
	const roundsMax = 5 // the capture makes the bank tell once more
	for range roundsMax {
		for _, event := range bank.TakeEvents() {
			notice := event.Notice()
			if err := driver.Drive(ctx, id, &notice, "bench"); err != nil {
				return err
			}
		}
	}
	reservation, err := store.Reservation(ctx, id)
	if err == nil && reservation.Status != ledger.ReservationCompleted {
		err = fmt.Errorf("the reservation is %s and should be COMPLETED", reservation.Status)
	}
	return err
}

type noMetrics struct{}

// Emit forgets the numbers.
func (noMetrics) Emit(telemetry.Properties, ...telemetry.Measurement) error { return nil }
