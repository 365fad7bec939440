package table

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/shared/dynamo"
)

// IndexView is a secondary index as one reader sees it. It is as far behind the table as
// its caller lets it be: it knows the mutations that it was given and no others. It has
// the keys of the table and of the index only, and only of the items that have both keys
// of the index.
type IndexView struct {
	table   *Table
	index   dynamo.Index
	entries orderedEntries
}

// NewView returns an empty view of the index of that name, to be given the table's
// mutations from the first on.
func (t *Table) NewView(indexName string) (*IndexView, error) {
	for _, index := range t.schema.Indexes {
		if index.Name == indexName {
			return &IndexView{table: t, index: index, entries: newOrderedEntries()}, nil
		}
	}
	return nil, fmt.Errorf("the table has no index %q", indexName)
}

// Apply takes one mutation over into the view. The mutations of one item must come in
// their order, each once; those of different items may come in any.
func (v *IndexView) Apply(m Mutation) {
	if partition, at, indexed := v.entryOf(m.Key, m.Old); indexed {
		v.entries.remove(partition, at)
	}
	if partition, e, indexed := v.entryOf(m.Key, m.New); indexed {
		e.item = only(m.New, v.keyNames()...)
		v.entries.put(partition, e)
	}
}

// entryOf is an item's place in the view. The table has checked the types of its keys.
func (v *IndexView) entryOf(key Key, item Item) (partition string, e entry, indexed bool) {
	partition, hasPartition, _ := keyPart(item, v.index.PartitionKey, partitionKeyBytesMax)
	sort, hasSort, _ := keyPart(item, v.index.SortKey, sortKeyBytesMax)
	return partition, entry{order: sortOrder(sort, v.index.SortKey), key: key}, hasPartition && hasSort
}

func (v *IndexView) keyNames() []string {
	return []string{
		v.table.schema.PartitionKey.Attribute, v.table.schema.SortKey.Attribute,
		v.index.PartitionKey.Attribute, v.index.SortKey.Attribute,
	}
}

// Query reads a page of the view. Its errors are those of Table.Query, and it refuses a
// consistent read, as DynamoDB does.
func (v *IndexView) Query(in *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
	if in.IndexName == nil || *in.IndexName != v.index.Name {
		return nil, fmt.Errorf("a query of another index reached the view of %q", v.index.Name)
	}
	if in.ConsistentRead != nil && *in.ConsistentRead {
		return nil, invalid("Consistent reads are not supported on global secondary indexes")
	}
	q := query{
		in: in, entries: &v.entries, partition: v.index.PartitionKey, sort: v.index.SortKey, keyNames: v.keyNames(),
		placeOf: func(start Item) (entry, *fault) {
			key, f := v.table.keyOf(start)
			if f != nil {
				return entry{}, f
			}
			_, at, _ := v.entryOf(key, start)
			return at, nil
		},
	}
	return q.run(v.table.parsed)
}
