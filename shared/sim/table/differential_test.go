package table_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/shared/dynamo/dynamotest"
)

var (
	operations = flag.Int("operations", 20_000, "random operations of the differential test")
	seed       = flag.Uint64("seed", 0, "seed of the differential test, 0 for a fresh one")
)

// roundOperations is how many operations meet one table before a new one: the engine's
// writes get slower as its stream grows, and a new table begins with other items.
const roundOperations = 2_000

// pair is one table in both worlds.
type pair struct {
	testing.TB
	engine    *dynamodb.Client
	simulated *client
	tableName string
}

func mustPair(tb testing.TB) *pair {
	tb.Helper()
	engine, tableName := dynamotest.NewTable(tb)
	return &pair{tb, engine, mustClient(tb), tableName}
}

// ask makes the request in both worlds and requires one answer.
func (p *pair) ask(what string, input any) string {
	p.Helper()
	want := answerOf(p.Context(), p.engine, input)
	got := answerOf(p.Context(), p.simulated, input)
	if got != want {
		p.Fatalf("%s\n%s\nthe engine answers:\n%s\nthe table answers:\n%s\nthe table has:\n%s",
			what, requestText(input), want, got, p.items(p.simulated))
	}
	return got
}

// stored is the item of a key, as the table has it; nil if there is none or the key is
// no proper one.
func (p *pair) stored(key item) item {
	if len(key) == 0 {
		return nil
	}
	out, err := p.simulated.table.Get(&dynamodb.GetItemInput{Key: item{"pk": key["pk"], "sk": key["sk"]}})
	if err != nil {
		return nil
	}
	return out.Item
}

func (p *pair) items(c caller) string {
	p.Helper()
	all, err := allItems(p.Context(), c, p.tableName)
	if err != nil {
		p.Fatal(err)
	}
	return all
}

// sameItems requires that both worlds hold the same items, and that the indexes have
// caught up with them.
func (p *pair) sameItems(what string) {
	p.Helper()
	if want, got := p.items(p.engine), p.items(p.simulated); got != want {
		p.Fatalf("%s\nthe engine has:\n%s\nthe table has:\n%s", what, want, got)
	}
}

// Every request that the store makes is answered alike, in the order in which it made
// them.
func TestStoresRequestsAreAnsweredAsByTheEngine(t *testing.T) {
	p := mustPair(t)
	for i, template := range mustTemplates(t) {
		p.ask(fmt.Sprintf("request %d, %s", i, template.purpose), forTable(template.input, p.tableName))
	}
	p.sameItems("after the last request")
}

// Random requests, few keys: conditions, transactions, reads and pages are answered
// alike, and leave the same items.
func TestRandomRequestsAreAnsweredAsByTheEngine(t *testing.T) {
	first := *seed
	for first == 0 {
		first = rand.Uint64()
	}
	t.Logf("replay with: go test ./shared/sim/table -run %s -operations %d -seed %d", t.Name(), *operations, first)
	source := rand.New(rand.NewPCG(first, 0))
	all := mustTemplates(t)
	kinds := make(map[string]int)
	for done := 0; done < *operations; {
		p := mustPair(t)
		g := &generator{Rand: source, tableName: p.tableName, templates: all, stored: p.stored}
		// The slots of the templates are there, or none of their transactions would pass.
		for _, template := range all {
			if strings.HasPrefix(template.purpose, "slot") {
				p.ask("a slot", forTable(template.input, p.tableName))
			}
		}
		for range min(roundOperations, *operations-done) {
			input := g.next()
			answer := p.ask(fmt.Sprintf("seed %d, operation %d", first, done), input)
			kinds[kindOf(input, answer)]++
			if query, is := input.(*dynamodb.QueryInput); is {
				p.followPages(fmt.Sprintf("seed %d, after operation %d", first, done), query)
			}
			done++
		}
		p.sameItems(fmt.Sprintf("seed %d, after operation %d", first, done))
	}
	requireVariety(t, kinds)
}

// pagesFollowed bounds how far a query is followed.
const pagesFollowed = 3

// followPages asks for the next pages with the start keys that the answers gave.
func (p *pair) followPages(what string, in *dynamodb.QueryInput) {
	p.Helper()
	next := *in
	for range pagesFollowed {
		var out *dynamodb.QueryOutput
		out, err := p.simulated.Query(p.Context(), &next)
		if err != nil || len(out.LastEvaluatedKey) == 0 {
			return
		}
		next.ExclusiveStartKey = out.LastEvaluatedKey
		p.ask(what, &next)
	}
}

// kindOf puts an answer in a class, to see that all classes occur.
func kindOf(input any, answer string) string {
	first := "items"
	switch {
	case strings.HasPrefix(answer, "\n"):
		first = "nothing"
	case !strings.HasPrefix(answer, "{"):
		first, _, _ = strings.Cut(strings.ReplaceAll(answer, "\n", " "), " ")
	}
	return fmt.Sprintf("%T %s", input, first)
}

// requireVariety fails when the generator has lost its point: each kind of request must
// often pass, and often be refused in each way.
func requireVariety(t *testing.T, kinds map[string]int) {
	t.Helper()
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		t.Logf("%6d %s", kinds[kind], kind)
	}
	const share = 200 // of all operations, at the least one in so many
	for _, kind := range []string{
		"*dynamodb.TransactWriteItemsInput done", "*dynamodb.TransactWriteItemsInput canceled",
		"*dynamodb.TransactWriteItemsInput ValidationException",
		"*dynamodb.PutItemInput done", "*dynamodb.PutItemInput condition",
		"*dynamodb.UpdateItemInput done", "*dynamodb.UpdateItemInput condition", "*dynamodb.UpdateItemInput ValidationException",
		"*dynamodb.QueryInput items", "*dynamodb.QueryInput nothing", "*dynamodb.QueryInput ValidationException",
		"*dynamodb.TransactGetItemsInput items", "*dynamodb.BatchGetItemInput items", "*dynamodb.GetItemInput items",
		"*dynamodb.ScanInput items",
	} {
		if kinds[kind] < *operations/share {
			t.Errorf("%s occurred %d times in %d operations", kind, kinds[kind], *operations)
		}
	}
}
