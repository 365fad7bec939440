package table

import (
	"hash/fnv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Scan reads a page of the table or of one of its segments, ordered by partition key and
// within by sort key; the order of DynamoDB's partitions is that of a hash, and so is what
// belongs to a segment, so no caller may rely on either. A page ends at the limit, which
// counts what was read and not what the filter let through.
func (t *Table) Scan(in *dynamodb.ScanInput) (*dynamodb.ScanOutput, error) {
	if in.IndexName != nil || in.Select != "" || in.ScanFilter != nil || in.AttributesToGet != nil {
		return nil, unsupported("Scan of an index, with a selection or with parameters of old")
	}
	limit, f := pageLimit(in.Limit)
	if f != nil {
		return nil, f.err()
	}
	part, f := newSegment(in.Segment, in.TotalSegments)
	if f != nil {
		return nil, f.err()
	}
	look, f := t.sieve(in)
	if f != nil {
		return nil, f.err()
	}
	var after *Key
	if len(in.ExclusiveStartKey) > 0 {
		key, f := t.exactKey(in.ExclusiveStartKey)
		if f != nil {
			return nil, f.err()
		}
		after = &key
	}
	out := &dynamodb.ScanOutput{Items: []map[string]types.AttributeValue{}}
	for key, item := range t.Items() {
		if !part.has(key) || after != nil && !t.follows(key, *after) {
			continue
		}
		out.ScannedCount++
		if shown, passes := look.at(item); passes {
			out.Items = append(out.Items, shown)
		}
		if int(out.ScannedCount) == limit {
			out.LastEvaluatedKey = t.keyAttributes(item)
			break
		}
	}
	out.Count = int32(len(out.Items))
	return out, nil
}

// follows reports whether a comes after b in a scan.
func (t *Table) follows(a, b Key) bool {
	if a.Partition != b.Partition {
		return a.Partition > b.Partition
	}
	return compareEntries(t.place(a), t.place(b)) > 0
}

// segment is one of several parts of a table.
type segment struct{ number, total uint32 }

func newSegment(number, total *int32) (segment, *fault) {
	switch {
	case number == nil && total == nil:
		return segment{0, 1}, nil
	case number == nil || total == nil:
		return segment{}, faultf("The Segment and the TotalSegments parameter must be given together")
	case *total < 1 || *number < 0 || *number >= *total:
		return segment{}, faultf("The Segment parameter is zero-based and must be less than parameter TotalSegments")
	}
	return segment{uint32(*number), uint32(*total)}, nil
}

// has reports whether the item of that key is in the segment. A partition is in one.
func (s segment) has(key Key) bool {
	if s.total == 1 {
		return true
	}
	h := fnv.New32a()
	h.Write([]byte(key.Partition))
	return h.Sum32()%s.total == s.number
}

// sieve is what a scan lets through of the table: the items that its filter holds for, and
// of them the attributes of its projection.
type sieve struct {
	filter     *parsedCondition
	projection *parsedProjection
	scope      scope
}

func (t *Table) sieve(in *dynamodb.ScanInput) (*sieve, *fault) {
	s := &sieve{scope: scope{names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues}}
	var used []*references
	if in.FilterExpression != nil {
		s.filter = t.parsed.condition(*in.FilterExpression)
		if s.filter.fault != nil {
			return nil, s.filter.fault
		}
		used = append(used, &s.filter.used)
	}
	if in.ProjectionExpression != nil {
		s.projection = parseProjection(*in.ProjectionExpression)
		if s.projection.fault != nil {
			return nil, s.projection.fault
		}
		used = append(used, &s.projection.used)
	}
	if f := checkReferences(s.scope.names, s.scope.values, used...); f != nil {
		return nil, f
	}
	if s.filter != nil {
		return s, s.filter.root.check(s.scope.values)
	}
	return s, nil
}

// at is what the scan shows of the item, if it lets it through.
func (s *sieve) at(item Item) (Item, bool) {
	s.scope.item = item
	if s.filter != nil && !s.filter.root.holds(&s.scope) {
		return nil, false
	}
	if s.projection == nil {
		return item, true
	}
	shown := make(Item, len(s.projection.paths))
	for _, p := range s.projection.paths {
		if value := p.resolve(&s.scope); value != nil {
			shown[s.scope.name(p[0].name)] = value
		}
	}
	return shown, true
}

// parsedProjection is a list of top-level attributes.
type parsedProjection struct {
	paths []path
	used  references
	fault *fault
}

func parseProjection(text string) *parsedProjection {
	p := newParser(text)
	projection := &parsedProjection{}
	list(p, &projection.paths, func() path {
		one := p.path()
		if len(one) > 1 {
			p.fail(unsupportedFault("a projection of a nested path"))
		}
		return one
	})
	if p.peek().kind != tokenEnd {
		p.fail(syntaxFault(p.peek().text))
	}
	projection.used, projection.fault = p.used, p.fault
	return projection
}
