package main

const (
	outboxRelay       = "shared/outbox/relay.go"
	outboxSend        = "shared/outbox/send.go"
	outboxRecord      = "shared/outbox/record.go"
	outboxDelivery    = "shared/outbox/delivery.go"
	outboxDue         = "shared/outbox/due.go"
	outboxRedrive     = "shared/outbox/redrive.go"
	dynamoUnpublished = "shared/dynamo/unpublished.go"
)

func outboxMutants() []mutant {
	return []mutant{
		{
			name: "mark before publishing",
			edits: []edit{
				{outboxDelivery, "	d.publishWoken(ctx, call, failures)\n	marking", "	marking"},
				{outboxDelivery, "	d.mark(marking, call, failures)\n", "	d.mark(marking, call, failures)\n	d.publishWoken(ctx, call, failures)\n"},
			},
			harm: "an event whose sending fails is never looked for again",
		},
		{
			name:  "mark and publish nothing",
			edits: []edit{{outboxDelivery, "range d.send(ctx, ready) {", "range make([]error, len(ready)) {"}},
			harm:  "no consumer ever learns of anything",
		},
		{
			name:  "go on behind a failure",
			edits: []edit{{outboxDelivery, "		for i, err := range d.deliver(ctx, call) {\n			if err != nil {\n				return done + i\n			}\n		}\n", "		d.deliver(ctx, call)\n"}},
			harm:  "an event that the bus refuses is skipped for ever",
			tests: []string{"./shared/outbox"},
		},
		{
			name:  "report the last record as the failed one",
			edits: []edit{{outboxRelay, "records[failed].sequenceNumber", "records[len(records)-1].sequenceNumber"}},
			harm:  "the stream moves on behind events that were never published",
			tests: []string{"./shared/outbox"},
		},
		{
			name: "believe the answer as a whole",
			edits: []edit{
				{outboxSend, `if aws.ToString(result.EventId) == "" || aws.ToString(result.ErrorCode) != "" {`, `if aws.ToString(result.EventId) == "?" {`},
				{outboxSend, "if output.FailedEntryCount > refused {", "if output.FailedEntryCount < refused {"},
			},
			harm: "an event that the bus refuses is taken for published",
		},
		{
			name:  "no answer of the bus is success",
			edits: []edit{{outboxSend, `return slices.Repeat([]error{fmt.Errorf("put events: %w", err)}, len(entries))`, "return make([]error, len(entries))"}},
			harm:  "an outage of the bus swallows every event of its time",
		},
		{
			name:  "every failure is for good",
			edits: []edit{{outboxDelivery, "		case permanent(err):\n			failures[i] = d.setAside", "		case err != nil:\n			failures[i] = d.setAside"}},
			harm:  "an event that the bus refuses for want of capacity is set aside for ever",
		},
		{
			name:  "two events of a hold in one call",
			edits: []edit{{outboxRecord, "bytes > r.settings.CallBytesMax || seen[of]", "bytes > r.settings.CallBytesMax"}},
			harm:  "a consumer hears that a hold was cancelled before it hears of the hold",
			tests: []string{"./shared/outbox"},
		},
		{
			name:  "a mark that fails is a mark",
			edits: []edit{{outboxDelivery, "			failures[i] = fmt.Errorf(\"mark as published: %w\", err)\n			continue\n", "			_ = fmt.Errorf(\"mark as published: %w\", err)\n			continue\n"}},
			harm:  "published events stay in the list of those that wait, and are taken for lost",
			tests: []string{"./shared/outbox"},
		},
		{
			name:  "stop at what cannot be read",
			edits: []edit{{outboxDelivery, "				return done\n			}\n			done++\n			continue\n", "				return done\n			}\n			return done\n"}},
			harm:  "one event that cannot be published keeps all behind it from being published for hours",
			tests: []string{"./shared/outbox"},
		},
	}
}

// redriveMutants are mistakes with the list of unpublished events, due messages, redrive and
// the quarantine.
func redriveMutants() []mutant {
	return []mutant{
		{
			name:  "a published event stays unpublished",
			edits: []edit{{dynamoEvent, ".\n			Remove(expression.Name(AttributeUnpublishedShard)).\n			Remove(expression.Name(AttributeUnpublishedOrder))", ""}},
			harm:  "the list of events that wait grows for ever, and nobody finds the one that is lost",
		},
		{
			name:  "a new event is not listed as unpublished",
			edits: []edit{{dynamoEvent, "UnpublishedShard: unpublishedShardKey(ledger.UnpublishedShard(e.ID)),", "UnpublishedShard: unpublishedShardKey(ledger.UnpublishedShard(e.ID))[:0],"}},
			harm:  "an event that the stream loses is never found again",
		},
		{
			name:  "send no due message",
			edits: []edit{{outboxDue, "if !waits || r.ports", "if waits || r.ports"}},
			harm:  "the seats of an abandoned cart come free up to a minute late",
		},
		{
			name:  "redrive what is new",
			edits: []edit{{outboxRedrive, "entry.OccurredAt.After(r.notAfter) {", "entry.OccurredAt.Before(r.notAfter) {"}},
			harm:  "what an outage has left behind is never published",
		},
		{
			name:  "redrive the newest version first",
			edits: []edit{{outboxRedrive, "cmp.Compare(stored[a].Event.Version, stored[b].Event.Version)", "cmp.Compare(stored[b].Event.Version, stored[a].Event.Version)"}},
			harm:  "after an outage a consumer hears that a hold was cancelled before it hears of the hold",
		},
		{
			name:  "redrive on behind a failure",
			edits: []edit{{outboxRedrive, "			r.blocked[call[i].item.PartitionKey] = true\n", "			r.blocked[call[i].item.PartitionKey] = false\n"}},
			harm:  "after an outage a consumer hears that a hold was cancelled before it hears of the hold",
			tests: []string{"./shared/outbox"},
		},
		{
			name:  "quarantine a published event",
			edits: []edit{{dynamoUnpublished, ".\n			And(expression.AttributeNotExists(expression.Name(attributePublishedAtMs)))).\n		WithUpdate(", ").\n		WithUpdate("}},
			harm:  "people look for events that every consumer has",
			tests: []string{"./shared/dynamo"},
		},
	}
}
