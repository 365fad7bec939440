package dynamo_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/system/systemtest"
)

// limitedSale is a slot of which an owner may have one unit, and a device one hold in an
// hour, behind a client that fails as it is told.
type limitedSale struct {
	*testing.T
	client *dynamodb.Client
	table  string
	faults *dynamotest.Faults
	clock  *systemtest.Clock
	store  *dynamo.Store // by way of faults
	direct *dynamo.Store // by none
	slot   ledger.Slot
	drawn  byte
}

var saleDevice = ledger.Signal{Kind: ledger.SignalDevice, Hash: strings.Repeat("5a", ledger.SignalHashCharacters/2)}

func newLimitedSale(t *testing.T) *limitedSale {
	t.Helper()
	client, table := dynamotest.NewTable(t)
	faults := dynamotest.NewFaults(t, client)
	clock := systemtest.NewClock(time.Date(2026, time.September, 1, 10, 30, 0, 0, time.UTC))
	s := &limitedSale{
		T: t, client: client, table: table, faults: faults, clock: clock,
		store:  dynamo.NewStore(faults, table, clock, systemtest.NewRandom(1)),
		direct: dynamo.NewStore(client, table, clock, systemtest.NewRandom(1)),
	}
	policy := ledger.DefaultPolicy()
	policy.QuantityPerOwnerMax, policy.HoldsPerSignalMax = 1, 1
	change, err := ledger.NewSlot(soldSlot, ledger.SlotDefinition{
		ResourceType: "show", ResourceID: "R-1", Capacity: 9, Policy: policy,
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "USD"}, Shards: 1},
	}, s.origin(), clock.Now())
	if err == nil {
		err = s.direct.Commit(t.Context(), change)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.slot = change.Slots[0].Next
	return s
}

func (s *limitedSale) origin() ledger.Origin {
	s.drawn++
	return ledger.Origin{Actor: "U-1", Command: ledger.CommandCreateHold, EventID: ledger.NewEventID([16]byte{s.drawn})}
}

// hold is the change that makes a hold of one unit of the owner.
func (s *limitedSale) hold(owner ledger.OwnerID, signals ...ledger.Signal) ledger.Change {
	s.Helper()
	origin := s.origin()
	change, err := ledger.NewHold(ledger.HoldPlan{
		ID: ledger.NewHoldID([16]byte{s.drawn}), Owner: owner, Signals: signals,
		Quotes:      []ledger.Quote{{Slot: soldSlot, Quantity: 1, UnitAmount: 500}},
		Slots:       map[ledger.SlotID]ledger.Slot{soldSlot: s.slot},
		Allocations: map[ledger.SlotID][]ledger.Allocation{soldSlot: {{Shard: 0, Quantity: 1}}},
	}, origin, s.clock.Now().Truncate(time.Millisecond))
	if err != nil {
		s.Fatal(err)
	}
	return change
}

func (s *limitedSale) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// G6: the answer of a hold that takes the last that its owner and its device may have is
// lost. The next try is refused by both, and by its own event, which says that it is done.
func TestCaseG6_LostAnswerOfTheLastThatAnOwnerMayHave(t *testing.T) {
	s := newLimitedSale(t)
	s.faults.LoseAnswer(dynamotest.TransactWriteItems, 1)
	change := s.hold("U-1", saleDevice)
	s.must(s.store.Commit(t.Context(), change))
	if tries := s.faults.Calls(dynamotest.TransactWriteItems); tries != 2 {
		t.Errorf("%d tries, want 2", tries)
	}
	quota, err := s.direct.Quota(t.Context(), "U-1")
	if err != nil || quota.Counts[ledger.SlotQuota(soldSlot)] != 1 {
		t.Errorf("counts %v, error %v, want 1 unit", quota.Counts, err)
	}
	ledgertest.CheckBooks(t, s.direct, []ledger.SlotID{soldSlot}, []ledger.HoldID{change.Holds[0].Next.ID})
}

// G6, the other way round: a try without an answer, and then a refusal. What an owner has
// may fall until the first try arrives, so that refusal is not final; what a device has
// tried never falls.
func TestCaseG6_RefusalByALimitAfterALostAnswer(t *testing.T) {
	t.Run("of an owner", func(t *testing.T) {
		s := newLimitedSale(t)
		s.faults.Drop(dynamotest.TransactWriteItems, 1)
		s.faults.Interrupt(dynamotest.TransactWriteItems, func() { s.must(s.direct.Commit(t.Context(), s.hold("U-1"))) })
		wantCode(t, s.store.Commit(t.Context(), s.hold("U-1")), ledger.CodeOutcomeUnknown)
	})
	t.Run("of a device", func(t *testing.T) {
		s := newLimitedSale(t)
		s.faults.Drop(dynamotest.TransactWriteItems, 1)
		s.faults.Interrupt(dynamotest.TransactWriteItems, func() {
			s.must(s.direct.Commit(t.Context(), s.hold("U-2", saleDevice)))
		})
		var refused *ledger.Refused
		if err := s.store.Commit(t.Context(), s.hold("U-1", saleDevice)); !errors.As(err, &refused) || len(refused.LegsOf(ledger.LegSignal)) != 1 {
			t.Errorf("error %v, want a refusal by the signal", err)
		}
	})
}

// items reads the whole table, as text by key.
func (s *limitedSale) items() map[string]map[string]types.AttributeValue {
	s.Helper()
	out, err := s.client.Scan(s.Context(), &dynamodb.ScanInput{TableName: &s.table})
	s.must(err)
	items := make(map[string]map[string]types.AttributeValue)
	for _, i := range out.Items {
		items[i["pk"].(*types.AttributeValueMemberS).Value+" "+i["sk"].(*types.AttributeValueMemberS).Value] = i
	}
	return items
}

// wantItem requires the item to have exactly these numbers beside its key.
func (s *limitedSale) wantItem(key string, want map[string]int64) {
	s.Helper()
	got := make(map[string]int64)
	items := s.items()
	for name, value := range items[key] {
		if n, isNumber := value.(*types.AttributeValueMemberN); isNumber {
			number, err := strconv.ParseInt(n.Value, 10, 64)
			s.must(err)
			got[name] = number
		} else if name != "pk" && name != "sk" {
			s.Errorf("item %s has %s, which is no number", key, name)
		}
	}
	if !maps.Equal(got, want) {
		s.Errorf("item %s has %v, want %v; the table has %v", key, got, want, slices.Sorted(maps.Keys(items)))
	}
}

// What limits leave in the table is counts only: no index lists it, and a signal's counter
// leaves a day after its window.
func TestItemsOfLimitsAreCountsOnly(t *testing.T) {
	s := newLimitedSale(t)
	change := s.hold("U-1", saleDevice)
	s.must(s.direct.Commit(t.Context(), change))
	window := time.Date(2026, time.September, 1, 10, 0, 0, 0, time.UTC)
	signal := "SIGNAL#device#" + saleDevice.Hash + "#" + strconv.FormatInt(window.Unix(), 10) + " SIGNAL"
	s.wantItem("OWNER#U-1 QUOTA", map[string]int64{"count:slot/S-1": 1})
	s.wantItem(signal, map[string]int64{"holds": 1, "ttl_at_seconds": window.Add(25 * time.Hour).Unix()})

	hold := change.Holds[0].Next
	over, err := ledger.Expire(hold, s.origin(), hold.ReleaseAt)
	s.must(err)
	over.Quotas[0].Expired = true
	s.must(s.direct.Commit(t.Context(), over))
	s.wantItem("OWNER#U-1 QUOTA", map[string]int64{"count:slot/S-1": 0, "expired": 1, "last_expired_at_ms": hold.ReleaseAt.UnixMilli()})
	s.must(s.direct.TidyQuota(t.Context(), "U-1", []ledger.QuotaKey{ledger.SlotQuota(soldSlot)}))
	s.wantItem("OWNER#U-1 QUOTA", map[string]int64{"expired": 1, "last_expired_at_ms": hold.ReleaseAt.UnixMilli()})

	stock := s.items()["STOCK#S-1#0 STOCK"]
	if _, has := stock["shards_retired"]; len(stock) == 0 || has {
		t.Errorf("a slot without retired shards has the stock item %v", stock)
	}
}

// A limit that only looks at what has expired leaves no item of an owner of whom nothing
// is counted.
func TestRequirementLeavesNoItem(t *testing.T) {
	s := newLimitedSale(t)
	change := s.hold("U-1")
	change.Quotas[0].Deltas[0].Units, change.Quotas[0].ExpiredBelow = 0, 1
	s.must(s.direct.Commit(t.Context(), change))
	if item, there := s.items()["OWNER#U-1 QUOTA"]; there {
		t.Errorf("the owner has the item %v", item)
	}
}

func TestTidyingWaitsForARunningTransaction(t *testing.T) {
	s := newLimitedSale(t)
	tidy := func(conflicts int) error {
		s.faults.Fail(dynamotest.UpdateItem, conflicts, dynamotest.Conflict())
		return s.store.TidyQuota(t.Context(), "U-1", []ledger.QuotaKey{ledger.QuotaHolds})
	}
	if err := tidy(2); err != nil || len(s.clock.Sleeps()) != 2 {
		t.Errorf("after two conflicts: %v, and %d pauses", err, len(s.clock.Sleeps()))
	}
	wantCode(t, tidy(triesOfOneCall), ledger.CodeUnavailable)
}

// put writes an attribute over what an item has.
func (s *limitedSale) put(partition, sort, name string, value types.AttributeValue) {
	s.Helper()
	update := "SET #name = :value"
	_, err := s.client.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
		TableName: &s.table, UpdateExpression: &update,
		Key: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: partition}, "sk": &types.AttributeValueMemberS{Value: sort},
		},
		ExpressionAttributeNames: map[string]string{"#name": name}, ExpressionAttributeValues: map[string]types.AttributeValue{":value": value},
	})
	s.must(err)
}

func TestCountThatIsNoNumberIsAFault(t *testing.T) {
	s := newLimitedSale(t)
	s.put("OWNER#U-1", "QUOTA", "count:holds", &types.AttributeValueMemberS{Value: "many"})
	_, err := s.direct.Quota(t.Context(), "U-1")
	wantCode(t, err, ledger.CodeInternal)
	s.put("OWNER#U-1", "QUOTA", "count:holds", &types.AttributeValueMemberN{Value: "1.5"})
	_, err = s.direct.Quota(t.Context(), "U-1")
	wantCode(t, err, ledger.CodeInternal)
}

// A part of a policy that a newer version has added, and that this one can't know, is passed
// over, and the parts beside it are kept.
func TestPolicyPartOfANewerVersionIsPassedOver(t *testing.T) {
	s := newLimitedSale(t)
	names := []types.AttributeValue{
		&types.AttributeValueMemberS{Value: "hold_seconds"}, &types.AttributeValueMemberS{Value: "not_yet_known"},
		&types.AttributeValueMemberS{Value: "scarce"},
	}
	s.put("SLOT#S-1", "SLOT", "inherits", &types.AttributeValueMemberL{Value: names})
	slots, err := s.direct.Slots(t.Context(), []ledger.SlotID{soldSlot})
	if err != nil || len(slots) != 1 || slots[0].Inherits != ledger.PartHold|ledger.PartScarce {
		t.Errorf("slots %+v, error %v, want the two known parts inherited", slots, err)
	}
}
