package ledger_test

import (
	"testing"
	"time"

	"holdfast/shared/ledger"
)

func auditOrigin(seed string) ledger.Origin {
	return ledger.Origin{Actor: ledger.ActorAudit, Command: ledger.CommandRepair, EventID: ledger.NewEventID(random(seed)), Why: "the audit"}
}

// Each repair of a thing is a step of it: the next version, told by one event that moves
// nothing.
func TestRepairsAreSteps(t *testing.T) {
	slot, _ := mustNewSlot(t, "A", 10, 2)
	hold := mustNewHold(t).Holds[0].Next
	later := noon.Add(time.Minute)
	for name, change := range map[string]ledger.Change{
		"stock":       ledger.RepairStock(slot, []ledger.StockRepair{{Slot: "A", Shard: 1, Replaces: 4, Terms: slot.Terms}}, auditOrigin("s"), later),
		"hold":        ledger.RepairHold(hold, auditOrigin("h"), later),
		"reservation": ledger.RepairReservation(ledger.Reservation{ID: "rsv_1", Status: ledger.ReservationCompleted, Version: 1, UpdatedAt: noon}, auditOrigin("r"), later),
	} {
		if err := change.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		e := change.Events[0]
		if len(change.Events) != 1 || e.Type != ledger.EventAuditRepaired || e.Version != 2 || len(e.Movements) != 0 || !e.OccurredAt.Equal(later) || e.Origin.Why != "the audit" {
			t.Errorf("%s is told by %+v", name, change.Events)
		}
		if len(change.Stock) != 0 || len(change.Quotas) != 0 {
			t.Errorf("%s moves something: %+v", name, change)
		}
	}
	repaired := ledger.RepairHold(hold, auditOrigin("h"), later).Holds[0].Next
	repaired.Version--
	if !sameHold(repaired, hold) {
		t.Errorf("a repair changes the hold itself:\n%+v\n%+v", repaired, hold)
	}
}

func sameHold(a, b ledger.Hold) bool {
	return a.ID == b.ID && a.Owner == b.Owner && a.Status == b.Status && len(a.Lines) == len(b.Lines) && a.Version == b.Version &&
		a.CreatedAt.Equal(b.CreatedAt) && a.ExpiresAt.Equal(b.ExpiresAt) && a.ReleaseAt.Equal(b.ReleaseAt) && a.EndedAt.Equal(b.EndedAt) &&
		a.Reservation == b.Reservation && a.AttemptOpen == b.AttemptOpen
}

// A reservation that has something left to do is looked at at once: it was in no list, and
// nobody knows for how long. One that waits for a person, or for nothing, stays where it is.
func TestRepairedReservationIsLookedAtIfItMust(t *testing.T) {
	planned, later := noon.Add(time.Hour), noon.Add(time.Minute)
	for _, test := range []struct {
		status       ledger.ReservationStatus
		lookAt, want time.Time
	}{
		{ledger.ReservationPaymentPending, time.Time{}, later},
		{ledger.ReservationPaymentPending, planned, later},
		{ledger.ReservationCompensating, time.Time{}, later},
		{ledger.ReservationRefundRequired, time.Time{}, later},
		{ledger.ReservationReview, time.Time{}, time.Time{}},
		{ledger.ReservationReview, planned, planned},
		{ledger.ReservationCompleted, time.Time{}, time.Time{}},
		{ledger.ReservationCompleted, planned, later},
		{ledger.ReservationCanceled, time.Time{}, time.Time{}},
	} {
		r := ledger.Reservation{ID: "rsv_1", Status: test.status, LookAt: test.lookAt, Version: 1}
		if got := ledger.RepairReservation(r, auditOrigin("r"), later).Reservations[0].Next.LookAt; !got.Equal(test.want) {
			t.Errorf("%s, to be looked at at %s: now %s, want %s", test.status, test.lookAt, got, test.want)
		}
	}
}

// The counts of an owner are put right under what was found, and the case tells who did it.
func TestRepairedQuotaIsToldByItsCase(t *testing.T) {
	found := ledger.Quota{Owner: "U-1", Counts: map[ledger.QuotaKey]ledger.Units{"holds": 3, "slot/A": 5, "slot/B": 2}}
	want := map[ledger.QuotaKey]ledger.Units{"slot/C": 1, "holds": 0, "slot/A": 5}
	finding := ledger.NewReview(ledger.ReviewFinding, "quota_mismatch/U-1", noon)
	stored := finding
	stored.Version, stored.Status = 4, ledger.ReviewDecided
	change := ledger.RepairQuota(found, want, stored, finding, auditOrigin("q"), noon)
	if err := change.Validate(); err != nil {
		t.Fatal(err)
	}
	deltas := change.Quotas[0].Deltas
	if len(deltas) != 2 || deltas[0].Key != "holds" || deltas[0].Units != -3 || *deltas[0].Was != 3 || deltas[1].Key != "slot/C" || deltas[1].Units != 1 || *deltas[1].Was != 0 {
		t.Errorf("deltas %+v", deltas)
	}
	next := change.Reviews[0].Next
	if next.Status != ledger.ReviewDecided || next.Decision != ledger.DecisionRepaired || next.DecidedBy != ledger.ActorAudit || next.Why != "the audit" || next.Version != 5 ||
		change.Reviews[0].Replaces != 4 || change.Events[0].Type != ledger.EventAuditRepaired || *change.Events[0].Review != next {
		t.Errorf("the case: %+v", next)
	}
	if same := ledger.RepairQuota(found, found.Counts, stored, finding, auditOrigin("q"), noon); !same.Empty() {
		t.Errorf("counts that are right are written: %+v", same)
	}
}
