package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/system/systemtest"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

const slotID ledger.SlotID = "seat"

// environment is what the function finds in a local run.
func environment(t *testing.T, table, endpoint string) {
	t.Helper()
	t.Setenv("HOLDFAST_STAGE", "local")
	t.Setenv("HOLDFAST_TABLE_NAME", table)
	t.Setenv("HOLDFAST_SWEEP_PAGE_ITEMS", "100")
	t.Setenv("HOLDFAST_LOCAL_DYNAMODB_ENDPOINT", endpoint)
}

// capturedOutput makes what the function writes to standard output readable.
func capturedOutput(t *testing.T) func() string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = file
	t.Cleanup(func() {
		os.Stdout = stdout
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	return func() string {
		text, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

func makeHold(t *testing.T, c *commands.Commands) ledger.HoldID {
	t.Helper()
	var id ledger.HoldID
	_, err := c.CreateHold(t.Context(), commands.Request{Actor: "owner:U-17", Owner: "U-17", RequestID: "request_test"},
		[]ledger.Quote{{Slot: slotID, Quantity: 1, UnitAmount: 1000}},
		func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
			id = h.ID
			return ledger.Response{Status: 201}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// The real wiring, against a real table: one tick ends what is over, leaves what is not,
// and reports both.
func TestTheWiringWorks(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	environment(t, table, *client.Options().BaseEndpoint)
	output := capturedOutput(t)
	handle, err := compose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store := dynamo.NewStore(client, table, system.RealClock{}, system.RealRandom{})
	hourAgo := systemtest.NewClock(time.Now().Add(-time.Hour))
	past := commands.New(store, hourAgo, system.RealRandom{})
	_, err = past.PutSlot(t.Context(), commands.Request{Actor: "service:catalog", RequestID: "request_test"}, slotID, ledger.SlotDefinition{
		ResourceType: "flight", ResourceID: "KE0901", Capacity: 5, Policy: ledger.DefaultPolicy(),
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 1000, Currency: "KRW"}, Shards: 2},
	}, func(ledger.Slot, ledger.Counters, bool) (ledger.Response, error) { return ledger.Response{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	want := map[ledger.HoldID]ledger.Status{}
	for range 3 {
		want[makeHold(t, past)] = ledger.StatusExpired
	}
	want[makeHold(t, commands.New(store, system.RealClock{}, system.RealRandom{}))] = ledger.StatusHeld

	tick, err := os.ReadFile("../../events/lambda/expiry.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := handle(t.Context(), tick); err != nil {
		t.Fatal(err)
	}
	for id, status := range want {
		if hold, err := store.Hold(t.Context(), id); err != nil || hold.Status != status {
			t.Errorf("hold %s is %s, %v; want %s", id, hold.Status, err, status)
		}
	}
	stock, err := store.Stock(t.Context(), []ledger.Slot{{ID: slotID, Terms: ledger.Terms{Shards: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	var total ledger.Counters
	for _, s := range stock {
		total = total.Plus(s.Counters)
	}
	if total != (ledger.Counters{Available: 4, Held: 1, Capacity: 5}) {
		t.Errorf("stock: %+v", total)
	}
	mustReport(t, output())
}

// mustReport requires one line of metrics, with the lag of holds that were over for 50
// minutes.
func mustReport(t *testing.T, output string) {
	t.Helper()
	var lines []map[string]any
	for line := range strings.SplitSeq(strings.TrimSpace(output), "\n") {
		var members map[string]any
		if err := json.Unmarshal([]byte(line), &members); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if _, metrics := members["_aws"]; metrics {
			lines = append(lines, members)
		}
	}
	if len(lines) != 1 {
		t.Fatalf("%d lines of metrics: %s", len(lines), output)
	}
	lag, _ := lines[0]["expiry_lag_seconds_max"].(float64)
	if lag < 3000 || lag > 3060 || lines[0]["expiry_released"] != 3.0 || lines[0]["expiry_heartbeat"] != 1.0 || lines[0]["stage"] != "local" {
		t.Errorf("reported %v", lines[0])
	}
}

// A table that can't be read is an error, never a sweep that had nothing to do.
func TestAnUnreachableTableIsAnError(t *testing.T) {
	environment(t, "no-such-table", *dynamotest.Engine(t).Client().Options().BaseEndpoint)
	output := capturedOutput(t)
	handle, err := compose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := handle(ctx, json.RawMessage(`{}`)); err == nil {
		t.Error("the sweep of a table that does not exist succeeds")
	}
	if got := output(); strings.Contains(got, `"expiry_lag_seconds_max":`) || !strings.Contains(got, `"expiry_heartbeat":0`) {
		t.Errorf("reported %s", got)
	}
}

func TestAWrongEnvironmentStopsTheStart(t *testing.T) {
	t.Setenv("HOLDFAST_STAGE", "prod")
	t.Setenv("HOLDFAST_TABLE_NAME", "holdfast")
	t.Setenv("HOLDFAST_SWEEP_PAGE_ITEMS", "5000")
	if _, err := compose(t.Context()); err == nil || !strings.Contains(err.Error(), "HOLDFAST_SWEEP_PAGE_ITEMS") {
		t.Errorf("compose: %v", err)
	}
}
