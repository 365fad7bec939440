package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/outbox"
	"holdfast/shared/reconcile"
	"holdfast/shared/system"
	"holdfast/shared/system/systemtest"
)

// bazaar is a ledger in memory that is worked by its commands, and can be damaged. Whoever
// audits it here adds the holds up in the simplest way that there is.
type bazaar struct {
	ledgertest.TB
	store        *memory.Store
	commands     *commands.Commands
	clock        *systemtest.Clock
	random       *systemtest.Random
	slots        []ledger.SlotID
	holds        []ledger.HoldID
	reservations []ledger.ReservationID
	owners       map[ledger.OwnerID]bool // of whom something is, or was wrongly, counted
}

func newBazaar(tb ledgertest.TB, seed uint64) *bazaar {
	tb.Helper()
	b := &bazaar{TB: tb, store: memory.New(), clock: systemtest.NewClock(start), random: systemtest.NewRandom(seed), owners: map[ledger.OwnerID]bool{}}
	b.commands = commands.New(b.store, b.clock, b.random)
	return b
}

func (b *bazaar) check(err error) {
	b.Helper()
	if err != nil {
		b.Fatalf("%v", err)
	}
}

// now is the clock's time as the ledger stores times.
func (b *bazaar) now() time.Time { return system.Millisecond(b.clock) }

func (b *bazaar) request(owner ledger.OwnerID) commands.Request {
	return commands.Request{Actor: ledger.Actor("owner:" + string(owner)), Owner: owner, RequestID: "request_bazaar"}
}

// slot makes a slot whose policy counts what each owner has.
func (b *bazaar) slot(id ledger.SlotID, capacity ledger.Units, shards int, holdFor time.Duration) {
	b.Helper()
	policy := ledger.DefaultPolicy()
	policy.HoldFor, policy.HoldForMax = holdFor, max(holdFor, policy.HoldForMax)
	policy.QuantityPerOwnerMax, policy.HoldsPerOwnerMax = 10_000, 10_000
	_, err := b.commands.PutSlot(b.Context(), b.request("catalog"), id, ledger.SlotDefinition{
		ResourceType: "show", ResourceID: "R-1", Capacity: capacity, Policy: policy,
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "USD"}, Shards: shards},
	}, func(ledger.Slot, ledger.Policy, ledger.Counters, bool) (ledger.Response, error) {
		return ledger.Response{}, nil
	})
	b.check(err)
	b.slots = append(b.slots, id)
}

func renderNothing(ledger.Hold, time.Time) (ledger.Response, error) { return ledger.Response{}, nil }

// hold takes units of the slot, and reports false if they are not there.
func (b *bazaar) hold(owner ledger.OwnerID, slot ledger.SlotID, units ledger.Units) (ledger.HoldID, bool) {
	b.Helper()
	var made ledger.HoldID
	_, err := b.commands.CreateHold(b.Context(), b.request(owner),
		commands.HoldWish{Quotes: []ledger.Quote{{Slot: slot, Quantity: units, UnitAmount: 500}}},
		func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
			made = h.ID
			return ledger.Response{}, nil
		})
	if ledger.CodeOf(err) == ledger.CodeInsufficientStock {
		return "", false
	}
	b.check(err)
	b.holds = append(b.holds, made)
	return made, true
}

func (b *bazaar) mustHold(owner ledger.OwnerID, slot ledger.SlotID, units ledger.Units) ledger.HoldID {
	b.Helper()
	id, made := b.hold(owner, slot, units)
	if !made {
		b.Fatalf("slot %s has not %d units", slot, units)
	}
	return id
}

// end ends the hold in one of its ways, if it can still end so.
func (b *bazaar) end(id ledger.HoldID, sell bool) {
	b.Helper()
	hold, err := b.store.Hold(b.Context(), id)
	b.check(err)
	if sell {
		_, err = b.commands.ConfirmHold(b.Context(), b.request("shop"), id, "", nil, renderNothing)
	} else {
		_, err = b.commands.CancelHold(b.Context(), b.request(hold.Owner), id, renderNothing)
	}
	if ledger.CodeOf(err) != ledger.CodeHoldNotActive {
		b.check(err)
	}
}

// pay opens a payment attempt for the hold, as the command does.
func (b *bazaar) pay(id ledger.HoldID, status ledger.ReservationStatus) ledger.Reservation {
	b.Helper()
	hold, err := b.store.Hold(b.Context(), id)
	b.check(err)
	origin, now := b.origin(), b.now()
	next := ledger.Reservation{
		ID: ledger.NewReservationID(b.random.Bits128()), Owner: hold.Owner, Hold: id, Status: ledger.ReservationPaymentPending, Amount: hold.Total(),
		Attempts: []ledger.Attempt{{Number: 1, State: ledger.AttemptOpen, OpenedAt: now}}, LookAt: now.Add(time.Second),
	}
	attempt, err := ledger.StartAttempt(hold, next.ID, 1, origin.Beside("hold"), now)
	b.check(err)
	change := ledger.Together(attempt, ledger.ReservationStep(ledger.Reservation{}, next, ledger.EventReservationPaymentStarted, nil, origin, now))
	change.Uniqueness = []ledger.Uniqueness{next.ClaimHold()}
	b.check(b.store.Commit(b.Context(), change))
	b.reservations = append(b.reservations, next.ID)
	if status == ledger.ReservationPaymentPending {
		return change.Reservations[0].Next
	}
	further := change.Reservations[0].Next.Clone()
	further.Status, further.LookAt = status, time.Time{}
	change = ledger.ReservationStep(change.Reservations[0].Next, further, ledger.EventReservationReview, nil, b.origin(), now)
	b.check(b.store.Commit(b.Context(), change))
	return change.Reservations[0].Next
}

func (b *bazaar) origin() ledger.Origin {
	return ledger.Origin{Actor: ledger.ActorSystem, RequestID: "request_bazaar", EventID: ledger.NewEventID(b.random.Bits128())}
}

func (b *bazaar) storedSlot(id ledger.SlotID) (ledger.Slot, []ledger.Stock) {
	b.Helper()
	slots, err := b.store.Slots(b.Context(), []ledger.SlotID{id})
	b.check(err)
	stock, err := b.store.StockAtOneMoment(b.Context(), slots[0])
	b.check(err)
	return slots[0], stock
}

// damageStock adds to the counters of a stock item what nothing accounts for. The only step
// that can do that is a repair; on an item that keeps P1 afterwards.
func (b *bazaar) damageStock(id ledger.SlotID, shard ledger.Shard, by ledger.Counters) bool {
	b.Helper()
	slot, stock := b.storedSlot(id)
	broken := stock[shard].Counters.Plus(by)
	if broken.Check() != nil {
		return false
	}
	b.check(b.store.Commit(b.Context(), ledger.RepairStock(slot, []ledger.StockRepair{{
		Slot: id, Shard: shard, Replaces: stock[shard].Version, Counters: broken, Terms: stock[shard].Terms,
	}}, b.origin(), b.now())))
	return true
}

// damageQuota adds to a count of the owner what no hold accounts for.
func (b *bazaar) damageQuota(owner ledger.OwnerID, key ledger.QuotaKey, by ledger.Units) bool {
	b.Helper()
	found, err := b.store.Quota(b.Context(), owner)
	b.check(err)
	if by == 0 || found.Counts[key]+by < 0 {
		return false
	}
	b.owners[owner] = true
	damage := ledger.NewReview(ledger.ReviewFinding, "damage/"+string(owner)+string(key), b.now())
	stored, err := b.store.Reviews(b.Context(), []ledger.ReviewID{damage.ID})
	b.check(err)
	var before ledger.Review
	if len(stored) > 0 {
		before = stored[0]
	}
	b.check(b.store.Commit(b.Context(), ledger.RepairQuota(found,
		map[ledger.QuotaKey]ledger.Units{key: found.Counts[key] + by}, before, damage, b.origin(), b.now())))
	return true
}

// stockPlace is one stock item.
type stockPlace struct {
	slot  ledger.SlotID
	shard ledger.Shard
}

// quotaPlace is one count of an owner.
type quotaPlace struct {
	owner ledger.OwnerID
	key   ledger.QuotaKey
}

// find adds everything up and returns what is wrong about stock and counts, with its proof.
func (b *bazaar) find() []reconcile.Finding {
	b.Helper()
	promised, counted := map[stockPlace]ledger.Counters{}, map[quotaPlace]ledger.Units{}
	for _, id := range b.holds {
		h, err := b.store.Hold(b.Context(), id)
		b.check(err)
		b.owners[h.Owner] = true
		live := h.Status == ledger.StatusHeld || h.Status == ledger.StatusConfirmed || h.Status == ledger.StatusReturned
		for _, key := range h.CountsIn {
			if h.Status == ledger.StatusHeld {
				counted[quotaPlace{h.Owner, key}]++
			}
		}
		for _, line := range h.Lines {
			for _, key := range line.CountsIn {
				if live {
					counted[quotaPlace{h.Owner, key}] += line.Quantity - line.ReturnedQuantity()
				}
			}
			for _, a := range line.Shards {
				place := stockPlace{line.Slot, a.Shard}
				c := promised[place]
				switch h.Status {
				case ledger.StatusHeld:
					c.Held += a.Quantity
				case ledger.StatusConfirmed, ledger.StatusReturned:
					c.Confirmed += a.Quantity
				default:
				}
				promised[place] = c
			}
		}
	}
	found := b.findStock(promised)
	for _, owner := range slices.Sorted(maps.Keys(b.owners)) {
		found = append(found, b.findQuota(owner, counted)...)
	}
	return found
}

func (b *bazaar) findStock(promised map[stockPlace]ledger.Counters) []reconcile.Finding {
	b.Helper()
	var found []reconcile.Finding
	for _, id := range b.slots {
		slot, stock := b.storedSlot(id)
		events, err := b.store.SlotEvents(b.Context(), id)
		b.check(err)
		capacity := map[ledger.Shard]ledger.Units{}
		for _, e := range events {
			for _, m := range e.Movements {
				capacity[m.Shard] += m.Delta().Capacity
			}
		}
		for _, s := range stock {
			want := promised[stockPlace{id, s.Shard}]
			want.Capacity = capacity[s.Shard]
			want.Available = want.Capacity - want.Held - want.Confirmed
			excess := s.Counters.Plus(ledger.Counters{Available: -want.Available, Held: -want.Held, Confirmed: -want.Confirmed, Capacity: -want.Capacity})
			if excess != (ledger.Counters{}) {
				found = append(found, stockFinding(slot, s.Shard, excess, b.now()))
			}
		}
	}
	return found
}

func stockFinding(slot ledger.Slot, shard ledger.Shard, excess ledger.Counters, at time.Time) reconcile.Finding {
	return reconcile.Finding{
		Kind: reconcile.FindingStockMismatch, Promise: "P2", Subject: fmt.Sprintf("shard %d of slot %s", shard, slot.ID), Slot: slot.ID, Shard: shard,
		Evidence: fmt.Sprintf("the counters are %+v above the holds", excess), Cause: "they were written by hand",
		Proof: reconcile.Proof{At: at, Certain: true, Version: slot.Version, Excess: excess},
	}
}

func (b *bazaar) findQuota(owner ledger.OwnerID, counted map[quotaPlace]ledger.Units) []reconcile.Finding {
	b.Helper()
	quota, err := b.store.Quota(b.Context(), owner)
	b.check(err)
	keys := maps.Clone(quota.Counts)
	for place := range counted {
		if place.owner == owner {
			keys[place.key] += 0
		}
	}
	var found []reconcile.Finding
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if was, want := quota.Counts[key], counted[quotaPlace{owner, key}]; was != want {
			found = append(found, reconcile.Finding{
				Kind: reconcile.FindingQuotaMismatch, Promise: "P5", Subject: string(key) + " of " + string(owner), Owner: owner, Count: key,
				Evidence: fmt.Sprintf("%d are counted, and the holds add up to %d", was, want),
				Proof:    reconcile.Proof{At: b.now(), Certain: true, Was: was, Want: want},
			})
		}
	}
	return found
}

func (b *bazaar) balanced() {
	b.Helper()
	ledgertest.CheckBooks(b, b.store, b.slots, b.holds, b.reservations...)
}

// idleRedrive has nothing to publish.
type idleRedrive struct{}

func (idleRedrive) Run(context.Context, time.Duration, time.Duration) (outbox.RedriveReport, error) {
	return outbox.RedriveReport{LagKnown: true}, nil
}

func (b *bazaar) repairer(store ledger.Store) *reconcile.Repairer {
	return &reconcile.Repairer{
		Store: store, Expire: b.commands, Redrive: idleRedrive{}, Clock: b.clock, Random: b.random,
		Actor: ledger.ActorAudit, RequestID: "request_repair",
	}
}

// repaired runs a repairer over the findings, and requires that nothing failed.
func (b *bazaar) repaired(findings []reconcile.Finding) reconcile.RepairReport {
	b.Helper()
	report, err := b.repairer(b.store).Run(b.Context(), findings, true)
	b.check(err)
	return report
}

// outcomes requires the findings of a report to have come to that, in their order.
func outcomes(tb testing.TB, report reconcile.RepairReport, want ...reconcile.RepairOutcome) {
	tb.Helper()
	var got []reconcile.RepairOutcome
	for _, r := range report.Results {
		got = append(got, r.Outcome)
	}
	if !slices.Equal(got, want) {
		tb.Errorf("outcomes %v, want %v: %+v", got, want, report.Results)
	}
}

// errDown is the failure of a store that is told to fail.
var errDown = errors.New("the store is down")

// guarded is a store whose writes are looked at before they are done.
type guarded struct {
	ledger.Store
	before func(c ledger.Change) error
}

func (g guarded) Commit(ctx context.Context, c ledger.Change) error {
	if err := g.before(c); err != nil {
		return err
	}
	return g.Store.Commit(ctx, c)
}

// forbidden are ports that a dry run may not touch.
type forbidden struct{ testing.TB }

func (f forbidden) ExpireHold(context.Context, ledger.HoldID, ledger.RequestID) (bool, error) {
	f.Errorf("a dry run ends a hold")
	return false, errDown
}

func (f forbidden) Run(context.Context, time.Duration, time.Duration) (outbox.RedriveReport, error) {
	f.Errorf("a dry run publishes")
	return outbox.RedriveReport{}, errDown
}
