package reconcile_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/reconcile"
)

func mustAudit(t *testing.T, records ledger.Records) reconcile.Report {
	t.Helper()
	report, err := reconcile.AuditAtRest(t.Context(), pages{records}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// Whatever is done with holds and slots under limits, in whatever order, and whichever of
// the archived holds have left the table: sound books have no violation.
func TestSoundLimitedBooksHaveNoViolation(t *testing.T) {
	did := map[string]int{}
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 7))
		s := newShop(t)
		archived, steps := s.history(random, 150)
		for name, n := range steps {
			did[name] += n
		}
		purged := map[ledger.HoldID]bool{}
		for range 3 {
			report := mustAudit(t, s.records(purged))
			if len(report.Findings) > 0 || report.Policies != 2 || report.Archived != len(archived)-len(purged) {
				t.Fatalf("seed %d, of %d archived holds %d have left the table: %+v", seed, len(archived), len(purged), report)
			}
			for _, id := range archived {
				if random.IntN(2) == 0 {
					purged[id] = true
				}
			}
		}
	}
	for _, name := range []string{
		"hold", "edit", "cancel", "expire", "confirm", "confirm a part", "return", "return a part", "archive", "reshard", "oversell", "open again",
	} {
		if did[name] < 20 {
			t.Errorf("the histories have %q %d times only: %v", name, did[name], did)
		}
	}
}

// The holds of what limited makes, in this order.
const (
	limitedHeld = iota // of U-1: 3 of S-1, 1 of S-2
	limitedSold        // of U-1: 4 of S-2, of which 3 were sold and 1 of them given back
	limitedGone        // of U-2: 2 of S-1, sold and archived
	limitedOver        // of U-2: expired
)

// limited is a sound ledger with these holds. Slot S-2 has one shard and two retired ones,
// and is oversold.
func limited(t *testing.T) ledger.Records {
	t.Helper()
	s := newShop(t)
	held := s.hold("U-1", map[ledger.SlotID]ledger.Units{"S-1": 1, "S-2": 2})
	if !s.edit(held, map[ledger.SlotID]ledger.Units{"S-1": 3, "S-2": 1}) {
		t.Fatal("the hold was not changed")
	}
	sold := s.hold("U-1", map[ledger.SlotID]ledger.Units{"S-2": 4})
	s.commit(ledger.ConfirmPart(s.read(sold), []ledger.ReturnLine{{Slot: "S-2", Quantity: 3}}, "", s.origin(), s.now))
	s.commit(ledger.ReturnUnpaid(s.read(sold), []ledger.ReturnLine{{Slot: "S-2", Quantity: 1, Restock: ledger.RestockNever}}, s.origin(), s.now))
	gone := s.hold("U-2", map[ledger.SlotID]ledger.Units{"S-1": 2})
	s.commit(ledger.Confirm(s.read(gone), "", s.origin(), s.now))
	over := s.hold("U-2", map[ledger.SlotID]ledger.Units{"S-1": 5})
	s.now = s.now.Add(ledger.HoldForDefault)
	s.commit(ledger.Expire(s.read(over), s.origin(), s.now))
	if !s.archive(gone) {
		t.Fatal("the hold was not archived")
	}
	more, fewer, capacity := 3, 1, ledger.Units(1)
	for _, patch := range []ledger.SlotPatch{{Shards: &more}, {Shards: &fewer}, {Capacity: &capacity, AcceptOversold: true}} {
		if !s.patch("S-2", patch) {
			t.Fatalf("%+v changed nothing", patch)
		}
	}
	return s.records(nil)
}

// quotaOf is what is counted of an owner.
func quotaOf(r *ledger.Records, owner ledger.OwnerID) *ledger.Quota {
	return &r.Quotas[slices.IndexFunc(r.Quotas, func(q ledger.Quota) bool { return q.Owner == owner })]
}

func slotOf(r *ledger.Records, id ledger.SlotID) *ledger.Slot {
	return &r.Slots[slices.IndexFunc(r.Slots, func(s ledger.Slot) bool { return s.ID == id })]
}

func stockOf(r *ledger.Records, id ledger.SlotID, shard ledger.Shard) *ledger.Stock {
	return &r.Stock[slices.IndexFunc(r.Stock, func(s ledger.Stock) bool { return s.Slot == id && s.Shard == shard })]
}

// What is counted is what was said above, and an oversold slot is listed, which is no
// violation.
func TestOversoldSlotsAreListed(t *testing.T) {
	records := limited(t)
	report := mustAudit(t, records)
	want := []reconcile.Oversold{{Slot: "S-2", Units: 2}}
	if !slices.Equal(report.Oversold, want) || len(report.Findings) > 0 || want[0].String() != "S-2 by 2" {
		t.Errorf("report %+v; want %v oversold and no violation", report, want)
	}
	counts := map[ledger.QuotaKey]ledger.Units{"holds": 1, "slot/S-1": 3, "resource/show/R-1": 6}
	if got := quotaOf(&records, "U-1").Counts; !maps.Equal(got, counts) {
		t.Errorf("U-1 is counted with %v, want %v", got, counts)
	}
	if got := quotaOf(&records, "U-2"); got.Counts["slot/S-1"] != 2 || got.Expired != 1 {
		t.Errorf("U-2 is counted with %+v", got)
	}
}

// An archived sale is counted as long as its hold is in the table, and tolerated once it
// has left it: for as many units of its slot and no more, whoever is counted with them.
func TestASaleThatLeftTheTableCountsOn(t *testing.T) {
	purge := func(r *ledger.Records) {
		r.Events = slices.DeleteFunc(r.Events, func(e ledger.Event) bool { return e.Hold != nil && e.Hold.ID == r.Holds[limitedGone].Hold.ID })
		r.Holds = slices.Delete(r.Holds, limitedGone, limitedGone+1)
	}
	for _, c := range []struct {
		name  string
		how   func(*ledger.Records)
		sound bool
	}{
		{"it is in the table", func(*ledger.Records) {}, true},
		{"it has left the table", purge, true},
		{"its owner's counts of zero are gone", func(r *ledger.Records) { purge(r); delete(quotaOf(r, "U-2").Counts, "holds") }, true},
		{"its owner is counted with one unit more", func(r *ledger.Records) { purge(r); quotaOf(r, "U-2").Counts["slot/S-1"]++ }, false},
		{"another owner is counted with one unit more", func(r *ledger.Records) { purge(r); quotaOf(r, "U-1").Counts["slot/S-1"]++ }, false},
		{"its resource is counted with one unit more", func(r *ledger.Records) { purge(r); quotaOf(r, "U-2").Counts["resource/show/R-1"]++ }, false},
		{"another slot is counted", func(r *ledger.Records) { purge(r); quotaOf(r, "U-2").Counts["slot/S-2"]++ }, false},
		{"its owner's holds are counted", func(r *ledger.Records) { purge(r); quotaOf(r, "U-2").Counts["holds"]++ }, false},
		{"it is in the table, and not counted", func(r *ledger.Records) { quotaOf(r, "U-2").Counts["slot/S-1"]-- }, false},
		{"it is in the table, and counted twice", func(r *ledger.Records) { quotaOf(r, "U-2").Counts["slot/S-1"] += 2 }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			records := limited(t)
			c.how(&records)
			if report := mustAudit(t, records); len(report.Findings) == 0 != c.sound {
				t.Errorf("violations %v; sound: %t", report.Findings, c.sound)
			}
		})
	}
}

// Every way to break what limits, policies and reshards rest on is found, under the promise
// that it breaks and at the thing that is broken.
func TestBrokenLimitsAreFound(t *testing.T) {
	for _, broken := range []struct {
		name    string
		promise string
		subject string
		how     func(*ledger.Records)
	}{
		{"a count that is too low", "P5", "count slot/S-1 of owner U-1", func(r *ledger.Records) { quotaOf(r, "U-1").Counts["slot/S-1"]-- }},
		{"a count that is too high", "P5", "count holds", func(r *ledger.Records) { quotaOf(r, "U-1").Counts["holds"]++ }},
		{"a negative count", "P5", "count slot/S-9 of owner U-1", func(r *ledger.Records) { quotaOf(r, "U-1").Counts["slot/S-9"] = -1 }},
		{"an owner of whom nothing is counted", "P5", "count holds of owner U-1", func(r *ledger.Records) { r.Quotas = nil }},
		{"a unit that was given back and is counted", "P5", "count resource/show/R-1", func(r *ledger.Records) { quotaOf(r, "U-1").Counts["resource/show/R-1"]++ }},
		{"a hold that is counted for its owner's units", "P5", "hold ", func(r *ledger.Records) {
			r.Holds[limitedOver].Hold.CountsIn = []ledger.QuotaKey{"slot/S-1"}
		}},
		{"a line that is counted for another slot", "P5", "hold ", func(r *ledger.Records) {
			r.Holds[limitedOver].Hold.Lines[0].CountsIn = []ledger.QuotaKey{"slot/S-2"}
		}},
		{"a line that is counted for another resource", "P5", "hold ", func(r *ledger.Records) {
			r.Holds[limitedOver].Hold.Lines[0].CountsIn = []ledger.QuotaKey{"resource/show/R-2"}
		}},
		{"holds that have expired at no time", "P5", "owner U-2", func(r *ledger.Records) { quotaOf(r, "U-2").LastExpiredAt = time.Time{} }},
		{"fewer than no holds have expired", "P5", "owner U-2", func(r *ledger.Records) { quotaOf(r, "U-2").Expired = -1 }},
		{"a policy without its event", "P5", "policy show/", func(r *ledger.Records) {
			r.Events = slices.DeleteFunc(r.Events, func(e ledger.Event) bool { return e.Policy != nil && e.Policy.Scope.ResourceID == "" })
		}},
		{"an event without its policy", "P5", "policy show/R-1", func(r *ledger.Records) { r.Policies = r.Policies[:1] }},
		{"a retired stock item that is lost", "P1", "stock of S-2, shard 2", func(r *ledger.Records) {
			r.Stock = slices.DeleteFunc(r.Stock, func(s ledger.Stock) bool { return s.Slot == "S-2" && s.Shard == 2 })
		}},
		{"a retired stock item with old terms", "P1", "stock of S-2, shard 1", func(r *ledger.Records) { stockOf(r, "S-2", 1).Terms.Retired = 0 }},
		{"a retired stock item at an old price", "P1", "stock of S-2, shard 2", func(r *ledger.Records) { stockOf(r, "S-2", 2).Terms.Price.AmountMinor++ }},
		{"a stock item too many", "P1", "stock of S-1, shard 2", func(r *ledger.Records) {
			more := *stockOf(r, "S-1", 1)
			more.Shard, more.Counters, more.Archived = 2, ledger.Counters{}, ledger.Counters{}
			r.Stock = append(r.Stock, more)
		}},
		{"an oversold slot that is open", "P1", "slot S-2", func(r *ledger.Records) { slotOf(r, "S-2").Terms.Open = true }},
		{"a slot that is oversold by less than nothing", "P1", "slot S-1", func(r *ledger.Records) { slotOf(r, "S-1").Oversold = -1 }},
		{"a reshard that lost a unit", "P3", "stock of S-2, shard 0", func(r *ledger.Records) {
			for i, e := range r.Events {
				if e.Slot != nil && e.Slot.ID == "S-2" && e.Slot.Terms.Retired > 0 && len(e.Movements) > 1 {
					r.Events[i].Movements[0].Quantity--
					return
				}
			}
		}},
		{"a part of a sale that was not given back", "P3", "hold ", func(r *ledger.Records) {
			line := &r.Holds[limitedSold].Hold.Lines[0]
			line.Quantity++
			line.Shards[0].Quantity++
		}},
		{"an edit whose event tells of less", "P3", "hold ", func(r *ledger.Records) {
			i := slices.IndexFunc(r.Events, func(e ledger.Event) bool { return e.Type == ledger.EventHoldChanged })
			r.Events[i].Movements = r.Events[i].Movements[1:]
		}},
		{"an edit without its event", "P5", "hold ", func(r *ledger.Records) {
			r.Events = slices.DeleteFunc(r.Events, func(e ledger.Event) bool { return e.Type == ledger.EventHoldChanged })
		}},
	} {
		t.Run(broken.name, func(t *testing.T) {
			records := limited(t)
			broken.how(&records)
			report := mustAudit(t, records)
			if !slices.ContainsFunc(report.Findings, func(v reconcile.Finding) bool {
				return v.Promise == broken.promise && len(v.Subject) >= len(broken.subject) && v.Subject[:len(broken.subject)] == broken.subject
			}) {
				t.Errorf("violations %v; want one of %s by %s", report.Findings, broken.promise, broken.subject)
			}
		})
	}
}
