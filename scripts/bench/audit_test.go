package main

import (
	"bytes"
	"context"
	"testing"
	"time"
)

// M1: the audit and its repair beside traffic name exactly what is wrong, write nothing
// without being told to, repair what is certain, ask a person about the rest, and have nothing
// left to do afterwards.
func TestCaseM1_TwelveFaultsUnderTraffic(t *testing.T) {
	var out bytes.Buffer
	if err := runAuditFaults(t.Context(), &out, 2_000, 2, func(ctx context.Context, _ time.Duration) error { return ctx.Err() }); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// A cost that grows faster than the table is an error, and so is too much memory.
func TestAuditCostsAreJudged(t *testing.T) {
	at := func(holds int, units float64, cpu time.Duration, memory float64) auditCost {
		return auditCost{holds: holds, readUnits: units, cpu: cpu, memoryMiB: memory}
	}
	for name, c := range map[string]struct {
		costs []auditCost
		good  bool
	}{
		"linear":           {[]auditCost{at(10_000, 5, 100, 50), at(100_000, 5.04, 118, 400)}, true},
		"read units grow":  {[]auditCost{at(10_000, 5, 100, 50), at(100_000, 5.06, 100, 400)}, false},
		"our CPU grows":    {[]auditCost{at(10_000, 5, 100, 50), at(100_000, 5, 121, 400)}, false},
		"too much of heap": {[]auditCost{at(10_000, 5, 100, 50), at(100_000, 5, 100, 513)}, false},
	} {
		if err := judgeAuditCosts(c.costs); err == nil != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
