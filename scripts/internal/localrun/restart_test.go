package localrun_test

import (
	"context"
	"testing"

	"holdfast/scripts/internal/localrun"
	"holdfast/shared/ledger"
	"holdfast/shared/topology"
)

// A run keeps the table of the run before it, and its payment provider knows nothing of
// that: no id of the provider may come again, or nobody could pay a second time.
func TestPaymentsOfASecondRun(t *testing.T) {
	folder := t.TempDir()
	for _, run := range []string{"first", "second"} {
		t.Run(run, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), startMax)
			defer cancel()
			system, err := localrun.Start(ctx, localrun.Options{DataFolder: folder, OwnEngine: true, SweepEvery: sweepNever, Progress: t.Output()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := system.Close(); err != nil {
					t.Error(err)
				}
			})
			p := &payingWorld{world: &world{t: t, system: system}, provider: system.Payments, bank: system.Payments.Bank()}
			p.catalog = p.caller("catalogue", topology.ScopeCatalog)
			bought := p.purchase(p.slot(2, ""), 1)
			bought.pay()
			bought.until(ledger.ReservationCompleted)
		})
	}
}
