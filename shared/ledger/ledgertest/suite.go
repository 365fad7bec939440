package ledgertest

import (
	"testing"

	"holdfast/shared/ledger"
)

// Run runs the contract on stores that open returns. Each call of open must return a
// store without anything in it; cleaning up is for open to arrange with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) ledger.Store) {
	t.Helper()
	groups := []struct {
		name  string
		rules []rule
	}{
		{"Hold", holdRules},
		{"HoldPayment", holdPaymentRules},
		{"HoldEdit", holdEditRules},
		{"HoldReturn", holdReturnRules},
		{"Reservation", reservationRules},
		{"Postpone", postponeRules},
		{"Parking", parkingRules},
		{"Slot", slotRules},
		{"SlotEdit", slotEditRules},
		{"Stock", stockRules},
		{"Policy", policyRules},
		{"Quota", quotaRules},
		{"Signal", signalRules},
		{"Idempotency", idempotencyRules},
		{"Uniqueness", uniquenessRules},
		{"Review", reviewRules},
		{"Repair", repairRules},
		{"Change", changeRules},
		{"List", listRules},
		{"Archive", archiveRules},
		{"Size", sizeRules},
		{"Race", raceRules},
	}
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			for _, r := range group.rules {
				t.Run(r.name, func(t *testing.T) { r.check(newFixture(t, open(t))) })
			}
		})
	}
}

// rule is one sentence of the contract and the code that checks it.
type rule struct {
	name  string
	check func(*fixture)
}
