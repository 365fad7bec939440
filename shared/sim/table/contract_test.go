package table_test

import (
	"testing"

	"holdfast/shared/dynamo"
	"holdfast/shared/lease"
	"holdfast/shared/lease/leasetest"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/system"
)

// The contract of ledger.Store: the real store on this table keeps it as on the engine.
func TestStoreOnTheTableKeepsTheContract(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) ledger.Store {
		return dynamo.NewStore(mustClient(t), "table", system.RealClock{}, system.RealRandom{})
	})
}

// The contract of lease.Leases, as on the engine.
func TestLeasesOnTheTableKeepTheContract(t *testing.T) {
	leasetest.Run(t, func(t *testing.T) lease.Leases {
		return dynamo.NewStore(mustClient(t), "table", system.RealClock{}, system.RealRandom{})
	})
}
