package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/ledger/memory"
)

// TestLedgerAgreesWithTheModel gives random commands to the ledger and to the model,
// and compares every answer and, after every step, all that can be read. A failure
// prints the shortest run of commands that shows it and the seed to repeat it.
func TestLedgerAgreesWithTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{desk: newDesk(memory.New()), model: newModel(noon.UnixMilli()), shards: make(map[ledger.SlotID]int)}
		for _, id := range []ledger.SlotID{"A", "B", "C"} {
			m.put(t, id)
		}
		actions := map[string]func(*rapid.T){
			"create":       m.create,
			"createMore":   m.create,
			"createStill":  m.create,
			"createAgain":  m.createAgain,
			"confirm":      m.confirmOne,
			"cancel":       m.cancelOne,
			"expire":       m.expireOne,
			"sweep":        m.sweep,
			"move":         m.move,
			"operate":      m.operate,
			"edit":         m.editOne,
			"editMore":     m.editOne,
			"extend":       m.extendOne,
			"confirmPart":  m.confirmPartOf,
			"return":       m.returnOne,
			"commitStale":  m.commitStale,
			"commitRepeat": m.commitRepeat,
			"editStill":    m.editOne,
			"":             m.check,
		}
		for range stretches {
			t.Repeat(actions)
		}
	})
}

// stretches makes a run longer than one that the library draws.
const stretches = 4

// machine is the ledger and the model side by side.
type machine struct {
	*desk
	model  *model
	ids    []ledger.HoldID
	shards map[ledger.SlotID]int
	// creations are the requests that carried a key, to be sent again.
	creations []creationRequest
	// stale are changes that were built and not committed; applied are those that were.
	stale, applied []ledger.Change
}

type creationRequest struct {
	request
	quotes []ledger.Quote
}

var (
	slotIDs  = rapid.SampledFrom(append(slices.Repeat([]ledger.SlotID{"A", "B", "C"}, 8), "unknown"))
	ownerIDs = rapid.SampledFrom([]ledger.OwnerID{"U-1", "U-2"})
	amounts  = rapid.SampledFrom(append(slices.Repeat([]int64{500}, 15), 700))
	// quantities are small, so that several holds fit into a slot, and seldom ones that can't
	// be meant.
	quantities = rapid.SampledFrom(append(slices.Repeat([]int{1, 1, 2, 2, 3}, 6), 5, 0))
)

// answered compares an answer with the model's. After a refusal nothing at all may have
// changed (promise P5).
func (m *machine) answered(t *rapid.T, what string, err error, want string, before dump) {
	t.Helper()
	if got := string(ledger.CodeOf(err)); got != want {
		t.Fatalf("%s: answer is %v, the model says %q", what, err, want)
	}
	if err != nil {
		if after := m.dump(t); !reflect.DeepEqual(after, before) {
			t.Fatalf("P5: %s was refused with %v but left something behind:\n%+v\n%+v", what, err, before, after)
		}
	}
	if m.last.At.Equal(m.now) && err == nil && !m.last.Empty() {
		m.applied = append(m.applied, m.last)
	}
	m.last = ledger.Change{}
}

func (m *machine) create(t *rapid.T) {
	quotes := drawQuotes(t)
	r := request{owner: ownerIDs.Draw(t, "owner"), key: rapid.SampledFrom([]ledger.IdempotencyKey{"", "K1", "K2"}).Draw(t, "key")}
	r.body = fmt.Sprint(quotes)
	if r.key != "" {
		m.creations = append(m.creations, creationRequest{r, quotes})
	}
	m.send(t, r, quotes)
}

// drawQuotes draws the lines of a hold, now and then ones that can't be meant.
func drawQuotes(t *rapid.T) []ledger.Quote {
	var quotes []ledger.Quote
	for range rapid.SampledFrom([]int{1, 1, 2, 4}).Draw(t, "lines") {
		quotes = append(quotes, ledger.Quote{
			Slot: slotIDs.Draw(t, "slot"), Quantity: ledger.Units(quantities.Draw(t, "quantity")), UnitAmount: amounts.Draw(t, "amount"),
		})
	}
	return quotes
}

func modelLines(quotes []ledger.Quote) []modelLine {
	lines := make([]modelLine, 0, len(quotes))
	for _, q := range quotes {
		lines = append(lines, modelLine{string(q.Slot), int64(q.Quantity), q.UnitAmount})
	}
	return lines
}

// createAgain sends a request with a key once more (promise P6).
func (m *machine) createAgain(t *rapid.T) {
	if len(m.creations) == 0 {
		t.Skip("no request to send again")
	}
	c := rapid.SampledFrom(m.creations).Draw(t, "creation")
	m.send(t, c.request, c.quotes)
}

func (m *machine) send(t *rapid.T, r request, quotes []ledger.Quote) {
	t.Helper()
	id := holdID(fmt.Sprint(len(m.ids)))
	m.ids = append(m.ids, id)
	key := ""
	if r.key != "" {
		key = fmt.Sprintf("%s create %s", r.owner, r.key)
	}
	before := m.dump(t)
	answer, err := m.createHold(id, r, quotes)
	code, hold, short := m.model.create(string(id), string(r.owner), key, r.body, modelLines(quotes))
	m.answered(t, "create", err, code, before)
	if answer != hold {
		t.Fatalf("P6: the answer is hold %s, the model says %s", answer, hold)
	}
	wantShort(t, err, short)
}

// wantShort requires that the refusal names these slots as short, and no others.
func wantShort(t *rapid.T, err error, want []string) {
	t.Helper()
	var e *ledger.Error
	if !errors.As(err, &e) {
		return
	}
	var named []string
	for _, s := range e.Shortages {
		named = append(named, string(s.Slot))
	}
	sort.Strings(named)
	if !slices.Equal(named, want) {
		t.Fatalf("P10: short are %v, the model says %v", named, want)
	}
}

// rarely is true once in a while. The library draws small numbers more often than large ones,
// so that the last of a range is the rare one.
func rarely(t *rapid.T, what string) bool {
	const last = 7
	return rapid.IntRange(0, last).Draw(t, what) == last
}

// one draws a hold that was made.
func (m *machine) one(t *rapid.T) *modelHold {
	if len(m.model.holds) == 0 {
		t.Skip("no hold yet")
	}
	return rapid.SampledFrom(m.model.holds).Draw(t, "hold")
}

// oneThatIs draws mostly a hold of that status: with any hold, most steps would come too
// late.
func (m *machine) oneThatIs(t *rapid.T, status string) *modelHold {
	var those []*modelHold
	for _, h := range m.model.holds {
		if h.status == status && (status != "HELD" || m.model.now < h.over) {
			those = append(those, h)
		}
	}
	if len(those) == 0 || rarely(t, "any") {
		return m.one(t)
	}
	return rapid.SampledFrom(those).Draw(t, status)
}

func (m *machine) confirmOne(t *rapid.T) {
	h := m.one(t)
	reference := rapid.SampledFrom([]string{"", "", "pay-1", "pay-2", "pay-3"}).Draw(t, "reference")
	before := m.dump(t)
	_, err := m.confirm(ledger.HoldID(h.id), ledger.PaymentReference(reference), request{})
	m.answered(t, "confirm", err, m.model.confirm(h.id, reference), before)
}

func (m *machine) cancelOne(t *rapid.T) {
	h := m.one(t)
	before := m.dump(t)
	_, err := m.cancel(ledger.HoldID(h.id), request{})
	m.answered(t, "cancel", err, m.model.cancel(h.id), before)
}

func (m *machine) expireOne(t *rapid.T) {
	h := m.one(t)
	before := m.dump(t)
	_, err := m.expire(ledger.HoldID(h.id))
	m.answered(t, "expire", err, m.model.expire(h.id), before)
}

// sweep expires all that the due index names, and nothing else may be due.
func (m *machine) sweep(t *rapid.T) {
	for _, due := range m.due(t) {
		before := m.dump(t)
		_, err := m.expire(due)
		m.answered(t, "sweep", err, m.model.expire(string(due)), before)
	}
	for _, h := range m.model.holds {
		if h.status == "HELD" && h.over <= m.model.now {
			t.Fatalf("P9: hold %s is over and the sweep did not find it", h.id)
		}
	}
}

// move sets the clock on, often to just around the end of a hold.
func (m *machine) move(t *rapid.T) {
	to := m.model.now + rapid.Int64Range(0, 3_000).Draw(t, "ms")
	if len(m.model.holds) > 0 && rarely(t, "to a boundary") {
		h := rapid.SampledFrom(m.model.holds).Draw(t, "hold")
		to = h.over + rapid.Int64Range(-1, 1).Draw(t, "around")
	}
	if rarely(t, "far") && rarely(t, "very far") {
		to = m.model.now + modelRetention
	}
	m.model.now = max(to, m.model.now)
	m.now = time.UnixMilli(m.model.now).UTC()
}

// commitStale builds the end of a hold and keeps it, and commits one that was kept
// before. The write's own conditions must decide as the model does at that moment.
func (m *machine) commitStale(t *rapid.T) {
	h := m.one(t)
	pretended, err := m.store.Hold(context.Background(), ledger.HoldID(h.id))
	if err != nil {
		t.Fatal(err)
	}
	if pretended.Status == ledger.StatusHeld {
		for _, build := range []func() (ledger.Change, error){
			func() (ledger.Change, error) {
				return ledger.Confirm(pretended, "", m.origin(ledger.CommandConfirmHold, "shop"), pretended.CreatedAt)
			},
			func() (ledger.Change, error) {
				return ledger.Cancel(pretended, m.origin(ledger.CommandCancelHold, "shop"), m.now)
			},
			func() (ledger.Change, error) {
				edit := ledger.HoldEdit{ExtendFor: pretended.HoldFor}
				return ledger.EditHold(pretended, edit, m.origin(ledger.CommandExtendHold, "shop"), pretended.ExpiresAt.Add(-time.Millisecond))
			},
			func() (ledger.Change, error) {
				return ledger.Expire(pretended, m.origin(ledger.CommandExpireHold, "shop"), pretended.ReleaseAt)
			},
		} {
			change, err := build()
			if ledger.CodeOf(err) == ledger.CodeHoldAtMaximum || change.Empty() {
				continue // it can't be extended
			}
			fatal(t, err)
			m.stale = append(m.stale, change)
		}
	}
	if len(m.stale) == 0 {
		t.Skip("no change is kept")
	}
	i := rapid.IntRange(0, len(m.stale)-1).Draw(t, "stale")
	change := m.stale[i]
	m.stale = slices.Delete(m.stale, i, i+1)
	change.At = m.now
	if !change.Holds[0].Next.EndedAt.IsZero() {
		change.Holds[0].Next.EndedAt, change.Events[0].Hold.EndedAt = m.now, m.now
	}
	m.commitKept(t, change)
}

func (m *machine) commitKept(t *rapid.T, change ledger.Change) {
	t.Helper()
	next := change.Holds[0].Next
	h := m.model.find(string(next.ID))
	legal := h.status == "HELD" && h.version == int64(change.Holds[0].Replaces) &&
		(next.Status != ledger.StatusConfirmed && next.Status != ledger.StatusHeld || m.model.now < h.over) &&
		(next.Status != ledger.StatusExpired || m.model.now >= h.over)
	before := m.dump(t)
	err := m.store.Commit(context.Background(), change)
	var refused *ledger.Refused
	switch {
	case legal && err == nil && next.Status == ledger.StatusHeld:
		h.over = next.ExpiresAt.UnixMilli()
		h.version++
		m.applied = append(m.applied, change)
	case legal && err == nil:
		m.model.end(h, string(next.Status))
		m.applied = append(m.applied, change)
	case !legal && errors.As(err, &refused):
		if len(refused.LegsOf(ledger.LegHold)) != 1 {
			t.Fatalf("P3: a stale change is refused by %v", refused)
		}
		if after := m.dump(t); !reflect.DeepEqual(after, before) {
			t.Fatalf("P5: a refused stale change left something behind")
		}
	default:
		t.Fatalf("P3, P4: a kept change to %s of a hold that is %s until %d gives %v at %d", next.Status, h.status, h.over, err, m.model.now)
	}
}

// commitRepeat commits a change that was applied before: its answer may have been lost.
func (m *machine) commitRepeat(t *rapid.T) {
	if len(m.applied) == 0 {
		t.Skip("nothing was applied yet")
	}
	change := rapid.SampledFrom(m.applied).Draw(t, "change")
	if len(change.Events) == 0 {
		t.Skip("a record alone is not recognised by an event")
	}
	before := m.dump(t)
	if err := m.store.Commit(context.Background(), change); err != nil {
		t.Fatalf("P5: the repeat of an applied change gives %v", err)
	}
	if after := m.dump(t); !reflect.DeepEqual(after, before) {
		t.Fatalf("P3: the repeat of an applied change had an effect")
	}
}

// dump is all that can be read.
type dump struct {
	Slots   []ledger.Slot
	Stock   []ledger.Stock
	Holds   []ledger.Hold
	Events  []ledger.Event
	Records []ledger.IdempotencyRecord
	// Policies and Quotas are of all scopes and owners.
	Policies []ledger.ScopePolicy
	Quotas   []ledger.Quota
}

func (m *machine) dump(t *rapid.T) dump {
	t.Helper()
	ctx := context.Background()
	var d dump
	for _, id := range []ledger.SlotID{"A", "B", "C"} {
		slots, err := m.store.Slots(ctx, []ledger.SlotID{id})
		fatal(t, err)
		stock, err := m.store.Stock(ctx, slots)
		fatal(t, err)
		events, err := m.store.SlotEvents(ctx, id)
		fatal(t, err)
		d.Slots, d.Stock, d.Events = append(d.Slots, slots...), append(d.Stock, stock...), append(d.Events, events...)
	}
	for _, id := range m.ids {
		hold, err := m.store.Hold(ctx, id)
		if ledger.CodeOf(err) != ledger.CodeHoldNotFound {
			fatal(t, err)
			d.Holds = append(d.Holds, hold)
		}
		events, err := m.store.HoldEvents(ctx, id)
		fatal(t, err)
		d.Events = append(d.Events, events...)
	}
	policies, err := m.store.Policies(ctx, scopes)
	fatal(t, err)
	slices.SortFunc(policies, func(a, b ledger.ScopePolicy) int {
		return strings.Compare(string(a.Scope.ResourceID), string(b.Scope.ResourceID))
	})
	d.Policies = policies
	for _, owner := range []ledger.OwnerID{"U-1", "U-2"} {
		quota, err := m.store.Quota(ctx, owner)
		fatal(t, err)
		d.Quotas = append(d.Quotas, quota)
	}
	for _, c := range m.creations {
		record, found, err := m.store.IdempotencyRecord(ctx, ledger.NewIdempotencyID(c.owner, ledger.CommandCreateHold, c.key))
		fatal(t, err)
		if found {
			d.Records = append(d.Records, record)
		}
	}
	return d
}

func fatal(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// due is what the due index names at this moment.
func (m *machine) due(t *rapid.T) []ledger.HoldID {
	t.Helper()
	var ids []ledger.HoldID
	for shard := range ledger.DueShards {
		due, _, err := m.store.Due(context.Background(), shard, m.now, ledger.Page{Limit: ledger.PageItemsMax})
		fatal(t, err)
		for _, d := range due {
			ids = append(ids, d.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// check compares everything that can be read with the model.
func (m *machine) check(t *rapid.T) {
	d := m.dump(t)
	m.checkStock(t, d)
	m.checkHolds(t, d)
	m.checkLines(t, d)
	m.checkQuotas(t, d)
	var slots []ledger.SlotID
	for id := range m.shards {
		slots = append(slots, id)
	}
	ledgertest.CheckBooks(t, m.store, slots, m.ids)
}

func (m *machine) checkStock(t *rapid.T, d dump) {
	t.Helper()
	sums := make(map[string][4]int64)
	for _, s := range d.Stock {
		c := s.Counters
		if c.Available < 0 || c.Held < 0 || c.Confirmed < 0 || c.Available+c.Held+c.Confirmed != c.Capacity {
			t.Fatalf("P1: shard %d of slot %s has %+v", s.Shard, s.Slot, c)
		}
		sum := sums[string(s.Slot)]
		sums[string(s.Slot)] = [4]int64{
			sum[0] + int64(c.Available), sum[1] + int64(c.Held), sum[2] + int64(c.Confirmed), sum[3] + int64(c.Capacity),
		}
	}
	for _, s := range d.Slots {
		if slot := m.model.slots[string(s.ID)]; int64(s.Oversold) != slot.oversold || s.Terms.Open != slot.open {
			t.Fatalf("P10: slot %+v is open or oversold, the model has %+v", s, *slot)
		}
	}
	for id, slot := range m.model.slots {
		want := [4]int64{m.model.free(id), m.model.sum(id, "HELD"), m.model.sum(id, "CONFIRMED", "RETURNED"), slot.stock}
		if sums[id] != want {
			t.Fatalf("P2: slot %s has available, held, confirmed, capacity %v, the model counts %v", id, sums[id], want)
		}
	}
}

func (m *machine) checkHolds(t *rapid.T, d dump) {
	t.Helper()
	if len(d.Holds) != len(m.model.holds) {
		t.Fatalf("P6: there are %d holds, the model has %d", len(d.Holds), len(m.model.holds))
	}
	ends := make(map[string]int)
	for _, e := range d.Events {
		if e.Hold != nil && e.Hold.Status != ledger.StatusHeld && e.Type != ledger.EventHoldReturned {
			ends[string(e.Hold.ID)]++
		}
	}
	var due []ledger.HoldID
	for i, want := range m.model.holds {
		got := d.Holds[i]
		if string(got.ID) != want.id || string(got.Status) != want.status || got.ReleaseAt.UnixMilli() != want.over || string(got.PaymentReference) != want.reference {
			t.Fatalf("P3: hold is %+v, the model has %+v", got, *want)
		}
		if ends[want.id] != want.ends || want.ends > 1 {
			t.Fatalf("P3: hold %s left HELD %d times, in the model %d times", want.id, ends[want.id], want.ends)
		}
		if over := m.model.now >= want.over; want.status == "HELD" && (got.StatusAt(m.now) == ledger.StatusExpired) != over {
			t.Fatalf("P4: hold %s until %d reads as %s at %d", want.id, want.over, got.StatusAt(m.now), m.model.now)
		} else if want.status == "HELD" && over {
			due = append(due, got.ID)
		}
	}
	slices.Sort(due)
	if got := m.due(t); !slices.Equal(got, due) {
		t.Fatalf("P9: due are %v, the model says %v", got, due)
	}
}
