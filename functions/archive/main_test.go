package main

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast/shared/archive/archivetest"
	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/telemetry/telemetrytest"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

const (
	slotID ledger.SlotID = "seat"
	bucket               = "holdfast-archive"
	day                  = 24 * time.Hour
)

// environment is what the function finds in a local run.
func environment(t *testing.T, table, endpoint string) *archivetest.Bucket {
	t.Helper()
	objects := archivetest.NewBucket(bucket)
	server := httptest.NewServer(objects)
	t.Cleanup(server.Close)
	t.Setenv("HOLDFAST_STAGE", "local")
	t.Setenv("HOLDFAST_TABLE_NAME", table)
	t.Setenv("HOLDFAST_ARCHIVE_BUCKET_NAME", bucket)
	t.Setenv("HOLDFAST_ARCHIVE_HOLDS_AFTER_DAYS", "30")
	t.Setenv("HOLDFAST_ARCHIVE_RESERVATIONS_AFTER_DAYS", "90")
	t.Setenv("HOLDFAST_LOCAL_DYNAMODB_ENDPOINT", endpoint)
	t.Setenv("HOLDFAST_LOCAL_S3_ENDPOINT", server.URL)
	return objects
}

// endedHold makes a hold of one unit and gives it up, so long ago, with its events
// published.
func endedHold(t *testing.T, store *dynamo.Store, clock *systemtest.Clock) ledger.HoldID {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	shop := commands.New(store, clock, system.RealRandom{})
	_, err := shop.PutSlot(t.Context(), commands.Request{Actor: "service:catalog", RequestID: "request_test"}, slotID, ledger.SlotDefinition{
		ResourceType: "flight", ResourceID: "KE0901", Capacity: 5, Policy: ledger.DefaultPolicy(),
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 1000, Currency: "KRW"}, Shards: 2},
	}, func(ledger.Slot, ledger.Policy, ledger.Counters, bool) (ledger.Response, error) {
		return ledger.Response{}, nil
	})
	check(err)
	owner := commands.Request{Actor: "owner:U-17", Owner: "U-17", RequestID: "request_test"}
	var id ledger.HoldID
	_, err = shop.CreateHold(t.Context(), owner, commands.HoldWish{Quotes: []ledger.Quote{{Slot: slotID, Quantity: 1, UnitAmount: 1000}}},
		func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
			id = h.ID
			return ledger.Response{Status: 201}, nil
		})
	check(err)
	_, err = shop.CancelHold(t.Context(), owner, id, func(ledger.Hold, time.Time) (ledger.Response, error) {
		return ledger.Response{Status: 200}, nil
	})
	check(err)
	events, err := store.HoldEvents(t.Context(), id)
	check(err)
	for _, e := range events {
		check(store.MarkPublished(t.Context(), e, clock.Now()))
	}
	return id
}

// One tick moves what is old enough, over the real clients, and reports it.
func TestATickArchivesWhatIsOldEnough(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	objects := environment(t, table, *client.Options().BaseEndpoint)
	output := telemetrytest.Output(t)
	old := systemtest.NewClock(time.Now().UTC().Truncate(time.Millisecond).Add(-31 * day))
	store := dynamo.NewStore(client, table, old, system.RealRandom{})
	id := endedHold(t, store, old)
	handle, err := compose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tick, err := os.ReadFile("../../events/lambda/archive.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := handle(t.Context(), tick); err != nil {
		t.Fatal(err)
	}
	hold, err := store.Hold(t.Context(), id)
	if err != nil || hold.ArchivedIn == "" {
		t.Errorf("the hold is in batch %q, %v", hold.ArchivedIn, err)
	}
	keys := objects.Keys()
	if len(keys) != 2 || !strings.HasSuffix(keys[0], string(hold.ArchivedIn)+".jsonl.gz") || !strings.HasSuffix(keys[1], string(hold.ArchivedIn)+".manifest.json") {
		t.Errorf("the bucket has %v", keys)
	}
	if violations := objects.Violations(); len(violations) > 0 {
		t.Error(violations)
	}
	for _, want := range []string{`"archive_archived":1`, `"archive_heartbeat":1`, `"archive_failed":0`, `"archive_truncated":0`, `"archive_put_off":0`} {
		if got := output(); !strings.Contains(got, want) {
			t.Errorf("reported %s without %s", got, want)
		}
	}
}

// A table that can't be read is an error, never a tick that had nothing to do.
func TestAnUnreachableTableIsAnError(t *testing.T) {
	environment(t, "no-such-table", *dynamotest.Engine(t).Client().Options().BaseEndpoint)
	output := telemetrytest.Output(t)
	handle, err := compose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := handle(ctx, json.RawMessage(`{}`)); err == nil {
		t.Error("the tick on a table that does not exist succeeds")
	}
	if got := output(); !strings.Contains(got, `"archive_heartbeat":0`) || !strings.Contains(got, `"archive_failed":32`) {
		t.Errorf("reported %s", got)
	}
}

// A local run without a bucket of its own does not start, and neither does a function whose
// environment is not complete.
func TestAnIncompleteEnvironmentStopsTheStart(t *testing.T) {
	environment(t, "table", "http://127.0.0.1:1")
	t.Setenv("HOLDFAST_LOCAL_S3_ENDPOINT", "")
	if _, err := compose(t.Context()); err == nil {
		t.Error("a local run might write to a real bucket")
	}
	t.Setenv("HOLDFAST_ARCHIVE_BUCKET_NAME", "")
	if _, err := compose(t.Context()); err == nil || !strings.Contains(err.Error(), "HOLDFAST_ARCHIVE_BUCKET_NAME") {
		t.Errorf("error %v", err)
	}
}
