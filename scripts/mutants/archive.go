package main

const (
	archiveBatch  = "shared/archive/batch.go"
	archiveRecord = "shared/archive/record.go"
	ledgerArchive = "shared/ledger/archive.go"
	dynamoArchive = "shared/dynamo/archive.go"
)

func archiveMutants() []mutant {
	return []mutant{
		{
			name: "archive a hold that is still dealt with",
			edits: []edit{
				{ledgerArchive, `case r != nil && (!r.AtRest() || r.ArchivedIn != ""):`, `case r != nil && r.ArchivedIn != "":`},
				{ledgerArchive, "if len(c.Archives) == 0 || !r.AtRest() || r", "if len(c.Archives) == 0 || r"},
			},
			harm: "a sale can't be refunded any more, because its hold has left the table",
		},
		{
			name:  "archived units are not counted",
			edits: []edit{{ledgerArchive, "writes[i].Archived, writes[i].Delta = writes[i].Delta, Counters{}", "writes[i].Delta = Counters{}"}},
			harm:  "every audit after the first archive run is wrong, so nobody looks at the true ones",
		},
		{
			name:  "forget the plan before the manifest",
			edits: []edit{{archiveBatch, "	if err := s.writeManifest(ctx, batchOf(b.plan).ManifestKey(), newManifest(b.plan, b.object)); err != nil {\n		return err\n	}\n	if err := s.clear(ctx, b.plan); err != nil {\n		return err\n	}\n", "	if err := s.clear(ctx, b.plan); err != nil {\n		return err\n	}\n	if err := s.writeManifest(ctx, batchOf(b.plan).ManifestKey(), newManifest(b.plan, b.object)); err != nil {\n		return err\n	}\n"}},
			harm:  "a crash leaves records in the archive that nobody can find",
		},
		{
			name:  "the events stay in the table",
			edits: []edit{{dynamoArchive, "if done || !strings.HasPrefix(key.SortKey, sortEventPrefix) {", "if done || strings.HasPrefix(key.SortKey, sortEventPrefix) || i == nil {"}},
			harm:  "the table grows for ever, and so do its cost and every audit",
		},
		{
			name:  "archive what has changed since",
			edits: []edit{{archiveBatch, "	if !bytes.Equal(text, stored.text) {\n", "	if len(text) == 0 {\n"}},
			harm:  "the archive has a hold as it was, and the change is lost",
			tests: []string{"./shared/archive"},
		},
		{
			name:  "archive what nobody has heard of",
			edits: []edit{{archiveRecord, "	if r.unpublished {\n		return", "	if r.unpublished && r.hold == nil && r.reservation == nil {\n		return"}},
			harm:  "an event that waits for the bus leaves the table before anybody has got it",
			tests: []string{"./shared/archive"},
		},
		{
			name:  "begin a batch anew",
			edits: []edit{{archiveBatch, "	if planned {\n		complete", "	if planned && plan.Sealed {\n		complete"}},
			harm:  "a crash leaves a shard that is never archived again",
			tests: []string{"./shared/archive"},
		},
	}
}
