package commands_test

import (
	"testing"

	"pgregory.net/rapid"

	"holdfast/shared/commands/commandstest"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/system/systemtest"
)

// Baskets of 1 to 50 lines over slots of 1 to 16 shards, which several owners make, edit, sell
// and give back while an operator changes the slots and holds expire, keep P1, P2 and P3 after
// every write. P10 holds for every "sold out", and every request ends inside its deadline.
func TestBasketsOfManyOwnersKeepTheirPromises(t *testing.T) {
	tally := make(commandstest.Tally)
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, least, most int) int {
			// Not rapid.IntRange, which draws small numbers much more often than others.
			return least + rapid.SampledFrom(upTo(most-least)).Draw(t, name)
		}
		commandstest.Check(t, commandstest.Run{Draw: draw, Store: memory.New(), Random: systemtest.NewRandom(1), Turns: 400}, tally)
	})
	for _, seen := range []string{
		"create", "create insufficient_stock", "create limit_reached", "edit", "edit insufficient_stock", "edit limit_reached",
		"edit hold_not_active", "extend", "cancel", "confirm", "confirm a part", "return", "expire", "patch", "patch capacity_in_use",
		"split", "wide", "again",
	} {
		if tally[seen] == 0 {
			t.Errorf("%q was never seen; the test shows nothing of it", seen)
		}
	}
	t.Log(tally)
}

// upTo are the numbers from 0 to n.
func upTo(n int) []int {
	out := make([]int, n+1)
	for i := range out {
		out[i] = i
	}
	return out
}
