package main

const (
	ledgerQuota        = "shared/ledger/quota.go"
	ledgerLimits       = "shared/ledger/limits.go"
	ledgerPolicyLayer  = "shared/ledger/policy_layer.go"
	dynamoQuota        = "shared/dynamo/quota.go"
	commandsQuota      = "shared/commands/quota.go"
	commandsSlotBatch  = "shared/commands/slot_batch.go"
	commandsStockCache = "shared/commands/stock_cache.go"
	commandsAllocation = "shared/commands/allocation.go"
)

// limitMutants mistake what one owner, or one device, may have.
func limitMutants() []mutant {
	return []mutant{
		{
			name:  "no limit of an owner",
			edits: []edit{{dynamoQuota, "		if d.Max > 0 {\n", "		if d.Max > 1_000_000 {\n"}},
			harm:  "one customer takes all of what is one for each",
		},
		{
			name:  "what ends is still counted",
			edits: []edit{{ledgerQuota, "	case StatusCanceled, StatusExpired, StatusPaymentChecking:\n		return counts\n", "	case StatusCanceled, StatusExpired, StatusPaymentChecking:\n"}},
			harm:  "a customer whose holds have ended may never buy again",
		},
		{
			name:  "a sold hold still counts as a hold",
			edits: []edit{{ledgerQuota, "	case StatusHeld:\n		for _, key := range h.CountsIn {", "	case StatusHeld, StatusConfirmed, StatusReturned:\n		for _, key := range h.CountsIn {"}, {ledgerQuota, "	case StatusConfirmed, StatusReturned:\n	case", "	case"}},
			harm:  "a good customer reaches the limit of open holds by buying",
		},
		{
			name:  "exchange beyond a limit",
			edits: []edit{{ledgerQuota, "		if d.Units != 0 || d.Max > 0 {", "		if d.Units <= 0 {\n			d.Max = 0\n		}\n		if d.Units != 0 {"}},
			harm:  "a customer exchanges what is not limited for more than one of what is",
			tests: []string{"./shared/ledger"},
		},
		{
			name:  "expired holds are not counted",
			edits: []edit{{ledgerHold, "if h.CountsExpiry && h.Reservation == \"\" {", "if h.CountsExpiry && h.Reservation != \"\" {"}},
			harm:  "one bot keeps a slot blocked by letting hold after hold expire",
		},
		{
			name:  "no cool-down",
			edits: []edit{{ledgerLimits, "w.LastExpiredBy, w.Forget = c.At.Add(-l.cooldown), true", "w.Forget = true"}},
			harm:  "who has let too many holds expire goes on at once",
		},
		{
			name:  "a sale forgets nothing",
			edits: []edit{{ledgerHold, "if sold.Status == StatusConfirmed && sold.CountsExpiry {", "if sold.Status == StatusReturned && sold.CountsExpiry {"}},
			harm:  "a good customer is told to cool down for holds of last year",
			tests: []string{"./shared/ledger", "./shared/commands"},
		},
		{
			name:  "a device makes any number of holds",
			edits: []edit{{dynamoQuota, "expression.Not(holds.GreaterThanEqual(expression.Value(w.Max)))", "expression.Not(holds.GreaterThanEqual(expression.Value(w.Max + 1_000_000)))"}},
			harm:  "a thousand accounts on one device take all",
		},
		{
			name:  "the wide policy beats the near one",
			edits: []edit{{ledgerPolicyLayer, "for _, scope := range Scopes(s.ResourceType, s.ResourceID) {", "for _, scope := range []PolicyScope{{s.ResourceType, s.ResourceID}, {ResourceType: s.ResourceType}} {"}},
			harm:  "what is said for one hotel has no effect",
		},
		{
			name:  "a row of a batch is not repeatable",
			edits: []edit{{commandsSlotBatch, "ledger.CommandPatchSlot, row.keyIn(b.request), row.Fingerprint", "ledger.CommandPatchSlot, ledger.IdempotencyKey(\"\"), row.Fingerprint"}},
			harm:  "a batch that is sent again adds its capacity twice",
			tests: []string{"./shared/commands"},
		},
	}
}
