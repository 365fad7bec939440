package commands_test

import (
	"testing"

	"holdfast/shared/ledger"
)

// A confirm with lines sells them and gives back the rest, and is known again when the shop
// asks a second time.
func TestAPartIsSold(t *testing.T) {
	b := newBench(t)
	b.define("A", definition(5, 2))
	b.define("B", definition(5, 2))
	if _, err := b.create(b.commands, request("K"), append(quote("A", 3), quote("B", 2)...)); err != nil {
		t.Fatal(err)
	}
	id := b.last().ID
	sell := func(key string, lines ...ledger.ReturnLine) error {
		_, err := b.commands.ConfirmHold(t.Context(), request(key), id, "pay", lines, b.render)
		return err
	}
	b.wantCode(sell("1", ledger.ReturnLine{Slot: "A", Quantity: 4}), ledger.CodeInvalid)
	b.wantCode(sell("2", ledger.ReturnLine{Slot: "C", Quantity: 1}), ledger.CodeInvalid)
	b.wantCounters("A", 2, 3, 0)
	for _, key := range []string{"3", "3", "4"} {
		if err := sell(key, ledger.ReturnLine{Slot: "A", Quantity: 2}); err != nil {
			t.Fatal(err)
		}
	}
	b.wantCode(sell("5", ledger.ReturnLine{Slot: "A", Quantity: 1}), ledger.CodeHoldNotActive)
	b.wantCounters("A", 3, 0, 2)
	b.wantCounters("B", 5, 0, 0)
	b.balanced()
}

// What was sold is given back by line and then whole, restocked or not, and never twice.
func TestASaleIsReturned(t *testing.T) {
	b := newBench(t)
	b.define("A", definition(5, 2))
	if _, err := b.create(b.commands, request("K"), quote("A", 4)); err != nil {
		t.Fatal(err)
	}
	id := b.last().ID
	back := func(key string, lines ...ledger.ReturnLine) error {
		_, err := b.commands.ReturnHold(t.Context(), request(key), id, lines, b.render)
		return err
	}
	b.wantCode(back("early"), ledger.CodeHoldNotActive)
	if _, err := b.commands.ConfirmHold(t.Context(), request("C"), id, "", nil, b.render); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"1", "1"} {
		if err := back(key, ledger.ReturnLine{Slot: "A", Quantity: 1}); err != nil {
			t.Fatal(err)
		}
	}
	b.wantCounters("A", 2, 0, 3)
	if err := back("2", ledger.ReturnLine{Slot: "A", Quantity: 1, Restock: ledger.RestockNever}); err != nil {
		t.Fatal(err)
	}
	b.wantCounters("A", 2, 0, 2)
	b.wantCode(back("3", ledger.ReturnLine{Slot: "A", Quantity: 3}), ledger.CodeReturnOverSale)
	if err := back("4"); err != nil {
		t.Fatal(err)
	}
	b.wantCode(back("5"), ledger.CodeHoldNotActive)
	if status := b.hold(id).Status; status != ledger.StatusReturned {
		t.Errorf("the hold is %s", status)
	}
	b.wantCounters("A", 4, 0, 0)
	b.balanced()
}

// Two returns that meet both take effect, and together give back no more than was sold.
func TestReturnsThatMeet(t *testing.T) {
	b := newBench(t)
	b.define("A", definition(5, 1))
	hold := b.mustHold("A", 3)
	if _, err := b.others.ConfirmHold(t.Context(), request(""), hold.ID, "", nil, b.render); err != nil {
		t.Fatal(err)
	}
	two := []ledger.ReturnLine{{Slot: "A", Quantity: 2}}
	b.store.beforeCommit = func(try int, _ ledger.Change) error {
		if try == 1 {
			if _, err := b.others.ReturnHold(t.Context(), request("other"), hold.ID, two, b.render); err != nil {
				t.Error(err)
			}
		}
		return nil
	}
	_, err := b.commands.ReturnHold(t.Context(), request("K"), hold.ID, two, b.render)
	b.wantCode(err, ledger.CodeReturnOverSale)
	b.wantCounters("A", 4, 0, 1)
	b.balanced()
}
