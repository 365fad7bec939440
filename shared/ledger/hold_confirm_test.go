package ledger_test

import (
	"reflect"
	"testing"

	"holdfast/shared/ledger"
)

func lineOf(slot ledger.SlotID, units ledger.Units) ledger.ReturnLine {
	return ledger.ReturnLine{Slot: slot, Quantity: units}
}

// A part is sold and the rest given back in one Change, whose conditions are those of a
// confirm.
func TestConfirmPart(t *testing.T) {
	hold := baseOf(t, limited(t, "A", unlimited), limited(t, "B", unlimited))
	change, err := ledger.ConfirmPart(hold, []ledger.ReturnLine{lineOf("B", 1)}, "pay", originOf("part"), noon)
	if err != nil || change.Validate() != nil {
		t.Fatalf("part: %v, %v", err, change.Validate())
	}
	want := []ledger.StockWrite{
		{Slot: "A", Delta: ledger.Counters{Available: 2, Held: -2}},
		{Slot: "B", Delta: ledger.Counters{Available: 1, Held: -2, Confirmed: 1}},
	}
	if !reflect.DeepEqual(change.Stock, want) {
		t.Errorf("the stock is written as %+v, want %+v", change.Stock, want)
	}
	w := change.Holds[0]
	if w.Replaces != 1 || w.When != ledger.BeforeRelease || w.Of == nil || *w.Of != "" || len(change.Uniqueness) != 1 || change.Uniqueness[0].Value != "pay" {
		t.Errorf("the hold is written under %+v with the claims %+v", w, change.Uniqueness)
	}
	sold := w.Next
	if sold.Status != ledger.StatusConfirmed || len(sold.Lines) != 1 || sold.Lines[0].Slot != "B" || sold.Lines[0].Quantity != 1 || sold.Total().AmountMinor != 500 || sold.EndedAt != noon {
		t.Errorf("the hold has become %+v", sold)
	}
	if change.Events[0].Type != ledger.EventHoldConfirmed {
		t.Errorf("it is told as %s", change.Events[0].Type)
	}
	all, err := ledger.ConfirmPart(hold, []ledger.ReturnLine{lineOf("B", 2), lineOf("A", 2)}, "pay", originOf("all"), noon)
	whole, wholeErr := ledger.Confirm(hold, "pay", originOf("all"), noon)
	if err != nil || wholeErr != nil || !reflect.DeepEqual(all, whole) {
		t.Errorf("all parts are confirmed as %+v, the whole as %+v", all, whole)
	}
}

func TestConfirmPartRefuses(t *testing.T) {
	hold := baseOf(t, limited(t, "A", unlimited), limited(t, "B", unlimited))
	over := hold
	over.ReleaseAt = noon
	reserved := hold
	reserved.Reservation = theReservation
	tests := []struct {
		name string
		hold ledger.Hold
		sold []ledger.ReturnLine
		want ledger.Code
	}{
		{"nothing", hold, nil, ledger.CodeInvalid},
		{"a quantity of nothing", hold, []ledger.ReturnLine{lineOf("A", 0)}, ledger.CodeInvalid},
		{"a negative quantity", hold, []ledger.ReturnLine{lineOf("A", -1)}, ledger.CodeInvalid},
		{"a line twice", hold, []ledger.ReturnLine{lineOf("A", 1), lineOf("A", 1)}, ledger.CodeInvalid},
		{"a line that is not there", hold, []ledger.ReturnLine{lineOf("A", 1), lineOf("C", 1)}, ledger.CodeInvalid},
		{"more than is held", hold, []ledger.ReturnLine{lineOf("A", 3)}, ledger.CodeInvalid},
		{"a hold that is over", over, []ledger.ReturnLine{lineOf("A", 1)}, ledger.CodeHoldNotActive},
		{"a hold of a reservation", reserved, []ledger.ReturnLine{lineOf("A", 1)}, ledger.CodePaymentInProgress},
	}
	for _, test := range tests {
		change, err := ledger.ConfirmPart(test.hold, test.sold, "", originOf("part"), noon)
		if ledger.CodeOf(err) != test.want || !change.Empty() {
			t.Errorf("%s: %d actions, error %v, want %q", test.name, change.Actions(), err, test.want)
		}
	}
}

// A shop that lost the answer asks again, and gets it only for what it bought.
func TestConfirmPartAgain(t *testing.T) {
	hold := baseOf(t, limited(t, "A", unlimited), limited(t, "B", unlimited))
	change, err := ledger.ConfirmPart(hold, []ledger.ReturnLine{lineOf("A", 1), lineOf("B", 1)}, "pay", originOf("part"), noon)
	if err != nil {
		t.Fatal(err)
	}
	sold := change.Holds[0].Next
	tests := []struct {
		name      string
		sold      []ledger.ReturnLine
		reference ledger.PaymentReference
		want      ledger.Code
	}{
		{"the same", []ledger.ReturnLine{lineOf("B", 1), lineOf("A", 1)}, "pay", ""},
		{"by another payment", []ledger.ReturnLine{lineOf("A", 1), lineOf("B", 1)}, "pay-2", ledger.CodeHoldNotActive},
		{"a part of it", []ledger.ReturnLine{lineOf("A", 1)}, "pay", ledger.CodeHoldNotActive},
		{"more of it", []ledger.ReturnLine{lineOf("A", 2), lineOf("B", 1)}, "pay", ledger.CodeHoldNotActive},
		{"a line twice for another one", []ledger.ReturnLine{lineOf("A", 1), lineOf("A", 1)}, "pay", ledger.CodeInvalid},
	}
	for _, test := range tests {
		again, err := ledger.ConfirmPart(sold, test.sold, test.reference, originOf("again"), noon)
		if ledger.CodeOf(err) != test.want || !again.Empty() {
			t.Errorf("%s: %d actions, error %v, want %q", test.name, again.Actions(), err, test.want)
		}
	}
}
