package expiry

import (
	"context"
	"slices"
	"time"

	"holdfast/shared/due"
	"holdfast/shared/ledger"
)

const (
	// firstPageItems bounds the first page of a shard. A calm sweep reads 16 of them and
	// needs no more; one whose first page is full goes on with larger ones.
	firstPageItems = 100
	// lagLooksAtOnce is how many holds are looked at together when the oldest entries of
	// the index are of holds that have ended.
	lagLooksAtOnce = 16
	// lagLooksMax bounds how many are looked at, and so the time before the first release.
	lagLooksMax = 2_000
)

// entry is an entry of the due index, with the shard that lists it.
type entry struct {
	ledger.DueHold
	shard int
}

// readPage is a page of a shard that was read and is not worked on yet.
type readPage struct {
	after   ledger.Cursor // where it begins
	entries []entry
	next    ledger.Cursor
}

// look reads each of the shards as far as its first entry, and returns those that have
// one: the one with the oldest first. What it read is kept for the work.
func (r *run) look(ctx context.Context, shards []int) (*due.Queue[entry], []entry, []int) {
	for _, shard := range shards {
		r.read[shard] = nil
	}
	queue := r.queue(shards, r.keep)
	var first []entry
	if oldest, found := queue.Next(ctx); found {
		first = append(first, oldest)
	}
	oldest := make(map[int]time.Time, len(shards))
	var open []int
	for _, shard := range shards {
		for _, page := range r.read[shard] {
			if len(page.entries) > 0 {
				oldest[shard] = page.entries[0].DueAt
				open = append(open, shard)
				break
			}
		}
	}
	slices.SortStableFunc(open, func(a, b int) int { return oldest[a].Compare(oldest[b]) })
	return queue, first, open
}

// queue merges the shards, whose pages come from list.
func (r *run) queue(shards []int, list due.List[entry]) *due.Queue[entry] {
	return due.NewQueue(due.Source[entry]{
		List: list, Shards: shards, DueAt: func(e entry) time.Time { return e.DueAt },
		PageItems: r.settings.PageItems, PageFor: StepFor, Late: r.late,
	})
}

// list reads one page of a shard.
func (r *run) list(ctx context.Context, shard int, page ledger.Page) ([]entry, ledger.Cursor, error) {
	if page.After == "" {
		page.Limit = min(page.Limit, firstPageItems)
	}
	holds, next, err := r.ports.Store.Due(ctx, shard, r.now, page)
	entries := make([]entry, len(holds))
	for i, hold := range holds {
		entries[i] = entry{hold, shard}
	}
	return entries, next, err
}

// keep reads one page and keeps it for the work.
func (r *run) keep(ctx context.Context, shard int, page ledger.Page) ([]entry, ledger.Cursor, error) {
	entries, next, err := r.list(ctx, shard, page)
	if err == nil {
		r.read[shard] = append(r.read[shard], readPage{page.After, entries, next})
	}
	return entries, next, err
}

// takeOut gives a page that was kept, or reads it. A shard that was lost to another worker
// has no more pages.
func (r *run) takeOut(ctx context.Context, shard int, page ledger.Page) ([]entry, ledger.Cursor, error) {
	if r.leases.lost[shard] {
		return nil, "", nil
	}
	if kept := r.read[shard]; len(kept) > 0 && kept[0].after == page.After {
		r.read[shard] = kept[1:]
		return kept[0].entries, kept[0].next, nil
	}
	return r.list(ctx, shard, page)
}

// kept counts the entries of the shards that were read and not worked on, and reports
// whether there may be more that were not read.
func (r *run) kept(shards []int) (entries int, more bool) {
	for _, shard := range shards {
		pages := r.read[shard]
		for _, page := range pages {
			entries += len(page.entries)
		}
		more = more || len(pages) > 0 && pages[len(pages)-1].next != ""
	}
	return entries, more
}

// measureLag looks for the oldest hold that is really overdue, from the first entries of
// all shards on. The entries come in the order of their due time, so the first one that is
// HELD is it. It is measured before any release, so that a sweep that can release nothing
// still tells how far behind it is.
func (r *run) measureLag(ctx context.Context, queue *due.Queue[entry], next []entry) {
	for looked := 0; len(next) > 0 && !r.late(); looked += len(next) {
		dueAt, overdue := r.oldestOverdue(ctx, next)
		if !overdue && looked >= lagLooksMax {
			// A lag too long wakes somebody, and one too short lets everybody sleep.
			dueAt, overdue = next[0].DueAt, true
		}
		if overdue {
			r.report.Lag, r.report.LagKnown = r.now.Sub(dueAt), queue.Err() == nil
			return
		}
		next = next[:0:0]
		for len(next) < lagLooksAtOnce {
			e, found := queue.Next(ctx)
			if !found {
				break
			}
			next = append(next, e)
		}
	}
	// Every entry was looked at, and no hold was overdue.
	r.report.LagKnown = len(next) == 0 && !queue.Cut() && queue.Err() == nil
}

// oldestOverdue looks at these holds and gives the due time of the first that is overdue.
func (r *run) oldestOverdue(ctx context.Context, entries []entry) (time.Time, bool) {
	overdueSince := make([]time.Time, len(entries))
	r.ports.Parallel.Do(len(entries), r.settings.ParallelMax, func(i int) {
		overdueSince[i] = r.overdueSince(ctx, entries[i])
	})
	for _, dueAt := range overdueSince {
		if !dueAt.IsZero() {
			return dueAt, true
		}
	}
	return time.Time{}, false
}

// overdueSince is the due time of the entry's hold, or zero if it is not overdue. A hold
// that can't be read counts as overdue.
func (r *run) overdueSince(ctx context.Context, e entry) time.Time {
	ctx, cancel := context.WithTimeout(ctx, StepFor)
	defer cancel()
	hold, err := guarded(func() (ledger.Hold, error) { return r.ports.Store.Hold(ctx, e.ID) })
	if ledger.CodeOf(err) == ledger.CodeHoldNotFound {
		return time.Time{}
	}
	if err != nil {
		return e.DueAt
	}
	if dueAt, waits := hold.DueAt(); waits && !dueAt.After(r.now) {
		return dueAt
	}
	return time.Time{}
}
