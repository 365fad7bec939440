package dynamo_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/reconcile"
	"holdfast/shared/system/systemtest"
)

// dying gives the item a time to live that ends while it is in use.
func (l *parkingLot) dying(key ledger.EventItem) {
	l.Helper()
	at := strconv.FormatInt(l.clock.Now().Add(48*time.Hour).Unix(), 10)
	l.damage(key, "SET #a = :v", dynamo.AttributeTimeToLive, &types.AttributeValueMemberN{Value: at})
	if l.item(key)[dynamo.AttributeTimeToLive] == nil {
		l.Fatal("no time to live was planted")
	}
}

// lives requires the item to have no time to live.
func (l *parkingLot) lives(key ledger.EventItem) {
	l.Helper()
	if ttl := l.item(key)[dynamo.AttributeTimeToLive]; ttl != nil {
		l.Errorf("%s/%s still has the time to live %+v", key.PartitionKey, key.SortKey, ttl)
	}
}

func repairOrigin(n byte) ledger.Origin {
	return ledger.Origin{
		Actor: ledger.ActorAudit, Command: ledger.CommandRepair, RequestID: "request_audit",
		EventID: ledger.NewEventID([16]byte{n}), Why: "its keys were damaged",
	}
}

func (l *parkingLot) mustCommit(change ledger.Change) {
	l.Helper()
	if err := l.store.Commit(l.Context(), change); err != nil {
		l.Fatal(err)
	}
}

// Case M3: an item that is in use loses a time to live, and is in its list again, by a step
// that changes nothing else of it.
func TestCaseM3_RepairedHoldLivesAndIsDue(t *testing.T) {
	for name, damage := range map[string]func(l *parkingLot, key ledger.EventItem){
		"its due shard is gone": func(l *parkingLot, key ledger.EventItem) { l.damage(key, "REMOVE #a", dynamo.AttributeDueShard, nil) },
		"its due time is gone":  func(l *parkingLot, key ledger.EventItem) { l.damage(key, "REMOVE #a", dynamo.AttributeDueAtMs, nil) },
		"it is in another shard": func(l *parkingLot, key ledger.EventItem) {
			l.damage(key, "SET #a = :v", dynamo.AttributeDueShard, &types.AttributeValueMemberS{Value: "hold#99"})
		},
		"it is due in 2100": func(l *parkingLot, key ledger.EventItem) {
			l.damage(key, "SET #a = :v", dynamo.AttributeDueAtMs, &types.AttributeValueMemberN{Value: "4102444800000"})
		},
		"nothing of that": func(*parkingLot, ledger.EventItem) {},
	} {
		t.Run(name, func(t *testing.T) {
			l := newParkingLot(t)
			hold := l.hold()
			key := ledger.EventItem{PartitionKey: "HOLD#" + string(hold.ID), SortKey: "HOLD"}
			l.dying(key)
			damage(l, key)
			l.mustCommit(ledger.RepairHold(hold, repairOrigin(1), l.clock.Now()))
			l.lives(key)
			if got := l.mustScanSegments(1)[hold.ID]; !got.Due || got.Archivable {
				t.Errorf("in the index it is %+v", got)
			}
			all, _ := l.listed()
			if len(all) != 1 || all[0] != hold.ID {
				t.Errorf("listed are %v", all)
			}
			if stored, err := l.store.Hold(t.Context(), hold.ID); err != nil || stored.Version != hold.Version+1 || !stored.ReleaseAt.Equal(hold.ReleaseAt) {
				t.Errorf("it is %+v, %v", stored, err)
			}
		})
	}
}

// The same for a hold that has ended and is in the list of those that are due.
func TestRepairedHoldLeavesTheDueList(t *testing.T) {
	l := newParkingLot(t)
	hold := l.hold()
	l.clock.Set(hold.ReleaseAt)
	l.mustExpire(hold.ID)
	key := ledger.EventItem{PartitionKey: "HOLD#" + string(hold.ID), SortKey: "HOLD"}
	l.damage(key, "SET #a = :v", dynamo.AttributeDueShard, &types.AttributeValueMemberS{Value: "hold#" + l.shardOf(hold.ID)})
	if all, _ := l.listed(); len(all) != 1 {
		t.Fatalf("listed are %v, want the one that was planted", all)
	}
	stored, err := l.store.Hold(t.Context(), hold.ID)
	if err != nil {
		t.Fatal(err)
	}
	l.mustCommit(ledger.RepairHold(stored, repairOrigin(1), l.clock.Now()))
	if all, _ := l.listed(); len(all) != 0 {
		t.Errorf("listed are %v", all)
	}
}

// A slot and its stock item lose a time to live with the counters and terms that were wrong.
func TestRepairedStockLives(t *testing.T) {
	l := newParkingLot(t)
	l.hold()
	slots, err := l.store.Slots(t.Context(), []ledger.SlotID{"seat"})
	if err != nil || len(slots) != 1 {
		t.Fatalf("%v, %v", slots, err)
	}
	slotItem, stockItem := ledger.EventItem{PartitionKey: "SLOT#seat", SortKey: "SLOT"}, ledger.EventItem{PartitionKey: "STOCK#seat#" + ledger.Shard(0).String(), SortKey: "STOCK"}
	l.dying(slotItem)
	l.dying(stockItem)
	l.damage(stockItem, "SET #a = :v", "available", &types.AttributeValueMemberN{Value: "-3"})
	l.damage(stockItem, "SET #a = :v", "open", &types.AttributeValueMemberBOOL{Value: false})
	l.damage(stockItem, "SET #a = :v", "shards_retired", &types.AttributeValueMemberN{Value: "4"})
	stock, err := l.store.Stock(t.Context(), slots)
	if err != nil || stock[0].Counters.Available != -3 || stock[0].Terms == slots[0].Terms {
		t.Fatalf("nothing was planted: %+v, %v", stock, err)
	}
	want := ledger.Counters{Available: 99, Held: 1, Capacity: 100}
	l.mustCommit(ledger.RepairStock(slots[0], []ledger.StockRepair{{
		Slot: "seat", Replaces: stock[0].Version, Counters: want, Terms: slots[0].Terms,
	}}, repairOrigin(1), l.clock.Now()))
	l.lives(slotItem)
	l.lives(stockItem)
	stock, err = l.store.Stock(t.Context(), slots)
	if err != nil || stock[0].Counters != want || stock[0].Terms != slots[0].Terms || l.item(stockItem)["shards_retired"] != nil {
		t.Errorf("the stock is %+v, %v", stock, err)
	}
	l.hold()
}

// A reservation that is in no list and would be deleted is looked at at once.
func TestCaseM3_RepairedReservationLivesAndIsDue(t *testing.T) {
	l := newParkingLot(t)
	next := ledger.Reservation{
		ID: ledger.NewReservationID([16]byte{7}), Owner: "U-17", Hold: ledger.NewHoldID([16]byte{7}),
		Status: ledger.ReservationPaymentPending, LookAt: l.clock.Now().Add(time.Hour),
	}
	l.mustCommit(ledger.ReservationStep(ledger.Reservation{}, next, ledger.EventReservationPaymentStarted, nil, repairOrigin(1), l.clock.Now()))
	key := ledger.EventItem{PartitionKey: "RES#" + string(next.ID), SortKey: "RES"}
	l.dying(key)
	l.damage(key, "REMOVE #a", dynamo.AttributeDueShard, nil)
	due := func() []ledger.DueReservation {
		found, _, err := l.store.DueReservations(t.Context(), ledger.ReservationDueShard(next.ID), l.clock.Now(), ledger.Page{Limit: 5})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := due(); len(found) != 0 {
		t.Fatalf("due are %v", found)
	}
	stored, err := l.store.Reservation(t.Context(), next.ID)
	if err != nil {
		t.Fatal(err)
	}
	l.mustCommit(ledger.RepairReservation(stored, repairOrigin(2), l.clock.Now()))
	l.lives(key)
	if found := due(); len(found) != 1 || found[0].ID != next.ID {
		t.Errorf("due are %v", found)
	}
}

// The review index lists an undecided finding, a reservation in REVIEW, and nothing else; a
// case leaves it with its decision.
func TestReviewKeysAreThereWhileACaseWaits(t *testing.T) {
	l := newParkingLot(t)
	finding := ledger.NewReview(ledger.ReviewFinding, "money_mismatch/rsv_1", l.clock.Now())
	key := ledger.EventItem{PartitionKey: "REVIEW#" + string(finding.ID), SortKey: "REVIEW"}
	opened := ledger.OpenReview(ledger.Review{}, finding, repairOrigin(1), l.clock.Now())
	l.mustCommit(opened)
	if item := l.item(key); item[dynamo.AttributeReviewList] == nil || item[dynamo.AttributeReviewOrder] == nil {
		t.Errorf("an open case is not listed: %v", item)
	}
	origin := repairOrigin(2)
	origin.Actor = "operator:lee"
	decided, err := ledger.DecideReview(opened.Reviews[0].Next, ledger.DecisionDismiss, origin, l.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	l.mustCommit(decided)
	if item := l.item(key); item == nil || item[dynamo.AttributeReviewList] != nil || item[dynamo.AttributeReviewOrder] != nil {
		t.Errorf("a decided case is listed, or gone: %v", item)
	}
}

// counting counts the writes of a store.
type counting struct {
	ledger.Store
	writes int
}

func (c *counting) Commit(ctx context.Context, change ledger.Change) error {
	c.writes++
	return c.Store.Commit(ctx, change)
}

// Case M1 on the real engine: items that were damaged by hand are found by an audit of the
// table, left as they are by a dry run, put right by the repair, and not found again.
func TestCaseM1_DamagedItemsAreFoundAndRepaired(t *testing.T) {
	l := newParkingLot(t)
	holds := []ledger.Hold{l.hold(), l.hold(), l.hold(), l.hold()}
	key := func(n int) ledger.EventItem {
		return ledger.EventItem{PartitionKey: "HOLD#" + string(holds[n].ID), SortKey: "HOLD"}
	}
	stockItem := ledger.EventItem{PartitionKey: "STOCK#seat#" + ledger.Shard(0).String(), SortKey: "STOCK"}
	audit := func() []reconcile.Finding {
		report, err := reconcile.Audit(t.Context(), reconcile.AuditPorts{
			Segments: dynamo.NewScan(l.client, l.table), Store: l.store, Clock: l.clock, Wait: func(_ context.Context, d time.Duration) error {
				l.clock.Advance(d)
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return report.Findings
	}
	if found := audit(); len(found) > 0 {
		t.Fatalf("found in a sound table: %v", found)
	}
	l.dying(key(0))
	l.damage(key(1), "REMOVE #a", dynamo.AttributeDueShard, nil)
	l.damage(key(2), "SET #a = :v", dynamo.AttributeDueAtMs, &types.AttributeValueMemberN{Value: "4102444800000"})
	l.dying(stockItem)
	l.damage(stockItem, "SET #a = :v", "held", &types.AttributeValueMemberN{Value: "-2"})
	l.damage(stockItem, "SET #a = :v", "open", &types.AttributeValueMemberBOOL{Value: false})
	found := audit()
	store := &counting{Store: l.store}
	repairer := &reconcile.Repairer{
		Store: store, Expire: l.commands, Clock: l.clock, Random: systemtest.NewRandom(9), Actor: ledger.ActorAudit, RequestID: "request_repair",
	}
	for _, apply := range []bool{false, true} {
		report, err := repairer.Run(t.Context(), found, apply)
		want := reconcile.RepairPlanned
		if apply {
			want = reconcile.RepairDone
		}
		if err != nil || len(found) < 6 || report.Count(want) != len(found) || (store.writes > 0) != apply {
			t.Fatalf("apply %t: %d of %d are %s after %d writes, %v: %+v", apply, report.Count(want), len(found), want, store.writes, err, report.Results)
		}
	}
	for _, item := range []ledger.EventItem{key(0), stockItem} {
		l.lives(item)
	}
	if left := audit(); len(left) > 0 {
		t.Errorf("found after the repair: %v", left)
	}
	before := store.writes
	if _, err := repairer.Run(t.Context(), found, true); err != nil || store.writes != before {
		t.Errorf("the second run writes %d times, %v", store.writes-before, err)
	}
	if all, _ := l.listed(); len(all) != len(holds) {
		t.Errorf("listed are %v", all)
	}
	var ids []ledger.HoldID
	for _, h := range holds {
		ids = append(ids, h.ID)
	}
	ledgertest.CheckBooks(t, l.store, []ledger.SlotID{"seat"}, ids)
}
