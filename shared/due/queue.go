package due

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/shared/ledger"
)

// errStandsStill is the error of a list whose cursor leads back to the same page.
var errStandsStill = errors.New("the cursor of the index does not move")

// List reads one page of one shard of the due index, the oldest first.
type List[T any] func(ctx context.Context, shard int, page ledger.Page) ([]T, ledger.Cursor, error)

// Source is where a Queue reads from, and how.
type Source[T any] struct {
	// Name names the index in errors; "" stands for "due".
	Name string
	List List[T]
	// Shards are the numbers of the shards to read. Nil stands for all of the due index.
	Shards []int
	// DueAt is the time of an entry.
	DueAt func(T) time.Time
	// PageItems is how many entries are read at once, 1 to ledger.PageItemsMax.
	PageItems int
	// PageFor bounds the reading of one page.
	PageFor time.Duration
	// Late reports that the work must stop. It is asked before every page.
	Late func() bool
}

// Queue gives the entries of all shards of the due index, the longest overdue first. It
// is one merge over the lists of its shards, each read page by page, so what is overdue
// longest comes first however unevenly the shards are filled, and no shard is read
// further than needed. It is used by one goroutine.
type Queue[T any] struct {
	source Source[T]
	shards []shard[T]
	cut    bool
}

// shard is one list of the merge.
type shard[T any] struct {
	number   int
	entries  []T // read and not yet given
	after    ledger.Cursor
	finished bool
	err      error // why it is finished before its end
}

// NewQueue returns a Queue that has read nothing yet.
func NewQueue[T any](source Source[T]) *Queue[T] {
	numbers := source.Shards
	if numbers == nil {
		numbers = AllShards()
	}
	source.Name = cmp.Or(source.Name, "due")
	q := &Queue[T]{source: source, shards: make([]shard[T], len(numbers))}
	for i, number := range numbers {
		q.shards[i].number = number
	}
	return q
}

// AllShards are the numbers of the shards of the due index.
func AllShards() []int { return Shards(ledger.DueShards) }

// Shards are the numbers of the shards of an index that has so many.
func Shards(total int) []int {
	numbers := make([]int, total)
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}

// Next takes the entry that is overdue longest, or reports that there is none. Once
// Late is true the entry may not be the oldest, and is for counting only.
func (q *Queue[T]) Next(ctx context.Context) (T, bool) {
	oldest := -1
	for i := range q.shards {
		q.fill(ctx, i)
		if len(q.shards[i].entries) == 0 {
			continue
		}
		if oldest < 0 || q.dueAt(i).Before(q.dueAt(oldest)) {
			oldest = i
		}
	}
	if oldest < 0 {
		var none T
		return none, false
	}
	entry := q.shards[oldest].entries[0]
	q.shards[oldest].entries = q.shards[oldest].entries[1:]
	return entry, true
}

// dueAt is the time of the shard's first entry.
func (q *Queue[T]) dueAt(i int) time.Time { return q.source.DueAt(q.shards[i].entries[0]) }

// fill reads pages of one shard until there is an entry. A page may be empty and still
// not be the last (case G9): only a missing cursor ends the list.
func (q *Queue[T]) fill(ctx context.Context, i int) {
	s := &q.shards[i]
	for len(s.entries) == 0 && !s.finished {
		if q.source.Late() {
			q.cut = true
			return
		}
		entries, after, err := q.page(ctx, s.number, s.after)
		switch {
		case err != nil:
			s.err = fmt.Errorf("%s shard %d: %w", q.source.Name, s.number, err)
		case after != "" && after == s.after:
			s.err = fmt.Errorf("%s shard %d: %w", q.source.Name, s.number, errStandsStill)
		}
		s.entries, s.after = entries, after
		s.finished = after == "" || s.err != nil
	}
}

func (q *Queue[T]) page(ctx context.Context, number int, after ledger.Cursor) ([]T, ledger.Cursor, error) {
	ctx, cancel := context.WithTimeout(ctx, q.source.PageFor)
	defer cancel()
	return q.source.List(ctx, number, ledger.Page{Limit: q.source.PageItems, After: after})
}

// Cut says that a shard has pages that were left unread because it was late.
func (q *Queue[T]) Cut() bool { return q.cut }

// Waiting is how many entries were read and not given.
func (q *Queue[T]) Waiting() int {
	n := 0
	for _, s := range q.shards {
		n += len(s.entries)
	}
	return n
}

// Err says which shards could not be read to their end, or is nil.
func (q *Queue[T]) Err() error {
	var failures []error
	for _, s := range q.shards {
		failures = append(failures, s.err)
	}
	return errors.Join(failures...)
}
