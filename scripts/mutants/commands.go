package main

import "slices"

const (
	commandsCommands  = "shared/commands/commands.go"
	commandsHoldEnd   = "shared/commands/hold_end.go"
	commandsSlotCache = "shared/commands/slot_cache.go"
)

func commandsMutants() []mutant {
	return slices.Concat(commandsRepeatMutants(), commandsAnswerMutants())
}

// commandsRepeatMutants mistake what may be done again.
func commandsRepeatMutants() []mutant {
	return []mutant{
		{
			name:  "commands without a record",
			edits: []edit{{commandsCommands, `if j.request.Key != "" {`, "if len(j.request.Key) > ledger.IdempotencyKeyCharactersMax {"}},
			harm:  "every repeated request is carried out once more: two holds, two charges",
		},
		{
			name:  "records for a second only",
			edits: []edit{{commandsCommands, "now.Add(ledger.IdempotencyRetainFor)", "now.Add(time.Second)"}},
			harm:  "a client that retries after two seconds gets a second hold",
		},
		{
			name:  "a lost race is told as success",
			edits: []edit{{commandsCommands, "		if j.refused != nil {\n", "		if j.refused == nil {\n			return Answer{Response: d.response}, nil\n		}\n		if j.refused != nil {\n"}},
			harm:  "the catalogue is told of a price that is not in force",
		},
		{
			name:  "no replay of what cannot be done again",
			edits: []edit{{commandsCommands, "if !found || !record.Live(now) {", "if found || !record.Live(now) {"}},
			harm:  "who asks again after a lost answer is refused because of what the first try did",
		},
		{
			name: "retry without an identity",
			edits: []edit{
				{dynamoCommit, "if e.ID == stored.ID {", `if e.ID == stored.ID && e.ID == "" {`},
				{commandsCommands, `if j.request.Key != "" {`, "if len(j.request.Key) > ledger.IdempotencyKeyCharactersMax {"},
			},
			harm: "a write whose answer was lost is not recognised, and is made again as another one",
		},
	}
}

// commandsAnswerMutants tell the caller what is not so.
func commandsAnswerMutants() []mutant {
	return []mutant{
		{
			name:  "sold out on one shard's word",
			edits: []edit{{commandsAllocation, "if r.Contended || a.slots[id].Terms.StockItems() != 1 {", "if r.Contended {"}, {commandsAllocation, "len(stock) != slot.Terms.StockItems() || ", ""}},
			harm:  "buyers are turned away while most of the slot is free",
		},
		{
			name:  "sold out on a read that is not of one moment",
			edits: []edit{{commandsAllocation, "a.commands.store.StockAtOneMoment(ctx, slot)", "a.commands.store.Stock(ctx, []ledger.Slot{slot})"}},
			harm:  "a unit that moves between two shards is seen in neither, and a buyer is turned away",
			tests: []string{"./shared/commands"},
		},
		{
			name: "a conflict is told as sold out",
			edits: []edit{
				{dynamoFailure, "		f.kind = failureConflict\n", "		f.kind = failureRefused\n"},
				{dynamoCommit, "aws.ToString(reason.Code) != reasonCondition {", "aws.ToString(reason.Code) == reasonNone {"},
				{commandsAllocation, "			a.forget(leg.Slot)\n			continue\n", "			found.short = append(found.short, w)\n			continue\n"},
				{commandsAllocation, "if r.Contended || a.slots[id].Terms.StockItems() != 1 {", "if a.slots[id].Terms.StockItems() != 1 {"},
			},
			harm: "two buyers who meet on a slot with seats left are both told that it is sold out",
		},
		{
			name:  "tell the cached price",
			edits: []edit{{commandsAllocation, "ledger.SlotPrice{Slot: w.Slot, Price: item.Terms.Price}", "ledger.SlotPrice{Slot: w.Slot, Price: believed.Price}"}},
			harm:  "a buyer who is told of a new price and accepts it is refused again",
		},
		{
			name:  "cancel anybody's hold",
			edits: []edit{{commandsHoldEnd, "if h.Owner != r.Owner {", `if h.Owner == "" {`}},
			harm:  "anybody who learns an id can free another's seats and take them",
		},
		{
			name: "tell a foreign hold from an unknown one",
			edits: []edit{
				{commandsHoldEnd, "return ledger.Change{}, ledger.HoldNotFound()", `return ledger.Change{}, &ledger.Error{Code: ledger.CodeHoldNotFound, Message: "the hold is another's"}`},
				{httpapiProblem, "	if code == ledger.CodeHoldNotFound {", `	if code == "" {`},
			},
			harm: "ids of other people's holds can be found by trying",
		},
		{
			name:  "any reference that is in use was ours",
			edits: []edit{{commandsHoldEnd, "leg.Uniqueness != nil && leg.Uniqueness.Hold != e.id", "leg.Uniqueness != nil && leg.Uniqueness.Hold == e.id"}},
			harm:  "a payment that is named for a second hold ends in a busy loop instead of a plain refusal",
			tests: []string{"./shared/commands"},
		},
		{
			name:  "definitions are cached for ever",
			edits: []edit{{commandsSlotCache, "if e, ok := c.entries[id]; ok && now.Sub(e.readAt) < slotCacheFor", "if e, ok := c.entries[id]; ok && now.Sub(e.readAt) >= 0"}},
			harm:  "a changed policy never reaches a running function",
			tests: []string{"./shared/commands"},
		},
		{
			name:  "a stale definition is kept",
			edits: []edit{{commandsAllocation, "	a.commands.slots.forget(id)\n", ""}},
			harm:  "after a change of the currency every create of a slot fails until the cache has aged",
			tests: []string{"./shared/commands"},
		},
	}
}
