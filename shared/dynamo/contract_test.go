package dynamo_test

import (
	"testing"

	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/system"
)

// The contract of ledger.Store, on the real engine.
func TestStoreKeepsTheContract(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) ledger.Store {
		client, table := dynamotest.NewTable(t)
		return dynamo.NewStore(client, table, system.RealClock{}, system.RealRandom{})
	})
}
