package commands_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
)

// newRows are puts of so many slots, "S0" and on.
func newRows(n int, d ledger.SlotDefinition) []commands.SlotRow {
	rows := make([]commands.SlotRow, n)
	for i := range rows {
		rows[i] = putRow(ledger.SlotID(fmt.Sprintf("S%d", i)), d)
	}
	return rows
}

func putRow(id ledger.SlotID, d ledger.SlotDefinition) commands.SlotRow {
	return commands.SlotRow{ID: id, Put: &d}
}

func patchRow(id ledger.SlotID, patch ledger.SlotPatch) commands.SlotRow {
	return commands.SlotRow{ID: id, Patch: &patch, Fingerprint: ledger.Fingerprint(fmt.Sprintf("%+v", patch))}
}

func delta(units ledger.Units) ledger.SlotPatch { return ledger.SlotPatch{CapacityDelta: &units} }

// put carries out a batch, and returns what came of its rows: what they did, or the code of
// what refused them.
func (b *bench) put(by *commands.Commands, key string, rows ...commands.SlotRow) string {
	b.t.Helper()
	outcomes, err := by.PutSlots(b.t.Context(), catalogue(key), rows)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.told(rows, outcomes)
}

func (b *bench) told(rows []commands.SlotRow, outcomes []commands.SlotOutcome) string {
	b.t.Helper()
	if len(outcomes) != len(rows) {
		b.t.Fatalf("%d outcomes of %d rows", len(outcomes), len(rows))
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	var words []string
	for i, o := range outcomes {
		if o.ID != rows[i].ID || (o.Err != nil) != (o.Did == commands.SlotRefused) {
			b.t.Errorf("row %d of %s has the outcome %+v", i, rows[i].ID, o)
		}
		if o.Did == commands.SlotCreated {
			b.slots = append(b.slots, o.ID)
		}
		word := string(o.Did)
		if o.Err != nil {
			word = string(ledger.CodeOf(o.Err))
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func repeated(word string, n int) string { return strings.TrimSpace(strings.Repeat(word+" ", n)) }

// A batch does to each slot what a call for it alone would do. Sent again it changes
// nothing more: puts find their slots as they want them, and write nothing; patches are
// told their first outcome.
func TestBatchIsRepeatable(t *testing.T) {
	b := newBench(t)
	b.define("same", definition(5, 1))
	b.define("parts", definition(5, 3))
	b.define("dearer", definition(5, 1))
	b.define("more", definition(5, 2))
	b.define("open", definition(5, 1))
	dear := definition(5, 1)
	dear.Terms.Price.AmountMinor = 2000
	bad := definition(-1, 1)
	other := definition(5, 1)
	other.ResourceID = "KE0902"
	rows := []commands.SlotRow{
		putRow("new", definition(7, 1)),
		putRow("same", definition(5, 1)),
		putRow("bad", bad),
		putRow("parts", definition(5, 3)),
		putRow("dearer", dear),
		patchRow("more", delta(3)),
		patchRow("none", delta(3)),
		patchRow("open", ledger.SlotPatch{Open: pointer(true)}),
		putRow("new-parts", definition(7, 4)),
	}
	if got, want := b.put(b.commands, "K", rows...), "created unchanged invalid_request unchanged changed changed slot_not_found unchanged created"; got != want {
		t.Errorf("first %s, want %s", got, want)
	}
	first := b.store.commits
	if first != 4 { // both new slots, a price, a delta, and the key of the patch that changes nothing
		t.Errorf("%d commits, want 4", first)
	}
	b.clock.Advance(time.Hour)
	if got, want := b.put(b.commands, "K", rows...), "unchanged unchanged invalid_request unchanged unchanged changed slot_not_found unchanged unchanged"; got != want {
		t.Errorf("again %s, want %s", got, want)
	}
	if tries := b.store.commits - first; tries != 2 { // the two patches, whose keys are taken
		t.Errorf("the repeat tries to write %d times, want 2", tries)
	}
	b.wantCounters("more", 8, 0, 0)
	b.wantCounters("new", 7, 0, 0)
	if got := b.put(b.commands, "other key", patchRow("more", delta(3))); got != "changed" {
		t.Errorf("another request: %s", got)
	}
	b.wantCounters("more", 11, 0, 0)
	if got := b.put(b.commands, "K", patchRow("more", delta(4))); got != "idempotency_key_reused" {
		t.Errorf("another patch under the key: %s", got)
	}
	if got := b.put(b.commands, "K", putRow("dearer", other)); got != "slot_fixed" {
		t.Errorf("another resource: %s", got)
	}
	b.balanced()
}

// A key of a row's own makes the row the same one in every batch.
func TestARowMayBringItsKey(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(5, 1))
	row := patchRow("S", delta(2))
	row.Key = "file row 3"
	for _, key := range []string{"", "K", "L"} {
		if got := b.put(b.commands, key, row); got != "changed" {
			t.Errorf("under %q: %s", key, got)
		}
	}
	b.wantCounters("S", 7, 0, 0)
	b.balanced()
}

func TestWhatIsNoBatch(t *testing.T) {
	b := newBench(t)
	d := definition(5, 1)
	for name, rows := range map[string][]commands.SlotRow{
		"no row":          nil,
		"too many rows":   newRows(commands.SlotRowsMax+1, d),
		"one slot twice":  {putRow("S", d), putRow("T", d), putRow("S", d)},
		"neither":         {{ID: "S"}},
		"both":            {{ID: "S", Put: &d, Patch: &ledger.SlotPatch{}}},
		"a patch, no key": {putRow("S", d), patchRow("T", delta(1))},
	} {
		outcomes, err := b.commands.PutSlots(t.Context(), catalogue(""), rows)
		if ledger.CodeOf(err) != ledger.CodeInvalid || outcomes != nil {
			t.Errorf("%s: %v, %v", name, outcomes, err)
		}
	}
	if b.store.commits+b.store.reads != 0 {
		t.Errorf("%d commits and %d reads of what is no batch", b.store.commits, b.store.reads)
	}
}

// New slots go together into as few Changes as their shards allow, each with an event of
// its own, and the slots of a batch are read in one call.
func TestNewSlotsGoTogether(t *testing.T) {
	for _, test := range []struct{ rows, shards, commits int }{
		{100, 1, 4},   // 33 slots of three actions
		{100, 48, 50}, // two of 50
		{3, 64, 3},
		{1, 1, 1},
	} {
		b := newBench(t)
		b.store.beforeCommit = func(_ int, c ledger.Change) error {
			if c.Actions() > ledger.ActionsMax || len(c.Events) != len(c.Slots) {
				t.Errorf("a Change of %d actions and %d events for %d slots", c.Actions(), len(c.Events), len(c.Slots))
			}
			return nil
		}
		rows := newRows(test.rows, definition(1000, test.shards))
		if got := b.put(b.commands, "", rows...); got != repeated("created", test.rows) {
			t.Errorf("%+v: %s", test, got)
		}
		if b.store.commits != test.commits || b.store.reads != 1 {
			t.Errorf("%+v: %d commits, %d reads", test, b.store.commits, b.store.reads)
		}
		b.balanced()
	}
}

// A slot that another caller makes between the read and the write refuses the Change that
// it is in. The others of that Change are made all the same, and the slot becomes what the
// row says.
func TestATwinDoesNotKeepTheOthersBack(t *testing.T) {
	b := newBench(t)
	b.store.beforeCommit = func(try int, _ ledger.Change) error {
		if try == 1 {
			b.define("S3", definition(9, 1))
			b.define("S5", definition(5, 1))
		}
		return nil
	}
	rows := newRows(8, definition(5, 1))
	if got, want := b.put(b.commands, "", rows...), "created created created changed created unchanged created created"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	b.wantCounters("S3", 5, 0, 0)
	b.balanced()
}

// A slot that is there as wanted when it is read, and is changed before the row is told so,
// is decided anew.
func TestARowIsNotToldOfTwoMoments(t *testing.T) {
	for _, shards := range []int{1, 2} {
		b := newBench(t)
		b.define("S", definition(5, shards))
		other := definition(5, shards)
		other.Terms.Price.AmountMinor = 2000
		change := func() { b.define("S", other) }
		b.store.betweenSlotAndStock = change
		b.store.stock = func(stock []ledger.Stock) []ledger.Stock {
			if b.store.reads == 1 && shards == 1 {
				change()
			}
			return stock
		}
		if got := b.put(b.commands, "", putRow("S", definition(5, shards))); got != "changed" {
			t.Errorf("%d shards: %s, want the put to be carried out", shards, got)
		}
		slots, err := b.store.Store.Slots(t.Context(), []ledger.SlotID{"S"})
		if err != nil || slots[0].Terms.Price.AmountMinor != 1000 {
			t.Errorf("%d shards: the slot is %+v, %v", shards, slots, err)
		}
		b.balanced()
	}
}

// A refusal is decided on what is there now, and not on what was found when the batch began.
func TestARefusalIsOfTheMoment(t *testing.T) {
	b := newBench(t)
	b.define("first", definition(5, 1))
	b.define("S", definition(5, 1))
	hold := b.mustHold("S", 3)
	b.store.beforeCommit = func(try int, _ ledger.Change) error {
		if try > 1 {
			return nil
		}
		_, err := b.others.CancelHold(t.Context(), request(""), hold.ID, b.render)
		return err
	}
	if got := b.put(b.commands, "K", patchRow("first", delta(1)), putRow("S", definition(2, 1))); got != "changed changed" {
		t.Errorf("%s", got)
	}
	b.wantCounters("S", 2, 0, 0)
	b.store.beforeCommit = nil
	b.mustHold("S", 1)
	if got := b.put(b.commands, "", putRow("S", definition(0, 1)), putRow("T", definition(1, 1))); got != "capacity_in_use created" {
		t.Errorf("%s", got)
	}
	b.balanced()
}

var errLost = &ledger.Error{Code: ledger.CodeOutcomeUnknown, Message: "lost"}

// The answer of a Change that was applied is lost. The same Change again finds its own
// events, so the rows are told that they were carried out, and nothing is written twice.
func TestALostAnswerIsFoundAgain(t *testing.T) {
	b := newBench(t)
	b.define("more", definition(5, 1))
	b.store.afterCommit = func(try int) error {
		if try <= 2 {
			return errLost
		}
		return nil
	}
	rows := newRows(40, definition(5, 1))
	if got := b.put(b.commands, "", rows...); got != repeated("created", 40) {
		t.Errorf("%s", got)
	}
	// It stays lost: nobody can tell, and the batch is sent again.
	b.store.afterCommit = func(int) error { return errLost }
	rows = append([]commands.SlotRow{patchRow("more", delta(1))}, putRow("last", definition(5, 1)))
	if got := b.put(b.commands, "K", rows...); got != "outcome_unknown outcome_unknown" {
		t.Errorf("%s", got)
	}
	b.store.afterCommit = nil
	if got := b.put(b.commands, "K", rows...); got != "changed unchanged" {
		t.Errorf("again: %s", got)
	}
	b.slots = append(b.slots, "last")
	b.wantCounters("more", 6, 0, 0)
	b.balanced()
}

// A store that fails for one Change refuses the rows of that Change, and no other.
func TestAFailureIsOfItsRows(t *testing.T) {
	b := newBench(t)
	b.store.beforeCommit = func(try int, _ ledger.Change) error {
		if try == 2 {
			return &ledger.Error{Code: ledger.CodeUnavailable, Message: "throttled"}
		}
		return nil
	}
	rows := newRows(100, definition(5, 1))
	want := repeated("created", 33) + " " + repeated("unavailable", 33) + " " + repeated("created", 34)
	if got := b.put(b.commands, "", rows...); got != want {
		t.Errorf("%s", got)
	}
	want = repeated("unchanged", 33) + " " + repeated("created", 33) + " " + repeated("unchanged", 34)
	if got := b.put(b.commands, "", rows...); got != want {
		t.Errorf("again: %s", got)
	}
	b.balanced()
}

// What is not done when the request's time is over is unavailable, and what is done stays.
func TestRowsThatComeTooLate(t *testing.T) {
	b := newBench(t)
	b.define("more", definition(5, 1))
	b.define("less", definition(5, 1))
	b.define("late", definition(5, 1))
	ctx, cancel := context.WithCancel(t.Context())
	b.store.afterCommit = func(try int) error {
		if try == 2 {
			cancel()
		}
		return nil
	}
	rows := append([]commands.SlotRow{patchRow("more", delta(1)), patchRow("less", delta(-1)), patchRow("late", delta(1))}, newRows(40, definition(5, 1))...)
	outcomes, err := b.commands.PutSlots(ctx, catalogue("K"), rows)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := b.told(rows, outcomes), "changed changed "+repeated("unavailable", 41); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if b.store.commits != 2 || !errors.Is(outcomes[2].Err, context.Canceled) || !errors.Is(outcomes[3].Err, context.Canceled) {
		t.Errorf("%d commits, want none after the end; causes %v, %v", b.store.commits, outcomes[2].Err, outcomes[3].Err)
	}
	b.store.afterCommit = nil
	if got, want := b.put(b.commands, "K", rows...), "changed changed changed "+repeated("created", 40); got != want {
		t.Errorf("again: %s, want %s", got, want)
	}
	b.wantCounters("more", 6, 0, 0)
	b.balanced()
	if _, err := b.commands.PutSlots(ctx, catalogue("K"), rows); ledger.CodeOf(err) != ledger.CodeUnavailable {
		t.Errorf("a request whose time was over before: %v", err)
	}
}

// Two batches over the same slots at the same time make each slot once, and both end.
func TestBatchesOverTheSameSlots(t *testing.T) {
	b := newBench(t)
	forth := newRows(100, definition(5, 1))
	back := make([]commands.SlotRow, len(forth))
	for i, row := range forth {
		back[len(back)-1-i] = row
	}
	var done sync.WaitGroup
	created := make([]int, 6)
	for i := range created {
		done.Go(func() {
			rows := forth
			if i%2 == 1 {
				rows = back
			}
			got := b.put(b.commands, "", rows...)
			created[i] = strings.Count(got, "created")
			if created[i]+strings.Count(got, "unchanged") != len(rows) {
				t.Errorf("batch %d: %s", i, got)
			}
		})
	}
	done.Wait()
	sum := 0
	for _, n := range created {
		sum += n
	}
	if sum != len(forth) {
		t.Errorf("%d slots are told as created, of %d", sum, len(forth))
	}
	b.balanced()
}

// Case A2: bulk changes of capacities and prices beside holds. Every delta counts once
// though every batch is sent two times, and no hold is made at a price that is not the slot's.
func TestCaseA2_BulkChangesBesideHolds(t *testing.T) {
	const batches, slots, holds = 8, 5, 40
	b := newBench(t)
	for _, row := range newRows(slots, definition(holds, 2)) {
		b.define(row.ID, *row.Put)
	}
	var done sync.WaitGroup
	for i := range batches {
		var rows []commands.SlotRow
		for s := range slots {
			patch := delta(2)
			if i == batches/2 {
				patch.UnitAmount = pointer(int64(1500))
			}
			rows = append(rows, patchRow(ledger.SlotID(fmt.Sprintf("S%d", s)), patch))
		}
		for range 2 {
			done.Go(func() {
				if got := b.put(b.commands, fmt.Sprint("batch ", i), rows...); got != repeated("changed", slots) {
					t.Errorf("batch %d: %s", i, got)
				}
			})
		}
	}
	sold := make([]int, slots)
	for i := range holds {
		done.Go(func() {
			_, err := b.create(b.commands, request(fmt.Sprint(i)), quote(ledger.SlotID(fmt.Sprintf("S%d", i%slots)), 1))
			switch ledger.CodeOf(err) {
			case "":
				b.mutex.Lock()
				sold[i%slots]++
				b.mutex.Unlock()
			case ledger.CodePriceChanged:
			default:
				t.Errorf("hold %d: %v", i, err)
			}
		})
	}
	done.Wait()
	for s, held := range sold {
		capacity := holds + 2*batches
		b.wantCounters(ledger.SlotID(fmt.Sprintf("S%d", s)), ledger.Units(capacity-held), ledger.Units(held), 0)
	}
	_, err := b.create(b.commands, request("late"), quote("S0", 1))
	b.wantCode(err, ledger.CodePriceChanged)
	b.balanced()
}
