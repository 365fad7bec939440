package memory_test

import (
	"testing"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/ledger/memory"
)

func TestStoreKeepsTheContract(t *testing.T) {
	ledgertest.Run(t, func(*testing.T) ledger.Store { return memory.New() })
}
