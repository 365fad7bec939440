package table_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// recorded is one request that the real store has made, with what it was made for.
type recorded struct {
	purpose string
	input   any
}

// templates are the requests of a script that has the store build every expression that
// it can, in the order in which they were made. They are the same in every run.
type templates []recorded

// first is the first transaction that was made for this purpose.
func (ts templates) first(tb testing.TB, purpose string) *dynamodb.TransactWriteItemsInput {
	tb.Helper()
	for _, t := range ts {
		if in, is := t.input.(*dynamodb.TransactWriteItemsInput); is && t.purpose == purpose {
			return in
		}
	}
	tb.Fatalf("the script has made no transaction for %q", purpose)
	return nil
}

// recorder is a client that keeps every request and hands it on.
type recorder struct {
	*client
	purpose string
	kept    templates
}

func (r *recorder) keep(input any) { r.kept = append(r.kept, recorded{r.purpose, input}) }

func (r *recorder) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	r.keep(in)
	return r.client.TransactWriteItems(ctx, in, options...)
}

func (r *recorder) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	r.keep(in)
	return r.client.UpdateItem(ctx, in, options...)
}

func (r *recorder) GetItem(ctx context.Context, in *dynamodb.GetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	r.keep(in)
	return r.client.GetItem(ctx, in, options...)
}

func (r *recorder) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	r.keep(in)
	return r.client.BatchGetItem(ctx, in, options...)
}

func (r *recorder) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	r.keep(in)
	return r.client.TransactGetItems(ctx, in, options...)
}

func (r *recorder) Query(ctx context.Context, in *dynamodb.QueryInput, options ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	r.keep(in)
	return r.client.Query(ctx, in, options...)
}

// script runs the store through a recorder.
type script struct {
	testing.TB
	recorder *recorder
	store    *dynamo.Store
	now      time.Time
	drawn    byte
}

const (
	scriptTable   = "table"
	scriptOwner   = ledger.OwnerID("owner")
	scriptPayment = ledger.PaymentReference("payment")
)

func mustTemplates(tb testing.TB) templates {
	tb.Helper()
	r := &recorder{client: mustClient(tb)}
	s := &script{
		TB: tb, recorder: r, store: dynamo.NewStore(r, scriptTable, system.RealClock{}, system.RealRandom{}),
		now: time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC),
	}
	s.lives()
	s.edits()
	s.limits()
	s.holdEdits()
	s.policies()
	s.reshards()
	s.refusals()
	s.reads()
	return r.kept
}

func (s *script) random() (bits [16]byte) {
	s.Helper()
	if s.drawn++; s.drawn == 0 {
		s.Fatal("the script draws more than it has room for: an id would come twice")
	}
	bits[15] = s.drawn
	return bits
}

func (s *script) origin(command ledger.Command) ledger.Origin {
	return ledger.Origin{
		Actor: ledger.Actor(scriptOwner), Command: command,
		RequestID: ledger.NewRequestID(s.random()), EventID: ledger.NewEventID(s.random()),
	}
}

func (s *script) commit(purpose string, c ledger.Change, err error) ledger.Change {
	s.Helper()
	s.recorder.purpose = purpose
	if err == nil {
		err = s.store.Commit(s.Context(), c)
	}
	if err != nil {
		s.Fatalf("%s: %v", purpose, err)
	}
	return c
}

func (s *script) definition(shards int, startsAt time.Time) ledger.SlotDefinition {
	return ledger.SlotDefinition{
		ResourceType: "flight", ResourceID: "OZ-102", StartsAt: startsAt,
		Attributes: map[string]string{"seat": "12A"},
		Terms:      ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "USD"}, Shards: shards},
		Policy:     ledger.DefaultPolicy(), Capacity: 12,
	}
}

func (s *script) define(purpose string, id ledger.SlotID, d ledger.SlotDefinition) ledger.Slot {
	s.Helper()
	c, err := ledger.NewSlot(id, d, s.origin(ledger.CommandPutSlot), s.now)
	return s.commit(purpose, c, err).Slots[0].Next
}

func (s *script) slot(purpose string, id ledger.SlotID, shards int, startsAt time.Time) ledger.Slot {
	s.Helper()
	return s.define(purpose, id, s.definition(shards, startsAt))
}

// plan takes two units from shard 0 of each slot.
func (s *script) plan(slots ...ledger.Slot) ledger.HoldPlan {
	plan := ledger.HoldPlan{
		ID: ledger.NewHoldID(s.random()), Owner: scriptOwner,
		Slots: make(map[ledger.SlotID]ledger.Slot), Allocations: make(map[ledger.SlotID][]ledger.Allocation),
	}
	for _, slot := range slots {
		plan.Quotes = append(plan.Quotes, ledger.Quote{Slot: slot.ID, Quantity: 2, UnitAmount: slot.Terms.Price.AmountMinor})
		plan.Slots[slot.ID] = slot
		plan.Allocations[slot.ID] = []ledger.Allocation{{Shard: 0, Quantity: 2}}
	}
	return plan
}

// newHold is a change that takes two units from shard 0 of each slot.
func (s *script) newHold(slots ...ledger.Slot) (ledger.Change, error) {
	return ledger.NewHold(s.plan(slots...), s.origin(ledger.CommandCreateHold), s.now)
}

// hold makes a hold with the record of its request.
func (s *script) hold(purpose string, slots ...ledger.Slot) ledger.Hold {
	s.Helper()
	c, err := s.newHold(slots...)
	if err != nil {
		s.Fatal(err)
	}
	key := ledger.IdempotencyKey(fmt.Sprintf("key-%d", s.drawn))
	c.Idempotency = &ledger.IdempotencyRecord{
		ID:          ledger.NewIdempotencyID(scriptOwner, ledger.CommandCreateHold, key),
		Fingerprint: "fingerprint", Response: ledger.Response{Status: 201, Body: []byte("{}")},
		CompletedAt: s.now, RetainUntil: s.now.Add(ledger.IdempotencyRetainFor),
	}
	return s.commit(purpose, c, nil).Holds[0].Next
}

// lives takes holds through each of their ends, and marks an event as published.
func (s *script) lives() {
	a := s.slot("slot", "A", 1, time.Time{})
	b := s.slot("slot of two shards", "B", 2, s.now.Add(time.Hour))
	confirmed := s.hold("create", a)
	c, err := ledger.Confirm(confirmed, scriptPayment, s.origin(ledger.CommandConfirmHold), s.now)
	events := s.commit("confirm", c, err).Events
	canceled := s.hold("create of two lines", a, b)
	c, err = ledger.Cancel(canceled, s.origin(ledger.CommandCancelHold), s.now)
	s.commit("cancel", c, err)
	expired := s.hold("create", b)
	s.now = expired.ReleaseAt
	c, err = ledger.Expire(expired, s.origin(ledger.CommandExpireHold), s.now)
	s.commit("expire", c, err)
	s.hold("create", a)
	s.hold("create", b)
	s.recorder.purpose = "mark"
	if err := s.store.MarkPublished(s.Context(), events[0], s.now); err != nil {
		s.Fatal(err)
	}
}

// edits changes what a slot's stock depends on.
func (s *script) edits() {
	s.edit("close", func(d *ledger.SlotDefinition) { d.Terms.Open = false })
	s.edit("more capacity and open", func(d *ledger.SlotDefinition) { d.Terms.Open, d.Capacity = true, 20 })
	s.edit("less capacity and another price", func(d *ledger.SlotDefinition) { d.Terms.Price.AmountMinor, d.Capacity = 700, 8 })
}

func (s *script) edit(purpose string, alter func(*ledger.SlotDefinition)) {
	s.Helper()
	s.recorder.purpose = "reads of an edit"
	slots, err := s.store.Slots(s.Context(), []ledger.SlotID{"B"})
	if err != nil || len(slots) != 1 {
		s.Fatalf("slots %v, error %v", slots, err)
	}
	stock, err := s.store.StockAtOneMoment(s.Context(), slots[0])
	if err != nil {
		s.Fatal(err)
	}
	var capacity ledger.Units
	for _, one := range stock {
		capacity += one.Counters.Capacity
	}
	d := slots[0].Definition(capacity)
	alter(&d)
	c, err := ledger.EditSlot(slots[0], stock, d, s.origin(ledger.CommandPatchSlot), s.now)
	s.commit(purpose, c, err)
}

// limits counts an owner's holds and the tries of a device, up to what is allowed, and lets
// them fall again.
func (s *script) limits() {
	d := s.definition(1, time.Time{})
	p := &d.Policy
	p.QuantityPerOwnerMax, p.QuantityPerOwnerOfResourceMax, p.HoldsPerOwnerMax = 6, 7, 3
	p.ExpiriesMax, p.CooldownFor, p.HoldsPerSignalMax = 1, time.Minute, 2
	l := s.define("slot of limits", "L", d)
	d.Policy.QuantityPerOwnerMax, d.Policy.QuantityPerOwnerOfResourceMax, d.Policy.HoldsPerOwnerMax = 0, 0, 0
	d.ResourceID = "OZ-103"
	cool := s.define("slot of a cool-down", "M", d)
	device := ledger.Signal{Kind: ledger.SignalDevice, Hash: strings.Repeat("5a", ledger.SignalHashCharacters/2)}
	create := func(purpose string, slot ledger.Slot, cooled bool) ledger.Hold {
		plan := s.plan(slot)
		plan.Signals, plan.CooledDown = []ledger.Signal{device}, cooled
		c, err := ledger.NewHold(plan, s.origin(ledger.CommandCreateHold), s.now)
		return s.commit(purpose, c, err).Holds[0].Next
	}
	first := create("counted create", l, false)
	c, err := ledger.Confirm(first, "", s.origin(ledger.CommandConfirmHold), s.now)
	sold := s.commit("counted confirm", c, err).Holds[0].Next
	expired := create("create that requires", cool, false)
	s.now = expired.ReleaseAt.Add(ledger.SignalWindow)
	c, err = ledger.Expire(expired, s.origin(ledger.CommandExpireHold), s.now)
	s.commit("counted expiry", c, err)
	s.now = s.now.Add(time.Minute)
	create("counted create after a cool-down", cool, true)
	s.commit("forget", ledger.ForgetExpiries(scriptOwner, s.now), nil)
	c, err = ledger.Return(sold, nil, s.origin(ledger.CommandReturnHold), s.now)
	s.commit("counted return", c, err)
	s.recorder.purpose = "tidy"
	for _, key := range []ledger.QuotaKey{ledger.SlotQuota("L"), ledger.QuotaHolds, ledger.SlotQuota("never")} {
		if err := s.store.TidyQuota(s.Context(), scriptOwner, []ledger.QuotaKey{key}); err != nil {
			s.Fatal(err)
		}
	}
	create("counted create", l, false)
	over := s.plan(l)
	over.Signals, over.Quotes[0].Quantity = []ledger.Signal{device}, 6
	over.Allocations["L"][0].Quantity = 6
	c, err = ledger.NewHold(over, s.origin(ledger.CommandCreateHold), s.now)
	s.refused("create over each limit", c, err)
}

// holdEdits changes what a hold has, and sells a part of it.
func (s *script) holdEdits() {
	e := s.slot("slot to edit", "E", 1, time.Time{})
	hold := s.hold("create", e)
	edit := ledger.HoldEdit{
		Quotes:      []ledger.Quote{{Slot: "E", Quantity: 3, UnitAmount: 500}},
		Slots:       map[ledger.SlotID]ledger.Slot{"E": e},
		Allocations: map[ledger.SlotID][]ledger.Allocation{"E": {{Shard: 0, Quantity: 1}}},
	}
	c, err := ledger.EditHold(hold, edit, s.origin(ledger.CommandEditHold), s.now)
	grown := s.commit("edit", c, err).Holds[0].Next
	s.now = s.now.Add(time.Second)
	c, err = ledger.EditHold(grown, ledger.HoldEdit{ExtendFor: grown.HoldFor}, s.origin(ledger.CommandExtendHold), s.now)
	longer := s.commit("extend", c, err).Holds[0].Next
	c, err = ledger.ConfirmPart(longer, []ledger.ReturnLine{{Slot: "E", Quantity: 1}}, "", s.origin(ledger.CommandConfirmHold), s.now)
	s.commit("confirm a part", c, err)
}

// policies says something for a resource type, and then something else.
func (s *script) policies() {
	scope := ledger.PolicyScope{ResourceType: "flight"}
	c, err := ledger.SetPolicy(scope, ledger.ScopePolicy{}, ledger.InheritAll(), s.origin(ledger.CommandPutPolicy), s.now)
	first := s.commit("policy", c, err).Policies[0].Next
	c, err = ledger.SetPolicy(scope, first, ledger.PolicyLayer{Policy: ledger.DefaultPolicy()}, s.origin(ledger.CommandPutPolicy), s.now)
	s.commit("other policy", c, err)
}

// reshards gives a slot more shards and fewer, and sells what is left on one that retired.
func (s *script) reshards() {
	s.edit("reshard up", func(d *ledger.SlotDefinition) { d.Terms.Shards = 4 })
	s.edit("reshard down", func(d *ledger.SlotDefinition) { d.Terms.Shards = 1 })
	slots, err := s.store.Slots(s.Context(), []ledger.SlotID{"B"})
	if err != nil || len(slots) != 1 {
		s.Fatalf("slots %v, error %v", slots, err)
	}
	s.hold("create beside retired shards", slots[0])
	s.edit("reshard up again", func(d *ledger.SlotDefinition) { d.Terms.Shards = 3 })
}

// refusals are made with what was true earlier.
func (s *script) refusals() {
	c, err := s.newHold(ledger.Slot{ID: "B", Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "USD"}, Shards: 2}, Policy: ledger.DefaultPolicy()})
	s.refused("refused create", c, err)
}

// refused commits a change that the store refuses.
func (s *script) refused(purpose string, c ledger.Change, err error) {
	s.Helper()
	s.recorder.purpose = purpose
	if err != nil {
		s.Fatal(err)
	}
	var refused *ledger.Refused
	if err := s.store.Commit(s.Context(), c); !errors.As(err, &refused) {
		s.Fatalf("%s: %v, want it refused", purpose, err)
	}
}

// reads asks each question, the lists with and without a cursor.
func (s *script) reads() {
	s.recorder.purpose = "read"
	ctx := s.Context()
	must := func(err error) {
		s.Helper()
		if err != nil {
			s.Fatal(err)
		}
	}
	page := ledger.Page{Limit: 2}
	holds, next, err := s.store.HoldsOfOwner(ctx, scriptOwner, page)
	must(err)
	_, _, err = s.store.HoldsOfOwner(ctx, scriptOwner, ledger.Page{Limit: 2, After: next})
	must(err)
	for _, h := range holds {
		_, err = s.store.HoldEvents(ctx, h.ID)
		must(err)
		_, err = s.store.Hold(ctx, h.ID)
		must(err)
	}
	_, err = s.store.SlotEvents(ctx, "B")
	must(err)
	scopes := append(ledger.Scopes("flight", "OZ-102"), ledger.PolicyScope{ResourceType: "none"})
	_, err = s.store.Policies(ctx, scopes)
	must(err)
	_, err = s.store.PolicyEvents(ctx, scopes[0])
	must(err)
	_, err = s.store.Quota(ctx, scriptOwner)
	must(err)
	for _, from := range []time.Time{{}, s.now.Add(-time.Hour)} {
		for _, to := range []time.Time{{}, s.now.Add(time.Hour)} {
			_, next, err = s.store.SlotsOfResource(ctx, "flight", "OZ-102", from, to, ledger.Page{Limit: 1})
			must(err)
			_, _, err = s.store.SlotsOfResource(ctx, "flight", "OZ-102", from, to, ledger.Page{Limit: 1, After: next})
			must(err)
		}
	}
	for shard := range ledger.DueShards {
		due, next, err := s.store.Due(ctx, shard, s.now.Add(time.Hour), ledger.Page{Limit: 1})
		must(err)
		if len(due) > 0 {
			_, _, err = s.store.Due(ctx, shard, s.now.Add(time.Hour), ledger.Page{Limit: 1, After: next})
			must(err)
		}
	}
	slots, err := s.store.Slots(ctx, []ledger.SlotID{"A", "B", "C"})
	must(err)
	_, err = s.store.Stock(ctx, slots)
	must(err)
	_, _, err = s.store.IdempotencyRecord(ctx, ledger.NewIdempotencyID(scriptOwner, ledger.CommandCreateHold, "key-1"))
	must(err)
}
