package outbox_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"holdfast/shared/ledger"
)

// way is from where to where units go.
type way struct{ from, to ledger.Bucket }

// ways are the ways of the event's movements.
func ways(e ledger.Event) map[way]bool {
	out := map[way]bool{}
	for _, m := range e.Movements {
		out[way{m.From, m.To}] = true
	}
	return out
}

// The life cycle has every kind of step that the schemas describe with more than one way
// for the units: otherwise they would be tried on half of what can come.
func TestTheLifeCycleHasEveryKindOfStep(t *testing.T) {
	out, in := way{ledger.BucketAvailable, ledger.BucketOutside}, way{ledger.BucketOutside, ledger.BucketAvailable}
	taken, freed := way{ledger.BucketAvailable, ledger.BucketHeld}, way{ledger.BucketHeld, ledger.BucketAvailable}
	wanted := map[string]func(ledger.Event, map[way]bool) bool{
		"an exchange": func(e ledger.Event, w map[way]bool) bool {
			return e.Type == ledger.EventHoldChanged && w[taken] && w[freed]
		},
		"an extension": func(e ledger.Event, w map[way]bool) bool { return e.Type == ledger.EventHoldChanged && len(w) == 0 },
		"a part sale": func(e ledger.Event, w map[way]bool) bool {
			return e.Type == ledger.EventHoldConfirmed && w[freed] && w[way{ledger.BucketHeld, ledger.BucketConfirmed}]
		},
		"a return that is not sold again": func(e ledger.Event, w map[way]bool) bool {
			return e.Type == ledger.EventHoldReturned && e.Origin.Command == ledger.CommandReturnHold && w[way{ledger.BucketConfirmed, ledger.BucketOutside}]
		},
		"a reshard":            func(e ledger.Event, w map[way]bool) bool { return e.Type == ledger.EventSlotChanged && w[in] && w[out] },
		"retired shards":       func(e ledger.Event, _ map[way]bool) bool { return e.Slot != nil && e.Slot.Terms.Retired > 0 },
		"an oversold slot":     func(e ledger.Event, _ map[way]bool) bool { return e.Slot != nil && e.Slot.Oversold > 0 },
		"a slot that inherits": func(e ledger.Event, _ map[way]bool) bool { return e.Slot != nil && e.Slot.Inherits != 0 },
		"a hold that is counted": func(e ledger.Event, _ map[way]bool) bool {
			return e.Hold != nil && len(e.Hold.CountsIn) > 0 && len(e.Hold.Lines[0].CountsIn) > 0 && e.Hold.CountsExpiry && e.Hold.Scarce
		},
	}
	for _, e := range newLifeCycle(t).events() {
		for name, is := range wanted {
			if is(e, ways(e)) {
				delete(wanted, name)
			}
		}
	}
	for name := range wanted {
		t.Errorf("the life cycle has not %s", name)
	}
}

// What is counted of an owner is nobody's business but the shop's.
func TestCountsOfAnOwnerAreNotPublished(t *testing.T) {
	for kind, details := range emitted(t) {
		for _, detail := range details {
			if bytes.Contains(detail, []byte("count")) || bytes.Contains(detail, []byte("slot/KTX")) {
				t.Errorf("%s tells of counts: %s", kind, detail)
			}
		}
	}
}

// A place says a part of a policy, or inherits it: never both, never neither.
func TestTheSchemaRefusesHalfAPolicy(t *testing.T) {
	kind := ledger.EventPolicyChanged
	schema, good := mustCompile(t, kind), emitted(t)[kind][0]
	for name, damage := range map[string]func(layer map[string]any){
		"a part that is neither said nor inherited": func(layer map[string]any) { delete(layer, "hold_seconds") },
		"a part that is both": func(layer map[string]any) {
			layer["inherits"] = []any{"hold_seconds", "grant_to_slot_id", "sale_until"}
		},
		"a part that need not be set, and is both": func(layer map[string]any) { layer["inherits"] = []any{"sale_from", "grant_to_slot_id", "sale_until"} },
		"a part that no policy has":                func(layer map[string]any) { layer["inherits"] = []any{"colour", "grant_to_slot_id", "sale_until"} },
		"a part twice":                             func(layer map[string]any) { layer["inherits"] = []any{"grant_to_slot_id", "grant_to_slot_id"} },
	} {
		damaged := mustRead(t, good)
		damage(damaged["policy"].(map[string]any)["layer"].(map[string]any))
		if schema.Validate(damaged) == nil {
			t.Errorf("the schema allows %s", name)
		}
	}
	if err := schema.Validate(mustRead(t, good)); err != nil {
		t.Errorf("what the others were made of: %v", err)
	}
}

// Every part of a policy is described, and can be named as inherited.
func TestEveryPartOfAPolicyIsInTheSchemas(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(schemaFolder, definitions))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Defs struct {
			Layer struct {
				Properties map[string]struct {
					Items struct{ Enum []string }
				}
				AllOf []json.RawMessage
			} `json:"policy_layer"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	layer, parts := schema.Defs.Layer, ledger.AllPolicyParts.Names()
	if got := layer.Properties["inherits"].Items.Enum; !slices.Equal(got, parts) {
		t.Errorf("inherits may name %v, the parts are %v", got, parts)
	}
	if len(layer.Properties) != len(parts)+1 || len(layer.AllOf) != len(parts) {
		t.Errorf("%d members and %d rules for %d parts", len(layer.Properties), len(layer.AllOf), len(parts))
	}
	for i, part := range parts {
		if _, described := layer.Properties[part]; !described || !bytes.Contains(layer.AllOf[i], []byte(`{ "required": ["`+part+`"] }`)) ||
			!bytes.Contains(layer.AllOf[i], []byte(`"const": "`+part+`"`)) {
			t.Errorf("part %s is not described, or has no rule", part)
		}
	}
}

// Every command that there is, is in the schema of an event, and no other is.
func TestEveryCommandIsInTheSchemas(t *testing.T) {
	syntax, err := parser.ParseFile(token.NewFileSet(), "../ledger/event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	ast.Inspect(syntax, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		if name, named := spec.Type.(*ast.Ident); named && name.Name == "Command" {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			declared = append(declared, text)
		}
		return true
	})
	files, err := filepath.Glob(filepath.Join(schemaFolder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var described []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var schema struct {
			Properties struct{ Command json.RawMessage }
			Defs       struct {
				PaymentCommand json.RawMessage `json:"payment_command"`
			} `json:"$defs"`
		}
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatal(err)
		}
		for _, quoted := range strings.Split(string(schema.Properties.Command)+string(schema.Defs.PaymentCommand), `"`) {
			if strings.Contains(quoted, ".") && !strings.ContainsAny(quoted, "/ ") {
				described = append(described, quoted)
			}
		}
	}
	slices.Sort(declared)
	slices.Sort(described)
	if described = slices.Compact(described); !slices.Equal(described, declared) {
		t.Errorf("the schemas have the commands\n%v\ndeclared are\n%v", described, declared)
	}
}
