package ledgertest

import (
	"time"

	"holdfast/shared/ledger"
)

var idempotencyRules = []rule{
	{"RecordIsStoredExactly", recordIsStoredExactly},
	{"P6_LiveRecordRefusesTheChange", liveRecordRefuses},
	{"BoundaryMillisecondOfRetention", recordCountsUntilItsRetention},
	{"RecordAloneIsAChange", recordAloneIsAChange},
	{"ClaimIsStoredExactly", claimIsStoredExactly},
	{"P6_ClaimIsCompletedOnce", claimIsCompletedOnce},
	{"P6_ClaimIsTakenOverOnce", claimIsTakenOverOnce},
}

func recordIsStoredExactly(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	change := f.hold(theOwner, one(slot, 1))
	change.Idempotency = f.record("key")
	f.commit(change)
	record, found, err := f.store.IdempotencyRecord(f.ctx, change.Idempotency.ID)
	f.read(err)
	f.equal("found", found, true)
	f.equal("record", record, *change.Idempotency)

	empty := ledger.IdempotencyRecord{ID: "empty", Fingerprint: "f", CompletedAt: f.now, RetainUntil: f.now.Add(time.Second)}
	f.commit(ledger.Change{At: f.now, Idempotency: &empty})
	record, found, err = f.store.IdempotencyRecord(f.ctx, "empty")
	f.read(err)
	f.equal("found", found, true)
	f.equal("record without a body", record, empty)

	_, found, err = f.store.IdempotencyRecord(f.ctx, "unknown")
	f.read(err)
	f.equal("found an unknown record", found, false)
}

func liveRecordRefuses(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	first, second := f.hold(theOwner, one(slot, 1)), f.hold(theOwner, one(slot, 1))
	first.Idempotency, second.Idempotency = f.record("key"), f.record("key")
	second.Idempotency.Fingerprint = "of another request"
	f.commit(first)
	f.refuse(second, ledger.RefusedLeg{Kind: ledger.LegIdempotency, Idempotency: first.Idempotency})
}

func recordCountsUntilItsRetention(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	first := f.hold(theOwner, one(slot, 1))
	first.Idempotency = f.record("key")
	f.commit(first)

	f.now = first.Idempotency.RetainUntil.Add(-time.Millisecond)
	second := f.hold(theOwner, one(slot, 1))
	second.Idempotency = f.record("key")
	f.refuse(second, ledger.RefusedLeg{Kind: ledger.LegIdempotency, Idempotency: first.Idempotency})

	f.now = first.Idempotency.RetainUntil
	record, found, err := f.store.IdempotencyRecord(f.ctx, first.Idempotency.ID)
	f.read(err)
	f.equal("a record that no longer counts is still found", found, true)
	f.equal("record", record, *first.Idempotency)

	third := f.hold(theOwner, one(slot, 1))
	third.Idempotency = f.record("key")
	f.commit(third)
	record, _, err = f.store.IdempotencyRecord(f.ctx, first.Idempotency.ID)
	f.read(err)
	f.equal("record", record, *third.Idempotency)
}

func recordAloneIsAChange(f *fixture) {
	record := f.record("key")
	f.commit(ledger.Change{At: f.now, Idempotency: record})
	f.refuse(ledger.Change{At: f.now, Idempotency: record}, ledger.RefusedLeg{Kind: ledger.LegIdempotency, Idempotency: record})
}
