package dynamo_test

import (
	"testing"

	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/lease"
	"holdfast/shared/lease/leasetest"
	"holdfast/shared/system"
)

// The contract of lease.Leases, on the real engine.
func TestLeasesKeepTheContract(t *testing.T) {
	leasetest.Run(t, func(t *testing.T) lease.Leases {
		client, table := dynamotest.NewTable(t)
		return dynamo.NewStore(client, table, system.RealClock{}, system.RealRandom{})
	})
}
