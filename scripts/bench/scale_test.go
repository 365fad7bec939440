package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/shared/dynamo"
	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

func TestScaleSizes(t *testing.T) {
	for _, test := range []struct {
		largest int
		want    string
	}{
		{10_000, "[1000 10000]"}, {1_000_000, "[1000 10000 100000 1000000]"},
		{1_000, "refused"}, {50_000, "refused"}, {10_000_000, "refused"}, {0, "refused"}, {-1, "refused"},
	} {
		sizes, err := scaleSizes(test.largest)
		got := fmt.Sprint(sizes)
		if err != nil {
			got = "refused"
		}
		if got != test.want {
			t.Errorf("-largest %d: %s, want %s", test.largest, got, test.want)
		}
	}
}

// measured is a table on which every kind of call took the same.
func measured(size int, took time.Duration) *scaleTable {
	t := &scaleTable{size: size, took: map[string][]time.Duration{}, units: map[string][]callUnits{}}
	for _, kind := range scaleKinds {
		t.took[kind] = slices.Repeat([]time.Duration{took}, 9)
		t.units[kind] = slices.Repeat([]callUnits{{writes: 11, reads: 2.5}}, 9)
	}
	return t
}

// A call that costs one unit more in a larger table fails the run, and so does one whose
// median is too slow; a slow one in a hundred does not.
func TestScaleSeesEveryGrowth(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(large *scaleTable)
		fails bool
	}{
		{"the same", func(*scaleTable) {}, false},
		{"a little slower", func(l *scaleTable) { l.took[callConfirm] = slices.Repeat([]time.Duration{114 * time.Millisecond}, 9) }, false},
		{"too slow", func(l *scaleTable) { l.took[callConfirm] = slices.Repeat([]time.Duration{116 * time.Millisecond}, 9) }, true},
		{"faster", func(l *scaleTable) { l.took[callConfirm] = slices.Repeat([]time.Duration{time.Millisecond}, 9) }, false},
		{"one slow call", func(l *scaleTable) { l.took[callConfirm][3] = time.Hour }, false},
		{"half a read unit more once", func(l *scaleTable) { l.units[callBySlots][8].reads += 0.5 }, true},
		{"a write unit more once", func(l *scaleTable) { l.units[callHold][4].writes++ }, true},
		{"a write unit less", func(l *scaleTable) { l.units[callHold][0].writes-- }, true},
	} {
		small, large := measured(1_000, 100*time.Millisecond), measured(10_000, 100*time.Millisecond)
		test.spoil(large)
		if err := printScale(io.Discard, []*scaleTable{small, large}); (err != nil) != test.fails {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	none := measured(1_000, time.Millisecond)
	none.units[callHold] = make([]callUnits, 9)
	if err := printScale(io.Discard, []*scaleTable{none}); err == nil {
		t.Error("a call of which the engine counts nothing passed")
	}
}

// The seeded items are what the store itself reads and goes on from: every slot with its
// stock and its hold, no counter impossible, and each call finds what it asks for.
func TestScaleSeedIsATableOfTheStore(t *testing.T) {
	const slots = askedSlots * slotsPerResource
	contract, err := httpapi.LoadContract()
	if err != nil {
		t.Fatal(err)
	}
	table, err := newScaleTable(t.Context(), slots, true, contract)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := table.close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(table.folder); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the data is still there: %v", err)
		}
	}()
	if err := table.seed(t.Context()); err != nil {
		t.Fatal(err)
	}
	pages := dynamodb.NewScanPaginator(table.meter.Client, &dynamodb.ScanInput{TableName: aws.String(tableName)})
	items := 0
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		items += int(page.Count)
	}
	if items != slots*seededItems {
		t.Errorf("%d items, want %d for each of %d slots", items, seededItems, slots)
	}
	store := dynamo.NewStore(table.meter, tableName, system.RealClock{}, system.RealRandom{})
	for i := range slots {
		wantSeeded(t, store, scaleSlotID(i/slotsPerResource, i%slotsPerResource))
	}
	holds, _, err := store.HoldsOfOwner(t.Context(), "U-0000003", ledger.Page{Limit: 100})
	if err != nil || len(holds) != holdsPerOwner {
		t.Fatalf("%d holds of an owner, %v; want %d", len(holds), err, holdsPerOwner)
	}
	if events, err := store.HoldEvents(t.Context(), holds[0].ID); err != nil || len(events) != 1 || events[0].Hold.Status != ledger.StatusHeld {
		t.Errorf("events of a hold: %v, %v; want that it was made", events, err)
	}
	table.meter.total()
	if err := table.measure(t.Context(), rand.New(rand.NewPCG(1, 1))); err != nil {
		t.Fatal(err)
	}
	if err := printScale(io.Discard, []*scaleTable{table}); err != nil {
		t.Error(err)
	}
}

func wantSeeded(t *testing.T, store *dynamo.Store, id ledger.SlotID) {
	t.Helper()
	slots, err := store.Slots(t.Context(), []ledger.SlotID{id})
	if err != nil || len(slots) != 1 {
		t.Fatalf("slot %s: %v, %v", id, slots, err)
	}
	stock, err := store.Stock(t.Context(), slots)
	if err != nil || len(stock) != 1 {
		t.Fatalf("stock of %s: %v, %v", id, stock, err)
	}
	want := ledger.Counters{Available: scaleCapacity - 1, Held: 1, Capacity: scaleCapacity}
	if got := stock[0].Counters; got != want || stock[0].Version != 2 {
		t.Errorf("stock of %s: %+v, version %d; want %+v, version 2", id, got, stock[0].Version, want)
	}
}
