package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/scripts/internal/localrun"
	"holdfast/scripts/local/flights"
)

// loadersMax is how many flights are put at once.
const loadersMax = 8

// slotBody is the body of a PUT of a flight.
type slotBody struct {
	ResourceType string            `json:"resource_type"`
	ResourceID   string            `json:"resource_id"`
	StartsAt     time.Time         `json:"starts_at"`
	Capacity     int64             `json:"capacity"`
	UnitAmount   int64             `json:"unit_amount"`
	Currency     string            `json:"currency"`
	Open         bool              `json:"open"`
	Attributes   map[string]string `json:"attributes"`
}

// loadFlights defines a slot for each flight, as a catalogue service does, and returns how
// many. It loads nothing into a table that has them, because that would undo what the user
// changed. The last flight is defined when all others are: so its presence says that an
// earlier load was finished.
func loadFlights(ctx context.Context, catalog *localrun.Caller, all []flights.Flight) (int, error) {
	last := all[len(all)-1]
	answer, err := catalog.Do(ctx, localrun.Request{Method: http.MethodGet, Path: slotPath(last)})
	if err != nil {
		return 0, fmt.Errorf("look for the flights: %w", err)
	}
	switch answer.Status {
	case http.StatusOK:
		return 0, nil
	case http.StatusNotFound:
	default:
		return 0, fmt.Errorf("look for the flights: answer %d %s", answer.Status, answer.Body)
	}
	loaders, loading := errgroup.WithContext(ctx)
	loaders.SetLimit(loadersMax)
	for _, flight := range all[:len(all)-1] {
		loaders.Go(func() error { return loadFlight(loading, catalog, flight) })
	}
	if err := loaders.Wait(); err != nil {
		return 0, err
	}
	return len(all), loadFlight(ctx, catalog, last)
}

func loadFlight(ctx context.Context, catalog *localrun.Caller, flight flights.Flight) error {
	body, err := json.Marshal(slotBody{
		ResourceType: string(flight.ResourceType), ResourceID: string(flight.ResourceID), StartsAt: flight.StartsAt,
		Capacity: int64(flight.Capacity), UnitAmount: flight.Terms.Price.AmountMinor, Currency: string(flight.Terms.Price.Currency),
		Open: flight.Terms.Open, Attributes: flight.Attributes,
	})
	if err != nil {
		return fmt.Errorf("load %s: %w", flight.SlotID, err)
	}
	answer, err := catalog.Do(ctx, localrun.Request{Method: http.MethodPut, Path: slotPath(flight), Body: string(body)})
	if err != nil {
		return fmt.Errorf("load %s: %w", flight.SlotID, err)
	}
	if answer.Status != http.StatusCreated && answer.Status != http.StatusOK {
		return fmt.Errorf("load %s: answer %d %s", flight.SlotID, answer.Status, answer.Body)
	}
	return nil
}

func slotPath(flight flights.Flight) string { return "/v1/slots/" + string(flight.SlotID) }
