package main

const (
	expiryDue   = "shared/due/queue.go"
	expirySweep = "shared/expiry/sweep.go"
)

func expiryMutants() []mutant {
	return []mutant{
		{
			name:  "sweep half of the shards",
			edits: []edit{{expiryDue, "shards: make([]shard[T], ledger.DueShards)}", "shards: make([]shard[T], ledger.DueShards/2)}"}},
			harm:  "every second abandoned cart blocks its seats for ever",
		},
		{
			name:  "one hold for each sweep",
			edits: []edit{{expirySweep, "		run.settle(ctx, entry)\n", "		run.settle(ctx, entry)\n		if run.report.Released > 0 {\n			break\n		}\n"}},
			harm:  "the sweep falls behind as soon as more than one hold a minute is abandoned",
		},
		{
			name:  "stop at the first failure",
			edits: []edit{{expirySweep, "		run.settle(ctx, entry)\n", "		run.settle(ctx, entry)\n		if run.report.Failed > 0 {\n			break\n		}\n"}},
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
