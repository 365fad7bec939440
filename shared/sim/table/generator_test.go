package table_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: s} }
func number(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

// The attributes of random items: some that the store's conditions name, the keys of the
// indexes, and some for what the store does not have.
var (
	plainAttributes = []string{"version", "status", "available", "release_at_ms", "open", "note", "number", "list", "document", "labels",
		"count:slot/A", "count:resource/flight/OZ-102"}
	indexKeys = []struct{ index, partition, sort string }{
		{"due", "due_shard", "due_at_ms"},
		{"unpublished", "unpublished_shard", "unpublished_order"},
		{"owner", "owner", "owner_order"},
		{"resource", "resource", "resource_order"},
	}
	numberAttributes = []string{"version", "available", "release_at_ms", "number", "due_at_ms", "count:slot/A", "count:resource/flight/OZ-102"}
	textAttributes   = []string{"status", "note", "owner_order", "unpublished_order", "resource_order", "pk"}
	// bareAttributes may stand in an expression as they are: no words that DynamoDB reserves.
	bareAttributes = []string{"available", "release_at_ms", "labels", "due_at_ms"}
	numbers        = []string{"0", "1", "2", "3", "-1", "10", "1.0", "2.50", "0.5", "-0.25", "-1.5", "-12", "1e2", "100", "007", "-0",
		"9223372036854775807", "9223372036854775808", "12345678901234567890123456789012345678", "0.1", "0.10", "1E-3"}
	texts = []string{"a", "ab", "abc", "b", "ba", "HELD", "ZZ", "é", "😀", "~", "0"}
)

// generator draws requests. Everything comes from its source of chance.
type generator struct {
	*rand.Rand
	tableName string
	templates templates
	// stored gives the item that the table has, so that conditions are about what is there.
	stored func(key item) item
	// alone: the request that is being made is of one item, not a transaction.
	alone bool
}

func pick[T any](g *generator, from []T) T { return from[g.IntN(len(from))] }

// oneIn is true once in n times.
func (g *generator) oneIn(n int) bool { return g.IntN(n) == 0 }

// next draws one request.
func (g *generator) next() any {
	g.alone = true
	switch n := g.IntN(100); {
	case n < 12:
		return g.fromTemplate()
	case n < 28:
		return g.transaction()
	case n < 42:
		return g.put()
	case n < 58:
		return g.update()
	case n < 66:
		return &dynamodb.GetItemInput{TableName: &g.tableName, Key: g.key(), ConsistentRead: aws.Bool(true)}
	case n < 72:
		return g.transactGet()
	case n < 78:
		return g.batchGet()
	case n < 82:
		return g.scan()
	default:
		return g.query()
	}
}

// key is one of few keys, so that requests meet; seldom it is no proper key.
func (g *generator) key() item {
	key := item{"pk": text(pick(g, []string{"P", "Q"})), "sk": text(pick(g, []string{"A", "AB", "B", "C"}))}
	if g.oneIn(60) {
		switch g.IntN(5) {
		case 0:
			key["pk"] = text("")
		case 1:
			key["sk"] = text("")
		case 2:
			key["sk"] = number("1")
		case 3:
			delete(key, "sk")
		case 4:
			key["other"] = text("a")
		}
	}
	return key
}

func (g *generator) value() types.AttributeValue {
	switch n := g.IntN(24); {
	case n < 11:
		return number(pick(g, numbers))
	case n < 18:
		return text(pick(g, append([]string{""}, texts...)))
	case n == 18:
		return &types.AttributeValueMemberBOOL{Value: g.oneIn(2)}
	case n == 19:
		return &types.AttributeValueMemberNULL{Value: true}
	case n == 20:
		return &types.AttributeValueMemberB{Value: []byte(pick(g, texts))}
	case n == 21:
		return &types.AttributeValueMemberL{Value: []types.AttributeValue{number(pick(g, numbers)), text("a")}}
	case n == 22:
		return &types.AttributeValueMemberM{Value: item{"version": number(pick(g, numbers)), "note": text(pick(g, texts))}}
	}
	return g.set()
}

// valueFor is mostly of one type for each attribute, and one of few, so that conditions
// often hold.
func (g *generator) valueFor(attribute string) types.AttributeValue {
	switch {
	case g.oneIn(5):
		return g.value()
	case slices.Contains(numberAttributes, attribute):
		return number(pick(g, numbers))
	case slices.Contains(textAttributes, attribute):
		return text(pick(g, texts))
	case attribute == "open":
		return &types.AttributeValueMemberBOOL{Value: g.oneIn(2)}
	case strings.HasSuffix(attribute, "_shard"):
		return g.indexKey(attribute)
	}
	return g.value()
}

func (g *generator) set() types.AttributeValue {
	switch g.IntN(3) {
	case 0:
		return &types.AttributeValueMemberSS{Value: g.some(texts)}
	case 1:
		return &types.AttributeValueMemberNS{Value: g.some([]string{"1", "2", "1.50", "-3"})}
	}
	return &types.AttributeValueMemberBS{Value: [][]byte{[]byte(pick(g, texts)), []byte("zzz")}}
}

// some are one to three different ones.
func (g *generator) some(from []string) []string {
	shuffled := slices.Clone(from)
	g.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	return shuffled[:1+g.IntN(3)]
}

// indexKey is a value for the key of an index; seldom one that cannot be.
func (g *generator) indexKey(attribute string) types.AttributeValue {
	if g.oneIn(40) {
		return pick(g, []types.AttributeValue{text(""), number("5"), text("a"), &types.AttributeValueMemberNULL{Value: true}})
	}
	if attribute == "due_at_ms" {
		return number(pick(g, numbers))
	}
	if strings.HasSuffix(attribute, "_order") {
		return text(pick(g, texts))
	}
	return text(pick(g, []string{"00", "01"}))
}

func (g *generator) item() item {
	i := g.key()
	for range g.IntN(5) {
		attribute := pick(g, plainAttributes)
		i[attribute] = g.valueFor(attribute)
	}
	for _, index := range indexKeys {
		switch g.IntN(5) {
		case 0, 1:
			i[index.partition], i[index.sort] = g.indexKey(index.partition), g.indexKey(index.sort)
		case 2:
			i[index.partition] = g.indexKey(index.partition)
		}
	}
	return i
}

func (g *generator) put() *dynamodb.PutItemInput {
	in := &dynamodb.PutItemInput{TableName: &g.tableName, Item: g.item()}
	if g.conditional() {
		e := newExpression(g, in.Item)
		in.ConditionExpression = aws.String(e.condition(2))
		in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.references()
		in.ReturnValuesOnConditionCheckFailure = g.returned()
	}
	return in
}

func (g *generator) update() *dynamodb.UpdateItemInput {
	key := g.key()
	e := newExpression(g, key)
	in := &dynamodb.UpdateItemInput{TableName: &g.tableName, Key: key, UpdateExpression: aws.String(e.update())}
	if g.conditional() {
		in.ConditionExpression = aws.String(e.condition(2))
		in.ReturnValuesOnConditionCheckFailure = g.returned()
	}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.references()
	return in
}

// conditional is seldom true in a transaction, of which all conditions must hold.
func (g *generator) conditional() bool {
	if g.alone {
		return !g.oneIn(3)
	}
	return g.oneIn(4)
}

func (g *generator) returned() types.ReturnValuesOnConditionCheckFailure {
	if g.oneIn(3) {
		return types.ReturnValuesOnConditionCheckFailureNone
	}
	return types.ReturnValuesOnConditionCheckFailureAllOld
}

// transaction has one to six actions, mostly on different items.
func (g *generator) transaction() *dynamodb.TransactWriteItemsInput {
	g.alone = false
	in := &dynamodb.TransactWriteItemsInput{}
	seen := make(map[string]bool)
	for range 1 + g.IntN(6) {
		action := g.action()
		key := itemText(keyOf(action))
		if seen[key] && !g.oneIn(20) {
			continue
		}
		seen[key] = true
		in.TransactItems = append(in.TransactItems, action)
	}
	return in
}

func keyOf(action types.TransactWriteItem) item {
	switch {
	case action.Put != nil:
		return item{"pk": action.Put.Item["pk"], "sk": action.Put.Item["sk"]}
	case action.Update != nil:
		return action.Update.Key
	case action.Delete != nil:
		return action.Delete.Key
	}
	return action.ConditionCheck.Key
}

func (g *generator) action() types.TransactWriteItem {
	switch g.IntN(8) {
	case 0, 1, 2:
		put := g.put()
		return types.TransactWriteItem{Put: &types.Put{
			TableName: put.TableName, Item: put.Item, ConditionExpression: put.ConditionExpression,
			ExpressionAttributeNames: put.ExpressionAttributeNames, ExpressionAttributeValues: put.ExpressionAttributeValues,
			ReturnValuesOnConditionCheckFailure: put.ReturnValuesOnConditionCheckFailure,
		}}
	case 3, 4, 5:
		update := g.update()
		return types.TransactWriteItem{Update: &types.Update{
			TableName: update.TableName, Key: update.Key,
			ConditionExpression: update.ConditionExpression, UpdateExpression: update.UpdateExpression,
			ExpressionAttributeNames: update.ExpressionAttributeNames, ExpressionAttributeValues: update.ExpressionAttributeValues,
			ReturnValuesOnConditionCheckFailure: update.ReturnValuesOnConditionCheckFailure,
		}}
	case 6:
		remove := &types.Delete{TableName: &g.tableName, Key: g.key(), ReturnValuesOnConditionCheckFailure: g.returned()}
		if g.conditional() {
			e := newExpression(g, remove.Key)
			remove.ConditionExpression = aws.String(e.condition(2))
			remove.ExpressionAttributeNames, remove.ExpressionAttributeValues = e.references()
		}
		return types.TransactWriteItem{Delete: remove}
	}
	key := g.key()
	e := newExpression(g, key)
	check := &types.ConditionCheck{
		TableName: &g.tableName, Key: key, ConditionExpression: aws.String(e.condition(2)),
		ReturnValuesOnConditionCheckFailure: g.returned(),
	}
	check.ExpressionAttributeNames, check.ExpressionAttributeValues = e.references()
	return types.TransactWriteItem{ConditionCheck: check}
}

func (g *generator) keys() []item {
	keys := make([]item, 1+g.IntN(4))
	for i := range keys {
		keys[i] = g.key()
		for !g.oneIn(20) && slices.ContainsFunc(keys[:i], func(k item) bool { return itemText(k) == itemText(keys[i]) }) {
			keys[i] = g.key()
		}
	}
	return keys
}

func (g *generator) transactGet() *dynamodb.TransactGetItemsInput {
	in := &dynamodb.TransactGetItemsInput{}
	for _, key := range g.keys() {
		in.TransactItems = append(in.TransactItems, types.TransactGetItem{Get: &types.Get{TableName: &g.tableName, Key: key}})
	}
	return in
}

func (g *generator) batchGet() *dynamodb.BatchGetItemInput {
	return &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		g.tableName: {Keys: g.keys(), ConsistentRead: aws.Bool(true)},
	}}
}

// scan reads the whole table, with a filter and a projection or without.
func (g *generator) scan() *dynamodb.ScanInput {
	g.alone = false // the engine checks the bounds of a filter as little as those in a transaction
	in := &dynamodb.ScanInput{TableName: &g.tableName, ConsistentRead: aws.Bool(true)}
	e := newExpression(g, g.key())
	e.filters = true
	if !g.oneIn(6) {
		in.FilterExpression = aws.String(e.condition(2))
	}
	if !g.oneIn(3) {
		shown := []string{e.name("pk"), e.name("sk")}
		for _, attribute := range g.some(plainAttributes) {
			shown = append(shown, e.name(attribute))
		}
		in.ProjectionExpression = aws.String(strings.Join(shown, ", "))
	}
	if in.FilterExpression != nil || in.ProjectionExpression != nil {
		in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.references()
	}
	return in
}

// query asks the table or an index, with a start key that often fits the question.
func (g *generator) query() *dynamodb.QueryInput {
	in := &dynamodb.QueryInput{TableName: &g.tableName}
	partition, sort := "pk", "sk"
	if g.oneIn(3) {
		in.ConsistentRead = aws.Bool(true)
	} else {
		index := pick(g, indexKeys)
		partition, sort = index.partition, index.sort
		in.IndexName = aws.String(index.index)
		if g.oneIn(60) {
			in.ConsistentRead = aws.Bool(true)
		}
	}
	partitions := []string{"00", "01"}
	if partition == "pk" {
		partitions = []string{"P", "Q", scriptHold}
	}
	e := newExpression(g, nil)
	statement := e.name(partition) + " = " + e.literal(text(pick(g, partitions)))
	if !g.oneIn(3) {
		other := e.sortStatement(sort)
		if g.oneIn(4) {
			statement = other + " AND " + statement
		} else {
			statement += " AND " + other
		}
	}
	in.KeyConditionExpression = &statement
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.references()
	if !g.oneIn(3) {
		in.ScanIndexForward = aws.Bool(g.oneIn(2))
	}
	if !g.oneIn(3) {
		in.Limit = aws.Int32(int32(g.IntN(4)))
		if *in.Limit == 0 && !g.oneIn(20) {
			in.Limit = aws.Int32(1)
		}
	}
	if g.oneIn(6) {
		start := item{"pk": text(pick(g, []string{"P", "Q"})), "sk": text(pick(g, []string{"A", "AB", "B", "C"}))}
		if partition != "pk" {
			start[partition], start[sort] = text(pick(g, partitions)), g.indexKey(sort)
			if itemText(item{"": start[sort]}) == itemText(item{"": text("")}) {
				start[sort] = text("a") // see engineDifferences
			}
		}
		in.ExclusiveStartKey = start
	}
	return in
}

// scriptHold is the partition of a hold of the templates, which has events.
const scriptHold = "SLOT#B"

// expression builds one request's expressions with their names and values.
type expression struct {
	*generator
	names  map[string]string
	values item
	// about is the item that the expression will be evaluated at, nil if there is none.
	about item
	// updates: there is an update expression, and filters that there is a filter.
	updates, filters bool
}

func newExpression(g *generator, key item) *expression {
	return &expression{generator: g, names: make(map[string]string), values: make(item), about: g.stored(key)}
}

// likely is a value for the attribute, half of the time the one that it has: where < and
// <= differ.
func (e *expression) likely(attribute string) types.AttributeValue {
	if has := e.about[attribute]; has != nil && e.oneIn(2) {
		return has
	}
	return e.valueFor(attribute)
}

// references are what the expressions refer to; seldom one too many or one too few.
func (e *expression) references() (names map[string]string, values item) {
	if e.oneIn(80) {
		e.values[":unused"] = text("a")
	}
	if e.oneIn(80) {
		e.names["#unused"] = "note"
	}
	// Which refusal AWS gives for a value that an update in a transaction lacks is not
	// known, and the engine notices one that a filter lacks only where it looks for it; see
	// engineDifferences.
	if e.oneIn(80) && len(e.values) > 0 && !e.filters && (e.alone || !e.updates) {
		delete(e.values, slices.Sorted(maps.Keys(e.values))[0])
	}
	if len(e.names) > 0 {
		names = e.names
	}
	if len(e.values) > 0 {
		values = e.values
	}
	return names, values
}

func (e *expression) name(attribute string) string {
	if slices.Contains(bareAttributes, attribute) && e.oneIn(2) {
		return attribute
	}
	name := fmt.Sprintf("#n%d", len(e.names))
	e.names[name] = attribute
	return name
}

func (e *expression) literal(v types.AttributeValue) string {
	name := fmt.Sprintf(":v%d", len(e.values))
	e.values[name] = v
	return name
}

func (e *expression) attribute() string {
	if e.oneIn(5) {
		index := pick(e.generator, indexKeys)
		return pick(e.generator, []string{index.partition, index.sort})
	}
	return pick(e.generator, plainAttributes)
}

// place is an attribute, or seldom a place in a document or a list, as it stands in an
// expression, with the name of the attribute that its value is like.
func (e *expression) place() (path, attribute string) {
	switch e.IntN(14) {
	case 0:
		attribute = pick(e.generator, []string{"version", "note"})
		return e.name("document") + "." + e.name(attribute), attribute
	case 1:
		return fmt.Sprintf("%s[%d]", e.name("list"), e.IntN(3)), "number"
	case 2:
		return e.name("pk"), "pk"
	}
	attribute = e.attribute()
	return e.name(attribute), attribute
}

func (e *expression) path() string {
	path, _ := e.place()
	return path
}

// orderable is a literal that may stand where an order is needed.
func (e *expression) orderable(attribute string) types.AttributeValue {
	for !e.oneIn(20) {
		switch v := e.likely(attribute).(type) {
		case *types.AttributeValueMemberS, *types.AttributeValueMemberN, *types.AttributeValueMemberB:
			return v
		}
	}
	return number("1")
}

// condition is a random condition with at most depth levels of AND, OR and NOT.
func (e *expression) condition(depth int) string {
	if depth > 0 && !e.oneIn(3) {
		left, right := e.part(depth-1), e.part(depth-1)
		switch e.IntN(5) {
		case 0, 1:
			return left + " AND " + right
		case 2, 3:
			return left + " OR " + right
		}
		return "NOT " + left + pick(e.generator, []string{" AND ", " OR "}) + right
	}
	path, attribute := e.place()
	switch e.IntN(9) {
	case 0:
		return "attribute_exists(" + path + ")"
	case 1:
		return "attribute_not_exists(" + path + ")"
	case 2:
		return "begins_with(" + path + ", " + e.literal(text(e.partOf(attribute))) + ")"
	case 3:
		low, high := e.bounds(attribute)
		return path + " BETWEEN " + e.literal(low) + " AND " + e.literal(high)
	case 4:
		choices := make([]string, 1+e.IntN(4))
		for i := range choices {
			choices[i] = e.literal(e.likely(attribute))
		}
		return path + " IN (" + strings.Join(choices, ", ") + ")"
	case 5:
		return path + pick(e.generator, []string{" = ", " <> "}) + e.literal(e.likely(attribute))
	case 6:
		return path + e.operator() + e.path()
	case 7:
		return "size(" + path + ")" + e.operator() + e.literal(number(pick(e.generator, []string{"1", "2", "3"})))
	}
	return path + e.operator() + e.literal(e.orderable(attribute))
}

// partOf is the beginning of the text that the attribute has, or its end, which looks
// like it and is none.
func (e *expression) partOf(attribute string) string {
	if has, is := e.about[attribute].(*types.AttributeValueMemberS); is && len(has.Value) > 1 && e.oneIn(2) {
		letters := []rune(has.Value)
		return pick(e.generator, []string{string(letters[:1]), string(letters[len(letters)-1:])})
	}
	return pick(e.generator, texts)
}

// bounds are those of a BETWEEN: two of one type, the lower first. Alone, a request may
// seldom have bounds that can't be, which the engine refuses only there.
func (e *expression) bounds(attribute string) (low, high types.AttributeValue) {
	if e.alone && e.oneIn(10) {
		ends := []types.AttributeValue{number("1"), number("2.0"), number("-0.5"), text("a"), text("b"), &types.AttributeValueMemberB{Value: []byte("b")}}
		return pick(e.generator, ends), pick(e.generator, ends)
	}
	if has, is := e.about[attribute].(*types.AttributeValueMemberN); is && e.oneIn(2) {
		if strings.HasPrefix(has.Value, "-") {
			return has, number("0")
		}
		return pick(e.generator, []types.AttributeValue{number("-1"), has}), has
	}
	if e.oneIn(2) {
		ends := e.some(texts)
		return text(slices.Min(ends)), text(slices.Max(ends))
	}
	return number(pick(e.generator, []string{"-1", "0", "0.5", "1"})), number(pick(e.generator, []string{"1.0", "2", "10", "1e2"}))
}

func (e *expression) operator() string {
	return pick(e.generator, []string{" = ", " <> ", " < ", " <= ", " > ", " >= "})
}

// part is a condition within another, mostly in parentheses as the SDK's builder has it.
func (e *expression) part(depth int) string {
	inner := e.condition(depth)
	if e.oneIn(4) {
		return inner
	}
	return "(" + inner + ")"
}

// update has each section at most once. One attribute is seldom changed twice.
func (e *expression) update() string {
	e.updates = true
	attributes := slices.Clone(plainAttributes)
	for _, index := range indexKeys {
		attributes = append(attributes, index.partition, index.sort)
	}
	e.Shuffle(len(attributes), func(i, j int) { attributes[i], attributes[j] = attributes[j], attributes[i] })
	if e.oneIn(40) {
		attributes[1] = attributes[0]
	}
	if e.alone && e.oneIn(60) {
		attributes[0] = "pk"
	}
	take := func() string {
		first := attributes[0]
		attributes = attributes[1:]
		return first
	}
	var sections []string
	if !e.oneIn(5) {
		var all []string
		for range 1 + e.IntN(3) {
			target := take()
			all = append(all, e.name(target)+" = "+e.assigned(target))
		}
		sections = append(sections, "SET "+strings.Join(all, ", "))
	}
	if e.oneIn(3) {
		sections = append(sections, "REMOVE "+e.name(take())+", "+e.name(take()))
	}
	if e.oneIn(4) || len(sections) == 0 {
		var all []string
		for range 1 + e.IntN(3) {
			all = append(all, e.name(take())+" "+e.literal(number(pick(e.generator, numbers))))
		}
		sections = append(sections, "ADD "+strings.Join(all, ", "))
	}
	return strings.Join(sections, " ")
}

func (e *expression) assigned(target string) string {
	indexed := slices.ContainsFunc(indexKeys, func(i struct{ index, partition, sort string }) bool {
		return target == i.partition || target == i.sort
	})
	switch n := e.IntN(10); {
	case indexed && n > 0:
		return e.literal(e.indexKey(target))
	case n < 4:
		return e.literal(e.valueFor(target))
	case n < 6:
		return e.name(target) + pick(e.generator, []string{" + ", " - "}) + e.literal(number(pick(e.generator, numbers)))
	case n < 8:
		return "if_not_exists(" + e.name(target) + ", " + e.literal(number(pick(e.generator, numbers))) + ") + " + e.literal(number("1"))
	case n == 8:
		return e.path()
	}
	return e.path() + pick(e.generator, []string{" + ", " - "}) + e.path()
}

// sortStatement says something of the sort key, mostly with a value of its type.
func (e *expression) sortStatement(sort string) string {
	value := func() string {
		if e.oneIn(40) {
			return e.literal(pick(e.generator, []types.AttributeValue{number("1"), text("a"), &types.AttributeValueMemberB{Value: []byte("a")}}))
		}
		if sort == "sk" {
			return e.literal(text(pick(e.generator, []string{"A", "AB", "B", "C", "EVENT#"})))
		}
		if sort == "due_at_ms" {
			return e.literal(number(pick(e.generator, numbers)))
		}
		return e.literal(text(pick(e.generator, texts)))
	}
	switch e.IntN(4) {
	case 0:
		if sort == "due_at_ms" { // two that a float can't tell apart: see engineDifferences
			low, high := e.bounds(sort)
			return e.name(sort) + " BETWEEN " + e.literal(low) + " AND " + e.literal(high)
		}
		return e.name(sort) + " BETWEEN " + value() + " AND " + value()
	case 1:
		return "begins_with(" + e.name(sort) + ", " + value() + ")"
	}
	return e.name(sort) + pick(e.generator, []string{" = ", " < ", " <= ", " > ", " >= "}) + value()
}
