package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"testing"

	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/system"
)

// keepNothing is a store in memory that forgets each hold, so that a long benchmark
// measures the handler and not a growing map.
type keepNothing struct{ *memory.Store }

func (keepNothing) Commit(_ context.Context, c ledger.Change) error { return c.Validate() }

func realOptions(store ledger.Store) httpapi.Options {
	return httpapi.Options{
		Store: store, Clock: system.RealClock{}, Random: system.RealRandom{}, OperatorGroup: operatorGroup,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// BenchmarkCreateHold measures what the handler itself costs for one create: the event
// decoded, the request validated, the command carried out and the answer written, with
// a store that costs next to nothing.
func BenchmarkCreateHold(b *testing.B) {
	store := memory.New()
	f := newFixtureOn(b, store)
	f.define("seat", 1000)
	api := mustAPI(b, realOptions(keepNothing{store}))
	events := make([]json.RawMessage, 1024)
	for i := range events {
		c := call{method: http.MethodPost, path: "/v1/holds", body: line("seat", 1), claims: owner("U"), headers: keyed(fmt.Sprintf("key-%d", i))}
		events[i] = c.event(b)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		response, err := api.Lambda(b.Context(), events[i%len(events)])
		if err != nil || response.StatusCode != http.StatusCreated {
			b.Fatalf("%v %v", response, err)
		}
	}
}

// BenchmarkNew measures what a cold start spends on the document and the validators.
func BenchmarkNew(b *testing.B) {
	store := memory.New()
	for b.Loop() {
		mustAPI(b, realOptions(store))
	}
}
