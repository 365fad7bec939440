package commandstest

import (
	"context"
	"slices"
	"strings"
	"sync"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
)

// Waiting is a store in memory with a quarantine beside it, because what is in memory is not
// published. It is safe for concurrent use.
type Waiting struct {
	*memory.Store
	mutex  sync.Mutex
	events map[ledger.EventItem]ledger.StoredEvent
	// BeforeRequeue and BeforeUnpark may refuse a call. They are nil at first.
	BeforeRequeue, BeforeUnpark func() error
}

var _ commands.Waiting = (*Waiting)(nil)

// NewWaiting returns the store with an empty quarantine.
func NewWaiting(store *memory.Store) *Waiting {
	return &Waiting{Store: store, events: make(map[ledger.EventItem]ledger.StoredEvent)}
}

// Quarantine puts an event there, or puts it there anew.
func (w *Waiting) Quarantine(e ledger.StoredEvent) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.events[e.Item] = e
}

// shardOf is the shard that an item is listed in.
func shardOf(i ledger.EventItem) int { return ledger.UnpublishedShard(ledger.EventID(i.String())) }

// Quarantined lists the events of one shard, in the order of their items.
func (w *Waiting) Quarantined(_ context.Context, shard int, page ledger.Page) ([]ledger.UnpublishedEvent, ledger.Cursor, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var all []ledger.UnpublishedEvent
	for item, e := range w.events {
		if e.Quarantine != nil && shardOf(item) == shard && item.String() > string(page.After) {
			all = append(all, ledger.UnpublishedEvent{Item: item, ID: e.Event.ID, OccurredAt: e.Event.OccurredAt})
		}
	}
	slices.SortFunc(all, func(a, b ledger.UnpublishedEvent) int { return strings.Compare(a.Item.String(), b.Item.String()) })
	if len(all) <= page.Limit {
		return all, "", nil
	}
	return all[:page.Limit], ledger.Cursor(all[page.Limit-1].Item.String()), nil
}

// UnpublishedEvents reads events in the order of items.
func (w *Waiting) UnpublishedEvents(_ context.Context, items []ledger.EventItem) ([]ledger.StoredEvent, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var out []ledger.StoredEvent
	for _, i := range items {
		if e, there := w.events[i]; there {
			out = append(out, e)
		}
	}
	return out, nil
}

// Requeue takes an event out of the quarantine.
func (w *Waiting) Requeue(_ context.Context, item ledger.EventItem) (bool, error) {
	if w.BeforeRequeue != nil {
		if err := w.BeforeRequeue(); err != nil {
			return false, err
		}
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	e := w.events[item]
	was := e.Quarantine != nil
	if e.Quarantine = nil; was {
		w.events[item] = e
	}
	return was, nil
}

// Unpark puts a parked hold back among those that are due.
func (w *Waiting) Unpark(ctx context.Context, entry ledger.DueHold) (bool, error) {
	if w.BeforeUnpark != nil {
		if err := w.BeforeUnpark(); err != nil {
			return false, err
		}
	}
	return w.Store.Unpark(ctx, entry)
}
