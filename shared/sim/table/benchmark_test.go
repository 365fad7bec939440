package table_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/sim/table"
)

// BenchmarkTransaction writes what a create of a hold writes: a new hold, the stock that
// it takes, the event and the record of the request.
func BenchmarkTransaction(b *testing.B) {
	simulated := table.New(dynamo.TableSchema())
	templates := mustTemplates(b)
	if _, err := simulated.WriteTransaction(templates.first(b, "slot")); err != nil {
		b.Fatal(err)
	}
	create := templates.first(b, "create")
	if len(create.TransactItems) != 4 {
		b.Fatalf("a create has %d actions, want 4", len(create.TransactItems))
	}
	b.ReportAllocs()
	for b.Loop() {
		mutations, err := simulated.WriteTransaction(create)
		if err != nil {
			b.Fatal(err)
		}
		// Back to the start: the stock is put back, the other items go.
		for _, m := range mutations {
			if m.Old == nil {
				simulated.Delete(m.Key)
				continue
			}
			if _, err := simulated.Put(&dynamodb.PutItemInput{Item: m.Old}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkRefusedTransaction is the same create when its hold is there already.
func BenchmarkRefusedTransaction(b *testing.B) {
	simulated := table.New(dynamo.TableSchema())
	templates := mustTemplates(b)
	for _, name := range []string{"slot", "create"} {
		if _, err := simulated.WriteTransaction(templates.first(b, name)); err != nil {
			b.Fatal(err)
		}
	}
	again := templates.first(b, "create")
	b.ReportAllocs()
	for b.Loop() {
		_, err := simulated.WriteTransaction(again)
		var canceled *types.TransactionCanceledException
		if !errors.As(err, &canceled) {
			b.Fatalf("got %v, want a cancellation", err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	simulated := table.New(dynamo.TableSchema())
	if _, err := simulated.WriteTransaction(mustTemplates(b).first(b, "slot")); err != nil {
		b.Fatal(err)
	}
	var key map[string]types.AttributeValue
	for _, item := range simulated.Items() {
		key = map[string]types.AttributeValue{"pk": item["pk"], "sk": item["sk"]}
	}
	in := &dynamodb.GetItemInput{Key: key, ConsistentRead: aws.Bool(true)}
	b.ReportAllocs()
	for b.Loop() {
		if out, err := simulated.Get(in); err != nil || len(out.Item) == 0 {
			b.Fatal(out, err)
		}
	}
}
