package sim

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"holdfast/shared/archive"
	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/sim/table"
	"holdfast/shared/topology"
)

const (
	// archiveFor is how long the archive runs in an unkind cloud, and archiveTicks how often.
	archiveFor   = 8 * time.Minute
	archiveTicks = 8
	// archiveCalmTicks is how often it runs after that: once for what a dead worker has
	// leased, once for the holds, and once for their reservations.
	archiveCalmTicks = 3
	// archiveRetainMin and archiveRetainMax are for how long records stay in the table.
	archiveRetainMin, archiveRetainMax = time.Second, time.Minute
	// purgeOneIn says which part of what may leave the table has left it when it is looked at.
	purgeOneIn = 2
	// purgeAfter is when what was archived has left the table.
	purgeAfter = archive.PurgeAfter + time.Hour
)

// newArchiver wires the archive function of the instance.
func (i *instance) newArchiver(store *dynamo.Store) (*archive.Handler, error) {
	w, random := i.world, taskRandom{i.world.kernel}
	worker, err := archive.NewWorker(archive.Ports{
		Store: store, Bucket: archive.NewBucket(&objects{w, i}, bucketName, i.clock, random),
		Clock: i.clock, Random: random, Logger: noLogger,
	}, w.retention())
	if err != nil {
		return nil, err
	}
	return archive.NewHandler(worker, noMetrics{}, random, noLogger), nil
}

// retention is for how long records stay in the table of this history.
func (w *world) retention() archive.Retention {
	d := w.dice("retention")
	return archive.Retention{Holds: d.between(archiveRetainMin, archiveRetainMax), Reservations: d.between(archiveRetainMin, archiveRetainMax)}
}

// archive lets two archive functions run against each other in an unkind cloud, and then
// in a kind one, until all is archived that can be.
func (w *world) archive(unkind Faults) {
	start := w.kernel.now
	w.trace.add("the archive begins")
	w.faults, w.calmSince = unkind.ofArchive(), historyStart.Add(math.MaxInt64/4)
	w.archivers = []*instance{w.newInstance("archive-0", topology.FunctionArchive), w.newInstance("archive-1", topology.FunctionArchive)}
	d := w.dice("ticks of the archive")
	for n := range archiveTicks {
		w.kernel.at(start.Add(d.between(0, archiveFor)), func() { w.tickArchive(fmt.Sprintf("tick %d of the archive", n)) })
	}
	w.kernel.run(start.Add(archiveFor))
	w.settle()
	for n := range archiveCalmTicks {
		w.kernel.run(w.kernel.now.Add(archive.LeaseFor + archiveRetainMax))
		w.kernel.at(w.kernel.now, func() { w.tickArchive(fmt.Sprintf("tick %d of the archive in the calm", n)) })
	}
	w.kernel.run(w.kernel.now.Add(archive.LeaseFor))
	w.closeArchive()
}

// tickArchive invokes one of the archive functions.
func (w *world) tickArchive(name string) {
	to := pick(w.dice(name+" goes to"), w.archivers)
	w.trace.add("%s", name)
	to.invoke(name, func() {
		if err := to.archiver.Handle(to.deadline(), json.RawMessage(`{}`)); err != nil {
			w.trace.add("%s: %v", name, err)
		}
	}, func(completed bool) { w.trace.add("%s ended, completed: %t", name, completed) })
}

// closeArchive checks that what could be archived is, and lies verified in the bucket,
// once.
func (w *world) closeArchive() {
	for _, told := range w.bucket.Violations() {
		w.violated("archive", "the bucket: %s", told)
	}
	in := map[ledger.ArchiveSubject]archive.ManifestSubject{}
	reader := w.reader(nil)
	for _, kind := range []ledger.ArchiveKind{ledger.ArchiveHolds, ledger.ArchiveReservations} {
		for _, batch := range w.batches(kind) {
			manifest, err := reader.Verify(contextOfHistory, batch)
			if err != nil {
				w.violated("archive", "batch %s: %v", batch.ID, err)
			}
			for _, one := range manifest.Subjects {
				subject := ledger.ArchiveSubject{Hold: ledger.HoldID(one.ID)}
				if kind == ledger.ArchiveReservations {
					subject = ledger.ArchiveSubject{Reservation: ledger.ReservationID(one.ID)}
				}
				if _, twice := in[subject]; twice || w.archivedIn(subject) != batch.ID {
					w.violated("archive", "%s is in batch %s, and marked as archived in %q; in another one: %t", one.ID, batch.ID, w.archivedIn(subject), twice)
				}
				in[subject] = one
			}
		}
	}
	w.checkPurging()
	settled := w.calmSince.Add(-w.retention().Holds)
	for _, id := range sortedKeys(w.books.holds) {
		book := w.books.holds[id]
		from, archivable := book.now.ArchiveFrom(book.versions[len(book.versions)-1])
		if r := w.books.reservations[book.now.Reservation]; r != nil {
			archivable = archivable && r.now.AtRest()
		}
		w.checkArchived(in, ledger.ArchiveSubject{Hold: id}, book.now.Version, archivable && from.Before(settled))
	}
	settled = w.calmSince.Add(-w.retention().Reservations)
	for _, id := range sortedKeys(w.books.reservations) {
		r := w.books.reservations[id].now
		from, archivable := r.ArchiveFrom()
		w.checkArchived(in, ledger.ArchiveSubject{Reservation: id}, r.Version, archivable && from.Before(settled))
	}
}

// checkPurging checks that of what is archived all items leave the table.
func (w *world) checkPurging() {
	for key, item := range w.database.table.Items() {
		id, isHold := strings.CutPrefix(key.Partition, "HOLD#")
		subject := ledger.ArchiveSubject{Hold: ledger.HoldID(id)}
		if !isHold {
			subject = ledger.ArchiveSubject{Reservation: ledger.ReservationID(strings.TrimPrefix(key.Partition, "RES#"))}
		}
		if in := w.archivedIn(subject); in != "" && (textOf(item, dynamo.AttributeArchivedIn) != string(in) || numberOf(item, dynamo.AttributeTimeToLive) == 0) {
			w.violated("archive", "%v lies in batch %s, and would stay in the table", key, in)
		}
	}
}

// archivedIn is the batch that the subject was marked with, or "".
func (w *world) archivedIn(subject ledger.ArchiveSubject) ledger.BatchID {
	if book := w.books.holds[subject.Hold]; book != nil {
		return book.now.ArchivedIn
	}
	if book := w.books.reservations[subject.Reservation]; book != nil {
		return book.now.ArchivedIn
	}
	return ""
}

// checkArchived checks that a subject is in a manifest if it is marked, at its version,
// and marked if it must be by now.
func (w *world) checkArchived(in map[ledger.ArchiveSubject]archive.ManifestSubject, subject ledger.ArchiveSubject, version ledger.Version, must bool) {
	one, listed := in[subject]
	marked := w.archivedIn(subject) != ""
	if marked != listed || listed && one.Version != version || must && !marked {
		w.violated("archive", "%v at version %d is marked as archived: %t, is in a manifest: %t at version %d, and should be: %t", subject, version, marked, listed, one.Version, must)
	}
}

// reader reads the archive without a fault, and restores through the store.
func (w *world) reader(store *dynamo.Store) *archive.Archive {
	clock := &nodeClock{kernel: w.kernel}
	return archive.New(archive.NewBucket(w.bucket, bucketName, clock, taskRandom{w.kernel}), store, clock)
}

// batches are all complete batches of a kind.
func (w *world) batches(kind ledger.ArchiveKind) []archive.Batch {
	all, _, err := w.reader(nil).Batches(contextOfHistory, kind, "")
	if err != nil {
		w.violated("archive", "the batches can't be listed: %v", err)
	}
	return all
}

// purgeAndRestore lets what was archived leave the table, in part, and puts one batch back.
func (w *world) purgeAndRestore() {
	d := w.dice("purge of the archive")
	at := w.kernel.now.Add(purgeAfter)
	before := map[table.Key]table.Item{}
	for key, item := range w.database.table.Items() {
		before[key] = item
	}
	w.kernel.spawn(at, "time to live of the archive", d, func(t *task) {
		for _, key := range w.database.expired(w.kernel.now) {
			if t.dice.chance(purgeOneIn) {
				w.database.purge(t, key)
			}
		}
	})
	w.kernel.run(at.Add(time.Second))
	w.close()
	batches := slices.Concat(w.batches(ledger.ArchiveHolds), w.batches(ledger.ArchiveReservations))
	if len(batches) == 0 {
		return
	}
	batch := pick(d, batches)
	store := dynamo.NewStore(&session{database: w.database, instance: w.archivers[0]}, tableName, &nodeClock{kernel: w.kernel}, taskRandom{w.kernel})
	w.kernel.spawn(w.kernel.now, "restore", d, func(*task) {
		if _, err := w.reader(store).Restore(contextOfHistory, batch); err != nil {
			w.violated("archive", "batch %s can't be restored: %v", batch.ID, err)
		}
	})
	w.kernel.run(w.kernel.now.Add(time.Minute))
	for key, was := range before {
		if textOf(was, dynamo.AttributeArchivedIn) == string(batch.ID) && !sameRestored(was, w.database.table.Item(key)) {
			w.violated("archive", "%v of batch %s was %v, and is restored as %v", key, batch.ID, was, w.database.table.Item(key))
		}
	}
	w.close()
}
