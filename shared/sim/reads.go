package sim

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/sim/table"
)

// staleForMax is how old an eventually consistent read may be at most.
const staleForMax = 5 * time.Second

// overwritten is an item as it was before a change. The item is nil if there was none.
type overwritten struct {
	at  time.Time
	key table.Key
	old table.Item
}

// remember keeps what the changes overwrite, for reads that may be stale.
func (d *database) remember(mutations []table.Mutation) {
	for len(d.past) > 0 && d.kernel.now.Sub(d.past[0].at) > staleForMax {
		d.past = d.past[1:]
	}
	for _, m := range mutations {
		d.past = append(d.past, overwritten{d.kernel.now, m.Key, m.Old})
	}
}

// stale is the item as it was some time ago: what a read sees that does not ask for
// consistency. The ledger has no such read; it is here so that one would be noticed.
func (d *database) stale(by *task, key table.Key) table.Item {
	since := d.kernel.now.Add(-by.dice.between(0, staleForMax))
	for _, p := range d.past {
		if p.key == key && p.at.After(since) {
			return p.old
		}
	}
	return d.table.Item(key)
}

// GetItem reads one item.
func (s *session) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return ask(s, "GetItem", func(by *task) (*dynamodb.GetItemOutput, error) {
		out, err := s.database.table.Get(in)
		if err == nil && !aws.ToBool(in.ConsistentRead) {
			out.Item = s.database.stale(by, keyOf(in.Key))
		}
		return out, err
	})
}

// BatchGetItem reads several items, each at a moment of its own, and leaves some of them
// for later when the table is throttled.
func (s *session) BatchGetItem(_ context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	var out *dynamodb.BatchGetItemOutput
	d := s.database
	err := s.call("BatchGetItem", func(by *task, done func(error)) {
		first, err := d.table.BatchGet(in)
		if err != nil {
			done(err)
			return
		}
		d.kernel.after(by.dice.between(0, callForMax/2), func() {
			second, err := d.table.BatchGet(in)
			if err == nil {
				out = d.mixed(by, in, first, second)
			}
			done(err)
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// mixed is one answer from the items of two moments.
func (d *database) mixed(by *task, in *dynamodb.BatchGetItemInput, first, second *dynamodb.BatchGetItemOutput) *dynamodb.BatchGetItemOutput {
	out := &dynamodb.BatchGetItemOutput{Responses: map[string][]table.Item{}, UnprocessedKeys: map[string]types.KeysAndAttributes{}}
	for name, request := range in.RequestItems { // one table, as the table checks
		early, late := itemsByKey(first.Responses[name]), itemsByKey(second.Responses[name])
		left := types.KeysAndAttributes{ConsistentRead: request.ConsistentRead}
		for i, attributes := range request.Keys {
			key := keyOf(attributes)
			found := late[key]
			switch {
			case i > 0 && by.dice.chance(d.faults.Throttled):
				left.Keys = append(left.Keys, attributes)
				continue
			case !aws.ToBool(request.ConsistentRead):
				found = d.stale(by, key)
			case by.dice.chance(2):
				found = early[key]
			}
			if found != nil {
				out.Responses[name] = append(out.Responses[name], found)
			}
		}
		if len(left.Keys) > 0 {
			out.UnprocessedKeys[name] = left
		}
	}
	return out
}

func itemsByKey(items []table.Item) map[table.Key]table.Item {
	byKey := make(map[table.Key]table.Item, len(items))
	for _, item := range items {
		byKey[keyOf(item)] = item
	}
	return byKey
}

// TransactGetItems reads several items at one moment, unless one of them is in the
// middle of a transaction.
func (s *session) TransactGetItems(_ context.Context, in *dynamodb.TransactGetItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	return ask(s, "TransactGetItems", func(*task) (*dynamodb.TransactGetItemsOutput, error) {
		if err := s.database.conflicts(s.database.table.GetKeys(in), nil); err != nil {
			return nil, err
		}
		return s.database.table.TransactGet(in)
	})
}

// Scan reads a part of the table itself.
func (s *session) Scan(_ context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return ask(s, "Scan", func(*task) (*dynamodb.ScanOutput, error) { return s.database.table.Scan(in) })
}

// Query reads the table, or an index as far as it has got.
func (s *session) Query(_ context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return ask(s, "Query", func(*task) (*dynamodb.QueryOutput, error) {
		for _, index := range s.database.views {
			if index.name == aws.ToString(in.IndexName) {
				return index.at(s.database.kernel.now).Query(in)
			}
		}
		return s.database.table.Query(in)
	})
}

// ask sends a read. What it reads is of the moment at which the request arrives.
func ask[T any](s *session, operation string, read func(by *task) (*T, error)) (*T, error) {
	var out *T
	err := s.call(operation, func(by *task, done func(error)) {
		var err error
		out, err = read(by)
		done(err)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
