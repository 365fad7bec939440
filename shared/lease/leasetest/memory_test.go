package leasetest_test

import (
	"errors"
	"testing"
	"time"

	"holdfast/shared/lease"
	"holdfast/shared/lease/leasetest"
)

func TestMemoryKeepsTheContract(t *testing.T) {
	leasetest.Run(t, func(*testing.T) lease.Leases { return leasetest.NewMemory() })
}

func TestABrokenMemoryFails(t *testing.T) {
	memory, down := leasetest.NewMemory(), errors.New("down")
	memory.Break(down)
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	if _, taken, err := memory.TakeLease(t.Context(), lease.KindExpiry, 1, "worker_1", now, now); !errors.Is(err, down) || taken {
		t.Errorf("%t, %v", taken, err)
	}
	memory.Break(nil)
	if _, taken, err := memory.TakeLease(t.Context(), lease.KindExpiry, 1, "worker_1", now, now); err != nil || !taken || memory.Takes() != 1 {
		t.Errorf("%t, %v, %d takes", taken, err, memory.Takes())
	}
}
