package sim

import (
	"cmp"
	"maps"
	"slices"

	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
)

// books are what the simulation knows of the truth: every change, the moment it was
// made, checked against the promises right then. They use arithmetic of their own.
type books struct {
	world    *world
	slots    map[ledger.SlotID]*slotBook
	holds    map[ledger.HoldID]*holdBook
	events   map[ledger.EventID]*eventBook
	steps    map[string]*eventBook // the same, by what they are of and its version
	stock    map[stockKey]ledger.Stock
	promised map[stockKey]ledger.Counters // by the holds
	effects  map[string]ledger.HoldID     // holds by the owner and key that made them
	payments map[ledger.PaymentReference]ledger.HoldID
	writers  map[string]bool // the tasks that have written to the table

	// quotas are what was counted of each owner, and policies what was said for each scope.
	quotas   map[ledger.OwnerID][]quotaMoment
	policies map[ledger.PolicyScope][]policyMoment

	reservations map[ledger.ReservationID]*reservationBook
	// archived is what the events of archived subjects have moved, and purged are the archived
	// subjects that have left the table.
	archived map[stockKey]ledger.Counters
	purged   map[ledger.ArchiveSubject]bool
	// parked counts how often a hold was parked, and prompt the holds that had to end at once
	// and did.
	parked, prompt int
	// captured are the captures that we asked the bank for and it made.
	captured map[ledger.ReservationID]int
	begun    map[string]begun // attempts by the owner and key that began them
}

// sortedKeys are the keys of a map in their order: the order of a map must decide nothing.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func newBooks(w *world) *books {
	return &books{
		world: w, slots: map[ledger.SlotID]*slotBook{}, holds: map[ledger.HoldID]*holdBook{},
		events: map[ledger.EventID]*eventBook{}, steps: map[string]*eventBook{}, stock: map[stockKey]ledger.Stock{},
		promised: map[stockKey]ledger.Counters{}, effects: map[string]ledger.HoldID{},
		payments: map[ledger.PaymentReference]ledger.HoldID{}, writers: map[string]bool{},
		quotas: map[ledger.OwnerID][]quotaMoment{}, policies: map[ledger.PolicyScope][]policyMoment{},
		archived: map[stockKey]ledger.Counters{}, purged: map[ledger.ArchiveSubject]bool{},
		reservations: map[ledger.ReservationID]*reservationBook{}, captured: map[ledger.ReservationID]int{}, begun: map[string]begun{},
	}
}

// write takes one commit into the books and checks it.
func (b *books) write(c commit, by *request) {
	b.writers[c.by] = true
	before, after, err := decodeCommit(c)
	if err != nil {
		b.world.violated("P5", "%s wrote what cannot be read: %v", c.by, err)
		return
	}
	b.checkDeleted(c)
	b.checkListed(c)
	created := b.writeEvents(c, slices.Concat(before.Events, before.ArchivedEvents), slices.Concat(after.Events, after.ArchivedEvents))
	for _, slot := range after.Slots {
		b.writeSlot(c, slot, created, by)
	}
	step := &step{books: b, commit: c, by: by, created: created, after: after}
	step.writePolicies()
	step.writeHolds()
	step.writeReservations()
	step.writeQuotas()
	step.checkLimits()
	b.writeStock(c, after.Stock, created)
	for _, slot := range touchedSlots(after) {
		b.remember(slot)
	}
}

// step is one commit as it is taken into the books.
type step struct {
	*books
	commit  commit
	by      *request // who asked for it; nil for nobody outside
	created []ledger.Event
	after   ledger.Records
	wanted  []limitCheck // what owners must be within afterwards
}

// event is the new event of that thing in this commit.
func (s *step) event(subject string, version ledger.Version) (ledger.Event, bool) {
	for _, e := range s.created {
		if e.Subject() == subject && e.Version == version {
			return e, true
		}
	}
	return ledger.Event{}, false
}

// violated tells of a promise that this commit has broken.
func (s *step) violated(promise, format string, args ...any) {
	s.world.violated(promise, s.commit.by+" "+format, args...)
}

func decodeCommit(c commit) (before, after ledger.Records, err error) {
	var olds, news []map[string]attributeValue
	for _, m := range c.mutations {
		if m.Old != nil {
			olds = append(olds, m.Old)
		}
		if m.New != nil {
			news = append(news, m.New)
		}
	}
	if before, err = dynamo.DecodeRecords(olds); err == nil {
		after, err = dynamo.DecodeRecords(news)
	}
	return before, after, err
}
