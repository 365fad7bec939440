package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"holdfast/shared/due"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

const (
	// RedrivePageItems is how many entries of one shard of the index are read at once.
	RedrivePageItems = 100
	// RedriveReadFor bounds one read: a page of the index, or a chunk of events.
	RedriveReadFor = 5 * time.Second
	// RedriveEventsMax bounds the events of one run; the next run goes on. A run remembers
	// what it has seen, so this bounds its memory as well.
	RedriveEventsMax = 100_000
	// redriveChunkEvents is how many events are read and published at once: one BatchGetItem.
	redriveChunkEvents = 100
	// redriveRoundsMax bounds how many versions are fetched forward, one after the other,
	// before an event that was listed too early. Two clocks that differ cause one or two.
	redriveRoundsMax = 10
	// redriveFutileCallsMax is how many calls in a row may bring nothing out before a run
	// takes the bus, or the table, for down. Each of them was tried TriesMax times.
	redriveFutileCallsMax = 3
)

// Index is where events wait that are not published. A dynamo.Store is one.
type Index interface {
	// Unpublished lists entries of one shard whose events occurred before a time, the oldest
	// first; shards are 0 to ledger.UnpublishedShards-1. It may list what was just published.
	Unpublished(ctx context.Context, shard int, before time.Time, page ledger.Page) ([]ledger.UnpublishedEvent, ledger.Cursor, error)
	// UnpublishedEvents reads events, consistently, and returns those that are not published,
	// in the order of items.
	UnpublishedEvents(ctx context.Context, items []ledger.EventItem) ([]ledger.StoredEvent, error)
}

// RedriveReport is what a redrive saw and did.
type RedriveReport struct {
	// Republished counts the events that were published and marked, Failed those that could
	// not be and come again in the next run, and Quarantined those that no retry can publish.
	Republished, Failed, Quarantined int
	// Left counts events that the run has read, or found in its way, and not tried: behind
	// one of the same hold, reservation, slot, policy or case that failed, or for lack of time. There may
	// be more.
	Left int
	// DueUnsent counts due messages that their queue did not take.
	DueUnsent int
	// Truncated says that the run stopped for lack of time, or at RedriveEventsMax.
	Truncated bool
	// Futile says that the run stopped because nothing came through any more.
	Futile bool
	// Lag is how old the oldest unpublished event was when the run began; zero when there
	// was none. It is not known, and then LagKnown is false, when a part of the index could
	// not be read: zero would be a lie.
	Lag      time.Duration
	LagKnown bool
}

// Redrive publishes from the table what the stream did not bring to the bus: after an
// outage that was longer than the stream keeps its records, or for records that were given
// up.
type Redrive struct {
	relay *Relay
	index Index
}

// NewRedrive returns a Redrive that publishes through relay what index lists. The relay's
// Decode port is not used, as nothing comes from a stream.
func NewRedrive(relay *Relay, index Index) *Redrive { return &Redrive{relay: relay, index: index} }

// Run publishes the events that are older than age, the oldest first and those of one
// hold, reservation, slot, policy or case in the order of their versions, for as long as longest and the
// deadline of ctx allow. It may run at any time, beside the stream and other runs:
// consumers see some events twice. The error says that a part of the index or an event
// could not be read; the report is right in any case.
func (r *Redrive) Run(ctx context.Context, age, longest time.Duration) (RedriveReport, error) {
	now := system.Millisecond(r.relay.ports.Clock)
	run := redriveRun{
		delivery: r.relay.newDelivery(r.relay.stopAt(ctx, longest)), index: r.index, now: now, notAfter: now.Add(-age),
		blocked: map[string]bool{}, seen: map[ledger.EventItem]bool{},
	}
	run.queue = due.NewQueue(due.Source[ledger.UnpublishedEvent]{
		Name: "unpublished",
		List: func(ctx context.Context, shard int, page ledger.Page) ([]ledger.UnpublishedEvent, ledger.Cursor, error) {
			return r.index.Unpublished(ctx, shard, now, page)
		},
		Shards: due.Shards(ledger.UnpublishedShards), DueAt: func(entry ledger.UnpublishedEvent) time.Time { return entry.OccurredAt },
		PageItems: RedrivePageItems, PageFor: RedriveReadFor, Late: func() bool { return run.late(ctx) },
	})
	err := run.work(ctx)
	report := run.report
	report.Republished, report.Failed, report.Quarantined = run.published, run.failed, run.aside
	report.DueUnsent = run.duty.unsent
	report.Truncated = report.Truncated || run.truncated > 0 || run.queue.Cut()
	if err != nil {
		return report, fmt.Errorf("redrive: %w", err)
	}
	return report, nil
}

// redriveRun is one redrive under way.
type redriveRun struct {
	*delivery
	index         Index
	now, notAfter time.Time
	queue         *due.Queue[ledger.UnpublishedEvent]
	report        RedriveReport
	began         bool
	// blocked are the holds, reservations and slots of which an event failed, by the
	// partition of their items: nothing of them goes out before it.
	blocked map[string]bool
	// seen are the items that the run has read.
	seen map[ledger.EventItem]bool
	// futileCalls is how many calls in a row brought nothing out.
	futileCalls int
}

// work takes one chunk after the other until nothing is left, or no more can be done.
func (r *redriveRun) work(ctx context.Context) error {
	for !r.report.Futile && !r.report.Truncated && r.truncated == 0 {
		items := r.take(ctx)
		if len(items) == 0 {
			break
		}
		stored, err := r.read(ctx, items)
		if err != nil {
			r.report.Left += len(items)
			return err
		}
		// All events of a chunk were committed before its first message goes out, so that one
		// message is enough for what it is about. Of the next chunk that is not certain.
		r.told = map[message]bool{}
		r.publishOld(ctx, r.records(stored))
	}
	return r.queue.Err()
}

// take takes the next entries whose time has come, up to a chunk.
func (r *redriveRun) take(ctx context.Context) []ledger.EventItem {
	var items []ledger.EventItem
	for len(items) < redriveChunkEvents {
		if len(r.seen)+len(items) >= RedriveEventsMax {
			r.report.Truncated = true
			break
		}
		entry, found := r.queue.Next(ctx)
		r.measureLag(entry, found)
		if !found || r.queue.Cut() || entry.OccurredAt.After(r.notAfter) {
			break
		}
		if !r.seen[entry.Item] {
			items = append(items, entry.Item)
		}
	}
	return items
}

// measureLag goes by the first entry of the merge: it has the first page of every shard
// behind it.
func (r *redriveRun) measureLag(oldest ledger.UnpublishedEvent, found bool) {
	if r.began {
		return
	}
	r.began = true
	r.report.LagKnown = r.queue.Err() == nil && !r.queue.Cut()
	if found && r.report.LagKnown {
		r.report.Lag = max(0, r.now.Sub(oldest.OccurredAt))
	}
}

// read reads the events of items, and before each of them those of the versions before it
// that are not published either. The index is in the order of time, and times are of
// several clocks, in whole milliseconds: an event may be listed before the one that it
// follows.
func (r *redriveRun) read(ctx context.Context, items []ledger.EventItem) ([]ledger.StoredEvent, error) {
	var all []ledger.StoredEvent
	for range redriveRoundsMax {
		stored, err := r.readOnce(ctx, items)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			r.seen[item] = true
		}
		all = append(all, stored...)
		items = items[:0:0]
		for _, e := range stored {
			if e.Before != (ledger.EventItem{}) && !r.seen[e.Before] {
				items = append(items, e.Before)
			}
		}
		if len(items) == 0 {
			break
		}
	}
	for _, item := range items {
		r.blocked[item.PartitionKey] = true // not known to be in order
	}
	return all, nil
}

func (r *redriveRun) readOnce(ctx context.Context, items []ledger.EventItem) ([]ledger.StoredEvent, error) {
	ctx, cancel := context.WithTimeout(ctx, RedriveReadFor)
	defer cancel()
	return r.index.UnpublishedEvents(ctx, items)
}

// records are the stored events as records, the oldest first, and those of one thing in
// the order of their versions. The quarantined ones wait for a person.
func (r *redriveRun) records(stored []ledger.StoredEvent) []record {
	stored = slices.DeleteFunc(stored, func(e ledger.StoredEvent) bool { return e.Quarantine != nil })
	places := map[string][]int{} // of each thing's events in stored
	for i, e := range stored {
		places[e.Item.PartitionKey] = append(places[e.Item.PartitionKey], i)
	}
	records := make([]record, len(stored))
	for _, at := range places {
		inOrder := slices.Clone(at)
		slices.SortStableFunc(inOrder, func(a, b int) int { return cmp.Compare(stored[a].Event.Version, stored[b].Event.Version) })
		for i, from := range inOrder {
			e := stored[from]
			records[at[i]] = r.newRecord(e.Item, e.Event, e.Unreadable)
		}
	}
	return records
}

// publishOld publishes and marks records. One that fails holds back those of its own
// thing, and no others.
func (r *redriveRun) publishOld(ctx context.Context, records []record) {
	for records = r.passOver(records); len(records) > 0; records = r.passOver(records) {
		if r.late(ctx) {
			r.stop(ctx, len(records))
			r.report.Left += len(records)
			return
		}
		if first := records[0]; first.err != nil {
			records = records[1:]
			if r.setAsideAlone(ctx, first) != nil {
				r.blocked[first.item.PartitionKey] = true
			}
			continue
		}
		call := records[:r.nextCall(records)]
		records = records[len(call):]
		if r.block(call, r.deliver(ctx, call)) < len(call) {
			r.futileCalls = 0
			continue
		}
		if r.futileCalls++; r.futileCalls == redriveFutileCallsMax {
			r.report.Futile = true
			r.report.Left += len(records)
			r.ports.Logger.ErrorContext(ctx, "nothing comes through; the next run tries again", slog.Int("records_left", len(records)))
			return
		}
	}
}

// passOver drops the records of what is blocked.
func (r *redriveRun) passOver(records []record) []record {
	open := slices.DeleteFunc(records, func(old record) bool { return r.blocked[old.item.PartitionKey] })
	r.report.Left += len(records) - len(open)
	return open
}

// block blocks what the failed records of a call are of, and returns how many failed.
func (r *redriveRun) block(call []record, failures []error) int {
	failed := 0
	for i, err := range failures {
		if err != nil {
			failed++
			if errors.Is(err, errLate) {
				r.report.Left++
			}
			r.blocked[call[i].item.PartitionKey] = true
		}
	}
	return failed
}
