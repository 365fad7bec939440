package reconcile_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"holdfast/shared/ledger"
	"holdfast/shared/reconcile"
)

// What is done about each kind of finding. Nothing is repaired without a proof, and nothing
// about money ever.
func TestPlan(t *testing.T) {
	proof := reconcile.Proof{At: start, Certain: true, Version: 3, Excess: ledger.Counters{Available: 1, Held: -1}, Was: 2, Want: 1}
	doubtful, old := proof, proof
	doubtful.Certain = false
	old.Version = 0
	plain := reconcile.Proof{At: start, Version: 3}
	event := ledger.EventItem{PartitionKey: "HOLD#hold_1", SortKey: "EVENT#0000000001"}
	tests := []struct {
		name    string
		finding reconcile.Finding
		want    reconcile.ActionKind
	}{
		{"counters", reconcile.Finding{Kind: reconcile.FindingStockMismatch, Slot: "S", Proof: proof}, reconcile.ActionRepairStock},
		{"counters in doubt", reconcile.Finding{Kind: reconcile.FindingStockMismatch, Slot: "S", Proof: doubtful}, reconcile.ActionReview},
		{"counters without a version", reconcile.Finding{Kind: reconcile.FindingStockMismatch, Slot: "S", Proof: old}, reconcile.ActionReview},
		{"counters of no slot", reconcile.Finding{Kind: reconcile.FindingStockMismatch, Proof: proof}, reconcile.ActionReview},
		{"impossible counters that the rest explains", reconcile.Finding{Kind: reconcile.FindingStockImpossible, Slot: "S", Proof: proof}, reconcile.ActionRepairStock},
		{"impossible counters that it does not", reconcile.Finding{Kind: reconcile.FindingStockImpossible, Slot: "S", Proof: doubtful}, reconcile.ActionReview},
		{"terms", reconcile.Finding{Kind: reconcile.FindingStockTerms, Slot: "S", Proof: proof}, reconcile.ActionRepairStock},
		{"a stock item that is missing", reconcile.Finding{Kind: reconcile.FindingStockTerms, Slot: "S"}, reconcile.ActionReview},
		{"units of a hold that has ended", reconcile.Finding{Kind: reconcile.FindingTerminalStock, Slot: "S", Hold: "hold_1", Proof: proof}, reconcile.ActionRepairStock},
		{"units of one, in doubt", reconcile.Finding{Kind: reconcile.FindingTerminalStock, Slot: "S", Hold: "hold_1", Proof: doubtful}, reconcile.ActionReview},
		{"a ghost", reconcile.Finding{Kind: reconcile.FindingGhostHold, Hold: "hold_1"}, reconcile.ActionExpire},
		{"a ghost without a name", reconcile.Finding{Kind: reconcile.FindingGhostHold}, reconcile.ActionReview},
		{"a hold's place", reconcile.Finding{Kind: reconcile.FindingDueIndexHole, Hold: "hold_1", Proof: plain}, reconcile.ActionRepairHold},
		{"a hold's place, without a version", reconcile.Finding{Kind: reconcile.FindingDueIndexHole, Hold: "hold_1"}, reconcile.ActionReview},
		{"a reservation's place", reconcile.Finding{Kind: reconcile.FindingDueIndexHole, Reservation: "rsv_1", Proof: plain}, reconcile.ActionRepairReservation},
		{"a place of nothing", reconcile.Finding{Kind: reconcile.FindingDueIndexHole, Proof: plain}, reconcile.ActionReview},
		{"a slot's place", reconcile.Finding{Kind: reconcile.FindingDueIndexHole, Slot: "S", Proof: proof}, reconcile.ActionReview},
		{"a hold that dies", reconcile.Finding{Kind: reconcile.FindingTimeToLive, Hold: "hold_1", Proof: plain}, reconcile.ActionRepairHold},
		{"a reservation that dies", reconcile.Finding{Kind: reconcile.FindingTimeToLive, Reservation: "rsv_1", Proof: plain}, reconcile.ActionRepairReservation},
		{"stock that dies", reconcile.Finding{Kind: reconcile.FindingTimeToLive, Slot: "S", Proof: plain}, reconcile.ActionRepairStock},
		{"an event that dies", reconcile.Finding{Kind: reconcile.FindingTimeToLive, Hold: "hold_1", Event: event, Proof: plain}, reconcile.ActionReview},
		{"a policy that dies", reconcile.Finding{Kind: reconcile.FindingTimeToLive, Proof: plain}, reconcile.ActionReview},
		{"an event", reconcile.Finding{Kind: reconcile.FindingEventUnpublished, Event: event}, reconcile.ActionRedrive},
		{"a count", reconcile.Finding{Kind: reconcile.FindingQuotaMismatch, Owner: "U", Count: ledger.QuotaHolds, Proof: proof}, reconcile.ActionRepairQuota},
		{"a count in doubt", reconcile.Finding{Kind: reconcile.FindingQuotaMismatch, Owner: "U", Count: ledger.QuotaHolds, Proof: doubtful}, reconcile.ActionReview},
		{"a count of nobody", reconcile.Finding{Kind: reconcile.FindingQuotaMismatch, Count: ledger.QuotaHolds, Proof: proof}, reconcile.ActionReview},
		{"a count of nothing", reconcile.Finding{Kind: reconcile.FindingQuotaMismatch, Owner: "U", Proof: proof}, reconcile.ActionReview},
		{"a kind of another version", reconcile.Finding{Kind: "colour_mismatch", Proof: proof}, reconcile.ActionNone},
	}
	planned := map[reconcile.FindingKind]bool{}
	for _, test := range tests {
		action := reconcile.Plan(test.finding)
		if action.Do != test.want || action.Why == "" || action.Finding != test.finding {
			t.Errorf("%s: %s, because %q; want %s", test.name, action.Do, action.Why, test.want)
		}
		planned[test.finding.Kind] = true
	}
	for _, kind := range everyFindingKind(t) {
		if planned[kind] {
			continue
		}
		// Whatever else is known of them: these are for a person.
		all := reconcile.Finding{Kind: kind, Slot: "S", Hold: "hold_1", Reservation: "rsv_1", Owner: "U", Count: ledger.QuotaHolds, Payment: "pi_1", Event: event, Proof: proof}
		if action := reconcile.Plan(all); action.Do != reconcile.ActionReview || action.Why == "" {
			t.Errorf("%s: %s, because %q; want a person to decide", kind, action.Do, action.Why)
		}
	}
}

// everyFindingKind are the kinds that are declared.
func everyFindingKind(t *testing.T) []reconcile.FindingKind {
	t.Helper()
	syntax, err := parser.ParseFile(token.NewFileSet(), "finding.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []reconcile.FindingKind
	ast.Inspect(syntax, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		if name, named := spec.Type.(*ast.Ident); named && name.Name == "FindingKind" {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, reconcile.FindingKind(text))
		}
		return true
	})
	const known = 20
	if len(kinds) < known {
		t.Fatalf("only %d kinds of findings were found in the source", len(kinds))
	}
	return kinds
}
