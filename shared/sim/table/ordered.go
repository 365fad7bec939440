package table

import (
	"cmp"
	"slices"
	"strings"
)

// entry is an item in its place. Its order is the sort key in a form whose text order is
// the order of the keys; the item's key settles ties, which only an index has.
type entry struct {
	order string
	key   Key
	item  Item
	// sequence is that of the mutation that wrote the item.
	sequence uint64
}

func compareEntries(a, b entry) int {
	return cmp.Or(
		strings.Compare(a.order, b.order),
		strings.Compare(a.key.Partition, b.key.Partition),
		strings.Compare(a.key.Sort, b.key.Sort),
	)
}

// orderedEntries keeps entries by partition, sorted within each.
type orderedEntries struct {
	partitions map[string][]entry
}

func newOrderedEntries() orderedEntries { return orderedEntries{make(map[string][]entry)} }

func (o *orderedEntries) find(partition string, at entry) (entry, bool) {
	all := o.partitions[partition]
	i, found := slices.BinarySearchFunc(all, at, compareEntries)
	if !found {
		return entry{}, false
	}
	return all[i], true
}

func (o *orderedEntries) put(partition string, e entry) {
	all := o.partitions[partition]
	i, found := slices.BinarySearchFunc(all, e, compareEntries)
	if found {
		all[i] = e
		return
	}
	o.partitions[partition] = slices.Insert(all, i, e)
}

func (o *orderedEntries) remove(partition string, at entry) {
	all := o.partitions[partition]
	i, found := slices.BinarySearchFunc(all, at, compareEntries)
	if !found {
		return
	}
	if len(all) == 1 {
		delete(o.partitions, partition)
		return
	}
	o.partitions[partition] = slices.Delete(all, i, i+1)
}
