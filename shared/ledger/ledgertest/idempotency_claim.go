package ledgertest

import (
	"time"

	"holdfast/shared/ledger"
)

// claimed is the record of a request that is being carried out.
func (f *fixture) claimed(key ledger.IdempotencyKey, claim ledger.ClaimID) *ledger.IdempotencyRecord {
	record := f.record(key)
	record.Response, record.CompletedAt = ledger.Response{}, time.Time{}
	record.Claim, record.ClaimUntil = claim, f.now.Add(30*time.Second)
	record.Reservation = ledger.NewReservationID(f.random())
	return record
}

// storedRecord reads a record that must be there.
func (f *fixture) storedRecord(id ledger.IdempotencyID) ledger.IdempotencyRecord {
	f.Helper()
	record, found, err := f.store.IdempotencyRecord(f.ctx, id)
	f.read(err)
	f.equal("found", found, true)
	return record
}

// withoutTakes is the record as it is stored: what it takes over is only a condition.
func withoutTakes(record ledger.IdempotencyRecord) ledger.IdempotencyRecord {
	record.Takes = ""
	return record
}

func claimIsStoredExactly(f *fixture) {
	record := f.claimed("key", "claim-1")
	f.commit(ledger.Change{At: f.now, Idempotency: record})
	f.equal("record", f.storedRecord(record.ID), *record)
	f.refuse(ledger.Change{At: record.ClaimUntil, Idempotency: f.record("key")},
		ledger.RefusedLeg{Kind: ledger.LegIdempotency, Idempotency: record})
}

// claimIsCompletedOnce: only who has the claim completes the request, and what is
// completed is not completed again.
func claimIsCompletedOnce(f *fixture) {
	first := f.claimed("key", "claim-1")
	f.commit(ledger.Change{At: f.now, Idempotency: first})
	refused := func(stored ledger.IdempotencyRecord, takes ledger.ClaimID) {
		f.Helper()
		other := f.record("key")
		other.Takes = takes
		f.refuse(ledger.Change{At: f.now, Idempotency: other}, ledger.RefusedLeg{Kind: ledger.LegIdempotency, Idempotency: &stored})
	}
	refused(*first, "claim-2")
	refused(*first, "")

	completed := f.record("key")
	completed.Takes, completed.Reservation = first.Claim, first.Reservation
	f.commit(ledger.Change{At: f.now, Idempotency: completed})
	f.equal("completed record", f.storedRecord(first.ID), withoutTakes(*completed))
	refused(withoutTakes(*completed), first.Claim)

	nowhere := f.record("never claimed")
	nowhere.Takes = first.Claim
	f.refuse(ledger.Change{At: f.now, Idempotency: nowhere}, ledger.RefusedLeg{Kind: ledger.LegIdempotency})
}

// claimIsTakenOverOnce: of two who take the same claim over, one wins. A claim that is
// taken over no longer completes anything, and it may be taken even from a record that no
// longer counts.
func claimIsTakenOverOnce(f *fixture) {
	lost := f.claimed("key", "claim-1")
	f.commit(ledger.Change{At: f.now, Idempotency: lost})
	f.now = lost.ClaimUntil
	winner, loser := f.claimed("key", "claim-2"), f.claimed("key", "claim-3")
	winner.Takes, loser.Takes = lost.Claim, lost.Claim
	f.commit(ledger.Change{At: f.now, Idempotency: winner})
	stored := withoutTakes(*winner)
	f.equal("record after it was taken over", f.storedRecord(lost.ID), stored)
	f.refuse(ledger.Change{At: f.now, Idempotency: loser}, ledger.RefusedLeg{Kind: ledger.LegIdempotency, Idempotency: &stored})
	late := f.record("key")
	late.Takes = lost.Claim
	f.refuse(ledger.Change{At: f.now, Idempotency: late}, ledger.RefusedLeg{Kind: ledger.LegIdempotency, Idempotency: &stored})

	f.now = winner.RetainUntil
	completed := f.record("key")
	completed.Takes = winner.Claim
	f.commit(ledger.Change{At: f.now, Idempotency: completed})
	f.equal("completed record", f.storedRecord(lost.ID), withoutTakes(*completed))
}
