package localrun_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/reconcile"
	"holdfast/shared/system"
	"holdfast/shared/topology"
)

// auditWithin bounds the wait for an audit: it begins with an interval, looks at each suspect
// for as long as an index may lag, and one on a loaded machine may be given up.
const auditWithin = 3 * time.Minute

// audit lets the schedule begin an audit that has not begun yet, and returns what it found
// and what became of that. An audit of this interval that has begun before does not count: it
// may have seen the table as it was.
func (w *world) audit() (reconcile.AuditReport, *reconcile.Settlement) {
	w.t.Helper()
	asked := time.Now()
	var begun reconcile.RunID
	var report reconcile.AuditReport
	var settlement *reconcile.Settlement
	w.untilWithin(auditWithin, "an audit has ended", func() bool {
		if run := reconcile.RunAt(time.Now(), auditEvery); run != begun {
			w.invoke(topology.FunctionAudit)
			begun = run
		}
		var found bool
		var err error
		report, settlement, found, err = w.system.AuditShelf().Last(w.t.Context(), time.Now())
		if err != nil {
			w.t.Fatal(err)
		}
		return found && settlement != nil && report.BegunAt.After(asked)
	})
	return report, settlement
}

// about are the findings about one hold.
func about(report reconcile.AuditReport, hold ledger.HoldID) []reconcile.FindingKind {
	var kinds []reconcile.FindingKind
	for _, f := range report.Report.Findings {
		if f.Hold == hold {
			kinds = append(kinds, f.Kind)
		}
	}
	return kinds
}

// becameOf is what became of the findings about one hold.
func becameOf(settlement *reconcile.Settlement, hold ledger.HoldID) []reconcile.RepairOutcome {
	var all []reconcile.RepairOutcome
	for _, result := range settlement.Repair.Results {
		if result.Action.Finding.Hold == hold {
			all = append(all, result.Outcome)
		}
	}
	return all
}

// item reads one item, as it is.
func (w *world) item(partition, sort string) map[string]types.AttributeValue {
	w.t.Helper()
	out, err := w.system.Database().GetItem(w.t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(w.system.Table), ConsistentRead: aws.Bool(true), Key: itemKey(partition, sort),
	})
	if err != nil || out.Item == nil {
		w.t.Fatalf("item %s %s: %v", partition, sort, err)
	}
	return out.Item
}

func itemKey(partition, sort string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		dynamo.AttributePartitionKey: &types.AttributeValueMemberS{Value: partition},
		dynamo.AttributeSortKey:      &types.AttributeValueMemberS{Value: sort},
	}
}

// Case B8 and more, over the real binaries: a hold has lost its place in the due index, and
// another one an event, by hands that no rule of the ledger holds back. The audit of the
// schedule names both. It puts the first in its list again, as that is certain, and asks a
// person about the second. The next audit finds the first no more, and writes nothing about
// the second.
func TestTheScheduledAuditFindsWhatIsWrong(t *testing.T) {
	w := newWorld(t)
	w.untilPublished()
	owner, slot := w.owner(), w.slot(5, "")
	lost, silent := ledger.HoldID(w.mustHold(owner, slot, 1)), ledger.HoldID(w.mustHold(owner, slot, 1))
	w.untilPublished()
	_, err := w.system.Database().UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(w.system.Table), Key: itemKey("HOLD#"+string(lost), "HOLD"),
		UpdateExpression: aws.String("REMOVE " + dynamo.AttributeDueShard + ", " + dynamo.AttributeDueAtMs),
	})
	if err != nil {
		t.Fatal(err)
	}
	const first = "EVENT#0000000001"
	event := w.item("HOLD#"+string(silent), first)
	_, err = w.system.Database().DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: aws.String(w.system.Table), Key: itemKey("HOLD#"+string(silent), first),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // before the books are looked at, which are all tests' books
		if _, err := w.system.Database().PutItem(context.Background(), &dynamodb.PutItemInput{TableName: aws.String(w.system.Table), Item: event}); err != nil {
			t.Error(err)
		}
	})
	report, settlement := w.audit()
	if got := about(report, lost); !slices.Equal(got, []reconcile.FindingKind{reconcile.FindingDueIndexHole}) {
		t.Errorf("of the hold without a place in the index the audit says %v", got)
	}
	if got := about(report, silent); !slices.Contains(got, reconcile.FindingEventMissing) {
		t.Errorf("of the hold without its event the audit says %v", got)
	}
	if got := becameOf(settlement, lost); !slices.Equal(got, []reconcile.RepairOutcome{reconcile.RepairDone}) {
		t.Errorf("the hole is %v", got)
	}
	if got := becameOf(settlement, silent); !slices.Contains(got, reconcile.RepairQueued) {
		t.Errorf("the missing event is %v", got)
	}
	if place := w.item("HOLD#"+string(lost), "HOLD")[dynamo.AttributeDueShard]; place == nil {
		t.Error("the hold has no place in the due index")
	}
	store := dynamo.NewStore(w.system.Database(), w.system.Table, system.RealClock{}, system.RealRandom{})
	var cases []ledger.ReviewID
	for _, f := range report.Report.Findings {
		if f.Hold == silent && f.Kind == reconcile.FindingEventMissing {
			cases = append(cases, ledger.ReviewIDOf(ledger.ReviewFinding, string(f.Kind)+"/"+f.Subject))
		}
	}
	if reviews, err := store.Reviews(t.Context(), cases); err != nil || len(reviews) != len(cases) || len(cases) == 0 {
		t.Errorf("cases %v: %v, %v", cases, reviews, err)
	}
	report, settlement = w.audit()
	if got := about(report, lost); len(got) > 0 {
		t.Errorf("the hold in its place again has %v", got)
	}
	for _, outcome := range becameOf(settlement, silent) {
		if outcome != reconcile.RepairKnown {
			t.Errorf("the second audit writes %s about what is known", outcome)
		}
	}
	log, err := os.ReadFile(filepath.Join(w.system.LogFolder(), string(topology.FunctionAudit)+".log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"audit_heartbeat":1`, `"finding":"due_index_hole"`, `"hold_id":"` + string(lost) + `"`} {
		if !strings.Contains(string(log), want) {
			t.Errorf("the log of the audit lacks %s", want)
		}
	}
}

// everyAudit makes the audit do all that it does: it looks at a slot whose stock is wrong, and
// at an owner whose count is, and puts both right.
func (w *world) everyAudit() {
	w.t.Helper()
	owner := newName("owner")
	slot := ledger.SlotID(w.slot(5, `,"policy":{"quantity_max_per_owner":4}`))
	w.mustHold(w.caller(owner, topology.ScopeHolds), string(slot), 1)
	w.untilPublished()
	one := &types.AttributeValueMemberN{Value: "1"}
	w.add(itemKey("STOCK#"+string(slot)+"#0", "STOCK"), "available", one)
	w.add(itemKey("OWNER#"+owner, "QUOTA"), "count:"+string(ledger.SlotQuota(slot)), one)
	report, settlement := w.audit()
	for _, kind := range []reconcile.FindingKind{reconcile.FindingStockImpossible, reconcile.FindingQuotaMismatch} {
		if !slices.ContainsFunc(report.Report.Findings, func(f reconcile.Finding) bool {
			return f.Kind == kind && (f.Slot == slot || f.Owner == ledger.OwnerID(owner))
		}) {
			w.t.Errorf("the audit did not find %s: %v", kind, report.Report.Findings)
		}
	}
	for _, result := range settlement.Repair.Results {
		if f := result.Action.Finding; (f.Slot == slot || f.Owner == ledger.OwnerID(owner)) && result.Outcome != reconcile.RepairDone {
			w.t.Errorf("%s: %s: %s", f, result.Outcome, result.Note)
		}
	}
}

// add adds to a number of an item, past all rules of the ledger.
func (w *world) add(key map[string]types.AttributeValue, attribute string, units types.AttributeValue) {
	w.t.Helper()
	_, err := w.system.Database().UpdateItem(w.t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(w.system.Table), Key: key, UpdateExpression: aws.String("ADD #a :v"), ConditionExpression: aws.String("attribute_exists(#a)"),
		ExpressionAttributeNames: map[string]string{"#a": attribute}, ExpressionAttributeValues: map[string]types.AttributeValue{":v": units},
	})
	if err != nil {
		w.t.Fatal(err)
	}
}
