package expiry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/shared/ledger"
)

// errStandsStill is the error of a list whose cursor leads back to the same page.
var errStandsStill = errors.New("the cursor of the due index does not move")

// dueQueue gives the entries of all shards of the due index, the longest overdue first.
// It is one merge over ledger.DueShards lists, each read page by page, so what is
// overdue longest comes first however unevenly the shards are filled, and no shard is
// read further than needed.
type dueQueue struct {
	store     Store
	now       time.Time
	pageItems int
	// late reports that the sweep must stop. It is asked before every page.
	late   func() bool
	shards []dueShard
	// cut says that a shard has pages that were left unread because of late.
	cut bool
}

// dueShard is one list of the merge.
type dueShard struct {
	entries  []ledger.DueHold // read and not yet given
	after    ledger.Cursor
	finished bool
	err      error // why it is finished before its end
}

func newDueQueue(store Store, now time.Time, pageItems int, late func() bool) *dueQueue {
	return &dueQueue{store: store, now: now, pageItems: pageItems, late: late, shards: make([]dueShard, ledger.DueShards)}
}

// next takes the entry that is overdue longest, or reports that there is none. Once
// late is true the entry may not be the oldest, and is for counting only.
func (q *dueQueue) next(ctx context.Context) (ledger.DueHold, bool) {
	oldest := -1
	for i := range q.shards {
		q.fill(ctx, i)
		if len(q.shards[i].entries) == 0 {
			continue
		}
		if oldest < 0 || q.shards[i].entries[0].DueAt.Before(q.shards[oldest].entries[0].DueAt) {
			oldest = i
		}
	}
	if oldest < 0 {
		return ledger.DueHold{}, false
	}
	entry := q.shards[oldest].entries[0]
	q.shards[oldest].entries = q.shards[oldest].entries[1:]
	return entry, true
}

// fill reads pages of one shard until there is an entry. A page may be empty and still
// not be the last (case G9): only a missing cursor ends the list.
func (q *dueQueue) fill(ctx context.Context, shard int) {
	s := &q.shards[shard]
	for len(s.entries) == 0 && !s.finished {
		if q.late() {
			q.cut = true
			return
		}
		entries, after, err := q.page(ctx, shard, s.after)
		switch {
		case err != nil:
			s.err = fmt.Errorf("due shard %d: %w", shard, err)
		case after != "" && after == s.after:
			s.err = fmt.Errorf("due shard %d: %w", shard, errStandsStill)
		}
		s.entries, s.after = entries, after
		s.finished = after == "" || s.err != nil
	}
}

func (q *dueQueue) page(ctx context.Context, shard int, after ledger.Cursor) ([]ledger.DueHold, ledger.Cursor, error) {
	ctx, cancel := context.WithTimeout(ctx, StepFor)
	defer cancel()
	return q.store.Due(ctx, shard, q.now, ledger.Page{Limit: q.pageItems, After: after})
}

// waiting is how many entries were read and not given.
func (q *dueQueue) waiting() int {
	n := 0
	for _, s := range q.shards {
		n += len(s.entries)
	}
	return n
}

// err says which shards could not be read to their end, or is nil.
func (q *dueQueue) err() error {
	var failures []error
	for _, s := range q.shards {
		failures = append(failures, s.err)
	}
	return errors.Join(failures...)
}
