package reconcile_test

import (
	"slices"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/reconcile"
)

const theBatch = ledger.BatchID("batch_1")

// The holds of what archived makes, in this order.
const (
	soldArchived   = iota // of a completed reservation with a grant; both are archived
	overArchived          // was over when its payment came; archived
	inItsPlace            // was born in its place; is not archived, nor its reservation
	canceledPaying        // of a canceled reservation; it is archived, and not its reservation
	heldStill             // is HELD
)

// archive marks a hold as it is stored.
func (t *till) archive(id ledger.HoldID) {
	t.Helper()
	hold, err := t.store.Hold(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	of, err := t.store.Reservation(t.Context(), hold.Reservation)
	if err != nil {
		t.Fatal(err)
	}
	events, err := t.store.HoldEvents(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.commit(ledger.ArchiveHold(hold, &of, events, theBatch, t.now.Add(time.Hour), t.now))
}

func (t *till) archiveReservation(id ledger.ReservationID) {
	t.Helper()
	r, err := t.store.Reservation(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	events, err := t.store.ReservationEvents(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.commit(ledger.ArchiveReservation(r, events, theBatch, t.now.Add(time.Hour), t.now))
}

// sell takes a reservation, whose hold is sold by the change beside, to its completion.
func (t *till) sell(r ledger.Reservation, hold ledger.HoldID, units ledger.Units, beside ledger.Change, grant ...ledger.Grant) ledger.Reservation {
	t.Helper()
	r = t.move(r, ledger.ReservationAuthorized, ledger.Change{}, func(r *ledger.Reservation) { r.Attempts[0].State = ledger.AttemptAuthorized })
	r = t.move(r, ledger.ReservationConfirmed, beside, func(r *ledger.Reservation) { r.SoldHold = hold })
	r = t.move(r, ledger.ReservationCaptured, ledger.Change{}, func(r *ledger.Reservation) {
		r.Attempts[0].State, r.Attempts[0].CapturedMinor = ledger.AttemptCaptured, int64(units)*500
	})
	next := r.Clone()
	next.Status, next.LookAt, next.Grants = ledger.ReservationCompleted, time.Time{}, grant
	var movements []ledger.Movement
	for _, g := range grant {
		movements = append(movements, ledger.Movement{Slot: g.Slot, From: ledger.BucketOutside, To: ledger.BucketAvailable, Quantity: g.Quantity})
	}
	return t.commit(t.step(r, next, movements), nil).Reservations[0].Next
}

// archived is a sound ledger of which parts are archived, all of it still in the table.
func archived(tb *testing.T) ledger.Records {
	tb.Helper()
	t := &till{T: tb, store: memory.New(), now: start}
	wallet := t.slot("wallet", 0, "")
	slot := t.slot("S-1", 20, wallet.ID)

	hold, r := t.pay(slot, 3)
	r = t.sell(r, hold.ID, 3, t.built(ledger.ConfirmPaid(hold, t.origin(), t.now)), ledger.Grant{Slot: wallet.ID, Quantity: 3})
	t.archive(hold.ID)
	t.archiveReservation(r.ID)

	hold, r = t.pay(slot, 2)
	t.now = hold.ReleaseAt
	born := ledger.ReacquiredID(hold)
	t.holds = append(t.holds, born)
	t.sell(r, born, 2, t.built(ledger.Reacquire(hold, nil, t.origin(), t.now)))
	t.archive(hold.ID)

	hold, r = t.pay(slot, 4)
	t.move(r, ledger.ReservationCanceled, t.built(ledger.ReleaseUnpaid(hold, t.origin(), t.now)), func(r *ledger.Reservation) {
		r.Attempts[0].State, r.LookAt = ledger.AttemptVoided, time.Time{}
	})
	t.archive(hold.ID)

	t.pay(slot, 1)
	return t.records()
}

// purgeHold takes a hold out of the records, as its time to live does.
func purgeHold(r *ledger.Records, i int) {
	id := r.Holds[i].Hold.ID
	r.Holds = slices.Delete(r.Holds, i, i+1)
	r.Events = slices.DeleteFunc(r.Events, func(e ledger.Event) bool { return e.Hold != nil && e.Hold.ID == id })
	r.ArchivedEvents = slices.DeleteFunc(r.ArchivedEvents, func(e ledger.Event) bool { return e.Hold != nil && e.Hold.ID == id })
}

func purgeReservation(r *ledger.Records, i int) {
	id := r.Reservations[i].Reservation.ID
	r.Reservations = slices.Delete(r.Reservations, i, i+1)
	ofIt := func(e ledger.Event) bool { return e.Reservation != nil && e.Reservation.ID == id }
	r.Events = slices.DeleteFunc(r.Events, ofIt)
	r.ArchivedEvents = slices.DeleteFunc(r.ArchivedEvents, ofIt)
}

// mark marks the events of the archived holds and reservations, as the archive does.
func mark(r *ledger.Records) {
	gone := make(map[string]bool)
	for _, h := range r.Holds {
		gone["hold/"+string(h.Hold.ID)] = h.Hold.ArchivedIn != ""
	}
	for _, s := range r.Reservations {
		gone["reservation/"+string(s.Reservation.ID)] = s.Reservation.ArchivedIn != ""
	}
	for _, e := range r.Events {
		if gone[e.Subject()] {
			r.ArchivedEvents = append(r.ArchivedEvents, e)
		}
	}
	r.Events = slices.DeleteFunc(r.Events, func(e ledger.Event) bool { return gone[e.Subject()] })
}

// The audit adds up at every stage of the archive: marked, with its events marked too, and
// gone from the table in any order.
func TestArchivedBooksAddUpAtEveryStage(t *testing.T) {
	for _, stage := range []struct {
		name     string
		archived int
		how      func(*ledger.Records)
	}{
		{"marked", 4, func(*ledger.Records) {}},
		{"events marked", 4, mark},
		{"half of the events marked", 4, func(r *ledger.Records) {
			before := slices.Clone(r.Events)
			mark(r)
			for i, e := range slices.Backward(r.ArchivedEvents) {
				if i%2 == 0 {
					r.ArchivedEvents = slices.Delete(r.ArchivedEvents, i, i+1)
					r.Events = append(r.Events, e)
				}
			}
			if len(r.Events)+len(r.ArchivedEvents) != len(before) {
				panic("an event was lost")
			}
		}},
		{"holds purged before their events", 1, func(r *ledger.Records) {
			mark(r)
			r.Holds = slices.DeleteFunc(r.Holds, func(h ledger.StoredHold) bool { return h.Hold.ArchivedIn != "" })
		}},
		{"events purged before their holds", 4, func(r *ledger.Records) {
			mark(r)
			r.ArchivedEvents = nil
		}},
		{"all purged", 0, func(r *ledger.Records) {
			mark(r)
			purgeHold(r, canceledPaying)
			purgeHold(r, overArchived)
			purgeHold(r, soldArchived)
			purgeReservation(r, 0)
		}},
	} {
		t.Run(stage.name, func(t *testing.T) {
			records := archived(t)
			stage.how(&records)
			events := ledger.Records{Events: records.Events}
			records.Events = nil // they are on a page before what they are of
			report, err := reconcile.AuditAtRest(t.Context(), pages{events, records}, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Findings) > 0 || report.Holds != 2 || report.Reservations != 3 || report.Archived != stage.archived {
				t.Errorf("report %+v; want 2 holds, 3 reservations, %d archived and no violation", report, stage.archived)
			}
		})
	}
}

// What is wrong with an archive is found, under the promise that it breaks.
func TestBrokenArchivesAreFound(t *testing.T) {
	stock := func(r *ledger.Records, id ledger.SlotID) *ledger.Stock {
		return &r.Stock[slices.IndexFunc(r.Stock, func(s ledger.Stock) bool { return s.Slot == id })]
	}
	for _, broken := range []struct {
		name    string
		promise string
		how     func(*ledger.Records)
	}{
		{"one unit too many counted as confirmed", "P2", func(r *ledger.Records) {
			stock(r, "S-1").Archived.Confirmed++
			stock(r, "S-1").Archived.Available--
		}},
		{"a grant that is not counted", "P3", func(r *ledger.Records) { stock(r, "wallet").Archived = ledger.Counters{} }},
		{"archived counters that do not add up", "P1", func(r *ledger.Records) { stock(r, "S-1").Archived.Capacity++ }},
		{"archived twice", "P2", func(r *ledger.Records) {
			s := stock(r, "S-1")
			s.Archived = s.Archived.Plus(s.Archived)
		}},
		{"a sale that was lost and not archived", "P2", func(r *ledger.Records) { purgeHold(r, inItsPlace) }},
		{"a canceled hold that was lost and not archived", "P5", func(r *ledger.Records) {
			r.Reservations[2].Reservation.HoldsArchived = 0
			purgeHold(r, canceledPaying)
		}},
		{"noted as archived, and not archived", "P5", func(r *ledger.Records) { r.Reservations[3].Reservation.HoldsArchived = 1 }},
		{"a HELD hold in the archive", "P9", func(r *ledger.Records) { r.Holds[heldStill].Hold.ArchivedIn = theBatch }},
		{"archived, and in the due index", "P9", func(r *ledger.Records) { r.Holds[soldArchived].Due = true }},
		{"archived, and in the archive's list", "P9", func(r *ledger.Records) { r.Holds[soldArchived].Archivable = true }},
		{"a reservation archived before its hold", "P5", func(r *ledger.Records) { r.Reservations[1].Reservation.ArchivedIn = theBatch }},
		{"a reservation archived with a refund owed", "P8", func(r *ledger.Records) {
			r.Reservations[0].Reservation.Refunds = []ledger.Refund{{State: ledger.RefundFailed, AmountMinor: 1}}
		}},
		{"a reservation archived for a person to decide", "P8", func(r *ledger.Records) {
			r.Reservations[0].Reservation.Status = ledger.ReservationReview
		}},
		{"a reservation archived that is still looked at", "P8", func(r *ledger.Records) {
			r.Reservations[0].Reservation.LookAt = start
		}},
		{"an archived reservation in the due index", "P9", func(r *ledger.Records) { r.Reservations[0].Due = true }},
		{"a reservation with all its holds archived, and in no list", "P9", func(r *ledger.Records) { r.Reservations[2].Archivable = false }},
		{"in the archive's list before its holds are archived", "P9", func(r *ledger.Records) { r.Reservations[1].Archivable = true }},
		{"an event marked whose hold is not", "P5", func(r *ledger.Records) {
			i := slices.IndexFunc(r.Events, func(e ledger.Event) bool { return e.Hold != nil && e.Hold.ID == r.Holds[heldStill].Hold.ID })
			r.ArchivedEvents = append(r.ArchivedEvents, r.Events[i])
			r.Events = slices.Delete(r.Events, i, i+1)
		}},
		{"purged with events that were never marked", "P5", func(r *ledger.Records) {
			r.Holds = slices.Delete(r.Holds, soldArchived, soldArchived+1)
		}},
	} {
		t.Run(broken.name, func(t *testing.T) {
			records := archived(t)
			broken.how(&records)
			report, err := reconcile.AuditAtRest(t.Context(), pages{records}, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(report.Findings, func(v reconcile.Finding) bool { return v.Promise == broken.promise }) {
				t.Errorf("violations %v; want one of %s", report.Findings, broken.promise)
			}
		})
	}
}
