package main

import "slices"

const (
	ledgerHold        = "shared/ledger/hold.go"
	ledgerChange      = "shared/ledger/change.go"
	ledgerEvent       = "shared/ledger/event.go"
	ledgerSlot        = "shared/ledger/slot.go"
	ledgerAllocation  = "shared/ledger/allocation.go"
	ledgerIdempotency = "shared/ledger/idempotency.go"
)

func ledgerMutants() []mutant {
	return slices.Concat(ledgerTimeMutants(), ledgerEndMutants(), ledgerPromiseMutants(), ledgerSlotMutants(), ledgerKeyMutants())
}

// ledgerTimeMutants mistake when a hold is over.
func ledgerTimeMutants() []mutant {
	return []mutant{
		{
			name: "confirm an overdue hold",
			edits: []edit{
				{ledgerHoldConfirm, "if h.StatusAt(now) != StatusHeld {", "if h.Status != StatusHeld {"},
				{ledgerHoldConfirm, "change.Holds[0].When = BeforeRelease", "change.Holds[0].When = AnyTime"},
			},
			harm: "a payment that came too late is taken, and what a shop shows as free again is sold",
		},
		{
			name: "confirm at the release millisecond",
			edits: []edit{
				{ledgerHold, "case h.Status != StatusHeld || now.Before(h.ReleaseAt):", "case h.Status != StatusHeld || !now.After(h.ReleaseAt):"},
				{dynamoHold, "release.GreaterThan(", "release.GreaterThanEqual("},
			},
			harm:  "in one millisecond a hold is alive for a payment and over for the sweep",
			tests: []string{"./shared/ledger", "./shared/dynamo"},
		},
		{
			name: "expire ahead of time",
			edits: []edit{
				{ledgerHold, "if now.Before(h.ReleaseAt) {", "if now.Before(h.CreatedAt) {"},
				{ledgerHold, "change.Holds[0].When, change.Holds[0].NoOpenAttempt = FromRelease, true", "change.Holds[0].When, change.Holds[0].NoOpenAttempt = AnyTime, true"},
				{dynamoQuery, "expression.Value(milliseconds(now))", "expression.Value(milliseconds(now.Add(time.Minute)))"},
			},
			harm: "a user who still sees a running countdown has lost the seats",
		},
	}
}

// ledgerEndMutants end a hold in a wrong way.
func ledgerEndMutants() []mutant {
	return []mutant{
		{
			name: "expire a hold that has ended",
			edits: []edit{
				{ledgerHold, "	if h.Status != StatusHeld {\n		return Change{}, nil\n	}", "	if h.Status == \"\" {\n		return Change{}, nil\n	}"},
				{dynamoHold, ".\n		And(expression.Name(attributeStatus).Equal(expression.Value(w.Status())))", ""},
			},
			harm: "a sold seat goes back on sale, because an index still called its hold due",
		},
		{
			name: "cancel a hold that has ended",
			edits: []edit{
				{ledgerHold, "	case h.Status != StatusHeld:\n		return Change{}, notActive(h, now)\n", "	case h.Status == \"\":\n		return Change{}, notActive(h, now)\n"},
				{dynamoHold, ".\n		And(expression.Name(attributeStatus).Equal(expression.Value(w.Status())))", ""},
			},
			harm: "a buyer cancels what was paid, and units are given back that nobody holds",
		},
		{
			name:  "confirm again with another reference",
			edits: []edit{{ledgerHoldConfirm, "if h.Status == StatusConfirmed && h.PaymentReference == reference {", "if h.Status == StatusConfirmed {"}},
			harm:  "a second payment for one hold is told that it has bought it",
		},
		{
			name:  "forget the payment reference",
			edits: []edit{{ledgerHoldConfirm, `if reference != "" {`, `if reference == "" {`}},
			harm:  "one payment confirms two holds, and the second is given away",
			tests: []string{"./shared/ledger", "./shared/commands"},
		},
		{
			name:  "give back twice",
			edits: []edit{{ledgerHold, "movements = append(movements, line.movements(BucketHeld, to)...)", "movements = append(movements, append(line.movements(BucketHeld, to), line.movements(BucketHeld, to)...)...)"}},
			harm:  "a cancelled hold frees units of other people's holds, which are then sold twice",
		},
		{
			name:  "a cancel sells",
			edits: []edit{{ledgerHold, "EventHoldCanceled, BucketAvailable, origin", "EventHoldCanceled, BucketConfirmed, origin"}},
			harm:  "cancelled units count as sold and can never be bought again",
		},
		{
			name:  "give back to another shard",
			edits: []edit{{ledgerHoldLine, "out = append(out, Movement{l.Slot, a.Shard, from, to, a.Quantity})", "to0 := Movement{l.Slot, a.Shard, from, to, a.Quantity}\n		if from == BucketHeld {\n			to0.Shard = 0\n		}\n		out = append(out, to0)"}},
			harm:  "the counters of two shards no longer fit their holds, and one of them sticks",
		},
	}
}

// ledgerPromiseMutants promise, or tell of, something else than what is taken.
func ledgerPromiseMutants() []mutant {
	return []mutant{
		{
			name: "promise more than is taken",
			edits: []edit{
				{ledgerAllocation, "return out, quantity == 0", "return out, len(out) > 0"},
				{ledgerHold, "taken := sum(line.Shards); taken != line.Quantity {", "taken := sum(line.Shards); taken > line.Quantity {"},
			},
			harm: "a hold of two seats is backed by one, and the second is sold to somebody else",
		},
		{
			name:  "an event tells another quantity",
			edits: []edit{{ledgerHold, "Events: []Event{holdEvent(t, next, origin, movements, now)},", "Events: []Event{holdEvent(t, next, origin, movements[:len(movements)-1], now)},"}},
			harm:  "the check of every change refuses it, so that no hold can end",
		},
		{
			name: "an event tells another quantity, unchecked",
			edits: []edit{
				{ledgerHold, "Events: []Event{holdEvent(t, next, origin, movements, now)},", "Events: []Event{holdEvent(t, next, origin, movements[:len(movements)-1], now)},"},
				{ledgerChange, "if err := c.validateStock(); err != nil {", "if err := c.validateUnique(); err != nil {"},
			},
			harm: "whoever follows the events counts other numbers than the stock has",
		},
		{
			name: "an event with the version before",
			edits: []edit{
				{ledgerEvent, "Version: hold.Version, OccurredAt: now,", "Version: max(1, hold.Version-1), OccurredAt: now,"},
				{ledgerChange, `if told["hold/"+string(w.Next.ID)] != w.Next.Version || w.Next.Version != w.Replaces+1 {`, `if told["hold/"+string(w.Next.ID)] == 0 || w.Next.Version != w.Replaces+1 {`},
			},
			harm: "a hold's second event has the key of its first, so that no hold can end",
		},
		{
			name:  "sell at the cached price",
			edits: []edit{{ledgerOffer, "price := Money{q.UnitAmount, slot.Terms.Price.Currency}", "price := slot.Terms.Price"}},
			harm:  "a buyer pays another price than the one that was shown",
		},
		{
			name:  "the last line of a slot wins",
			edits: []edit{{ledgerQuote, "		q.Quantity += sum.Quantity\n", ""}},
			harm:  "who asks for a slot in two lines gets only the second",
		},
		{
			name:  "the longest policy decides",
			edits: []edit{{ledgerOffer, "holdFor, holdForMax = min(holdFor, p.HoldFor), min(holdForMax, p.HoldForMax)", "holdFor, holdForMax = max(holdFor, p.HoldFor), max(holdForMax, p.HoldForMax)"}},
			harm:  "a slot is blocked for longer than its owner allows",
			tests: []string{"./shared/ledger"},
		},
	}
}

// ledgerSlotMutants change a slot in a wrong way.
func ledgerSlotMutants() []mutant {
	return []mutant{
		{
			name:  "terms reach one shard only",
			edits: []edit{{ledgerChange, "for shard := range terms.StockItems() {", "for shard := range 1 {"}},
			harm:  "after a price change most of a slot is still sold at the old price, or stays open",
		},
		{
			name:  "shrink what is held",
			edits: []edit{{ledgerSlotEdit, "	case !d.AcceptOversold:\n", "	case !d.AcceptOversold && total.Available == 0:\n"}},
			harm:  "the catalogue is told that the capacity fell by more than it did",
		},
		{
			name:  "a price change without a version",
			edits: []edit{{ledgerSlotEdit, "		next.PriceVersion++\n", "		next.PriceVersion = max(next.PriceVersion, 1)\n"}},
			harm:  "consumers cannot tell an old price from a new one",
			tests: []string{"./shared/ledger"},
		},
	}
}

// ledgerKeyMutants mix up idempotency keys.
func ledgerKeyMutants() []mutant {
	return []mutant{
		{
			name:  "keys without an owner",
			edits: []edit{{ledgerIdempotency, "[]string{string(owner), string(command), string(key)}", "[]string{string(owner[:0]), string(command), string(key)}"}},
			harm:  "a buyer who happens to choose another one's key is shown that one's hold",
		},
		{
			name:  "keys without an operation",
			edits: []edit{{ledgerIdempotency, "[]string{string(owner), string(command), string(key)}", "[]string{string(owner), string(command[:0]), string(key)}"}},
			harm:  "an app that cancels under the key of its create is refused, or told that it has created",
		},
		{
			name:  "any request fits a key",
			edits: []edit{{ledgerIdempotency, "case r.Fingerprint != f:", `case r.Fingerprint == "":`}},
			harm:  "who uses a key again for another order gets the old one, and believes to have the new",
		},
		{
			name:  "a live record counts as absent",
			edits: []edit{{ledgerIdempotency, "return now.Before(r.RetainUntil)", "return now.After(r.RetainUntil)"}},
			harm:  "who asks again after a lost answer is refused because of what the first try did",
		},
	}
}
