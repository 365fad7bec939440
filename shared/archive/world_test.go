package archive_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"testing"
	"time"

	"holdfast/shared/archive"
	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/lease"
	"holdfast/shared/ledger"
	"holdfast/shared/reconcile"
	"holdfast/shared/system"
	"holdfast/shared/system/systemtest"
)

const (
	bucketName               = "archive-test"
	slotID     ledger.SlotID = "hall-1"

	holdsAfter        = 30 * 24 * time.Hour
	reservationsAfter = 90 * 24 * time.Hour
)

var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// world is the real store on a table in memory, a bucket, and a clock that the test moves.
type world struct {
	tb       testing.TB
	watched  *watched
	store    *dynamo.Store
	bucket   *archive.Bucket
	clock    *systemtest.Clock
	random   system.Random
	commands *commands.Commands
	runs     int
}

func newWorld(tb testing.TB, capacity ledger.Units) *world {
	tb.Helper()
	w := &world{tb: tb, watched: newWatched(tb), clock: systemtest.NewClock(start), random: systemtest.NewRandom(1)}
	w.store = dynamo.NewStore(w.watched, "table", w.clock, w.random)
	w.bucket = archive.NewBucket(w.watched, bucketName, w.clock, w.random)
	w.commands = commands.New(w.store, w.clock, w.random)
	policy := ledger.DefaultPolicy()
	policy.HoldFor = 15 * time.Minute
	_, err := w.commands.PutSlot(context.Background(), commands.Request{Actor: "catalog:test", RequestID: "request_put"}, slotID,
		ledger.SlotDefinition{
			ResourceType: "hall", ResourceID: "h", Policy: policy, Capacity: capacity,
			Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 5000, Currency: "KRW"}, Shards: 4},
		},
		func(ledger.Slot, ledger.Policy, ledger.Counters, bool) (ledger.Response, error) {
			return ledger.Response{Status: 201}, nil
		})
	w.check(err)
	return w
}

func (w *world) check(err error) {
	w.tb.Helper()
	if err != nil {
		w.tb.Fatal(err)
	}
}

func owner() commands.Request {
	return commands.Request{Actor: "owner:U-1", Owner: "U-1", RequestID: "request_hold"}
}

func rendered(ledger.Hold, time.Time) (ledger.Response, error) {
	return ledger.Response{Status: 200}, nil
}

// hold makes a hold of one unit now.
func (w *world) hold() ledger.HoldID {
	w.tb.Helper()
	var id ledger.HoldID
	_, err := w.commands.CreateHold(context.Background(), owner(), commands.HoldWish{Quotes: []ledger.Quote{{Slot: slotID, Quantity: 1, UnitAmount: 5000}}},
		func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
			id = h.ID
			return ledger.Response{Status: 201}, nil
		})
	w.check(err)
	return id
}

// ended makes a hold and ends it now: sold, given up or expired, in turn.
func (w *world) ended(i int) ledger.HoldID {
	w.tb.Helper()
	id := w.hold()
	var err error
	switch i % 3 {
	case 0:
		_, err = w.commands.CancelHold(context.Background(), owner(), id, rendered)
	case 1:
		_, err = w.commands.ConfirmHold(context.Background(), owner(), id, ledger.PaymentReference(fmt.Sprintf("pay-%d", i)), nil, rendered)
	default:
		w.clock.Advance(15 * time.Minute)
		_, err = w.commands.ExpireHold(context.Background(), id, "request_expire")
	}
	w.check(err)
	w.publish(ledger.ArchiveSubject{Hold: id})
	return id
}

// holds makes n ended holds.
func (w *world) holds(n int) []ledger.ArchiveSubject {
	w.tb.Helper()
	var out []ledger.ArchiveSubject
	for i := range n {
		out = append(out, ledger.ArchiveSubject{Hold: w.ended(i)})
	}
	return out
}

// publish marks all events of the subject as published.
func (w *world) publish(subject ledger.ArchiveSubject) {
	w.tb.Helper()
	for _, item := range w.items(subject) {
		if item.Event != nil && item.Unpublished {
			w.check(w.store.MarkPublished(context.Background(), *item.Event, w.clock.Now()))
		}
	}
}

func (w *world) items(subject ledger.ArchiveSubject) []ledger.ArchiveItem {
	w.tb.Helper()
	items, err := w.store.ArchiveItems(context.Background(), subject)
	w.check(err)
	return items
}

// texts are the bytes of a subject's items, as the table has them.
func (w *world) texts(subject ledger.ArchiveSubject) [][]byte {
	w.tb.Helper()
	var out [][]byte
	for _, item := range w.items(subject) {
		out = append(out, item.Text)
	}
	return out
}

func (w *world) read(id ledger.HoldID) ledger.Hold {
	w.tb.Helper()
	hold, err := w.store.Hold(context.Background(), id)
	w.check(err)
	return hold
}

func (w *world) worker(store archive.Store) *archive.Worker {
	w.tb.Helper()
	if store == nil {
		store = w.store
	}
	worker, err := archive.NewWorker(archive.Ports{
		Store: store, Bucket: w.bucket, Clock: w.clock, Random: w.random, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, archive.Retention{Holds: holdsAfter, Reservations: reservationsAfter})
	w.check(err)
	return worker
}

// run archives once, as a worker of its own.
func (w *world) run() (archive.Report, error) {
	w.tb.Helper()
	w.runs++
	return w.worker(nil).Run(context.Background(), lease.Worker(fmt.Sprintf("run-%d", w.runs)))
}

func (w *world) mustRun() archive.Report {
	w.tb.Helper()
	report, err := w.run()
	w.check(err)
	return report
}

func (w *world) archive() *archive.Archive { return archive.New(w.bucket, w.store, w.clock) }

// batches are all complete batches of a kind.
func (w *world) batches(kind ledger.ArchiveKind) []archive.Batch {
	w.tb.Helper()
	var all []archive.Batch
	var after archive.Cursor
	for {
		page, next, err := w.archive().Batches(context.Background(), kind, after)
		w.check(err)
		all = append(all, page...)
		if after = next; after == "" {
			return all
		}
	}
}

// archivedOnce requires that each subject is in exactly one verified manifest, whose batch
// is what its item says, and that no other subject is in any.
func (w *world) archivedOnce(kind ledger.ArchiveKind, subjects []ledger.ArchiveSubject) {
	w.tb.Helper()
	in := make(map[string]ledger.BatchID)
	for _, b := range w.batches(kind) {
		m, err := w.archive().Verify(context.Background(), b)
		w.check(err)
		for _, s := range m.Subjects {
			if other, twice := in[s.ID]; twice {
				w.tb.Errorf("%s is in the batches %s and %s", s.ID, other, m.Batch)
			}
			in[s.ID] = m.Batch
		}
	}
	for _, s := range subjects {
		id := string(s.Hold) + string(s.Reservation)
		if in[id] == "" {
			w.tb.Errorf("%s is in no batch", id)
		}
		for _, item := range w.items(s) {
			if item.Hold != nil && item.Hold.ArchivedIn != in[id] || item.Reservation != nil && item.Reservation.ArchivedIn != in[id] {
				w.tb.Errorf("%s is in batch %s, and its item says another", id, in[id])
			}
		}
	}
	if len(in) != len(subjects) {
		w.tb.Errorf("%d subjects are in the archive, want %d", len(in), len(subjects))
	}
}

// booksAreRight requires a clean audit.
func (w *world) booksAreRight() {
	w.tb.Helper()
	report, err := reconcile.AuditAtRest(context.Background(), dynamo.NewScan(w.watched, "table"), time.Time{})
	w.check(err)
	for _, v := range report.Findings {
		w.tb.Error(v)
	}
}

// kept is what an archived item must say again after a restore: all of it but when it
// leaves the table.
func kept(texts [][]byte) []string {
	var out []string
	for _, text := range texts {
		out = append(out, timeToLive.ReplaceAllString(string(text), `"ttl_at_seconds":{}`))
	}
	return out
}

var timeToLive = regexp.MustCompile(`"ttl_at_seconds":\{"N":"[0-9]+"\}`)
