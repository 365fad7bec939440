package ledger_test

import (
	"errors"
	"fmt"
	"testing"

	"holdfast/shared/ledger"
)

func TestCodeOf(t *testing.T) {
	cause := errors.New("cause")
	coded := &ledger.Error{Code: ledger.CodeBusy, Message: "try again", Cause: cause}
	for _, test := range []struct {
		err  error
		want ledger.Code
	}{
		{nil, ""},
		{coded, ledger.CodeBusy},
		{fmt.Errorf("around it: %w", coded), ledger.CodeBusy},
		{errors.New("without a code"), ledger.CodeInternal},
		{&ledger.Refused{}, ledger.CodeInternal},
	} {
		if got := ledger.CodeOf(test.err); got != test.want {
			t.Errorf("the code of %v is %q, want %q", test.err, got, test.want)
		}
	}
	if !errors.Is(coded, cause) || coded.Error() != "busy: try again: cause" {
		t.Errorf("the error reads %q and keeps its cause: %t", coded, errors.Is(coded, cause))
	}
}

func TestRefusedTellsItsLegs(t *testing.T) {
	record := ledger.IdempotencyRecord{ID: "id"}
	refused := &ledger.Refused{Legs: []ledger.RefusedLeg{
		{Kind: ledger.LegStock, Slot: "A"}, {Kind: ledger.LegIdempotency, Idempotency: &record}, {Kind: ledger.LegStock, Slot: "B"},
	}}
	if got, found := refused.IdempotencyRecord(); !found || got.ID != "id" {
		t.Errorf("record %+v, found %t", got, found)
	}
	if legs := refused.LegsOf(ledger.LegStock); len(legs) != 2 || legs[0].Slot != "A" || legs[1].Slot != "B" {
		t.Errorf("stock legs %+v", legs)
	}
	if want := "change refused by its conditions on: stock, idempotency, stock"; refused.Error() != want {
		t.Errorf("it reads %q, want %q", refused, want)
	}
	if _, found := (&ledger.Refused{Legs: []ledger.RefusedLeg{{Kind: ledger.LegIdempotency}}}).IdempotencyRecord(); found {
		t.Error("a record is found in a leg without one")
	}
}
