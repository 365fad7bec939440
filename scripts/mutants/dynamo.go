package main

import "slices"

const (
	dynamoCommit      = "shared/dynamo/commit.go"
	dynamoEvent       = "shared/dynamo/event.go"
	dynamoFailure     = "shared/dynamo/failure.go"
	dynamoHold        = "shared/dynamo/hold.go"
	dynamoIdempotency = "shared/dynamo/idempotency.go"
	dynamoQuery       = "shared/dynamo/query.go"
	dynamoRead        = "shared/dynamo/read.go"
	dynamoSlot        = "shared/dynamo/slot.go"
	dynamoStock       = "shared/dynamo/stock.go"
	dynamoUniqueness  = "shared/dynamo/uniqueness.go"
)

// alwaysTrue is a condition that every item meets: no item has this attribute.
const alwaysTrue = `expression.AttributeNotExists(expression.Name("no_such_attribute"))`

func dynamoMutants() []mutant {
	return slices.Concat(dynamoConditionMutants(), dynamoDueMutants(), dynamoFailureMutants(), dynamoReadMutants())
}

// dynamoConditionMutants weaken what a write checks.
func dynamoConditionMutants() []mutant {
	return []mutant{
		{
			name:  "take what is not there",
			edits: []edit{{dynamoStock, "if counter.delta < 0 {", "if counter.delta < 0 && counter.name != attributeAvailable {"}},
			harm:  "oversell: two buyers have the last seat",
		},
		{
			name:  "sell a closed slot",
			edits: []edit{{dynamoStock, ".\n			And(expression.Name(attributeOpen).Equal(expression.Value(w.Sale.Open)))", ""}},
			harm:  "a show that was called off goes on being sold",
		},
		{
			name:  "sell at a stale price",
			edits: []edit{{dynamoStock, ".\n			And(expression.Name(attributeUnitAmount).Equal(expression.Value(w.Sale.Price.AmountMinor)))", ""}},
			harm:  "a shop is paid the price of before its change",
		},
		{
			name:  "sell in a stale currency",
			edits: []edit{{dynamoStock, ".\n			And(expression.Name(attributeCurrency).Equal(expression.Value(w.Sale.Price.Currency)))", ""}},
			harm:  "a price in yen is taken as one in dollars",
			tests: []string{"./shared/commands", "./shared/dynamo"},
		},
		{
			name: "write over a hold",
			edits: []edit{
				{dynamoHold, "expression.Name(attributeVersion).Equal(expression.Value(w.Replaces)).\n		And(expression.Name(attributeStatus).Equal(expression.Value(w.Status())))", alwaysTrue},
				{dynamoEvent, "putLeg(newEventRecord(e), notThere(),", "putLeg(newEventRecord(e), " + alwaysTrue + ","},
			},
			harm: "a confirm and a cancel of one hold both succeed: it is paid, and its seats are sold again",
		},
		{
			name: "write over a slot",
			edits: []edit{
				{dynamoSlot, "expression.Name(attributeVersion).Equal(expression.Value(w.Replaces))", alwaysTrue},
				{dynamoEvent, "putLeg(newEventRecord(e), notThere(),", "putLeg(newEventRecord(e), " + alwaysTrue + ","},
			},
			harm: "of two edits at once one is lost, and its author is told that it is in force",
		},
		{
			name:  "write over a live record",
			edits: []edit{{dynamoIdempotency, "expression.Name(attributeRetainUntilMs).LessThanEqual(", "expression.Name(attributeRetainUntilMs).GreaterThan("}},
			harm:  "every repeated request is carried out once more",
		},
		{
			name:  "never forget a key",
			edits: []edit{{dynamoIdempotency, "LessThanEqual(expression.Value(milliseconds(at)))", "LessThanEqual(expression.Value(0*milliseconds(at)))"}},
			harm:  "whether an old key works depends on when DynamoDB gets to delete it",
		},
		{
			name:  "a reference confirms many holds",
			edits: []edit{{dynamoUniqueness, "putLeg(record, notThere(),", `putLeg(record, notThere().Or(notThere().Not()),`}},
			harm:  "one payment confirms two holds, and the second is given away",
			tests: []string{"./shared/dynamo"},
		},
	}
}

// dynamoDueMutants put holds into the wrong list.
func dynamoDueMutants() []mutant {
	return []mutant{
		{
			name: "an ended hold stays due",
			edits: []edit{
				{dynamoHold, "if due, waiting := h.DueAt(); waiting {", `if due, waiting := h.DueAt(); waiting || h.Status != "" {`},
				{dynamoHold, "h.ArchiveFrom(changedAt); archivable {", `h.ArchiveFrom(changedAt); archivable && r.DueShard == "" {`},
			},
			harm: "the sweep reads every hold that ever was, and falls behind",
		},
		{
			name:  "a hold is never due",
			edits: []edit{{dynamoHold, "if due, waiting := h.DueAt(); waiting {", `if due, waiting := h.DueAt(); waiting && h.Status != ledger.StatusHeld {`}},
			harm:  "abandoned carts block the seats for ever",
		},
		{
			name:  "a hold is due late",
			edits: []edit{{dynamoHold, "r.DueAtMs = milliseconds(due)", "r.DueAtMs = milliseconds(due.Add(10 * time.Minute))"}},
			harm:  "abandoned carts block the seats for ten more minutes",
		},
	}
}

// dynamoFailureMutants misunderstand an error.
func dynamoFailureMutants() []mutant {
	return []mutant{
		{
			name:  "a conflict is success",
			edits: []edit{{dynamoCommit, "		case failureConflict, failureThrottle:\n", "		case failureConflict:\n			return nil\n		case failureThrottle:\n"}},
			harm:  "a buyer is told of a hold that does not exist",
		},
		{
			name:  "no answer is success",
			edits: []edit{{dynamoCommit, "			ambiguous = true\n", "			return nil\n"}},
			harm:  "a buyer is told of a hold that does not exist",
		},
		{
			name:  "no answer is not written",
			edits: []edit{{dynamoCommit, "			ambiguous = true\n", "			ambiguous = false\n"}},
			harm:  "a client is told that nothing was written, gives up, and its seats stay held",
		},
		{
			name:  "an unknown error is final",
			edits: []edit{{dynamoFailure, "	}\n	return failure{kind: failureAmbiguous}\n", "	}\n	return failure{kind: failureFault}\n"}},
			harm:  "a short disturbance of the network is told as a fault that no retry can help",
		},
		{
			name:  "a refusal is told before a lost try has arrived",
			edits: []edit{{dynamoCommit, "; ambiguous && errors.As", "; false && errors.As"}},
			harm:  "a buyer is told 'sold out' and owns a hold that nobody knows of",
			tests: []string{"./shared/dynamo"},
		},
		{
			name:  "what is not found was not written",
			edits: []edit{{dynamoCommit, "	if len(out.Item) == 0 {\n		return unknown\n", "	if len(out.Item) == 0 {\n		return unavailable(\"committing a change\", cause)\n"}},
			harm:  "a client is told that nothing was written, and the write arrives a moment later",
			tests: []string{"./shared/dynamo"},
		},
		{
			name:  "own writes look foreign",
			edits: []edit{{dynamoCommit, "if e.ID == stored.ID {", `if e.ID == stored.ID && e.ID == "" {`}},
			harm:  "a write whose answer was lost is told as a lost race, and the outcome stays unknown for longer",
			tests: []string{"./shared/dynamo"},
		},
	}
}

// dynamoReadMutants read less, or something else, than they should.
func dynamoReadMutants() []mutant {
	return []mutant{
		{
			name:  "a hold is read as it was",
			edits: []edit{{dynamoRead, "Key: key.attributes(), ConsistentRead: aws.Bool(true),", "Key: key.attributes(), ConsistentRead: aws.Bool(false),"}},
			harm:  "a buyer does not find the hold that was just made",
		},
		{
			name:  "a list is read as it was",
			edits: []edit{{dynamoRead, "{Keys: ask, ConsistentRead: aws.Bool(true)}", "{Keys: ask, ConsistentRead: aws.Bool(false)}"}},
			harm:  "a list shows a hold as alive that its owner has just cancelled",
		},
		{
			name:  "unprocessed keys are dropped",
			edits: []edit{{dynamoRead, "ask = out.UnprocessedKeys[s.table].Keys", "ask = nil"}},
			harm:  "under load holds are missing from a list, and shards from a stock",
			tests: []string{"./shared/dynamo"},
		},
		{
			name: "a list begins anew",
			edits: []edit{{dynamoQuery, "	if page.After != \"\" {\n		order, err := decodeCursor(page.After)\n		if err != nil || !validOrder(order, kind) {",
				"	if page.After == \"?\" {\n		order, err := decodeCursor(page.After)\n		if err != nil || !validOrder(order, kind) {"}},
			harm:  "whoever pages through a long list sees its first page again and again",
			tests: []string{"./shared/dynamo"},
		},
	}
}
