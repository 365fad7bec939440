package table

import (
	"slices"
	"sort"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
)

// query is one Query of the table or of an index.
type query struct {
	in              *dynamodb.QueryInput
	entries         *orderedEntries
	partition, sort dynamo.Key
	keyNames        []string // of a start key
	placeOf         func(start Item) (entry, *fault)
}

// Query reads a page of the table itself as it is now. A page ends at the request's
// limit; DynamoDB's pages also end at 1 MB, which this table does not count. Its error is
// a ValidationException, or has ErrUnsupported in it. A query that names an index belongs
// to its IndexView.
func (t *Table) Query(in *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
	if in.IndexName != nil {
		return nil, unsupported("a query of an index, asked of the table")
	}
	q := query{
		in: in, entries: &t.entries, partition: t.schema.PartitionKey, sort: t.schema.SortKey,
		keyNames: []string{t.schema.PartitionKey.Attribute, t.schema.SortKey.Attribute},
		placeOf: func(start Item) (entry, *fault) {
			key, f := t.keyOf(start)
			return t.place(key), f
		},
	}
	return q.run(t.parsed)
}

func (q *query) run(parsed *expressions) (*dynamodb.QueryOutput, error) {
	in := q.in
	if in.FilterExpression != nil || in.ProjectionExpression != nil || in.Select != "" ||
		in.KeyConditions != nil || in.QueryFilter != nil || in.AttributesToGet != nil {
		return nil, unsupported("Query with a filter, a projection, a selection or parameters of old")
	}
	limit, f := pageLimit(in.Limit)
	if f != nil {
		return nil, f.err()
	}
	if in.KeyConditionExpression == nil {
		return nil, invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	}
	partition, within, f := q.keyCondition(parsed.condition(*in.KeyConditionExpression))
	if f != nil {
		return nil, f.err()
	}
	all := q.entries.partitions[partition]
	from := sort.Search(len(all), func(i int) bool { return !within.above(all[i].order) })
	to := sort.Search(len(all), func(i int) bool { return within.beyond(all[i].order) })
	forward := in.ScanIndexForward == nil || *in.ScanIndexForward
	if len(in.ExclusiveStartKey) > 0 {
		start, f := q.start(partition, within)
		if f != nil {
			return nil, f.err()
		}
		at, found := slices.BinarySearchFunc(all, start, compareEntries)
		switch {
		case !forward:
			to = min(to, at)
		case found:
			from = max(from, at+1)
		default:
			from = max(from, at)
		}
	}
	return q.page(all[min(from, to):to], forward, limit), nil
}

func (q *query) page(all []entry, forward bool, limit int) *dynamodb.QueryOutput {
	out := &dynamodb.QueryOutput{Items: make([]map[string]types.AttributeValue, 0, min(len(all), limit))}
	for i := range all {
		e := &all[i]
		if !forward {
			e = &all[len(all)-1-i]
		}
		out.Items = append(out.Items, e.item)
		if len(out.Items) == limit {
			// Also when nothing follows: DynamoDB stops at the limit and does not look.
			out.LastEvaluatedKey = only(e.item, q.keyNames...)
			break
		}
	}
	out.Count = int32(len(out.Items))
	out.ScannedCount = out.Count
	return out
}

// start reads the request's start key and refuses one that this question could not have
// given.
func (q *query) start(partition string, within sortRange) (entry, *fault) {
	start := q.in.ExclusiveStartKey
	if len(start) != len(q.keyNames) {
		return entry{}, faultf("The provided starting key is invalid")
	}
	startPartition, hasPartition, f := keyPart(start, q.partition, partitionKeyBytesMax)
	if f != nil {
		return entry{}, f
	}
	_, hasSort, f := keyPart(start, q.sort, sortKeyBytesMax)
	if f != nil {
		return entry{}, f
	}
	at, f := q.placeOf(start)
	switch {
	case f != nil:
		return entry{}, f
	case !hasPartition || !hasSort:
		return entry{}, faultf("The provided starting key is invalid")
	case startPartition != partition:
		return entry{}, faultf("The provided starting key is outside query boundaries based on provided conditions")
	case within.above(at.order) || within.beyond(at.order):
		return entry{}, faultf("The provided starting key does not match the range key predicate")
	}
	return at, nil
}

// pageLimitNone is the limit of a request without one.
const pageLimitNone = int(^uint32(0) >> 1)

func pageLimit(limit *int32) (int, *fault) {
	switch {
	case limit == nil:
		return pageLimitNone, nil
	case *limit < 1:
		return 0, faultf("1 validation error detected: 'limit' must have a value greater than or equal to 1")
	}
	return int(*limit), nil
}

// sortRange is what a key condition says of the sort key, in terms of sortOrder.
type sortRange struct {
	low, high         string
	hasHigh           bool
	lowOpen, highOpen bool
	prefix            string
}

// above reports whether the range begins after order.
func (r *sortRange) above(order string) bool {
	return order < r.low || r.lowOpen && order == r.low
}

// beyond reports whether the range ends before order.
func (r *sortRange) beyond(order string) bool {
	if r.hasHigh && (order > r.high || r.highOpen && order == r.high) {
		return true
	}
	return r.prefix != "" && order > r.prefix && !strings.HasPrefix(order, r.prefix)
}

// keyCondition reads a key condition: the partition key equal to a value, and at most one
// statement about the sort key.
func (q *query) keyCondition(parsed *parsedCondition) (partition string, within sortRange, f *fault) {
	if parsed.fault != nil {
		return "", within, parsed.fault
	}
	names, values := q.in.ExpressionAttributeNames, q.in.ExpressionAttributeValues
	if f = checkReferences(names, values, &parsed.used); f != nil {
		return "", within, f
	}
	if f = parsed.root.check(values); f != nil {
		return "", within, f
	}
	parts := []condition{parsed.root}
	if both, isAnd := parsed.root.(*and); isAnd {
		parts = []condition{both.left, both.right}
	}
	s := scope{names: names, values: values}
	var hasPartition, hasSort bool
	for _, part := range parts {
		if c, equal := part.(*comparison); equal && c.operator == "=" && s.attribute(&c.left) == q.partition.Attribute && !hasPartition {
			hasPartition = true
			partition, f = keyLiteral(&c.right, values, q.partition, partitionKeyBytesMax)
		} else if !hasSort {
			hasSort = true
			within, f = q.sortCondition(part, &s)
		} else {
			f = faultf("Query key condition not supported")
		}
		if f != nil {
			return "", within, f
		}
	}
	if !hasPartition {
		return "", within, faultf("Query condition missed key schema element: %s", q.partition.Attribute)
	}
	return partition, within, nil
}

// attribute is the attribute of an operand that is a plain attribute, "" otherwise.
func (s *scope) attribute(o *operand) string {
	if len(o.path) != 1 || o.size {
		return ""
	}
	return s.name(o.path[0].name)
}

func (q *query) sortCondition(part condition, s *scope) (sortRange, *fault) {
	var of *operand
	var low, high operand
	r := sortRange{}
	switch c := part.(type) {
	case *comparison:
		of = &c.left
		switch c.operator {
		case "=":
			low, high = c.right, c.right
		case "<", "<=":
			high, r.highOpen = c.right, c.operator == "<"
		case ">", ">=":
			low, r.lowOpen = c.right, c.operator == ">"
		}
	case *between:
		of, low, high = &c.operand, c.low, c.high
	case *beginsWith:
		of, low = &c.operand, c.prefix
	}
	if of == nil || s.attribute(of) != q.sort.Attribute || low.value == "" && high.value == "" {
		return r, faultf("Query key condition not supported")
	}
	if low.value != "" {
		part, f := keyLiteral(&low, s.values, q.sort, sortKeyBytesMax)
		if f != nil {
			return r, f
		}
		r.low = sortOrder(part, q.sort)
	}
	if high.value != "" {
		part, f := keyLiteral(&high, s.values, q.sort, sortKeyBytesMax)
		if f != nil {
			return r, f
		}
		r.high, r.hasHigh = sortOrder(part, q.sort), true
	}
	if _, prefixed := part.(*beginsWith); prefixed {
		r.prefix = r.low
	}
	return r, nil
}

// keyLiteral is the value that a key attribute is compared with.
func keyLiteral(o *operand, values Item, key dynamo.Key, bytesMax int) (string, *fault) {
	value := o.literal(values)
	if value == nil {
		return "", faultf("Query key condition not supported")
	}
	part, _, f := keyPart(Item{key.Attribute: value}, key, bytesMax)
	return part, f
}
