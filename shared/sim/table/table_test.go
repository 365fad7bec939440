package table_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/sim/table"
)

func put(i item) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{Item: i}}
}

func add(key item, n string) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		Key: key, UpdateExpression: aws.String("ADD available :n"), ExpressionAttributeValues: item{":n": number(n)},
	}}
}

func transactionOf(actions ...types.TransactWriteItem) *dynamodb.TransactWriteItemsInput {
	return &dynamodb.TransactWriteItemsInput{TransactItems: actions}
}

func mustWrite(tb testing.TB, simulated *table.Table, actions ...types.TransactWriteItem) []table.Mutation {
	tb.Helper()
	mutations, err := simulated.WriteTransaction(transactionOf(actions...))
	if err != nil {
		tb.Fatal(err)
	}
	return mutations
}

func keyed(sort string) item { return item{"pk": text("P"), "sk": text(sort)} }

func TestMutationsAreWhatHasChanged(t *testing.T) {
	simulated := table.New(dynamo.TableSchema())
	mustWrite(t, simulated, add(keyed("A"), "1"), add(keyed("B"), "1"))
	got := mustWrite(t, simulated,
		add(keyed("C"), "5"),
		types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{Key: keyed("A"), ConditionExpression: aws.String("attribute_exists(pk)")}},
		types.TransactWriteItem{Delete: &types.Delete{Key: keyed("B")}},
		types.TransactWriteItem{Delete: &types.Delete{Key: keyed("D")}},
	)
	var lines []string
	for _, m := range got {
		lines = append(lines, fmt.Sprintf("%d %s: %s to %s", m.Sequence, m.Key.Sort, itemText(m.Old), itemText(m.New)))
	}
	want := []string{
		`3 C: none to {available=5 pk="P" sk="C"}`,
		`4 B: {available=1 pk="P" sk="B"} to none`,
	}
	if !slices.Equal(lines, want) {
		t.Errorf("mutations:\n%q\nwant:\n%q", lines, want)
	}
	// DynamoDB writes no stream record for a write that changes nothing.
	again := keyed("A")
	again["available"] = number("1.0")
	if got := mustWrite(t, simulated, put(again), add(keyed("C"), "0")); len(got) != 0 {
		t.Errorf("writing what is there already gave %d mutations", len(got))
	}
}

// An item that the caller of a read has is not changed by later writes.
func TestWritesDoNotReachIntoWhatWasRead(t *testing.T) {
	simulated := table.New(dynamo.TableSchema())
	mustWrite(t, simulated, add(keyed("A"), "1"))
	read := simulated.Item(table.Key{Partition: "P", Sort: "A"})
	mustWrite(t, simulated, add(keyed("A"), "1"))
	if got := valueText(read["available"]); got != "1" {
		t.Errorf("what was read first now has available %s, want 1", got)
	}
}

func TestPreparedTransactionWritesNothingUntilItIsApplied(t *testing.T) {
	simulated := table.New(dynamo.TableSchema())
	mustWrite(t, simulated, add(keyed("A"), "1"))
	in := transactionOf(add(keyed("A"), "1"), add(keyed("B"), "1"))
	want := []table.Key{{Partition: "P", Sort: "A"}, {Partition: "P", Sort: "B"}}
	if got := simulated.Keys(in); !slices.Equal(got, want) {
		t.Errorf("keys %v, want %v", got, want)
	}
	prepared, err := simulated.Prepare(in)
	if err != nil {
		t.Fatal(err)
	}
	if got := prepared.Keys(); !slices.Equal(got, want) {
		t.Errorf("keys of the prepared transaction %v, want %v", got, want)
	}
	if got := simulated.Item(want[1]); got != nil {
		t.Errorf("the prepared item can be read: %s", itemText(got))
	}
	mustWrite(t, simulated, add(keyed("C"), "1"))
	if _, err := simulated.Apply(prepared); err != nil {
		t.Fatal(err)
	}
	if got := valueText(simulated.Item(want[0])["available"]); got != "2" {
		t.Errorf("available %s after the transaction, want 2", got)
	}
}

// Whoever applies late without a lock is told so, and nothing is written.
func TestPreparedTransactionIsRefusedOnceAnItemHasChanged(t *testing.T) {
	for name, between := range map[string]types.TransactWriteItem{
		"changed": add(keyed("A"), "1"),
		"made":    add(keyed("B"), "1"),
		"removed": {Delete: &types.Delete{Key: keyed("A")}},
	} {
		simulated := table.New(dynamo.TableSchema())
		mustWrite(t, simulated, add(keyed("A"), "1"))
		prepared, err := simulated.Prepare(transactionOf(add(keyed("C"), "1"), add(keyed("A"), "1"), add(keyed("B"), "1")))
		if err != nil {
			t.Fatal(err)
		}
		mustWrite(t, simulated, between)
		if mutations, err := simulated.Apply(prepared); err == nil {
			t.Errorf("%s in between: applied with %d mutations", name, len(mutations))
		}
		if got := simulated.Item(table.Key{Partition: "P", Sort: "C"}); got != nil {
			t.Errorf("%s in between: half of the transaction was applied", name)
		}
	}
}

func TestDeleteAsByTimeToLive(t *testing.T) {
	simulated := table.New(dynamo.TableSchema())
	mustWrite(t, simulated, add(keyed("A"), "1"))
	key := table.Key{Partition: "P", Sort: "A"}
	m, deleted := simulated.Delete(key)
	if !deleted || m.Sequence != 2 || m.New != nil || itemText(m.Old) != `{available=1 pk="P" sk="A"}` {
		t.Errorf("deleted %t, mutation %+v", deleted, m)
	}
	if _, again := simulated.Delete(key); again || simulated.Item(key) != nil {
		t.Error("the item was there after its deletion")
	}
}

// A view shows the table as it was when the last mutation that it was given happened,
// and the order in which the mutations of different items come to it is of no account.
func TestViewIsAsFarBehindAsItsMutations(t *testing.T) {
	simulated := table.New(dynamo.TableSchema())
	view, err := simulated.NewView(dynamo.IndexDue)
	if err != nil {
		t.Fatal(err)
	}
	due := func(sort, at string) item {
		return item{"pk": text("P"), "sk": text(sort), "due_shard": text("00"), "due_at_ms": number(at), "note": text("not projected")}
	}
	var all []table.Mutation
	for _, written := range []item{due("A", "9"), due("B", "10"), keyed("A"), due("C", "-3")} {
		all = append(all, mustWrite(t, simulated, put(written))...)
	}
	entries := func() string {
		t.Helper()
		out, err := view.Query(&dynamodb.QueryInput{
			IndexName: aws.String("due"), KeyConditionExpression: aws.String("due_shard = :s"), ExpressionAttributeValues: item{":s": text("00")},
		})
		if err != nil {
			t.Fatal(err)
		}
		return itemTexts(out.Items)
	}
	const a, b, c = `{due_at_ms=9 due_shard="00" pk="P" sk="A"}`, `{due_at_ms=10 due_shard="00" pk="P" sk="B"}`, `{due_at_ms=-3 due_shard="00" pk="P" sk="C"}`
	for _, step := range []struct {
		apply int
		want  string
	}{{3, c}, {0, c + "\n" + a}, {1, c + "\n" + a + "\n" + b}, {2, c + "\n" + b}} {
		view.Apply(all[step.apply])
		if got := entries(); got != step.want {
			t.Errorf("after mutation %d the view has:\n%s\nwant:\n%s", step.apply, got, step.want)
		}
	}
	if _, err := simulated.NewView("none"); err == nil {
		t.Error("a view of an index that is not in the schema was made")
	}
}

// What the table does not know is never answered by a guess.
func TestUnknownRequestsAreRefusedAsUnsupported(t *testing.T) {
	simulated := table.New(dynamo.TableSchema())
	check := func(condition string) error {
		_, err := simulated.Put(&dynamodb.PutItemInput{Item: proper(), ConditionExpression: &condition})
		return err
	}
	update := func(text string) error {
		_, err := simulated.Update(&dynamodb.UpdateItemInput{Key: proper(), UpdateExpression: &text, ExpressionAttributeValues: item{":v": &types.AttributeValueMemberSS{Value: []string{"a"}}}})
		return err
	}
	projected := aws.String("note")
	errs := map[string]error{
		"contains":     check("contains(labels, note)"),
		"nested SET":   update("SET document.note = :v"),
		"nested unset": update("REMOVE list[0]"),
		"set DELETE":   update("DELETE labels :v"),
		"set ADD":      update("ADD labels :v"),
		"list_append":  update("SET labels = list_append(labels, :v)"),
	}
	_, errs["projection of Get"] = simulated.Get(&dynamodb.GetItemInput{Key: proper(), ProjectionExpression: projected})
	_, errs["filter of Query"] = simulated.Query(&dynamodb.QueryInput{FilterExpression: projected})
	_, errs["index of Query"] = simulated.Query(&dynamodb.QueryInput{IndexName: projected})
	_, errs["index of Scan"] = simulated.Scan(&dynamodb.ScanInput{IndexName: projected})
	_, errs["nested projection of Scan"] = simulated.Scan(&dynamodb.ScanInput{ProjectionExpression: aws.String("document.note")})
	_, errs["values of Put"] = simulated.Put(&dynamodb.PutItemInput{Item: proper(), ReturnValues: types.ReturnValueAllOld})
	_, errs["values of Update"] = simulated.Update(&dynamodb.UpdateItemInput{Key: proper(), ReturnValues: types.ReturnValueAllNew})
	for name, err := range errs {
		if !errors.Is(err, table.ErrUnsupported) {
			t.Errorf("%s: %v, want ErrUnsupported", name, err)
		}
	}
}

// Whatever stands in an expression, reading it ends, and with an answer that DynamoDB
// could give or with the statement that the table does not know it.
func FuzzExpression(f *testing.F) {
	for _, text := range append(notExpressions, "attribute_exists(pk) AND NOT (note <> sk OR size(note) > pk)", "SET note = if_not_exists(note, pk) + sk REMOVE list ADD number :v", "pk = :v AND sk > :v") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		simulated := table.New(dynamo.TableSchema())
		values := item{":v": number("1")}
		_, onPut := simulated.Put(&dynamodb.PutItemInput{Item: proper(), ConditionExpression: &text, ExpressionAttributeValues: values})
		_, onUpdate := simulated.Update(&dynamodb.UpdateItemInput{Key: proper(), UpdateExpression: &text, ExpressionAttributeValues: values})
		_, onQuery := simulated.Query(&dynamodb.QueryInput{KeyConditionExpression: &text, ExpressionAttributeValues: values})
		for _, err := range []error{onPut, onUpdate, onQuery} {
			answer := errorText(err)
			if !slices.Contains([]string{"done", "ValidationException", "condition failed none"}, answer) && !errors.Is(err, table.ErrUnsupported) {
				t.Errorf("%q: %s", text, answer)
			}
		}
	})
}

var notExpressions = []string{
	"", "(", ")", "NOT", "NOT NOT", "((pk = sk))", "note BETWEEN", "note IN (", "size(", "size(note)", "note[", "note.", "#", ":", "note", "!",
	"note = = sk", "note = sk note = sk", "attribute_exists(pk) pk = sk", "attribute_exists(((", "unknown(pk)",
}

func TestNotAnExpression(t *testing.T) {
	for _, text := range notExpressions {
		simulated := table.New(dynamo.TableSchema())
		_, err := simulated.Put(&dynamodb.PutItemInput{Item: proper(), ConditionExpression: &text})
		if got := errorText(err); got != "ValidationException" {
			t.Errorf("%q as a condition: %s", text, got)
		}
	}
}

// The segments of a table have each item once between them, also page by page.
func TestSegmentsHaveEachItemOnce(t *testing.T) {
	simulated := table.New(dynamo.TableSchema())
	const items, segments = 50, 7
	for i := range items {
		if _, err := simulated.Put(&dynamodb.PutItemInput{Item: item{"pk": text(fmt.Sprintf("P%d", i/2)), "sk": text(fmt.Sprintf("S%d", i%2))}}); err != nil {
			t.Fatal(err)
		}
	}
	seen, used := make(map[string]int), 0
	for number := range int32(segments) {
		in := &dynamodb.ScanInput{Segment: aws.Int32(number), TotalSegments: aws.Int32(segments), Limit: aws.Int32(3)}
		before := len(seen)
		for {
			out, err := simulated.Scan(in)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range out.Items {
				seen[itemText(found)]++
			}
			if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
				break
			}
		}
		if len(seen) > before {
			used++
		}
	}
	for found, times := range seen {
		if times != 1 {
			t.Errorf("%s was read %d times", found, times)
		}
	}
	if len(seen) != items || used < 2 {
		t.Errorf("%d items in %d segments, want %d in several", len(seen), used, items)
	}
	for name, in := range map[string]*dynamodb.ScanInput{
		"no total": {Segment: aws.Int32(0)}, "no segment": {TotalSegments: aws.Int32(2)}, "too high": {Segment: aws.Int32(2), TotalSegments: aws.Int32(2)},
	} {
		if _, err := simulated.Scan(in); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
