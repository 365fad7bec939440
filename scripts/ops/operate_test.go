package main

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
)

// What the stream has missed goes out, what is quarantined waits until it is told to try
// again, with its reason in the status, and the due message of a hold goes with its event.
func TestRedrive(t *testing.T) {
	w := newWorld(t, time.Minute)
	id := w.hold().ID
	item := ledger.EventItem{PartitionKey: "HOLD#" + string(id), SortKey: "EVENT#0000000001"}
	w.check(w.store.Quarantine(t.Context(), item, "refused by the bus: Invalid", w.clock.Now()))

	before := w.status()
	unpublished, quarantined := before["unpublished events"], before["quarantined events"]
	if unpublished.Count != 1 || unpublished.OldestAgeSeconds < 60 || quarantined.Count != 1 || !quarantined.OldestAt.Equal(w.clock.Now()) {
		t.Errorf("waiting: %+v", before)
	}
	if len(quarantined.First) != 1 || !strings.Contains(quarantined.First[0], item.String()) || !strings.HasSuffix(quarantined.First[0], ": refused by the bus: Invalid") {
		t.Errorf("the quarantine names %q", quarantined.First)
	}
	if text := w.ops("status"); !strings.Contains(text, "WHAT") || !strings.Contains(text, "quarantined events, the first 1:\n  "+item.String()) {
		t.Errorf("status prints\n%s", text)
	}

	var out redriven
	if w.opsJSON(&out, "redrive", "-older-than", "1h"); out != (redriven{}) {
		t.Errorf("what is young: %+v", out)
	}
	if w.opsJSON(&out, "redrive"); out != (redriven{Republished: 1}) {
		t.Errorf("first %+v", out)
	}
	if told := w.nextTold(); told != "slot.created" {
		t.Errorf("told %s", told)
	}
	if w.opsJSON(&out, "redrive", "-quarantined"); out != (redriven{Requeued: 1, Republished: 1}) {
		t.Errorf("with the quarantined %+v", out)
	}
	if told := w.nextTold(); told != "hold.created" {
		t.Errorf("told %s", told)
	}
	if waits, err := w.cloud.Waiting(t.Context(), w.due); err != nil || waits != 1 {
		t.Errorf("%d due messages, %v", waits, err)
	}
	for what, left := range w.status() {
		if left.Count != 0 || len(left.First) != 0 {
			t.Errorf("left of %s: %+v", what, left)
		}
	}
}

// A parked hold goes back among those that are due when it is named, or with all; one that
// is not parked is told as such, and repeating is harmless.
func TestRetry(t *testing.T) {
	w := newWorld(t, time.Hour)
	var holds []ledger.HoldID
	for range 3 {
		h := w.hold()
		holds = append(holds, h.ID)
		parked, err := w.store.Park(t.Context(), ledger.DueHold{ID: h.ID, DueAt: h.ReleaseAt}, 3, time.Now().Add(time.Hour))
		if err != nil || !parked {
			t.Fatalf("park: %v, %v", parked, err)
		}
	}
	before := w.status()
	if parked := before["parked holds"]; before["overdue holds"].Count != 0 || parked.Count != 3 || len(parked.First) != 3 || parked.OldestAgeSeconds < 45*60 {
		t.Errorf("waiting: %+v", before)
	}
	text := w.ops("status")
	for _, id := range holds {
		if !strings.Contains(text, "  "+string(id)+", tried again at ") {
			t.Errorf("status does not name %s:\n%s", id, text)
		}
	}
	back := func(arguments ...string) map[ledger.HoldID]bool {
		t.Helper()
		var rows []retried
		w.opsJSON(&rows, "retry", arguments...)
		out := map[ledger.HoldID]bool{}
		for _, r := range rows {
			if r.Back == r.WasToBeTriedAt.IsZero() {
				t.Errorf("row %+v", r)
			}
			out[r.Hold] = r.Back
		}
		return out
	}
	if got := back(string(holds[0])); len(got) != 1 || !got[holds[0]] {
		t.Errorf("the named one: %v", got)
	}
	if got := back(string(holds[0]), string(holds[1])); len(got) != 2 || got[holds[0]] || !got[holds[1]] {
		t.Errorf("one that is back and one that is not: %v", got)
	}
	if got := w.status(); got["overdue holds"].Count != 2 || got["parked holds"].Count != 1 {
		t.Errorf("after the named ones: %+v", got)
	}
	if got := back(); len(got) != 1 || !got[holds[2]] {
		t.Errorf("all: %v", got)
	}
	if got := strings.TrimSpace(w.ops("retry", "-json")); got != "[]" {
		t.Errorf("none is left, and retry prints %s", got)
	}
	if got := w.ops("retry", string(holds[2])); !strings.Contains(got, string(holds[2])+"  -                   false") {
		t.Errorf("retry prints\n%s", got)
	}
}

// A batch of the archive is listed, found by what is in it, verified, and restored after its
// records have left the table.
func TestArchiveAndRestore(t *testing.T) {
	w := newWorld(t, 31*day)
	id := w.hold().ID
	_, err := w.shop.CancelHold(t.Context(), w.owner(), id, func(ledger.Hold, time.Time) (ledger.Response, error) {
		return ledger.Response{Status: 200}, nil
	})
	w.check(err)
	if got := strings.TrimSpace(w.ops("archive", "-json", "list", "hold")); got != "[]" {
		t.Errorf("an empty archive lists %s", got)
	}
	w.ops("redrive")
	if archived := w.archive(); archived != 1 {
		t.Fatalf("%d are archived", archived)
	}
	var batches, found []listed
	w.opsJSON(&batches, "archive", "list", "hold")
	if len(batches) != 1 {
		t.Fatalf("batches %+v", batches)
	}
	batch := string(batches[0].Batch)
	if w.opsJSON(&found, "archive", "find", "hold", string(id)); !slices.Equal(found, batches) {
		t.Errorf("found %+v, want %+v", found, batches)
	}
	if got := w.ops("archive", "verify", "hold", batch); !strings.Contains(got, batch+"  hold  1 ") {
		t.Errorf("verify prints\n%s", got)
	}
	var reservations []listed
	if w.opsJSON(&reservations, "archive", "list", "reservation"); len(reservations) != 0 {
		t.Errorf("batches of reservations: %+v", reservations)
	}
	_, err = w.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: &w.table, Key: map[string]types.AttributeValue{
			dynamo.AttributePartitionKey: &types.AttributeValueMemberS{Value: "HOLD#" + string(id)},
			dynamo.AttributeSortKey:      &types.AttributeValueMemberS{Value: "HOLD"},
		},
	})
	w.check(err)
	for _, want := range []int{1, 0} { // it may be repeated
		var restored map[string]int
		if w.opsJSON(&restored, "restore", "hold", batch, string(id)); restored["items_restored"] != want {
			t.Errorf("restored %v, want %d", restored, want)
		}
		hold, err := w.store.Hold(t.Context(), id)
		if err != nil || hold.Status != ledger.StatusCanceled || string(hold.ArchivedIn) != batch {
			t.Errorf("restored as %+v, %v", hold, err)
		}
	}
}

// An owner who let too many holds expire is in a cool-down until an operator ends it. Who is
// in none is told as such, and gets no record by it.
func TestUnblock(t *testing.T) {
	w := newWorld(t, time.Hour)
	policy := ledger.DefaultPolicy()
	policy.ExpiriesMax, policy.CooldownFor = 1, 24*time.Hour
	w.define(policy)
	h := w.hold()
	w.clock.Advance(h.ReleaseAt.Sub(w.clock.Now()))
	_, err := w.shop.ExpireHold(t.Context(), h.ID, "request_test")
	w.check(err)
	if _, err := w.tryHold(); ledger.CodeOf(err) != ledger.CodeCoolingDown {
		t.Fatalf("after an expired hold: %v, want %s", err, ledger.CodeCoolingDown)
	}

	var out []unblocked
	w.opsJSON(&out, "unblock", "U-17", "nobody", "-who", "olga", "-why", "the app made them")
	case17 := ledger.ReviewIDOf(ledger.ReviewFinding, ledger.CooldownSubject("U-17"))
	if want := []unblocked{{"U-17", 1, w.clock.Now(), case17}, {Owner: "nobody"}}; !slices.Equal(out, want) {
		t.Errorf("it tells %+v, want %+v", out, want)
	}
	w.hold()
	cases, err := w.store.Reviews(t.Context(), []ledger.ReviewID{case17, ledger.ReviewIDOf(ledger.ReviewFinding, ledger.CooldownSubject("nobody"))})
	w.check(err)
	if len(cases) != 1 || cases[0].DecidedBy != "operator:olga" || cases[0].Why != "the app made them" || cases[0].Status != ledger.ReviewDecided {
		t.Errorf("the cases are %+v", cases)
	}
	if text := w.ops("unblock", "U-17", "-who", "olga", "-why", "again"); !strings.Contains(text, "U-17") || !strings.Contains(text, "-") {
		t.Errorf("once more it prints\n%s", text)
	}
	if items, err := w.client.Query(t.Context(), &dynamodb.QueryInput{
		TableName: &w.table, KeyConditionExpression: aws.String("pk = :owner"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":owner": &types.AttributeValueMemberS{Value: "OWNER#nobody"}},
	}); err != nil || len(items.Items) != 0 {
		t.Errorf("the record of nobody: %v, %v", items, err)
	}
	if err := run(t.Context(), []string{"unblock", "-environment", w.environment}, io.Discard); err == nil || !strings.Contains(err.Error(), "OWNER") {
		t.Errorf("without an owner: %v", err)
	}
}
