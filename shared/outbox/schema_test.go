package outbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/system/systemtest"
)

var rewrite = flag.Bool("rewrite", false, "write the examples of the folder events anew")

const (
	schemaFolder  = "../../events/schema"
	exampleFolder = "../../events/example"
	definitions   = "definitions.json"
)

func mustCompile(tb testing.TB, kind ledger.EventType) *jsonschema.Schema {
	tb.Helper()
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(schemaFolder, string(kind)+".json"))
	if err != nil {
		tb.Fatalf("schema of %s: %v", kind, err)
	}
	return schema
}

func mustRead(tb testing.TB, detail []byte) map[string]any {
	tb.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(detail))
	if err != nil {
		tb.Fatalf("%v: %s", err, detail)
	}
	return value.(map[string]any)
}

// lifeCycle is a ledger in which everything that makes an event happens: slots with and
// without time, with one and with several shards, holds that end in all ways, and payments
// that do.
type lifeCycle struct {
	tb       testing.TB
	store    *memory.Store
	clock    *systemtest.Clock
	random   *systemtest.Random
	commands *commands.Commands
}

func (l *lifeCycle) request(actor string) commands.Request {
	l.clock.Advance(1500 * time.Millisecond)
	return commands.Request{Actor: ledger.Actor(actor), Owner: "U-17", RequestID: "request_6vgqk3t9m2x4n8r5c7w1z0hjsd"}
}

func (l *lifeCycle) check(err error) {
	l.tb.Helper()
	if err != nil {
		l.tb.Fatal(err)
	}
}

func renderSlot(ledger.Slot, ledger.Policy, ledger.Counters, bool) (ledger.Response, error) {
	return ledger.Response{Status: 200}, nil
}

func renderHold(ledger.Hold, time.Time) (ledger.Response, error) {
	return ledger.Response{Status: 200}, nil
}

func (l *lifeCycle) slots() []ledger.SlotID {
	l.tb.Helper()
	seats, bags := ledger.SlotID("KE0901-20261201-Y"), ledger.SlotID("KE0901-20261201-BAG")
	departure := time.Date(2026, 12, 1, 9, 30, 0, 0, time.UTC)
	definition := ledger.SlotDefinition{
		ResourceType: "flight", ResourceID: "KE0901", StartsAt: departure, EndsAt: departure.Add(14 * time.Hour),
		Attributes: map[string]string{"cabin": "economy"}, Policy: ledger.DefaultPolicy(), Capacity: 108,
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 50000, Currency: "KRW"}, Shards: 2},
	}
	_, err := l.commands.PutSlot(context.Background(), l.request("service:catalog"), seats, definition, renderSlot)
	l.check(err)
	definition.StartsAt, definition.EndsAt, definition.Attributes = time.Time{}, time.Time{}, nil
	definition.Terms.Shards, definition.Terms.Price.AmountMinor, definition.Capacity = 1, 10000, 0
	_, err = l.commands.PutSlot(context.Background(), l.request("service:catalog"), bags, definition, renderSlot)
	l.check(err)
	capacity, smaller, price := ledger.Units(40), ledger.Units(-8), int64(55000)
	_, err = l.commands.PatchSlot(context.Background(), l.request("service:catalog"), seats,
		ledger.SlotPatch{CapacityDelta: &smaller, UnitAmount: &price}, renderSlot)
	l.check(err)
	_, err = l.commands.PatchSlot(context.Background(), l.request("service:catalog"), bags, ledger.SlotPatch{Capacity: &capacity}, renderSlot)
	l.check(err)
	return []ledger.SlotID{seats, bags}
}

func (l *lifeCycle) holds(slots []ledger.SlotID) []ledger.HoldID {
	l.tb.Helper()
	var out []ledger.HoldID
	for range 3 {
		_, err := l.commands.CreateHold(context.Background(), l.request("owner:U-17"),
			commands.HoldWish{Quotes: []ledger.Quote{
				{Slot: slots[0], Quantity: 2, UnitAmount: 55000}, {Slot: slots[1], Quantity: 1, UnitAmount: 10000},
			}},
			func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
				out = append(out, h.ID)
				return ledger.Response{Status: 201}, nil
			})
		l.check(err)
	}
	_, err := l.commands.ConfirmHold(context.Background(), l.request("service:shop"), out[0], "shop-payment-4711", nil, renderHold)
	l.check(err)
	_, err = l.commands.CancelHold(context.Background(), l.request("owner:U-17"), out[1], renderHold)
	l.check(err)
	l.clock.Advance(ledger.HoldForDefault)
	_, err = l.commands.ExpireHold(context.Background(), out[2], "request_5bq7d2f9h3k6m8p1r4t0v2x5y7")
	l.check(err)
	// One that takes all seats that are left, and so from both shards.
	_, err = l.commands.CreateHold(context.Background(), l.request("owner:U-17"),
		commands.HoldWish{Quotes: []ledger.Quote{{Slot: slots[0], Quantity: 98, UnitAmount: 55000}}},
		func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
			out = append(out, h.ID)
			return ledger.Response{Status: 201}, nil
		})
	l.check(err)
	return out
}

// events is the whole life cycle, in the order in which it happened.
func (l *lifeCycle) events() []ledger.Event {
	l.tb.Helper()
	slots := l.slots()
	holds := l.holds(slots)
	slots = append(slots, l.paymentSlots()...)
	payments := l.payments()
	editedSlots, editedHolds, scopes := l.edits()
	slots, holds = append(slots, editedSlots...), append(holds, editedHolds...)
	var out []ledger.Event
	for _, id := range l.cases(slots[0], holds[0], payments[0].reservation) {
		list, err := l.store.ReviewEvents(context.Background(), id)
		l.check(err)
		out = append(out, list...)
	}
	for _, scope := range scopes {
		list, err := l.store.PolicyEvents(context.Background(), scope)
		l.check(err)
		out = append(out, list...)
	}
	for _, p := range payments {
		list, err := l.store.ReservationEvents(context.Background(), p.reservation)
		l.check(err)
		out = append(out, list...)
		holds = append(holds, p.hold)
		if sold := list[len(list)-1].Reservation.SoldHold; sold != "" && sold != p.hold {
			holds = append(holds, sold)
		}
	}
	for _, id := range slots {
		list, err := l.store.SlotEvents(context.Background(), id)
		l.check(err)
		out = append(out, list...)
	}
	for _, id := range holds {
		list, err := l.store.HoldEvents(context.Background(), id)
		l.check(err)
		out = append(out, list...)
	}
	slices.SortStableFunc(out, func(a, b ledger.Event) int { return a.OccurredAt.Compare(b.OccurredAt) })
	return out
}

func newLifeCycle(tb testing.TB) *lifeCycle {
	tb.Helper()
	l := &lifeCycle{tb: tb, store: memory.New(), clock: systemtest.NewClock(start)}
	l.random = systemtest.NewRandom(18)
	l.commands = commands.New(l.store, l.clock, systemtest.NewRandom(17))
	return l
}

// emitted is every detail that a life cycle puts on the bus, by the type of its event.
func emitted(tb testing.TB) map[ledger.EventType][][]byte {
	tb.Helper()
	l, w := newLifeCycle(tb), newWorld(tb)
	list := l.events()
	w.clock.Set(l.clock.Now())
	if failed := mustHandle(context.Background(), tb, w.relay(w.ports()), w.batch(list...)); failed != nil {
		tb.Fatalf("handed back %v", failed)
	}
	out := map[ledger.EventType][][]byte{}
	for _, d := range w.bus.Deliveries() {
		kind := ledger.EventType(aws.ToString(d.Entry.DetailType))
		out[kind] = append(out[kind], []byte(aws.ToString(d.Entry.Detail)))
	}
	return out
}

// What the relay really emits in a whole life cycle is what the schemas say, and nothing
// more: no schema allows a member that it does not name.
func TestWhatIsEmittedIsInTheSchemas(t *testing.T) {
	byType := emitted(t)
	for _, kind := range ledger.EventTypes() {
		schema := mustCompile(t, kind)
		if len(byType[kind]) == 0 {
			t.Errorf("the life cycle has no %s", kind)
		}
		for _, detail := range byType[kind] {
			if err := schema.Validate(mustRead(t, detail)); err != nil {
				t.Errorf("%s: %v\n%s", kind, err, detail)
			}
		}
		delete(byType, kind)
	}
	for kind := range byType {
		t.Errorf("%s has no schema", kind)
	}
}

// The examples are the first event of each type of that life cycle.
func TestTheExamplesAreReal(t *testing.T) {
	byType := emitted(t)
	for _, kind := range ledger.EventTypes() {
		path := filepath.Join(exampleFolder, string(kind)+".json")
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, byType[kind][0], "", "  "); err != nil {
			t.Fatal(err)
		}
		pretty.WriteByte('\n')
		if *rewrite {
			if err := os.WriteFile(path, pretty.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		example, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := mustCompile(t, kind).Validate(mustRead(t, example)); err != nil {
			t.Errorf("the example of %s: %v", kind, err)
		}
		if !bytes.Equal(example, pretty.Bytes()) {
			t.Errorf("the example of %s is not what is emitted; look at the difference, then run with -rewrite", kind)
		}
	}
}

// subjectMember is the name of the one member that has what the event is of.
func subjectMember(tb testing.TB, detail map[string]any) string {
	tb.Helper()
	var found []string
	for _, member := range []string{"hold", "reservation", "slot", "policy", "review"} {
		if detail[member] != nil {
			found = append(found, member)
		}
	}
	if len(found) != 1 {
		tb.Fatalf("an event of %v", found)
	}
	return found[0]
}

// A schema that allows everything would pass every test. Each of these must fail on what
// it was made to refuse.
func TestTheSchemasRefuse(t *testing.T) {
	byType := emitted(t)
	for _, kind := range ledger.EventTypes() {
		schema := mustCompile(t, kind)
		of := subjectMember(t, mustRead(t, byType[kind][0]))
		for name, damage := range map[string]func(map[string]any){
			"a member without schema":         func(d map[string]any) { d["card_number"] = "4242" },
			"a member without schema, deeper": func(d map[string]any) { d[of].(map[string]any)["client_secret"] = "x" },
			"no event id":                     func(d map[string]any) { delete(d, "event_id") },
			"no movements":                    func(d map[string]any) { delete(d, "movements") },
			"no hold, slot and so on":         func(d map[string]any) { delete(d, of) },
			"another type":                    func(d map[string]any) { d["type"] = "hold.moved" },
			"version 0":                       func(d map[string]any) { d["version"] = json.Number("0") },
			"a fraction":                      func(d map[string]any) { d["version"] = json.Number("1.5") },
			"microseconds":                    func(d map[string]any) { d["occurred_at"] = "2026-03-01T09:00:00.000001Z" },
			"another stage":                   func(d map[string]any) { d["stage"] = "production" },
			"an impossible movement": func(d map[string]any) {
				d["movements"] = []any{map[string]any{
					"slot_id": "s", "shard": json.Number("0"), "from": "held", "to": "outside", "quantity": json.Number("1"),
				}}
			},
		} {
			damaged := mustRead(t, byType[kind][0])
			damage(damaged)
			if schema.Validate(damaged) == nil {
				t.Errorf("the schema of %s allows %s", kind, name)
			}
		}
	}
}

// The folders hold nothing that no event is behind.
func TestTheFoldersAreComplete(t *testing.T) {
	want := []string{}
	for _, kind := range ledger.EventTypes() {
		want = append(want, string(kind)+".json")
	}
	slices.Sort(want)
	for folder, extra := range map[string][]string{schemaFolder: {definitions}, exampleFolder: nil} {
		files, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range files {
			got = append(got, f.Name())
		}
		expected := append(slices.Clone(want), extra...)
		slices.Sort(expected)
		if !slices.Equal(got, expected) {
			t.Errorf("%s holds %v, want %v", folder, got, expected)
		}
	}
}

// Every constant of package ledger that is an event's type is in its list, and so in the
// schemas: a type that nobody told consumers of would come as a surprise.
func TestEveryEventTypeIsListed(t *testing.T) {
	syntax, err := parser.ParseFile(token.NewFileSet(), "../ledger/event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []ledger.EventType
	ast.Inspect(syntax, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		if name, named := spec.Type.(*ast.Ident); named && name.Name == "EventType" {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			declared = append(declared, ledger.EventType(text))
		}
		return true
	})
	listed := ledger.EventTypes()
	slices.Sort(declared)
	slices.Sort(listed)
	if !slices.Equal(declared, listed) {
		t.Errorf("declared\n%v\nlisted\n%v", declared, listed)
	}
}
