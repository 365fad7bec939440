package dynamo_test

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/lease"
	"holdfast/shared/ledger"
	"holdfast/shared/reconcile"
	"holdfast/shared/system"
	"holdfast/shared/system/systemtest"
)

const (
	theBatch  = ledger.BatchID("batch_1")
	purgeFor  = 30 * 24 * time.Hour
	atticSlot = ledger.SlotID("seat")
)

// attic is a table with holds and reservations that are archived, and a clock.
type attic struct {
	*testing.T
	client *dynamodb.Client
	faults *dynamotest.Faults
	table  string
	store  *dynamo.Store
	clock  *systemtest.Clock
	random *systemtest.Random
	slot   ledger.Slot
}

// newAttic has one slot of 100 units that is over at the given time, or never for zero.
func newAttic(t *testing.T, startsIn time.Duration) *attic {
	t.Helper()
	client, table := dynamotest.NewTable(t)
	faults := dynamotest.NewFaults(t, client)
	clock, random := systemtest.NewClock(time.Date(2026, 9, 1, 0, 0, 0, 123_000_000, time.UTC)), systemtest.NewRandom(1)
	s := &attic{T: t, client: client, faults: faults, table: table, clock: clock, random: random, store: dynamo.NewStore(faults, table, clock, random)}
	definition := ledger.SlotDefinition{
		ResourceType: "show", ResourceID: "R-1", Capacity: 100, Policy: ledger.DefaultPolicy(),
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 1000, Currency: "KRW"}, Shards: 1},
	}
	if startsIn > 0 {
		definition.StartsAt = clock.Now().Add(startsIn)
		definition.EndsAt = definition.StartsAt.Add(2 * time.Hour)
	}
	s.slot = s.commit(ledger.NewSlot(atticSlot, definition, s.origin(), s.now())).Slots[0].Next
	return s
}

func (s *attic) now() time.Time { return system.Millisecond(s.clock) }

func (s *attic) purgeAt() time.Time { return s.now().Add(purgeFor).Truncate(time.Second) }

func (s *attic) origin() ledger.Origin {
	return ledger.Origin{Actor: "owner:<U&1>", Command: "test", RequestID: "request", EventID: ledger.NewEventID(s.random.Bits128())}
}

func (s *attic) commit(c ledger.Change, err error) ledger.Change {
	s.Helper()
	s.must(err)
	s.must(s.store.Commit(s.Context(), c))
	return c
}

func (s *attic) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *attic) held(units ledger.Units) ledger.Hold {
	s.Helper()
	return s.commit(ledger.NewHold(ledger.HoldPlan{
		ID: ledger.NewHoldID(s.random.Bits128()), Owner: "U-1",
		Quotes:      []ledger.Quote{{Slot: atticSlot, Quantity: units, UnitAmount: 1000}},
		Slots:       map[ledger.SlotID]ledger.Slot{atticSlot: s.slot},
		Allocations: map[ledger.SlotID][]ledger.Allocation{atticSlot: {{Quantity: units}}},
	}, s.origin(), s.now())).Holds[0].Next
}

func (s *attic) sold(units ledger.Units) ledger.Hold {
	s.Helper()
	return s.commit(ledger.Confirm(s.held(units), "", s.origin(), s.now())).Holds[0].Next
}

// rested is a hold that was given up, and its reservation that has nothing left to do.
func (s *attic) rested() (ledger.Hold, ledger.Reservation) {
	s.Helper()
	started := s.commit(ledger.StartReservation(ledger.NewReservationID(s.random.Bits128()), s.held(1), s.origin(), s.now()))
	hold, r := started.Holds[0].Next, started.Reservations[0].Next
	next := r.Clone()
	next.Status, next.Reason, next.LookAt = ledger.ReservationCanceled, ledger.ReasonDeclined, time.Time{}
	next.Attempts[0].State = ledger.AttemptVoided
	released, err := ledger.ReleaseUnpaid(hold, s.origin(), s.now())
	ended := s.commit(ledger.Together(released, ledger.ReservationStep(r, next, ledger.EventReservationCanceled, nil, s.origin(), s.now())), err)
	return ended.Holds[0].Next, ended.Reservations[0].Next
}

func subjectOf(h ledger.Hold) ledger.ArchiveSubject { return ledger.ArchiveSubject{Hold: h.ID} }

// marking builds the mark of a hold as it is stored.
func (s *attic) marking(id ledger.HoldID) (ledger.Change, error) {
	s.Helper()
	hold, err := s.store.Hold(s.Context(), id)
	s.must(err)
	var of *ledger.Reservation
	if hold.Reservation != "" {
		r, err := s.store.Reservation(s.Context(), hold.Reservation)
		s.must(err)
		of = &r
	}
	events, err := s.store.HoldEvents(s.Context(), id)
	s.must(err)
	return ledger.ArchiveHold(hold, of, events, theBatch, s.purgeAt(), s.now())
}

func (s *attic) markingReservation(id ledger.ReservationID) (ledger.Change, error) {
	s.Helper()
	r, err := s.store.Reservation(s.Context(), id)
	s.must(err)
	events, err := s.store.ReservationEvents(s.Context(), id)
	s.must(err)
	return ledger.ArchiveReservation(r, events, theBatch, s.purgeAt(), s.now())
}

// publish marks all events of the subject as published.
func (s *attic) publish(subject ledger.ArchiveSubject) {
	s.Helper()
	for _, i := range s.items(subject) {
		if i.Event != nil {
			s.must(s.store.MarkPublished(s.Context(), *i.Event, s.now()))
		}
	}
}

func (s *attic) items(subject ledger.ArchiveSubject) []ledger.ArchiveItem {
	s.Helper()
	items, err := s.store.ArchiveItems(s.Context(), subject)
	s.must(err)
	return items
}

// listed is what the archive's list has of a kind, over all shards.
func (s *attic) listed(kind ledger.ArchiveKind) map[string]time.Time {
	s.Helper()
	out := make(map[string]time.Time)
	for shard := range ledger.DueShards {
		entries, next, err := s.store.Archivable(s.Context(), kind, shard, s.now().Add(1000*24*time.Hour), ledger.Page{Limit: ledger.PageItemsMax})
		s.must(err)
		if next != "" {
			s.Fatal("the list has a second page")
		}
		for _, e := range entries {
			out[string(e.Subject.Hold)+string(e.Subject.Reservation)] = e.From
		}
	}
	return out
}

// raw reads the whole table.
func (s *attic) raw() map[string]map[string]types.AttributeValue {
	s.Helper()
	out, err := s.client.Scan(s.Context(), &dynamodb.ScanInput{TableName: &s.table, ConsistentRead: aws.Bool(true)})
	s.must(err)
	items := make(map[string]map[string]types.AttributeValue)
	for _, i := range out.Items {
		items[i["pk"].(*types.AttributeValueMemberS).Value+"/"+i["sk"].(*types.AttributeValueMemberS).Value] = i
	}
	return items
}

// purge deletes what is archived, as its time to live does.
func (s *attic) purge() (deleted int) {
	s.Helper()
	for _, i := range s.raw() {
		if _, archived := i["archived_in"]; !archived {
			continue
		}
		_, err := s.client.DeleteItem(s.Context(), &dynamodb.DeleteItemInput{
			TableName: &s.table, Key: map[string]types.AttributeValue{"pk": i["pk"], "sk": i["sk"]},
		})
		s.must(err)
		deleted++
	}
	return deleted
}

func (s *attic) audit() reconcile.Report {
	s.Helper()
	report, err := reconcile.AuditAtRest(s.Context(), dynamo.NewScan(s.client, s.table), time.Time{})
	s.must(err)
	if len(report.Findings) > 0 {
		s.Errorf("the audit finds %v", report.Findings)
	}
	return report
}

// A hold is listed from when its retention counts: a sale not before its slot is over. Its
// reservation is listed when the hold is archived, and not before.
func TestArchiveListsFromWhenTheRetentionCounts(t *testing.T) {
	s := newAttic(t, 90*24*time.Hour)
	sold, live := s.sold(2), s.held(1)
	canceled := s.commit(ledger.Cancel(s.held(1), s.origin(), s.now())).Holds[0].Next
	hold, r := s.rested()
	want := map[string]time.Time{
		string(sold.ID): s.slot.EndsAt, string(canceled.ID): s.now(), string(hold.ID): s.now(),
	}
	if got := s.listed(ledger.ArchiveHolds); !reflect.DeepEqual(got, want) {
		t.Errorf("listed %v\nwant %v", got, want)
	}
	if got := s.listed(ledger.ArchiveReservations); len(got) > 0 {
		t.Errorf("listed %v before a hold is archived", got)
	}
	ended := s.now()
	s.clock.Advance(time.Hour)
	back := s.commit(ledger.Return(sold, nil, s.origin(), s.now())).Holds[0].Next
	s.commit(s.marking(hold.ID))
	want = map[string]time.Time{string(back.ID): s.now(), string(canceled.ID): ended}
	if got := s.listed(ledger.ArchiveHolds); !reflect.DeepEqual(got, want) {
		t.Errorf("listed %v after a return\nwant %v", got, want)
	}
	if got, want := s.listed(ledger.ArchiveReservations), (map[string]time.Time{string(r.ID): ended}); !reflect.DeepEqual(got, want) {
		t.Errorf("listed %v\nwant %v", got, want)
	}
	s.audit()
	s.commit(s.markingReservation(r.ID))
	if got := s.listed(ledger.ArchiveReservations); len(got) > 0 {
		t.Errorf("listed %v, which is archived", got)
	}
	if report := s.audit(); report.Archived != 2 || report.Holds != 3 || report.Reservations != 0 {
		t.Errorf("report %+v; want 2 archived, 3 holds, no reservation; %s is HELD", report, live.ID)
	}
}

// The list goes page by page, keeps to before, and takes no cursor of another.
func TestArchiveListIsPaged(t *testing.T) {
	s := newAttic(t, 0)
	var all []ledger.HoldID
	for range 40 {
		all = append(all, s.commit(ledger.Cancel(s.held(1), s.origin(), s.now())).Holds[0].Next.ID)
		s.clock.Advance(time.Minute)
	}
	found := make(map[ledger.HoldID]bool)
	for shard := range ledger.DueShards {
		var after ledger.Cursor
		for {
			page, next, err := s.store.Archivable(t.Context(), ledger.ArchiveHolds, shard, s.now().Add(-11*time.Minute), ledger.Page{Limit: 2, After: after})
			s.must(err)
			for _, e := range page {
				found[e.Subject.Hold] = true
			}
			if after = next; after == "" {
				break
			}
		}
	}
	if len(found) != 30 || found[all[30]] || !found[all[29]] {
		t.Errorf("found %d of 40 holds; want the 30 first ones", len(found))
	}
	_, _, err := s.store.Archivable(t.Context(), ledger.ArchiveHolds, 0, s.now(), ledger.Page{Limit: 2, After: "other"})
	if ledger.CodeOf(err) != ledger.CodeInvalid {
		t.Errorf("a cursor of no list gives %v", err)
	}
}

func TestArchivePutsOffWhatItCanNotTakeYet(t *testing.T) {
	s := newAttic(t, 0)
	sold := s.sold(1)
	entry := ledger.ArchiveEntry{Subject: subjectOf(sold), From: s.now()}
	later := s.now().Add(24 * time.Hour)
	s.must(s.store.PutOff(t.Context(), entry, later))
	s.must(s.store.PutOff(t.Context(), entry, later.Add(time.Hour))) // the entry is not there any more
	if got := s.listed(ledger.ArchiveHolds)[string(sold.ID)]; !got.Equal(later) {
		t.Errorf("listed at %v, want %v", got, later)
	}
	live := s.held(1)
	s.must(s.store.PutOff(t.Context(), ledger.ArchiveEntry{Subject: subjectOf(live), From: live.ReleaseAt}, later))
	s.audit()
}

// What is archived, leaves the table and is restored is the same to the last byte, but for
// the marks that say so; and the audit adds up at each step.
func TestRestoredItemsAreTheSameBytes(t *testing.T) {
	s := newAttic(t, 0)
	sold := s.sold(3)
	s.commit(ledger.Return(sold, []ledger.ReturnLine{{Slot: atticSlot, Quantity: 1}}, s.origin(), s.now()))
	hold, r := s.rested()
	s.held(2)
	subjects := []ledger.ArchiveSubject{subjectOf(sold), subjectOf(hold), {Reservation: r.ID}}
	for _, subject := range subjects {
		s.publish(subject)
	}
	before := s.raw()
	var archived []ledger.ArchiveItem
	for _, subject := range subjects {
		items := s.items(subject)
		for _, i := range items {
			read, err := dynamo.DecodeArchiveItem(i.Text)
			s.must(err)
			if !reflect.DeepEqual(read, i) {
				t.Errorf("the text of an item says %+v, want %+v", read, i)
			}
		}
		if again := s.items(subject); !reflect.DeepEqual(again, items) {
			t.Errorf("the same items are read as %+v and %+v", again, items)
		}
		archived = append(archived, items...)
		if subject.Hold != "" {
			s.commit(s.marking(subject.Hold))
		} else {
			s.commit(s.markingReservation(subject.Reservation))
		}
		s.audit()
		for range 2 {
			s.must(s.store.PurgeEvents(t.Context(), subject, theBatch, s.purgeAt()))
		}
		s.audit()
	}
	if deleted := s.purge(); deleted != len(archived) || deleted != 4+4+3 {
		t.Fatalf("%d items were purged and %d archived, want 11", deleted, len(archived))
	}
	s.audit()
	later := s.purgeAt().Add(time.Hour)
	if n, err := s.store.RestoreItems(t.Context(), archived, theBatch, later); n != len(archived) || err != nil {
		t.Fatalf("%d items restored, %v", n, err)
	}
	if n, err := s.store.RestoreItems(t.Context(), archived, theBatch, later); n != 0 || err != nil {
		t.Errorf("%d items restored again, %v", n, err)
	}
	s.audit()
	after := s.raw()
	for _, i := range archived {
		key := keyOfText(t, i.Text)
		got, want := after[key], before[key]
		if got["archived_in"] == nil || got["ttl_at_seconds"].(*types.AttributeValueMemberN).Value != strconv.FormatInt(later.Unix(), 10) {
			t.Errorf("%s is restored without its marks: %v", key, got)
		}
		for _, mark := range []string{"archived_in", "ttl_at_seconds", "due_shard", "due_at_ms", "holds_archived"} {
			delete(want, mark)
			if mark == "archived_in" || mark == "ttl_at_seconds" || mark == "holds_archived" {
				delete(got, mark)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s is restored as\n%v\nwant\n%v", key, got, want)
		}
	}
	for key, want := range before {
		if !slices.ContainsFunc(archived, func(i ledger.ArchiveItem) bool { return keyOfText(t, i.Text) == key }) && !strings.HasPrefix(key, "STOCK") &&
			!reflect.DeepEqual(after[key], want) {
			t.Errorf("%s was not archived and has changed", key)
		}
	}
	if got := s.listed(ledger.ArchiveHolds); len(got) > 0 {
		t.Errorf("restored holds are listed for the archive: %v", got)
	}
}

// keyOfText reads the key out of an item's text by hand.
func keyOfText(t *testing.T, text []byte) string {
	t.Helper()
	part := func(name string) string {
		_, rest, found := bytes.Cut(text, []byte(`"`+name+`":{"S":"`))
		value, _, ended := bytes.Cut(rest, []byte(`"`))
		if !found || !ended {
			t.Fatalf("no %s in %s", name, text)
		}
		return string(value)
	}
	return part("pk") + "/" + part("sk")
}

func TestArchiveTextIsCanonical(t *testing.T) {
	s := newAttic(t, 0)
	s.held(1)
	hold := s.sold(1)
	text := string(s.items(subjectOf(hold))[0].Text)
	if want := `{"actor":{"S":"owner:\u003cU\u00261\u003e"},"command":{"S":"test"},"event_id":{"S":"`; !strings.HasPrefix(text, want) {
		t.Errorf("text %s\nwant it to begin with %s", text, want)
	}
	for _, broken := range []string{``, `[]`, `{"pk":{"S":"HOLD#x"}}`, `{"pk":{"S":"HOLD#x"},"sk":{"S":"HOLD"},"x":{"NULL":true}}`, `{"pk":{"S":"STOCK#x"},"sk":{"S":"STOCK"}}`} {
		if _, err := dynamo.DecodeArchiveItem([]byte(broken)); err == nil {
			t.Errorf("the text %q is read as an item", broken)
		}
	}
	if _, err := s.store.RestoreItems(t.Context(), []ledger.ArchiveItem{{Text: []byte(`{}`)}}, theBatch, s.purgeAt()); ledger.CodeOf(err) != ledger.CodeInvalid {
		t.Errorf("an item without a key is restored: %v", err)
	}
}

// An event that nobody has published stays: the table is the only place to publish it from.
func TestPurgeEventsLeavesWhatIsNotPublished(t *testing.T) {
	s := newAttic(t, 0)
	hold := s.sold(1)
	items := s.items(subjectOf(hold))
	s.must(s.store.MarkPublished(t.Context(), *items[0].Event, s.now()))
	items = s.items(subjectOf(hold))
	if items[0].Unpublished || !items[1].Unpublished || items[2].Unpublished || items[2].Hold == nil {
		t.Fatalf("items %+v; want one published event, one that is not, and the hold", items)
	}
	err := s.store.PurgeEvents(t.Context(), subjectOf(hold), theBatch, s.purgeAt())
	if ledger.CodeOf(err) != ledger.CodeNotArchivable {
		t.Errorf("an event that is not published is purged: %v", err)
	}
	for key, i := range s.raw() {
		_, unpublished := i["unpublished_shard"]
		if _, has := i["ttl_at_seconds"]; has && unpublished {
			t.Errorf("%s leaves the table and is not published", key)
		}
	}
}

// An item whose time to live is over counts as gone, in every read, whether DynamoDB has
// deleted it or not.
func TestPurgedItemsCountAsGone(t *testing.T) {
	s := newAttic(t, 0)
	hold, r := s.rested()
	other := s.sold(1)
	subjects := []ledger.ArchiveSubject{subjectOf(hold), {Reservation: r.ID}}
	for _, subject := range subjects {
		s.publish(subject)
	}
	purgeAt := s.purgeAt()
	s.commit(s.marking(hold.ID))
	s.commit(s.markingReservation(r.ID))
	var archived []ledger.ArchiveItem
	for _, subject := range subjects {
		archived = append(archived, s.items(subject)...)
		s.must(s.store.PurgeEvents(t.Context(), subject, theBatch, purgeAt))
	}
	seen := func() (holds, reservations, events int) {
		t.Helper()
		listed, _, err := s.store.HoldsOfOwner(t.Context(), "U-1", ledger.Page{Limit: 10})
		s.must(err)
		of, _, err := s.store.ReservationsOfOwner(t.Context(), "U-1", ledger.Page{Limit: 10})
		s.must(err)
		told, err := s.store.HoldEvents(t.Context(), hold.ID)
		s.must(err)
		told2, err := s.store.ReservationEvents(t.Context(), r.ID)
		s.must(err)
		return len(listed), len(of), len(told) + len(told2) + len(s.items(subjectOf(hold)))
	}
	s.clock.Set(purgeAt.Add(-time.Millisecond))
	stored, err := s.store.Hold(t.Context(), hold.ID)
	if err != nil || stored.ArchivedIn != theBatch {
		t.Errorf("before its time the hold is %+v, %v", stored, err)
	}
	if h, rs, e := seen(); h != 2 || rs != 1 || e != 3+2+4 {
		t.Errorf("%d holds, %d reservations and %d events are seen before their time", h, rs, e)
	}
	s.clock.Set(purgeAt)
	if _, err := s.store.Hold(t.Context(), hold.ID); ledger.CodeOf(err) != ledger.CodeHoldNotFound {
		t.Errorf("a hold whose time to live is over: %v", err)
	}
	if _, err := s.store.Reservation(t.Context(), r.ID); ledger.CodeOf(err) != ledger.CodeReservationNotFound {
		t.Errorf("a reservation whose time to live is over: %v", err)
	}
	if h, rs, e := seen(); h != 1 || rs != 0 || e != 0 {
		t.Errorf("%d holds, %d reservations and %d events are seen after their time; want 1 hold, %s", h, rs, e, other.ID)
	}
	if n, err := s.store.RestoreItems(t.Context(), archived, theBatch, s.purgeAt()); n != len(archived) || err != nil {
		t.Errorf("%d of %d items restored over those that are over, %v", n, len(archived), err)
	}
	if h, rs, e := seen(); h != 2 || rs != 1 || e != 3+2+4 {
		t.Errorf("%d holds, %d reservations and %d events are seen again", h, rs, e)
	}
}

// Case G12: clean-up times were a thousand times too large.
func TestCaseG12_ArchivedItemsLiveForDays(t *testing.T) {
	s := newAttic(t, 0)
	hold, r := s.rested()
	for _, subject := range []ledger.ArchiveSubject{subjectOf(hold), {Reservation: r.ID}} {
		s.publish(subject)
	}
	s.commit(s.marking(hold.ID))
	s.commit(s.markingReservation(r.ID))
	var archived []ledger.ArchiveItem
	for _, subject := range []ledger.ArchiveSubject{subjectOf(hold), {Reservation: r.ID}} {
		s.must(s.store.PurgeEvents(t.Context(), subject, theBatch, s.purgeAt()))
		archived = append(archived, s.items(subject)...)
	}
	check := func(want int) {
		t.Helper()
		found := 0
		for key, i := range s.raw() {
			value, has := i[dynamo.AttributeTimeToLive]
			if !has {
				continue
			}
			found++
			number, is := value.(*types.AttributeValueMemberN)
			if !is {
				t.Fatalf("%s lives until %v", key, value)
			}
			seconds, err := strconv.ParseInt(number.Value, 10, 64)
			if err != nil || seconds < s.now().Add(-24*time.Hour).Unix() || seconds > s.now().Add(400*24*time.Hour).Unix() {
				t.Errorf("%s lives until %s", key, number.Value)
			}
		}
		if found != want {
			t.Errorf("%d items have a time to live, want %d", found, want)
		}
	}
	check(7)
	s.purge()
	_, err := s.store.RestoreItems(t.Context(), archived, theBatch, s.purgeAt())
	s.must(err)
	check(7)

	sold := s.sold(1)
	events, err := s.store.HoldEvents(t.Context(), sold.ID)
	s.must(err)
	for _, wrong := range []time.Time{
		s.now().Truncate(time.Second).Add(-time.Hour), s.now().Truncate(time.Second).Add(401 * 24 * time.Hour), s.purgeAt().Add(time.Millisecond),
		time.Unix(s.purgeAt().UnixMilli(), 0),
	} {
		change, err := ledger.ArchiveHold(sold, nil, events, theBatch, wrong, s.now())
		s.must(err)
		if err := s.store.Commit(t.Context(), change); ledger.CodeOf(err) != ledger.CodeInternal {
			t.Errorf("a hold that leaves the table at %s is archived: %v", wrong, err)
		}
	}
}

// Case M3: a hold stays while money may be on it, also when the reservation moves between
// the look at it and the mark.
func TestCaseM3_NothingIsArchivedWhileMoneyMayBeOnIt(t *testing.T) {
	s := newAttic(t, 0)
	hold, r := s.rested()
	mark, err := s.marking(hold.ID)
	s.must(err)
	late := r.Clone()
	late.Status, late.LookAt = ledger.ReservationCompensating, s.now()
	s.commit(ledger.ReservationStep(r, late, ledger.EventReservationCompensating, nil, s.origin(), s.now()), nil)
	if refusal := s.store.Commit(t.Context(), mark); !refusedBy(refusal, ledger.LegReservation) {
		t.Errorf("the mark is answered %v, want it refused by the reservation", refusal)
	}
	if _, err := s.marking(hold.ID); ledger.CodeOf(err) != ledger.CodeNotArchivable {
		t.Errorf("a hold of a restless reservation can be archived: %v", err)
	}
	if stored, err := s.store.Hold(t.Context(), hold.ID); err != nil || stored.ArchivedIn != "" {
		t.Errorf("the hold is %+v, %v", stored, err)
	}
}

// A reservation whose hold is archived, and that had to be looked at once more, is listed
// for the archive when it is at rest again.
func TestPostponedForEverIsListedForTheArchive(t *testing.T) {
	s := newAttic(t, 0)
	hold, r := s.rested()
	s.commit(s.marking(hold.ID))
	s.must(s.store.Postpone(t.Context(), r.ID, r.Version, s.now().Add(time.Minute), 1))
	if got := s.listed(ledger.ArchiveReservations); len(got) > 0 {
		t.Errorf("listed %v, which is to be looked at", got)
	}
	s.must(s.store.Postpone(t.Context(), r.ID, r.Version+1, time.Time{}, 2)) // another version
	if got := s.listed(ledger.ArchiveReservations); len(got) > 0 {
		t.Errorf("listed %v by a look at another version", got)
	}
	for range 2 {
		s.must(s.store.Postpone(t.Context(), r.ID, r.Version, time.Time{}, 2))
	}
	if got := s.listed(ledger.ArchiveReservations); len(got) != 1 {
		t.Errorf("listed %v, want %s", got, r.ID)
	}
	s.audit()
}

// A mark whose answer was lost is recognised, by the next try and by reading.
func TestMarkWhoseAnswerWasLost(t *testing.T) {
	s := newAttic(t, 0)
	first, second, third := s.sold(1), s.sold(1), s.sold(1)
	mark, err := s.marking(first.ID)
	s.must(err)
	s.faults.LoseAnswer(dynamotest.TransactWriteItems, 1)
	s.must(s.store.Commit(t.Context(), mark))

	const tries = 10
	mark, err = s.marking(second.ID)
	s.must(err)
	s.faults.LoseAnswer(dynamotest.TransactWriteItems, tries)
	s.must(s.store.Commit(t.Context(), mark))

	mark, err = s.marking(third.ID)
	s.must(err)
	s.faults.Drop(dynamotest.TransactWriteItems, tries)
	if err := s.store.Commit(t.Context(), mark); ledger.CodeOf(err) != ledger.CodeOutcomeUnknown {
		t.Errorf("a mark that never arrived is answered %v", err)
	}
	if report := s.audit(); report.Archived != 2 {
		t.Errorf("report %+v; want 2 archived", report)
	}
}

func TestPlanKeepsOutWhoLostTheLease(t *testing.T) {
	s := newAttic(t, 0)
	ctx := context.Background()
	hold, r := s.rested()
	plan := ledger.ArchivePlan{
		Kind: ledger.ArchiveHolds, Shard: 3, Batch: theBatch, Begun: s.now(),
		Subjects: []ledger.PlannedSubject{{Subject: subjectOf(hold), Version: 2}, {Subject: ledger.ArchiveSubject{Reservation: r.ID}, Version: 1}},
	}
	other := plan
	other.Batch = "batch_2"
	save := func(want bool, p ledger.ArchivePlan, fence int64) {
		t.Helper()
		if saved, err := s.store.SavePlan(ctx, p, lease.Fence(fence)); saved != want || err != nil {
			t.Errorf("saved %t, %v; want %t", saved, err, want)
		}
	}
	clearPlan := func(want bool, p ledger.ArchivePlan, fence int64) {
		t.Helper()
		if cleared, err := s.store.ClearPlan(ctx, p, lease.Fence(fence)); cleared != want || err != nil {
			t.Errorf("cleared %t, %v; want %t", cleared, err, want)
		}
	}
	stored := func(want *ledger.ArchivePlan) {
		t.Helper()
		got, found, err := s.store.Plan(ctx, ledger.ArchiveHolds, 3)
		if err != nil || found != (want != nil) || (want != nil && !reflect.DeepEqual(got, *want)) {
			t.Errorf("plan %+v, %t, %v; want %+v", got, found, err, want)
		}
	}
	stored(nil)
	clearPlan(false, plan, 9) // nothing was planned
	save(true, plan, 5)
	save(true, plan, 5)   // it may be repeated
	save(false, plan, 4)  // by a worker that lost its lease
	save(false, other, 6) // the first batch is not done
	save(true, plan, 7)   // whoever comes after a crash goes on with it
	stored(&plan)
	clearPlan(false, plan, 6)
	clearPlan(false, other, 7)
	stored(&plan)
	clearPlan(true, plan, 7)
	clearPlan(true, plan, 7)
	stored(nil)
	save(false, other, 6) // the fence outlives the plan
	save(true, other, 8)
	stored(&other)
	if _, found, err := s.store.Plan(ctx, ledger.ArchiveReservations, 3); found || err != nil {
		t.Errorf("the other kind has a plan: %t, %v", found, err)
	}
	for _, subjects := range [][]ledger.PlannedSubject{nil, make([]ledger.PlannedSubject, ledger.PlanSubjectsMax+1)} {
		wrong := plan
		wrong.Subjects = subjects
		if _, err := s.store.SavePlan(ctx, wrong, 99); ledger.CodeOf(err) != ledger.CodeInvalid {
			t.Errorf("a plan of %d subjects: %v", len(subjects), err)
		}
	}
	s.audit() // a plan is no part of the ledger
}

func TestLargestPlanFitsAnItem(t *testing.T) {
	s := newAttic(t, 0)
	plan := ledger.ArchivePlan{Kind: ledger.ArchiveReservations, Shard: 15, Batch: theBatch, Begun: s.now()}
	for range ledger.PlanSubjectsMax {
		plan.Subjects = append(plan.Subjects, ledger.PlannedSubject{
			Subject: ledger.ArchiveSubject{Reservation: ledger.NewReservationID(s.random.Bits128())}, Version: 1 << 40,
		})
	}
	if saved, err := s.store.SavePlan(t.Context(), plan, 1); !saved || err != nil {
		t.Fatalf("saved %t, %v", saved, err)
	}
	got, found, err := s.store.Plan(t.Context(), plan.Kind, plan.Shard)
	if err != nil || !found || !reflect.DeepEqual(got, plan) {
		t.Errorf("the plan is not read as it was saved: %t, %v", found, err)
	}
}

// A failing read or write of housekeeping is told, as one that may be tried again.
func TestArchiveTellsWhatItCanNotDo(t *testing.T) {
	s := newAttic(t, 0)
	hold := s.sold(1)
	s.publish(subjectOf(hold))
	items := s.items(subjectOf(hold))
	plan := ledger.ArchivePlan{Kind: ledger.ArchiveHolds, Batch: theBatch, Begun: s.now(), Subjects: []ledger.PlannedSubject{{Subject: subjectOf(hold), Version: 2}}}
	throttled := dynamotest.Throttle()
	for _, call := range []struct {
		name string
		of   dynamotest.Operation
		do   func() error
	}{
		{"list", dynamotest.Query, func() error {
			_, _, err := s.store.Archivable(t.Context(), ledger.ArchiveHolds, 0, s.now(), ledger.Page{Limit: 1})
			return err
		}},
		{"read", dynamotest.Query, func() error { _, err := s.store.ArchiveItems(t.Context(), subjectOf(hold)); return err }},
		{"put off", dynamotest.UpdateItem, func() error {
			return s.store.PutOff(t.Context(), ledger.ArchiveEntry{Subject: subjectOf(hold), From: s.now()}, s.now())
		}},
		{"purge", dynamotest.Query, func() error { return s.store.PurgeEvents(t.Context(), subjectOf(hold), theBatch, s.purgeAt()) }},
		{"purge an event", dynamotest.UpdateItem, func() error { return s.store.PurgeEvents(t.Context(), subjectOf(hold), theBatch, s.purgeAt()) }},
		{"restore", dynamotest.PutItem, func() error { _, err := s.store.RestoreItems(t.Context(), items, theBatch, s.purgeAt()); return err }},
		{"save", dynamotest.PutItem, func() error { _, err := s.store.SavePlan(t.Context(), plan, 1); return err }},
		{"clear", dynamotest.PutItem, func() error { _, err := s.store.ClearPlan(t.Context(), plan, 1); return err }},
		{"plan", dynamotest.GetItem, func() error { _, _, err := s.store.Plan(t.Context(), plan.Kind, 0); return err }},
	} {
		s.faults.Fail(call.of, 1, throttled)
		if err := call.do(); ledger.CodeOf(err) != ledger.CodeUnavailable {
			t.Errorf("%s is answered %v", call.name, err)
		}
	}
}

// refusedBy reports whether the error is a refusal by one leg of that kind.
func refusedBy(err error, kind ledger.LegKind) bool {
	var refused *ledger.Refused
	return errors.As(err, &refused) && len(refused.Legs) == 1 && refused.Legs[0].Kind == kind
}

// An entry of the archive's list that would lead the archive to an item too early, or
// never, counts as none, so that an audit finds it.
func TestScanTellsWhatTheArchiveLists(t *testing.T) {
	s := newAttic(t, 90*24*time.Hour)
	sold := s.sold(1)
	stored := func() (found ledger.StoredHold) {
		t.Helper()
		s.must(dynamo.NewScan(s.client, s.table).ScanRecords(t.Context(), func(r ledger.Records) error {
			found = r.Holds[0]
			return nil
		}))
		return found
	}
	set := func(name string, value types.AttributeValue) {
		t.Helper()
		_, err := s.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: &s.table, UpdateExpression: aws.String("SET #n = :v"),
			Key: map[string]types.AttributeValue{
				"pk": &types.AttributeValueMemberS{Value: "HOLD#" + string(sold.ID)}, "sk": &types.AttributeValueMemberS{Value: "HOLD"},
			},
			ExpressionAttributeNames:  map[string]string{"#n": name},
			ExpressionAttributeValues: map[string]types.AttributeValue{":v": value},
		})
		s.must(err)
	}
	at := func(when time.Time) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(when.UnixMilli(), 10)}
	}
	if h := stored(); !h.Archivable || h.Due {
		t.Errorf("a sold hold is stored as %+v", h)
	}
	set("due_at_ms", at(s.slot.EndsAt.Add(-time.Millisecond)))
	if h := stored(); h.Archivable || !h.Due {
		t.Errorf("a hold that is listed too early is stored as %+v", h)
	}
	set("due_at_ms", at(s.slot.EndsAt.Add(time.Hour))) // put off
	if h := stored(); !h.Archivable || h.Due {
		t.Errorf("a hold that was put off is stored as %+v", h)
	}
	set("due_shard", &types.AttributeValueMemberS{Value: "archive-hold#99"})
	if h := stored(); h.Archivable || !h.Due {
		t.Errorf("a hold in a shard that nobody reads is stored as %+v", h)
	}
}
