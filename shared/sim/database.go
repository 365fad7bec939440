package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"holdfast/shared/dynamo"
	"holdfast/shared/sim/table"
)

const (
	// callFor is how long a healthy call takes in all, at least and at most.
	callForMin, callForMax = time.Millisecond, 12 * time.Millisecond
	// slowForMax is how long a slow call takes at most: so long that it may still arrive
	// after its client has given up, tried again, and been refused.
	slowForMax = 14 * time.Second
	// clientGivesUpAfter is the client's own time-out. What arrived is carried out even
	// if nobody waits for it.
	clientGivesUpAfter = 3 * time.Second
)

// errNoAnswer is what a caller sees when the request or its answer was lost. Nothing in
// it says which.
var errNoAnswer = errors.New("request timed out")

// errPoisoned is what the database answers to a transaction that can never succeed, as to
// one that is larger than it takes.
var errPoisoned = &smithy.GenericAPIError{Code: "ValidationException", Message: "simulated poison"}

// database is the simulated table with what surrounds it: calls take time, two
// transactions that overlap on an item conflict, and indexes lag behind.
type database struct {
	kernel *kernel
	faults *Faults
	table  *table.Table
	// busy are the items of transactions between their check and their commit.
	busy   map[table.Key]bool
	views  []*laggingView
	past   []overwritten
	commit func(c commit) // told of every change, right when it is made
	// poisoned reports whether a transaction of an item fails, whatever is tried.
	poisoned func(by *instance, key table.Key) bool
}

// commit is what one write changed, at one moment.
type commit struct {
	by        string // the task that asked for it
	mutations []table.Mutation
}

func newDatabase(k *kernel, f *Faults, onCommit func(commit)) *database {
	schema := dynamo.TableSchema()
	d := &database{kernel: k, faults: f, table: table.New(schema), busy: make(map[table.Key]bool), commit: onCommit}
	for _, index := range schema.Indexes {
		view, err := d.table.NewView(index.Name)
		if err != nil {
			panic("sim: " + err.Error()) // the index is one of the table's own
		}
		d.views = append(d.views, &laggingView{name: index.Name, view: view})
	}
	return d
}

// applied tells the world of a commit and sends it on its way to the indexes.
func (d *database) applied(by *task, mutations []table.Mutation) {
	d.remember(mutations)
	lag := newDice(by.dice.Uint64(), "index lag")
	for _, view := range d.views {
		for _, m := range mutations {
			visible := d.kernel.now
			if d.faults.IndexLagMax > 0 {
				visible = visible.Add(lag.between(0, d.faults.IndexLagMax))
			}
			view.add(m, visible)
		}
	}
	d.commit(commit{by: by.name, mutations: mutations})
}

// laggingView is an index that shows each change some time after it was made. The order
// of changes is kept.
type laggingView struct {
	name    string
	view    *table.IndexView
	waiting []laggingMutation
}

type laggingMutation struct {
	mutation table.Mutation
	visible  time.Time
}

func (v *laggingView) add(m table.Mutation, visible time.Time) {
	if n := len(v.waiting); n > 0 && visible.Before(v.waiting[n-1].visible) {
		visible = v.waiting[n-1].visible
	}
	v.waiting = append(v.waiting, laggingMutation{m, visible})
}

// at is the index as it is seen at a time.
func (v *laggingView) at(now time.Time) *table.IndexView {
	for len(v.waiting) > 0 && !v.waiting[0].visible.After(now) {
		v.view.Apply(v.waiting[0].mutation)
		v.waiting = v.waiting[1:]
	}
	return v.view
}

// session is the database client of one function instance.
type session struct {
	database *database
	instance *instance
}

var _ dynamo.Client = (*session)(nil)

// call sends one request, and returns what its caller sees. The request may be lost,
// late, turned away or unanswered, and the caller's process may end at any point of it.
// arrive is what the database does when the request is there. It may end later, through
// done; then it ends whether anybody waits for it or not.
func (s *session) call(operation string, arrive func(by *task, done func(error))) error {
	k, f := s.database.kernel, s.database.faults
	t := k.running
	t.exitIfKilled()
	crashes, sentBefore := t.dice.chance(f.Crash), t.dice.chance(2)
	total := t.dice.between(callForMin, callForMax)
	if t.dice.chance(f.Slow) {
		total = t.dice.between(callForMax, slowForMax)
	}
	lostRequest, lostAnswer, throttled := t.dice.chance(f.LostRequest), t.dice.chance(f.LostAnswer), t.dice.chance(f.Throttled)
	if crashes {
		if sentBefore {
			k.after(total/2, func() { arrive(t, func(error) {}) })
		}
		s.instance.crash()
		t.exitIfKilled()
	}
	result, answered := error(nil), false
	sent, date := s.instance.clock.Now(), time.Time{}
	wake := t.waker()
	finish := func(err error) {
		if lostAnswer {
			return
		}
		date = k.now.Truncate(time.Second)
		k.after(total/2, func() {
			result, answered = err, true
			wake()
		})
	}
	switch {
	case lostRequest:
	case throttled:
		k.after(total/2, func() {
			finish(&types.ProvisionedThroughputExceededException{Message: aws.String("simulated throttle")})
		})
	default:
		k.after(total/2, func() { arrive(t, finish) })
	}
	k.after(clientGivesUpAfter, wake)
	t.pause()
	if !answered {
		return fmt.Errorf("%s: %w", operation, errNoAnswer)
	}
	s.instance.gauge.Observe(sent, s.instance.clock.Now(), date)
	return result
}

// TransactWriteItems checks all conditions at one moment and commits at a later one. In
// between its items are busy, and whoever else writes them meets a conflict.
func (s *session) TransactWriteItems(_ context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	d := s.database
	err := s.call("TransactWriteItems", func(by *task, done func(error)) {
		if slices.ContainsFunc(d.table.Keys(in), func(key table.Key) bool { return d.poisoned(s.instance, key) }) {
			done(errPoisoned)
			return
		}
		prepared, err := d.table.Prepare(in)
		if err = d.conflicts(d.table.Keys(in), err); err != nil {
			done(err)
			return
		}
		keys := prepared.Keys()
		for _, key := range keys {
			d.busy[key] = true
		}
		d.kernel.after(by.dice.between(0, callForMax/2), func() {
			for _, key := range keys {
				delete(d.busy, key)
			}
			mutations, err := d.table.Apply(prepared)
			if err == nil {
				d.applied(by, mutations)
			}
			done(err)
		})
	})
	if err != nil {
		return nil, err
	}
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

// conflicts adds to the outcome of a transaction the conflicts that its busy items make.
func (d *database) conflicts(keys []table.Key, outcome error) error {
	var canceled *types.TransactionCanceledException
	if outcome != nil && !errors.As(outcome, &canceled) {
		return outcome
	}
	reasons := make([]types.CancellationReason, len(keys))
	for i := range reasons {
		reasons[i].Code = aws.String("None")
	}
	if canceled != nil {
		reasons = canceled.CancellationReasons
	}
	busy := false
	for i, key := range keys {
		if d.busy[key] {
			busy = true
			reasons[i] = types.CancellationReason{Code: aws.String("TransactionConflict"), Message: aws.String("Transaction is ongoing for the item")}
		}
	}
	if !busy {
		return outcome
	}
	return table.Canceled(reasons)
}

// UpdateItem changes one item, unless it is in the middle of a transaction.
func (s *session) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out := &dynamodb.UpdateItemOutput{}
	return out, s.call("UpdateItem", func(by *task, done func(error)) {
		done(s.database.single(by, keyOf(in.Key), func() ([]table.Mutation, error) { return s.database.table.Update(in) }))
	})
}

// PutItem writes one item, unless it is in the middle of a transaction.
func (s *session) PutItem(_ context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	out := &dynamodb.PutItemOutput{}
	return out, s.call("PutItem", func(by *task, done func(error)) {
		done(s.database.single(by, keyOf(in.Item), func() ([]table.Mutation, error) { return s.database.table.Put(in) }))
	})
}

func (d *database) single(by *task, key table.Key, write func() ([]table.Mutation, error)) error {
	if d.busy[key] {
		return &types.TransactionConflictException{Message: aws.String("Transaction is ongoing for the item")}
	}
	mutations, err := write()
	if err == nil {
		d.applied(by, mutations)
	}
	return err
}

// keyOf reads the key of an item whose key the store has written.
func keyOf(item table.Item) table.Key {
	text := func(name string) string {
		value, _ := item[name].(*types.AttributeValueMemberS)
		if value == nil {
			return ""
		}
		return value.Value
	}
	return table.Key{Partition: text(dynamo.AttributePartitionKey), Sort: text(dynamo.AttributeSortKey)}
}

// expired lists the items whose time to live is over.
func (d *database) expired(now time.Time) []table.Key {
	var keys []table.Key
	for key, item := range d.table.Items() {
		value, _ := item[dynamo.AttributeTimeToLive].(*types.AttributeValueMemberN)
		if value == nil {
			continue
		}
		if seconds, err := strconv.ParseInt(value.Value, 10, 64); err == nil && seconds < now.Unix() && !d.busy[key] {
			keys = append(keys, key)
		}
	}
	return keys
}

// purge deletes an item, as DynamoDB does some time after its time to live.
func (d *database) purge(by *task, key table.Key) {
	if mutation, there := d.table.Delete(key); there {
		d.applied(by, []table.Mutation{mutation})
	}
}
