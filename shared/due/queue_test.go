package due_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"holdfast/shared/due"
	"holdfast/shared/ledger"
)

var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// index is a due index in memory: entries by shard, as seconds after start. Every page of
// it is preceded by an empty one, as a filtered page may be.
type index struct {
	shards [ledger.DueShards][]int
	pages  int
	broken map[int]error
}

// read gives pages under cursors that say how much was given: "3e" is an empty page.
func (x *index) read(_ context.Context, shard int, page ledger.Page) ([]int, ledger.Cursor, error) {
	x.pages++
	if err := x.broken[shard]; err != nil {
		return nil, "", err
	}
	var from int
	var empty string
	if page.After != "" {
		if _, err := fmt.Sscanf(string(page.After), "%d%s", &from, &empty); err != nil && empty != "" {
			return nil, "", err
		}
	}
	if empty == "" {
		return nil, ledger.Cursor(strconv.Itoa(from) + "e"), nil
	}
	to := min(from+page.Limit, len(x.shards[shard]))
	if to == len(x.shards[shard]) {
		return x.shards[shard][from:to], "", nil
	}
	return x.shards[shard][from:to], ledger.Cursor(strconv.Itoa(to)), nil
}

func (x *index) queue(pageItems int, late func() bool) *due.Queue[int] {
	if late == nil {
		late = func() bool { return false }
	}
	return due.NewQueue(due.Source[int]{
		List: x.read, DueAt: func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) },
		PageItems: pageItems, PageFor: time.Second, Late: late,
	})
}

func all(q *due.Queue[int]) []int {
	var out []int
	for {
		entry, found := q.Next(context.Background())
		if !found {
			return out
		}
		out = append(out, entry)
	}
}

// Case G9, and the order: one shard has most of the entries, another only the oldest, and
// all of them come, in the order of their time, behind empty pages.
func TestCaseG9_AllEntriesComeOldestFirst(t *testing.T) {
	x := &index{}
	var want []int
	for i := range 50 {
		shard := ledger.DueShards - 1
		if i%7 == 0 {
			shard = i % ledger.DueShards
		}
		x.shards[shard] = append(x.shards[shard], i)
		want = append(want, i)
	}
	for _, pageItems := range []int{1, 3, 100} {
		q := x.queue(pageItems, nil)
		if got := all(q); !slices.Equal(got, want) || q.Err() != nil || q.Cut() || q.Waiting() != 0 {
			t.Errorf("pages of %d: %v, %v", pageItems, got, q.Err())
		}
	}
}

// A shard that can't be read takes nothing from the others, and is told.
func TestAnUnreadableShardIsTold(t *testing.T) {
	down := errors.New("throttled")
	x := &index{broken: map[int]error{3: down}}
	x.shards[2], x.shards[3] = []int{5}, []int{1}
	q := x.queue(10, nil)
	if got := all(q); !slices.Equal(got, []int{5}) || !errors.Is(q.Err(), down) {
		t.Errorf("%v, %v", got, q.Err())
	}
}

// A cursor that leads to its own page ends the shard, not the queue in a loop.
func TestACursorThatStandsStillIsAnError(t *testing.T) {
	reads := 0
	q := due.NewQueue(due.Source[int]{
		List: func(context.Context, int, ledger.Page) ([]int, ledger.Cursor, error) {
			reads++
			return nil, "again", nil
		},
		DueAt: func(int) time.Time { return start }, PageItems: 1, PageFor: time.Second, Late: func() bool { return false },
	})
	if got := all(q); got != nil || q.Err() == nil || reads != 2*ledger.DueShards {
		t.Errorf("%v, %v after %d pages", got, q.Err(), reads)
	}
}

// Once it is late no page is read, and what was read and not given is counted.
func TestALateQueueReadsNothing(t *testing.T) {
	x := &index{}
	x.shards[0] = []int{1, 2, 3}
	late := false
	q := x.queue(2, func() bool { return late })
	if first, found := q.Next(context.Background()); !found || first != 1 || q.Waiting() != 1 {
		t.Fatalf("%d, %t, %d wait", first, found, q.Waiting())
	}
	late = true
	pages := x.pages
	if second, found := q.Next(context.Background()); !found || second != 2 {
		t.Errorf("%d, %t", second, found)
	}
	if third, found := q.Next(context.Background()); found || !q.Cut() || x.pages != pages {
		t.Errorf("%d, %t, cut %t after %d more pages", third, found, q.Cut(), x.pages-pages)
	}
}

// A page that hangs is given up after its time, and only that.
func TestEachPageHasItsTime(t *testing.T) {
	q := due.NewQueue(due.Source[int]{
		List: func(ctx context.Context, _ int, _ ledger.Page) ([]int, ledger.Cursor, error) {
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("a page has no deadline")
			}
			return nil, "", nil
		},
		DueAt: func(int) time.Time { return start }, PageItems: 1, PageFor: time.Second, Late: func() bool { return false },
	})
	all(q)
}
