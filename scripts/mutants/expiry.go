package main

const (
	expiryDue     = "shared/due/queue.go"
	expirySweep   = "shared/expiry/sweep.go"
	expiryWorker  = "shared/expiry/worker.go"
	expiryParked  = "shared/expiry/parked.go"
	expiryPace    = "shared/expiry/pace.go"
	expiryTick    = "shared/expiry/tick.go"
	dynamoParking = "shared/dynamo/parking.go"
	dynamoLease   = "shared/dynamo/lease.go"
)

func expiryMutants() []mutant {
	return []mutant{
		{
			name:  "sweep half of the shards",
			edits: []edit{{expiryDue, "return Shards(ledger.DueShards)", "return Shards(ledger.DueShards / 2)"}},
			harm:  "every second abandoned cart blocks its seats for ever",
		},
		{
			name:  "one hold for each sweep",
			edits: []edit{{expirySweep, "for len(batch) < r.pace.batch() {", "for len(batch) < 1 && r.report.Released == 0 {"}},
			harm:  "the sweep falls behind as soon as more than one hold a minute is abandoned",
			tests: []string{"./shared/expiry"},
		},
		{
			name:  "stop at the first failure",
			edits: []edit{{expirySweep, "		left = r.round(ctx, left)\n", "		left = r.round(ctx, left)\n		if r.report.Failed > 0 {\n			break\n		}\n"}},
			harm:  "one hold that cannot be ended keeps all behind it from ending",
			tests: []string{"./shared/expiry"},
		},
		{
			name:  "stop at an empty page",
			edits: []edit{{expiryDue, `s.finished = after == "" || s.err != nil`, `s.finished = after == "" || s.err != nil || len(entries) == 0`}},
			harm:  "behind a page that DynamoDB leaves empty no hold ends",
			tests: []string{"./shared/expiry"},
		},
		{
			name:  "read one page of each shard",
			edits: []edit{{expiryDue, `s.finished = after == "" || s.err != nil`, `s.finished = true`}},
			harm:  "after an outage the sweep leaves most of what is overdue behind",
			tests: []string{"./shared/expiry"},
		},
		{
			name:  "the newest first",
			edits: []edit{{expiryDue, "q.dueAt(i).Before(q.dueAt(oldest))", "q.dueAt(i).After(q.dueAt(oldest))"}},
			harm:  "when the sweep is behind, who has waited longest waits longer",
			tests: []string{"./shared/expiry"},
		},
		{
			name:  "a failed hold is an ended one",
			edits: []edit{{expirySweep, "		r.report.Failed++\n", "		r.report.AlreadyEnded++\n"}},
			harm:  "nobody is woken while no hold ends",
			tests: []string{"./shared/expiry"},
		},
	}
}

// dueMutants are mistakes with due messages and parked holds.
func dueMutants() []mutant {
	return []mutant{
		{
			name:  "a due message ends nothing",
			edits: []edit{{expiryWorker, "ending := w.ports.Ender.End(ctx, ledger.DueHold{ID: message.Hold, DueAt: message.DueAt}, request)", "ending := Ending{Outcome: OutcomeEnded}"}},
			harm:  "the seats of an abandoned cart come free up to a minute late",
		},
		{
			name:  "a message before its time is forgotten",
			edits: []edit{{expiryWorker, "return w.forward(ctx, message, wait), 0", "return stepEnded, 0"}},
			harm:  "a hold of more than a quarter of an hour ends late, by the sweep",
			tests: []string{"./shared/expiry"},
		},
		{
			name:  "a parked hold is never tried",
			edits: []edit{{expiryParked, "if !entry.TryAt.After(now) {", "if entry.TryAt.Equal(now) {"}},
			harm:  "a hold that failed three times blocks its seats for ever",
		},
		{
			name:  "park at the first failure",
			edits: []edit{{expiryParked, "FailuresMax = 3", "FailuresMax = 1"}},
			harm:  "one bad moment makes a hold wait, and wakes a person",
		},
		{
			name:  "park for hours",
			edits: []edit{{expiryParked, "if backOff *= 2; backOff >= BackOffMax {", "if backOff *= 20; backOff >= 20*BackOffMax {"}, {expiryParked, "return now.Add(BackOffMax), true", "return now.Add(20 * BackOffMax), true"}},
			harm:  "a hold that was repaired blocks its seats for hours",
		},
		{
			name:  "forget since when a parked hold is due",
			edits: []edit{{dynamoParking, "expression.Value(milliseconds(entry.ListedAt())))).\n		Set(", "expression.Value(milliseconds(tryAt)))).\n		Set("}},
			harm:  "the lag that people are told of leaves out the holds that wait longest",
		},
		{
			name:  "park what has moved on",
			edits: []edit{{dynamoParking, "			And(expression.Name(AttributeDueAtMs).Equal(expression.Value(milliseconds(entry.ListedAt()))))).\n", "			Or(expression.AttributeExists(expression.Name(AttributePartitionKey)))).\n"}},
			harm:  "a hold that has ended is swept for ever, and one that is being paid is not found when it is over",
			tests: []string{"./shared/dynamo"},
		},
	}
}

// paceMutants are mistakes with leases, help, pace and the clock.
func paceMutants() []mutant {
	return []mutant{
		{
			name:  "a lease lasts an hour longer",
			edits: []edit{{dynamoLease, "LessThanEqual(expression.Value(milliseconds(now)))).\n		Or(", "LessThanEqual(expression.Value(milliseconds(now) - 3_600_000))).\n		Or("}},
			harm:  "a sweep that dies takes its shards with it for an hour",
		},
		{
			name:  "helpers call helpers",
			edits: []edit{{expirySweep, "	case r.helps:\n		return wanted\n	case !r.mayCall || r.late():\n", "	case !r.mayCall && (!r.helps || r.ports.Helpers == nil), r.late():\n"}},
			harm:  "a backlog starts more and more sweeps, which keep one another and the buyers waiting",
			tests: []string{"./shared/expiry"},
		},
		{
			name:  "do not give way",
			edits: []edit{{expiryPace, "max(p.parallelMin, p.parallel/2)", "max(p.parallelMin, p.parallel)"}},
			harm:  "a backlog of the sweep makes every buyer slow",
			tests: []string{"./shared/expiry"},
		},
		{
			name:  "sweep by a wrong clock",
			edits: []edit{{expiryTick, "if t.ports.Skew.Unreliable() {", "if t.ports.Skew.Unreliable() && false {"}},
			harm:  "a machine whose clock runs ahead takes seats from buyers who still have time",
			tests: []string{"./shared/expiry"},
		},
	}
}
