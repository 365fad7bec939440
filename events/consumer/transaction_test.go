package consumer_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"

	"holdfast/events/consumer"
	"holdfast/events/consumer/consumertest"
)

// This file is a Memory in a consumer's own database, as the package's documentation
// describes it. The database here is a map whose transactions are optimistic, like those of
// DynamoDB: a commit fails if somebody else has committed since the begin.

// database is what the consumer keeps.
type database struct {
	mutex   sync.Mutex
	commits int
	state   state
	lose    bool // the next commit fails for good
}

type state struct {
	handled  map[consumer.EventID]bool
	versions map[consumer.Subject]consumer.Version
	sold     int // what the handler counts
}

// transaction is a copy that becomes the state, or does not.
type transaction struct {
	begun int
	state state
}

var (
	errOvertaken = errors.New("somebody else has committed")
	errLost      = errors.New("the database is gone")
)

func newDatabase() *database {
	return &database{state: state{handled: map[consumer.EventID]bool{}, versions: map[consumer.Subject]consumer.Version{}}}
}

func (d *database) begin() *transaction {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return &transaction{begun: d.commits, state: state{
		handled: maps.Clone(d.state.handled), versions: maps.Clone(d.state.versions), sold: d.state.sold,
	}}
}

func (d *database) commit(tx *transaction) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.lose {
		d.lose = false
		return errLost
	}
	if tx.begun != d.commits {
		return errOvertaken
	}
	d.commits++
	d.state = tx.state
	return nil
}

// transactionKey is where a handler finds the transaction.
type transactionKey struct{}

// triesMax is more than the events that a test delivers at once.
const triesMax = 64

// databaseMemory is a consumer.Memory in the transaction of the effect.
type databaseMemory struct{ database *database }

func (m databaseMemory) Once(ctx context.Context, e consumer.Event, decide consumer.Decide) error {
	for range triesMax {
		tx := m.database.begin()
		seen := consumer.Seen{Event: tx.state.handled[e.ID], Version: tx.state.versions[e.Subject]}
		handled, err := decide(context.WithValue(ctx, transactionKey{}, tx), seen)
		if err != nil || !handled {
			return err
		}
		tx.state.handled[e.ID] = true
		tx.state.versions[e.Subject] = max(seen.Version, e.Version)
		if err := m.database.commit(tx); !errors.Is(err, errOvertaken) {
			return err
		}
	}
	return errOvertaken
}

// countSold is a handler whose effect is in the transaction.
func countSold(ctx context.Context, _ consumer.Event) error {
	tx, found := ctx.Value(transactionKey{}).(*transaction)
	if !found {
		return errors.New("the handler was called without a transaction")
	}
	tx.state.sold++
	return nil
}

func TestAMemoryInATransactionIsAMemory(t *testing.T) {
	consumertest.TestMemory(t, func(*testing.T) consumer.Memory { return databaseMemory{newDatabase()} })
}

// The effect and the memory are one: a commit that fails leaves neither, and however often
// and however much at once an event comes, its effect is there once.
func TestTheEffectIsRememberedWithItself(t *testing.T) {
	d := newDatabase()
	in := &consumer.Inbox{Memory: databaseMemory{d}}
	first := envelope(t, "1", "hold.confirmed", versioned(t, 2))
	d.lose = true
	if outcome, err := in.Handle(t.Context(), first, countSold); outcome != consumer.OutcomeFailed || !errors.Is(err, errLost) {
		t.Errorf("%s, %v", outcome, err)
	}
	if d.state.sold != 0 || len(d.state.handled)+len(d.state.versions) != 0 {
		t.Errorf("a failed commit left %+v", d.state)
	}
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if _, err := in.Handle(t.Context(), first, countSold); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if d.state.sold != 1 || len(d.state.handled) != 1 {
		t.Errorf("after 16 deliveries at once: %+v", d.state)
	}
}
