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
	rapid.Check(t, func(t *rapid.T) {
		commandstest.Check(t, commandstest.Run{Store: memory.New(), Random: systemtest.NewRandom(1), Turns: 400})
	})
}
