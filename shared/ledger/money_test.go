package ledger_test

import (
	"math"
	"testing"

	"holdfast/shared/ledger"
)

func TestMoneyValid(t *testing.T) {
	tests := []struct {
		money ledger.Money
		want  bool
	}{
		{ledger.Money{AmountMinor: 0, Currency: "KRW"}, true},
		{ledger.Money{AmountMinor: ledger.AmountMinorMax, Currency: "USD"}, true},
		{ledger.Money{AmountMinor: ledger.AmountMinorMax + 1, Currency: "USD"}, false},
		{ledger.Money{AmountMinor: math.MaxInt64, Currency: "USD"}, false},
		{ledger.Money{AmountMinor: -1, Currency: "USD"}, false},
		{ledger.Money{AmountMinor: 1, Currency: ""}, false},
		{ledger.Money{AmountMinor: 1, Currency: "usd"}, false},
		{ledger.Money{AmountMinor: 1, Currency: "USDT"}, false},
		{ledger.Money{AmountMinor: 1, Currency: "US"}, false},
		{ledger.Money{AmountMinor: 1, Currency: "USD\n"}, false},
		{ledger.Money{AmountMinor: 1, Currency: "ＵＳＤ"}, false},
	}
	for _, test := range tests {
		if got := test.money.Valid(); got != test.want {
			t.Errorf("%+v is valid: %t, want %t", test.money, got, test.want)
		}
	}
}

// The bound of a unit price is chosen so that no total can overflow.
func TestLargestTotalFits(t *testing.T) {
	line := ledger.Line{
		Quantity:  ledger.QuantityPerLineMax,
		UnitPrice: ledger.Money{AmountMinor: ledger.AmountMinorMax, Currency: "KWD"},
	}
	hold := ledger.Hold{}
	for range ledger.LinesMax {
		hold.Lines = append(hold.Lines, line)
	}
	want := ledger.Money{AmountMinor: 500_000_000_000_000_000, Currency: "KWD"}
	if got := hold.Total(); got != want {
		t.Errorf("total is %+v, want %+v", got, want)
	}
	if got := (ledger.Hold{}).Total(); got != (ledger.Money{}) {
		t.Errorf("total of no lines is %+v", got)
	}
}
