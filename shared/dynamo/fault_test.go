package dynamo_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/system/systemtest"
)

// The legs of a new hold of one line, in the order of the transaction. Its event and
// its idempotency record follow.
const (
	legHold = iota
	legStock
)

// counter is a slot behind a client that fails as it is told, and a desk that sells it.
type counter struct {
	t        *testing.T
	faults   *dynamotest.Faults
	clock    *systemtest.Clock
	store    *dynamo.Store
	commands *commands.Commands
	key      int
	// conflicts are the calls that met a running transaction and were made again.
	conflicts int
}

// Conflicted counts as the store tells.
func (c *counter) Conflicted() { c.conflicts++ }

const soldSlot ledger.SlotID = "S-1"

func newCounter(t *testing.T, capacity ledger.Units) *counter {
	t.Helper()
	c := newCounterWithoutSlot(t)
	if _, err := c.putSlot(capacity); err != nil {
		t.Fatal(err)
	}
	return c
}

func newCounterWithoutSlot(t *testing.T) *counter {
	t.Helper()
	client, table := dynamotest.NewTable(t)
	faults := dynamotest.NewFaults(t, client)
	clock := systemtest.NewClock(time.Date(2026, 9, 1, 10, 0, 0, 0, time.UTC))
	random := systemtest.NewRandom(1)
	c := &counter{t: t, faults: faults, clock: clock}
	c.store = dynamo.NewCountedStore(faults, table, clock, random, c)
	c.commands = commands.New(c.store, clock, random)
	return c
}

func (c *counter) putSlot(capacity ledger.Units) (commands.Answer, error) {
	definition := ledger.SlotDefinition{
		ResourceType: "show", ResourceID: "R-1", Capacity: capacity, Policy: ledger.DefaultPolicy(),
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "USD"}, Shards: 1},
	}
	return c.commands.PutSlot(context.Background(), commands.Request{Actor: "catalog"}, soldSlot, definition,
		func(slot ledger.Slot, _ ledger.Policy, _ ledger.Counters, created bool) (ledger.Response, error) {
			status := 200
			if created {
				status = 201
			}
			return ledger.Response{Status: status, Body: []byte(slot.ID)}, nil
		})
}

// buy asks for one unit under a new key.
func (c *counter) buy() (commands.Answer, error) {
	c.key++
	request := commands.Request{
		Actor: "U-1", Owner: "U-1", RequestID: "request", Fingerprint: "f",
		Key: ledger.IdempotencyKey("key-" + strconv.Itoa(c.key)),
	}
	return c.commands.CreateHold(context.Background(), request, commands.HoldWish{Quotes: []ledger.Quote{{Slot: soldSlot, Quantity: 1, UnitAmount: 500}}},
		func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
			return ledger.Response{Status: 201, Body: []byte(h.ID)}, nil
		})
}

func (c *counter) wantStock(available, held, confirmed ledger.Units) {
	c.t.Helper()
	slots, err := c.store.Slots(context.Background(), []ledger.SlotID{soldSlot})
	if err != nil || len(slots) != 1 {
		c.t.Fatalf("slots %v, error %v", slots, err)
	}
	stock, err := c.store.Stock(context.Background(), slots)
	if err != nil {
		c.t.Fatal(err)
	}
	want := ledger.Counters{Available: available, Held: held, Confirmed: confirmed, Capacity: available + held + confirmed}
	if got := stock[0].Counters; got != want {
		c.t.Errorf("stock %+v, want %+v", got, want)
	}
}

func (c *counter) wantBooksBalanced(holds ...ledger.HoldID) {
	c.t.Helper()
	ledgertest.CheckBooks(c.t, c.store, []ledger.SlotID{soldSlot}, holds)
}

func (c *counter) wantTries(want int) {
	c.t.Helper()
	// The first transaction is the one that made the slot.
	if got := c.faults.Calls(dynamotest.TransactWriteItems) - 1; got != want {
		c.t.Errorf("%d tries, want %d", got, want)
	}
}

func wantCode(t *testing.T, err error, want ledger.Code) {
	t.Helper()
	if got := ledger.CodeOf(err); got != want {
		t.Errorf("code %q (%v), want %q", got, err, want)
	}
}

func cancelled(leg int, reason dynamotest.Reason) dynamotest.CanceledLeg {
	return dynamotest.CanceledLeg{Leg: leg, Reason: reason}
}

// G1: the reason of a failed transaction stands at the place of its leg, and each kind
// of reason has its own answer. Only the one that succeeds moves a counter.
func TestCaseG1_ReasonsOfAFailedTransaction(t *testing.T) {
	t.Run("condition", func(t *testing.T) {
		c := newCounter(t, 0)
		_, err := c.buy()
		wantCode(t, err, ledger.CodeInsufficientStock)
		c.wantTries(1)
		c.wantStock(0, 0, 0)
	})
	t.Run("conflict", func(t *testing.T) {
		c := newCounter(t, 1)
		c.faults.Cancel(dynamotest.TransactWriteItems, 1, cancelled(legHold, dynamotest.ReasonTransactionConflict))
		answer, err := c.buy()
		wantCode(t, err, "")
		c.wantTries(2)
		if c.conflicts != 1 {
			t.Errorf("%d conflicts were counted, want 1", c.conflicts)
		}
		c.wantStock(0, 1, 0)
		c.wantBooksBalanced(ledger.HoldID(answer.Response.Body))
	})
	t.Run("throttle on every try", func(t *testing.T) {
		c := newCounter(t, 1)
		// Pauses of 50 ms and double each time, at most 1 s, fit a budget of 5 s eight times.
		const tries = 9
		c.faults.Cancel(dynamotest.TransactWriteItems, tries, cancelled(legStock, dynamotest.ReasonThrottlingError))
		_, err := c.buy()
		wantCode(t, err, ledger.CodeUnavailable)
		c.wantTries(tries)
		if c.conflicts != 0 {
			t.Errorf("%d throttles were counted as conflicts", c.conflicts)
		}
		pauses := c.clock.Sleeps()
		for i := 1; i < 5; i++ {
			if pauses[i] <= pauses[i-1] {
				t.Errorf("pause %d is %s after one of %s; it must grow", i, pauses[i], pauses[i-1])
			}
		}
		c.wantStock(1, 0, 0)
	})
	t.Run("validation", func(t *testing.T) {
		c := newCounter(t, 1)
		c.faults.Cancel(dynamotest.TransactWriteItems, 1, cancelled(legStock, dynamotest.ReasonValidationError))
		_, err := c.buy()
		wantCode(t, err, ledger.CodeInternal)
		c.wantTries(1)
		c.wantStock(1, 0, 0)
	})
}

// G2: two reasons at once. A throttle decides about the pause, whatever stands beside
// it; a condition beside a conflict is not the last word, so the slot is read again.
func TestCaseG2_MixedReasons(t *testing.T) {
	t.Run("conflict and throttle", func(t *testing.T) {
		c := newCounter(t, 1)
		c.faults.Cancel(dynamotest.TransactWriteItems, 1,
			cancelled(legHold, dynamotest.ReasonTransactionConflict), cancelled(legStock, dynamotest.ReasonThrottlingError))
		_, err := c.buy()
		wantCode(t, err, "")
		if pause := c.clock.Sleeps()[0]; pause < 50*time.Millisecond {
			t.Errorf("the pause was %s, want at least the throttle's 50 ms", pause)
		}
		c.wantStock(0, 1, 0)
	})
	t.Run("condition and throttle", func(t *testing.T) {
		c := newCounter(t, 1)
		c.faults.Cancel(dynamotest.TransactWriteItems, 1,
			cancelled(legStock, dynamotest.ReasonConditionalCheckFailed), cancelled(legHold, dynamotest.ReasonThroughputExceeded))
		_, err := c.buy()
		wantCode(t, err, "")
		c.wantTries(2)
		c.wantStock(0, 1, 0)
	})
	for _, available := range []ledger.Units{5, 0} {
		t.Run("condition and conflict with "+strconv.Itoa(int(available))+" available", func(t *testing.T) {
			c := newCounter(t, available)
			// The stock item as it was before somebody gave units back, or took the last.
			slots, err := c.store.Slots(context.Background(), []ledger.SlotID{soldSlot})
			if err != nil {
				t.Fatal(err)
			}
			stale := slots[0].Terms
			c.faults.Cancel(dynamotest.TransactWriteItems, 1,
				dynamotest.CanceledLeg{Leg: legStock, Reason: dynamotest.ReasonConditionalCheckFailed, Item: stockItem(soldSlot, stale, 0)},
				cancelled(legHold, dynamotest.ReasonTransactionConflict))
			reads := c.faults.Calls(dynamotest.BatchGetItem)
			_, err = c.buy()
			if c.faults.Calls(dynamotest.BatchGetItem) == reads {
				t.Error("the slot was not read again")
			}
			if available == 0 {
				wantCode(t, err, ledger.CodeInsufficientStock)
				c.wantTries(1)
				c.wantStock(0, 0, 0)
				return
			}
			wantCode(t, err, "")
			c.wantStock(available-1, 1, 0)
		})
	}
}

// G6: a write is applied and its answer lost. The caller is told the truth: it is done.
func TestCaseG6_LostAnswer(t *testing.T) {
	ctx := context.Background()
	t.Run("hold", func(t *testing.T) {
		c := newCounter(t, 5)
		c.faults.LoseAnswer(dynamotest.TransactWriteItems, 1)
		answer, err := c.buy()
		wantCode(t, err, "")
		if answer.Replayed {
			t.Error("the first answer is not a replay")
		}
		c.wantStock(4, 1, 0)
		c.wantBooksBalanced(ledger.HoldID(answer.Response.Body))
	})
	t.Run("new slot", func(t *testing.T) {
		c := newCounterWithoutSlot(t)
		c.faults.LoseAnswer(dynamotest.TransactWriteItems, 1)
		answer, err := c.putSlot(5)
		wantCode(t, err, "")
		if answer.Response.Status != 201 || string(answer.Response.Body) != string(soldSlot) {
			t.Errorf("answer %d %q, want 201 %q", answer.Response.Status, answer.Response.Body, soldSlot)
		}
		c.wantStock(5, 0, 0)
		events, err := c.store.SlotEvents(ctx, soldSlot)
		if err != nil || len(events) != 1 {
			t.Errorf("%d events (%v), want 1", len(events), err)
		}
	})
	t.Run("changed slot", func(t *testing.T) {
		c := newCounter(t, 5)
		c.faults.LoseAnswer(dynamotest.TransactWriteItems, 1)
		answer, err := c.putSlot(6)
		wantCode(t, err, "")
		if string(answer.Response.Body) != string(soldSlot) {
			t.Errorf("answer %q, want %q", answer.Response.Body, soldSlot)
		}
		c.wantStock(6, 0, 0)
		events, err := c.store.SlotEvents(ctx, soldSlot)
		if err != nil || len(events) != 2 {
			t.Errorf("%d events (%v), want 2", len(events), err)
		}
	})
	t.Run("every answer", func(t *testing.T) {
		c := newCounter(t, 5)
		c.faults.LoseAnswer(dynamotest.TransactWriteItems, 1)
		c.faults.Drop(dynamotest.TransactWriteItems, triesOfOneCall-1)
		answer, err := c.buy()
		wantCode(t, err, "") // settled by reading the event
		c.wantStock(4, 1, 0)
		c.wantBooksBalanced(ledger.HoldID(answer.Response.Body))
	})
	t.Run("nothing arrived", func(t *testing.T) {
		c := newCounter(t, 5)
		c.faults.Drop(dynamotest.TransactWriteItems, triesOfOneCall)
		_, err := c.buy()
		wantCode(t, err, ledger.CodeOutcomeUnknown)
		c.wantStock(5, 0, 0)
	})
}

// G6, the other way round: a try gets no answer, and the next one is refused for want of
// stock. The first may still arrive when the stock is back, so nothing is refused for sure.
func TestCaseG6_ARefusalAfterALostAnswerIsNotFinal(t *testing.T) {
	c := newCounter(t, 1)
	c.faults.Drop(dynamotest.TransactWriteItems, 1)
	c.faults.Interrupt(dynamotest.TransactWriteItems, func() {
		if _, err := c.buy(); err != nil {
			t.Errorf("the other buyer: %v", err)
		}
	})
	_, err := c.buy()
	wantCode(t, err, ledger.CodeOutcomeUnknown)
	c.wantStock(0, 1, 0)
}

// triesOfOneCall is how often a lost answer is asked for again: the pauses after it are
// short, so the number of tries is the bound and not the time.
const triesOfOneCall = 10

// stockItem is a stock item as DynamoDB would return it.
func stockItem(slot ledger.SlotID, terms ledger.Terms, available int) map[string]types.AttributeValue {
	number := func(n int64) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	}
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	return map[string]types.AttributeValue{
		"pk": text("STOCK#" + string(slot) + "#0"), "sk": text("STOCK"), "slot_id": text(string(slot)), "shard": number(0),
		"available": number(int64(available)), "held": number(5), "confirmed": number(0), "capacity": number(5),
		"open": &types.AttributeValueMemberBOOL{Value: terms.Open}, "unit_amount": number(terms.Price.AmountMinor),
		"currency": text(string(terms.Price.Currency)), "shards": number(int64(terms.Shards)), "version": number(1),
	}
}

// A look that is put off while a transaction moves the reservation is put off a moment
// later, and a table that always has one ends the tries.
func TestPostponeWaitsForARunningTransaction(t *testing.T) {
	c := newCounterWithoutSlot(t)
	put := func(conflicts int) error {
		c.faults.Fail(dynamotest.UpdateItem, conflicts, dynamotest.Conflict())
		return c.store.Postpone(t.Context(), "rsv_1", 1, c.clock.Now(), 0)
	}
	if err := put(2); err != nil || len(c.clock.Sleeps()) != 2 {
		t.Errorf("after two conflicts: %v, and %d pauses", err, len(c.clock.Sleeps()))
	}
	wantCode(t, put(10), ledger.CodeUnavailable)
}
