package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/shared/due"
	"holdfast/shared/expiry"
	"holdfast/shared/ledger"
	"holdfast/shared/objects"
	"holdfast/shared/reconcile"
	"holdfast/shared/system"
)

const (
	// firstMax is how many status names of those that a person must look at.
	firstMax = 10
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
	// First are the first of those that a person must look at, and what is known of them.
	First []string `json:"first,omitempty"`
}

// status prints what waits, from the indexes: it is what was true a moment ago.
func status(ctx context.Context, o *operator, arguments []string) error {
	if len(arguments) > 0 {
		return fmt.Errorf("status takes no argument, and was given %q", arguments[0])
	}
	now := system.Millisecond(o.clock)
	kinds := []func(context.Context, time.Time) (waiting, error){
		o.overdueHolds, o.ghostHolds, o.parkedHolds, o.unpublishedEvents, o.quarantinedEvents, o.openReviews,
	}
	all := make([]waiting, 0, len(kinds))
	for _, kind := range kinds {
		w, err := kind(ctx, now)
		if err != nil {
			return err
		}
		if !w.OldestAt.IsZero() {
			w.OldestAgeSeconds = now.Sub(w.OldestAt).Seconds()
		}
		all = append(all, w)
	}
	if o.auditBucket != "" {
		last, err := o.lastAudit(ctx, now)
		if err != nil {
			return err
		}
		all = append(all, last)
	}
	return o.printWaiting(all)
}

// printWaiting prints a row of each kind, and below them those that a person must look at.
func (o *operator) printWaiting(all []waiting) error {
	err := o.table(all, "WHAT\tCOUNT\tOLDEST\tWHAT TO DO", func(print func(...any)) {
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
	if err != nil || o.json {
		return err
	}
	for _, w := range all {
		if len(w.First) > 0 {
			fmt.Fprintf(o.out, "\n%s, the first %d:\n  %s\n", w.What, len(w.First), strings.Join(w.First, "\n  "))
		}
	}
	return nil
}

func (o *operator) overdueHolds(ctx context.Context, now time.Time) (waiting, error) {
	w, _, err := o.dueSince(ctx, now)
	w.What, w.Remedy = "overdue holds", "the sweep ends them; see its log if the age grows"
	return w, err
}

// ghostHolds names the overdue holds that should long have been ended: their units are kept
// from everybody, and belong to nobody.
func (o *operator) ghostHolds(ctx context.Context, now time.Time) (waiting, error) {
	w, first, err := o.dueSince(ctx, now.Add(-reconcile.GhostAfter))
	w.What, w.Remedy = "ghost holds", "the sweep does not run or fails on them; ops explain hold ID, ops audit -repair"
	for _, entry := range first {
		w.First = append(w.First, fmt.Sprintf("%s, due since %s", entry.ID, entry.DueAt.UTC().Format(time.RFC3339)))
	}
	return w, err
}

// lastAudit tells of the findings of the stage's last audit, and how long ago it ended.
func (o *operator) lastAudit(ctx context.Context, now time.Time) (waiting, error) {
	w := waiting{What: "findings of the last audit", Remedy: "ops audit, then ops audit -repair"}
	ctx, cancel := context.WithTimeout(ctx, readFor)
	defer cancel()
	shelf := reconcile.NewShelf(objects.NewBucket(o.objects(), o.auditBucket, o.clock, o.random))
	last, settled, found, err := shelf.Last(ctx, now)
	switch {
	case err != nil:
		return w, fmt.Errorf("read the last audit: %w", err)
	case !found:
		w.Remedy = fmt.Sprintf("no audit has ended in the last %s; ops audit runs one now", reconcile.LastReportWithin)
		return w, nil
	}
	w.Count, w.OldestAt, w.OldestAgeSeconds = len(last.Report.Findings), last.EndedAt, now.Sub(last.EndedAt).Seconds()
	if settled != nil {
		w.Remedy = fmt.Sprintf("%d were repaired and %d are with a person; %s", settled.Repair.Count(reconcile.RepairDone), settled.Repair.Count(reconcile.RepairQueued)+settled.Repair.Count(reconcile.RepairKnown), w.Remedy)
	}
	for _, f := range last.Report.Findings {
		if len(w.First) < firstMax {
			w.First = append(w.First, fmt.Sprintf("%s: %s", f.Kind, f.Subject))
		}
	}
	return w, nil
}

// dueSince counts the holds that were due at a time.
func (o *operator) dueSince(ctx context.Context, at time.Time) (waiting, []ledger.DueHold, error) {
	return count(ctx, due.AllShards(), func(e ledger.DueHold) time.Time { return e.DueAt },
		func(ctx context.Context, shard int, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
			return o.store.Due(ctx, shard, at, page)
		})
}

// openReviews names those that wait longest for a person. Parked holds and quarantined events
// wait for one too, and have rows of their own.
func (o *operator) openReviews(ctx context.Context, _ time.Time) (waiting, error) {
	w, first, err := count(ctx, []int{0}, func(e ledger.InReview) time.Time { return e.Since },
		func(ctx context.Context, _ int, page ledger.Page) ([]ledger.InReview, ledger.Cursor, error) {
			return o.store.InReview(ctx, page)
		})
	w.What, w.Remedy = "reviews", "ops reviews, then ops reviews show ID"
	for _, entry := range first {
		id := string(entry.Reservation)
		if id == "" {
			id = string(entry.Review)
		}
		w.First = append(w.First, fmt.Sprintf("%s, since %s", id, entry.Since.UTC().Format(time.RFC3339)))
	}
	return w, err
}

// parkedHolds names those that are tried next. The oldest is the one that is overdue longest,
// which is not what their list is ordered by.
func (o *operator) parkedHolds(ctx context.Context, now time.Time) (waiting, error) {
	w, first, err := count(ctx, due.AllShards(), func(e ledger.DueHold) time.Time { return e.TryAt }, o.store.Parked)
	if err != nil {
		return w, err
	}
	look, err := expiry.NewParkedLook(o.store).Look(ctx, now)
	w.What, w.Remedy, w.OldestAt = "parked holds", "mend the cause, then ops retry", look.OldestDueAt
	for _, entry := range first {
		w.First = append(w.First, fmt.Sprintf("%s, tried again at %s", entry.ID, entry.TryAt.UTC().Format(time.RFC3339)))
	}
	return w, err
}

func (o *operator) unpublishedEvents(ctx context.Context, now time.Time) (waiting, error) {
	w, _, err := count(ctx, due.Shards(ledger.UnpublishedShards), func(e ledger.UnpublishedEvent) time.Time { return e.OccurredAt },
		func(ctx context.Context, shard int, page ledger.Page) ([]ledger.UnpublishedEvent, ledger.Cursor, error) {
			return o.store.Unpublished(ctx, shard, now, page)
		})
	w.What, w.Remedy = "unpublished events", "ops redrive"
	return w, err
}

// quarantinedEvents names the oldest, with why each of them can't be published.
func (o *operator) quarantinedEvents(ctx context.Context, _ time.Time) (waiting, error) {
	w, first, err := count(ctx, due.Shards(ledger.UnpublishedShards), func(e ledger.UnpublishedEvent) time.Time { return e.OccurredAt }, o.store.Quarantined)
	w.What, w.Remedy = "quarantined events", "mend the cause, then ops redrive -quarantined"
	if err != nil || len(first) == 0 {
		return w, err
	}
	items := make([]ledger.EventItem, len(first))
	for i, entry := range first {
		items[i] = entry.Item
	}
	events, err := o.store.UnpublishedEvents(ctx, items)
	for _, e := range events {
		if e.Quarantine != nil { // the index may be late
			w.First = append(w.First, fmt.Sprintf("%s, since %s: %s", e.Item, e.Quarantine.At.UTC().Format(time.RFC3339), e.Quarantine.Reason))
		}
	}
	return w, err
}

// count counts what an index lists, up to countMax, and returns the first firstMax of it.
func count[T any](ctx context.Context, shards []int, timeOf func(T) time.Time, list due.List[T]) (waiting, []T, error) {
	queue := due.NewQueue(due.Source[T]{
		List: list, Shards: shards, DueAt: timeOf,
		PageItems: ledger.PageItemsMax, PageFor: readFor, Late: func() bool { return ctx.Err() != nil },
	})
	var w waiting
	var first []T
	for {
		entry, found := queue.Next(ctx)
		if !found {
			break
		}
		if w.Count == countMax {
			w.More = true
			break
		}
		if w.Count == 0 {
			w.OldestAt = timeOf(entry)
		}
		if w.Count < firstMax {
			first = append(first, entry)
		}
		w.Count++
	}
	return w, first, errors.Join(queue.Err(), ctx.Err())
}
