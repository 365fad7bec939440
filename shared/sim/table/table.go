package table

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"holdfast/shared/dynamo"
)

// Table is one DynamoDB table in memory. It is for one caller at a time, who decides the
// order of all calls; it starts nothing, waits for nothing and reads no clock. Requests
// are taken to be for this table, whatever table they name.
type Table struct {
	schema   dynamo.Schema
	entries  orderedEntries
	sequence uint64
	parsed   *expressions
}

// Mutation is the change of one item. Old is nil when there was no item, New is nil when
// there is none now. Sequence counts the mutations of the table, from 1.
type Mutation struct {
	Key      Key
	Old, New Item
	Sequence uint64
}

// New returns an empty table.
func New(schema dynamo.Schema) *Table {
	// Of several index keys that are wrong, DynamoDB reports that of the first index by
	// name.
	schema.Indexes = slices.SortedFunc(slices.Values(schema.Indexes), func(a, b dynamo.Index) int {
		return strings.Compare(a.Name, b.Name)
	})
	return &Table{schema: schema, entries: newOrderedEntries(), parsed: newExpressions()}
}

// Item returns the item of this key, nil if there is none.
func (t *Table) Item(key Key) Item {
	found, _ := t.stored(key)
	return found.item
}

// Items gives all items, ordered by partition key and within by sort key.
func (t *Table) Items() iter.Seq2[Key, Item] {
	return func(yield func(Key, Item) bool) {
		for _, partition := range slices.Sorted(maps.Keys(t.entries.partitions)) {
			for _, e := range t.entries.partitions[partition] {
				if !yield(e.key, e.item) {
					return
				}
			}
		}
	}
}

// Delete takes the item out without a condition, as time to live does. It gives no
// mutation when there is no such item.
func (t *Table) Delete(key Key) (Mutation, bool) {
	found, present := t.stored(key)
	if !present {
		return Mutation{}, false
	}
	return t.write(key, found.item, nil), true
}

func (t *Table) stored(key Key) (entry, bool) {
	return t.entries.find(key.Partition, t.place(key))
}

// write replaces old by after, either of which may be nil.
func (t *Table) write(key Key, old, after Item) Mutation {
	t.sequence++
	e := t.place(key)
	e.item, e.sequence = after, t.sequence
	if after == nil {
		t.entries.remove(key.Partition, e)
	} else {
		t.entries.put(key.Partition, e)
	}
	return Mutation{Key: key, Old: old, New: after, Sequence: t.sequence}
}

// expressionsMax bounds how many texts of each kind are kept parsed. A program has a few
// dozen; one that writes its values into the text would fill memory otherwise.
const expressionsMax = 4096

// expressions keeps what was parsed, by text.
type expressions struct {
	conditions map[string]*parsedCondition
	updates    map[string]*parsedUpdate
}

func newExpressions() *expressions {
	return &expressions{make(map[string]*parsedCondition), make(map[string]*parsedUpdate)}
}

func (e *expressions) condition(text string) *parsedCondition {
	return cached(e.conditions, text, parseCondition)
}

func (e *expressions) update(text string) *parsedUpdate {
	return cached(e.updates, text, parseUpdate)
}

func cached[T any](cache map[string]*T, text string, parse func(string) *T) *T {
	if known, present := cache[text]; present {
		return known
	}
	if len(cache) >= expressionsMax {
		clear(cache)
	}
	parsed := parse(text)
	cache[text] = parsed
	return parsed
}
