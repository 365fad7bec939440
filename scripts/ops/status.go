package main

import (
	"context"
	"fmt"
	"time"

	"holdfast/shared/due"
	"holdfast/shared/expiry"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

const (
	// countMax bounds what status counts of each kind; more is told as "at least".
	countMax = 10_000
	// readFor bounds one read.
	readFor = 10 * time.Second
)

// waiting is one kind of thing that waits.
type waiting struct {
	What  string `json:"what"`
	Count int    `json:"count"`
	// More says that there are more than were counted.
	More             bool      `json:"more"`
	OldestAt         time.Time `json:"oldest_at,omitzero"`
	OldestAgeSeconds float64   `json:"oldest_age_seconds"`
	Remedy           string    `json:"remedy"`
}

// status prints what waits, from the indexes: it is what was true a moment ago.
func status(ctx context.Context, o *operator, arguments []string) error {
	if len(arguments) > 0 {
		return fmt.Errorf("status takes no argument, and was given %q", arguments[0])
	}
	now := system.Millisecond(o.clock)
	overdue, err := count(ctx, due.AllShards(), func(ctx context.Context, shard int, page ledger.Page) ([]time.Time, ledger.Cursor, error) {
		entries, next, err := o.store.Due(ctx, shard, now, page)
		return timesOf(entries, func(e ledger.DueHold) time.Time { return e.DueAt }), next, err
	})
	if err != nil {
		return err
	}
	parked, err := expiry.NewParkedLook(o.store).Look(ctx, now)
	if err != nil {
		return err
	}
	unpublished, err := count(ctx, eventShards(), func(ctx context.Context, shard int, page ledger.Page) ([]time.Time, ledger.Cursor, error) {
		entries, next, err := o.store.Unpublished(ctx, shard, now, page)
		return timesOf(entries, func(e ledger.UnpublishedEvent) time.Time { return e.OccurredAt }), next, err
	})
	if err != nil {
		return err
	}
	quarantined, err := count(ctx, eventShards(), func(ctx context.Context, shard int, page ledger.Page) ([]time.Time, ledger.Cursor, error) {
		entries, next, err := o.store.Quarantined(ctx, shard, page)
		return timesOf(entries, func(e ledger.UnpublishedEvent) time.Time { return e.OccurredAt }), next, err
	})
	if err != nil {
		return err
	}
	overdue.What, overdue.Remedy = "overdue holds", "the sweep ends them; see its log if the age grows"
	unpublished.What, unpublished.Remedy = "unpublished events", "ops redrive"
	quarantined.What, quarantined.Remedy = "quarantined events", "mend the cause, then ops redrive -quarantined"
	all := []waiting{overdue, {What: "parked holds", Count: parked.Count, OldestAt: parked.OldestDueAt, Remedy: "mend the cause, then ops retry"}, unpublished, quarantined}
	for i := range all {
		if !all[i].OldestAt.IsZero() {
			all[i].OldestAgeSeconds = now.Sub(all[i].OldestAt).Seconds()
		}
	}
	return o.table(all, "WHAT\tCOUNT\tOLDEST\tWHAT TO DO", func(print func(...any)) {
		for _, w := range all {
			number, oldest := fmt.Sprint(w.Count), "-"
			if w.More {
				number = "at least " + number
			}
			if !w.OldestAt.IsZero() {
				oldest = time.Duration(w.OldestAgeSeconds * float64(time.Second)).Round(time.Second).String()
			}
			print(w.What, number, oldest, w.Remedy)
		}
	})
}

func eventShards() []int {
	shards := make([]int, ledger.UnpublishedShards)
	for i := range shards {
		shards[i] = i
	}
	return shards
}

func timesOf[T any](entries []T, timeOf func(T) time.Time) []time.Time {
	out := make([]time.Time, len(entries))
	for i, entry := range entries {
		out[i] = timeOf(entry)
	}
	return out
}

// count counts what an index lists, up to countMax, the oldest first.
func count(ctx context.Context, shards []int, list due.List[time.Time]) (waiting, error) {
	queue := due.NewQueue(due.Source[time.Time]{
		List: list, Shards: shards, DueAt: func(at time.Time) time.Time { return at },
		PageItems: ledger.PageItemsMax, PageFor: readFor, Late: func() bool { return ctx.Err() != nil },
	})
	var w waiting
	for {
		at, found := queue.Next(ctx)
		if !found {
			break
		}
		if w.Count == countMax {
			w.More = true
			break
		}
		if w.Count == 0 {
			w.OldestAt = at
		}
		w.Count++
	}
	if err := queue.Err(); err != nil {
		return w, err
	}
	return w, ctx.Err()
}
