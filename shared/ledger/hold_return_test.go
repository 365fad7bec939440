package ledger_test

import (
	"reflect"
	"testing"

	"holdfast/shared/ledger"
)

// Where a unit goes that is given back: the caller says it, else the policy that the hold was
// made under.
func TestReturnUnpaidRestocks(t *testing.T) {
	for _, lost := range []bool{false, true} {
		for how, restocks := range map[ledger.Restock]bool{ledger.RestockByPolicy: !lost, ledger.RestockAlways: true, ledger.RestockNever: false} {
			slot := limited(t, "A", func(p *ledger.Policy) { p.NoRestock = lost })
			sold := mustSoldOf(t, baseOf(t, slot))
			change, err := ledger.ReturnUnpaid(sold, []ledger.ReturnLine{{Slot: "A", Quantity: 1, Restock: how}}, originOf("back"), noon)
			if err != nil || change.Validate() != nil {
				t.Fatalf("return: %v, %v", err, change.Validate())
			}
			want := ledger.Counters{Confirmed: -1, Capacity: -1}
			if restocks {
				want = ledger.Counters{Confirmed: -1, Available: 1}
			}
			if change.Stock[0].Delta != want {
				t.Errorf("a return %q of a slot without restock %t moves %+v, want %+v", how, lost, change.Stock[0].Delta, want)
			}
		}
	}
}

func mustSoldOf(t testing.TB, hold ledger.Hold) ledger.Hold {
	t.Helper()
	change, err := ledger.Confirm(hold, "", originOf("confirm"), noon)
	if err != nil {
		t.Fatal(err)
	}
	return change.Holds[0].Next
}

func TestReturnUnpaidRefuses(t *testing.T) {
	held := baseOf(t, limited(t, "A", unlimited))
	sold := mustSoldOf(t, held)
	paid, archived := sold, sold
	paid.Reservation = theReservation
	archived.ArchivedIn = "batch"
	tests := []struct {
		name  string
		hold  ledger.Hold
		lines []ledger.ReturnLine
		want  ledger.Code
	}{
		{"a hold that is not sold", held, nil, ledger.CodeHoldNotActive},
		{"a hold that was paid through its reservation", paid, nil, ledger.CodeHasReservation},
		{"an archived hold", archived, nil, ledger.CodeHoldArchived},
		{"more than was sold", sold, []ledger.ReturnLine{lineOf("A", 3)}, ledger.CodeReturnOverSale},
		{"nothing of a line", sold, []ledger.ReturnLine{lineOf("A", 0)}, ledger.CodeInvalid},
		{"a line that is not there", sold, []ledger.ReturnLine{lineOf("B", 1)}, ledger.CodeInvalid},
		{"a line twice", sold, []ledger.ReturnLine{lineOf("A", 1), lineOf("A", 1)}, ledger.CodeInvalid},
	}
	for _, test := range tests {
		change, err := ledger.ReturnUnpaid(test.hold, test.lines, originOf("back"), noon)
		if ledger.CodeOf(err) != test.want || !change.Empty() {
			t.Errorf("%s: %d actions, error %v, want %q", test.name, change.Actions(), err, test.want)
		}
	}
}

// Returns add up: in parts, the rest with no lines named, and then nothing is left.
func TestReturnUnpaidInParts(t *testing.T) {
	sold := mustSoldOf(t, baseOf(t, limited(t, "A", unlimited), limited(t, "B", unlimited)))
	first, err := ledger.ReturnUnpaid(sold, []ledger.ReturnLine{lineOf("B", 1)}, originOf("first"), noon)
	if err != nil || first.Holds[0].Next.Status != ledger.StatusConfirmed || first.Holds[0].Status() != ledger.StatusConfirmed {
		t.Fatalf("the first part: %+v, error %v", first.Holds, err)
	}
	part := first.Holds[0].Next
	if want := []ledger.ReturnLine{lineOf("A", 2), lineOf("B", 1)}; !reflect.DeepEqual(part.Unreturned(), want) {
		t.Errorf("left are %+v, want %+v", part.Unreturned(), want)
	}
	rest, err := ledger.ReturnUnpaid(part, nil, originOf("rest"), noon)
	if err != nil || rest.Validate() != nil || rest.Holds[0].Next.Status != ledger.StatusReturned || len(rest.Holds[0].Next.Unreturned()) != 0 {
		t.Errorf("the rest: %+v, error %v", rest.Holds, err)
	}
	if _, err := ledger.ReturnUnpaid(rest.Holds[0].Next, nil, originOf("again"), noon); ledger.CodeOf(err) != ledger.CodeHoldNotActive {
		t.Errorf("a return of nothing: %v", err)
	}
}
