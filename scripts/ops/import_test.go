package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/scripts/local/flights"
	"holdfast/shared/commands"
	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/system"
	"holdfast/shared/system/systemtest"
)

// dayChoice is how the shipped file is read.
var dayChoice = importChoice{rowType: string(rowPut), attributes: "origin;destination;tail_number"}

// shop is a ledger in memory that counts what is written, and a desk that imports into it.
type shop struct {
	t        *testing.T
	store    ledger.Store
	clock    *systemtest.Clock
	parallel system.Parallel
	// slots carries rows out; tests put themselves between.
	slots  slotPutter
	report bytes.Buffer

	mutex   sync.Mutex
	commits int
}

// countingStore counts what is written.
type countingStore struct {
	ledger.Store
	shop *shop
}

func (s countingStore) Commit(ctx context.Context, c ledger.Change) error {
	s.shop.mutex.Lock()
	s.shop.commits++
	s.shop.mutex.Unlock()
	return s.Store.Commit(ctx, c)
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{t: t, store: memory.New(), clock: systemtest.NewClock(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)), parallel: system.RealParallel{}}
	s.slots = commands.New(countingStore{s.store, s}, s.clock, systemtest.NewRandom(1))
	return s
}

// file writes a file to import.
func (s *shop) file(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// dayFile is the shipped day.
func (s *shop) dayFile() string {
	s.t.Helper()
	var text strings.Builder
	if err := flights.WriteDays(&text, 1); err != nil {
		s.t.Fatal(err)
	}
	return s.file("day.csv", text.String())
}

// importer is one process that imports.
func (s *shop) importer() *importer {
	s.t.Helper()
	contract, err := sharedContract()
	if err != nil {
		s.t.Fatal(err)
	}
	return &importer{
		slots: s.slots, clock: s.clock, random: systemtest.NewRandom(2), parallel: s.parallel, report: &s.report, contract: contract,
	}
}

// sharedContract is loaded once for all tests.
var sharedContract = sync.OnceValues(httpapi.LoadContract)

// run imports a file as one process does.
func (s *shop) run(ctx context.Context, file string, choice importChoice) (importCount, error) {
	i := s.importer()
	err := i.open(file, choice, "table")
	if err == nil {
		err = i.run(ctx)
	}
	return i.progress.Counts, errors.Join(err, i.close())
}

func (s *shop) mustRun(file string, choice importChoice) importCount {
	s.t.Helper()
	count, err := s.run(s.t.Context(), file, choice)
	if err != nil {
		s.t.Fatal(err)
	}
	return count
}

// refusedRun wants an import not to begin, for that reason.
func (s *shop) refusedRun(file string, choice importChoice, want string) {
	s.t.Helper()
	before := s.commits
	if _, err := s.run(s.t.Context(), file, choice); err == nil || !strings.Contains(err.Error(), want) || s.commits != before {
		s.t.Errorf("%v and %d commits, want none and %q", err, s.commits-before, want)
	}
}

// failures are the lines of the file of errors.
func (s *shop) failures(file string) []rowFailure {
	s.t.Helper()
	text, err := os.ReadFile(file + errorsSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	var out []rowFailure
	for each := range strings.Lines(string(text)) {
		var f rowFailure
		if err := json.Unmarshal([]byte(each), &f); err != nil {
			s.t.Fatalf("%q: %v", each, err)
		}
		out = append(out, f)
	}
	return out
}

// capacity is the capacity of a slot; -1 for none.
func capacityOf(t *testing.T, store ledger.Store, id ledger.SlotID) ledger.Units {
	t.Helper()
	slots, err := store.Slots(t.Context(), []ledger.SlotID{id})
	if err != nil {
		t.Fatal(err)
	}
	if len(slots) == 0 {
		return -1
	}
	stock, err := store.Stock(t.Context(), slots)
	if err != nil {
		t.Fatal(err)
	}
	var total ledger.Units
	for _, each := range stock {
		total += each.Counters.Capacity
	}
	return total
}

// wantDay checks that the ledger has the shipped day, and nothing else of it.
func wantDay(t *testing.T, store ledger.Store) {
	t.Helper()
	day, err := flights.Day()
	if err != nil {
		t.Fatal(err)
	}
	var ids []ledger.SlotID
	var seats ledger.Units
	for _, flight := range day {
		ids = append(ids, flight.SlotID)
		seats += max(0, capacityOf(t, store, flight.SlotID))
	}
	if len(ids) != 696 || seats != 97_618 {
		t.Errorf("%d slots with %d seats, want 696 with 97618", len(ids), seats)
	}
	slots, err := store.Slots(t.Context(), ids[:1])
	if err != nil || len(slots) != 1 || slots[0].Attributes["tail_number"] != "N14228" || slots[0].Terms.Price.AmountMinor != 17900 || !slots[0].Terms.Open {
		t.Errorf("the first flight is %+v, %v", slots, err)
	}
	for some := range slices.Chunk(ids, booksSlotsMax) {
		ledgertest.CheckBooks(t, store, some, nil)
	}
}

// booksSlotsMax is how many slots have their books checked at once.
const booksSlotsMax = 300

func TestImportOfTheShippedDay(t *testing.T) {
	s := newShop(t)
	file := s.dayFile()
	if got, want := s.mustRun(file, dayChoice), (importCount{Rows: 696, Created: 696}); got != want {
		t.Errorf("first %+v, want %+v", got, want)
	}
	wantDay(t, s.store)
	if s.commits != 22 { // 33 new slots in a Change
		t.Errorf("%d commits, want 22", s.commits)
	}
	if _, err := os.Stat(file + errorsSuffix); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a file of errors: %v", err)
	}
	s.refusedRun(file, dayChoice, "is imported since 2026-11-30T12:00:00Z")
	again := dayChoice
	again.restart = true
	s.commits = 0
	if got, want := s.mustRun(file, again), (importCount{Rows: 696, Unchanged: 696}); got != want || s.commits != 0 {
		t.Errorf("again %+v and %d commits, want %+v and none", got, s.commits, want)
	}
	wantDay(t, s.store)
}

// stopping is a putter that stops for ever at one of its calls, before or after it has
// carried the call out: what a killed process does to the ledger.
type stopping struct {
	slotPutter
	mutex sync.Mutex
	calls int
	at    int
	after bool
	stop  context.CancelFunc
}

func (p *stopping) PutSlots(ctx context.Context, r commands.Request, rows []commands.SlotRow) ([]commands.SlotOutcome, error) {
	p.mutex.Lock()
	p.calls++
	stops := p.calls >= p.at
	p.mutex.Unlock()
	if stops && !p.after {
		p.stop()
		return nil, ctx.Err()
	}
	out, err := p.slotPutter.PutSlots(ctx, r, rows)
	if stops {
		p.stop()
	}
	return out, err
}

// grouped is the size of a file of groups of rows, each of which has every slot once.
type grouped struct{ slots, groups int }

// manyGroups has more than one batch in each group.
var manyGroups = grouped{130, 7}

// lines is how many lines the file has.
func (g grouped) lines() int64 { return int64(g.slots + (g.groups-1)*(g.slots+2)) }

// refused is how many of them are refused.
func (g grouped) refused() int64 { return int64(2 * (g.groups - 1)) }

// rows is a file of JSON lines: new slots, and then change after change of each of
// them. In each group one row is wrong and one is refused. Slot n ends with the capacity
// 10+n+1+2+3…
func (g grouped) rows() string {
	var text strings.Builder
	for n := range g.slots {
		fmt.Fprintf(&text, `{"slot_id":"S%d","put":{"resource_type":"flight","resource_id":"KE0901","capacity":%d,"unit_amount":1000,"currency":"KRW","open":true}}`+"\n", n, 10+n)
	}
	for group := 1; group < g.groups; group++ {
		for n := range g.slots {
			fmt.Fprintf(&text, `{"slot_id":"S%d","patch":{"capacity_delta":%d}}`+"\n", n, group)
		}
		text.WriteString(`{"slot_id":"none","patch":{"open":false}}` + "\n")
		text.WriteString(`{"slot_id":"S0","patch":{"seats":1}}` + "\n")
	}
	return text.String()
}

// want checks the ledger and the failures after all rows were carried out once.
func (g grouped) want(t *testing.T, store ledger.Store, failures []rowFailure) {
	t.Helper()
	var ids []ledger.SlotID
	for n := range g.slots {
		id := ledger.SlotID(fmt.Sprint("S", n))
		ids = append(ids, id)
		if got, want := capacityOf(t, store, id), ledger.Units(10+n+g.groups*(g.groups-1)/2); got != want {
			t.Errorf("slot %s has the capacity %d, want %d", id, got, want)
		}
		events, err := store.SlotEvents(t.Context(), id)
		if err != nil || len(events) != g.groups {
			t.Errorf("slot %s has %d events, %v; want %d", id, len(events), err, g.groups)
		}
	}
	ledgertest.CheckBooks(t, store, ids, nil)
	var got, want []string
	for _, f := range failures {
		got = append(got, fmt.Sprint(f.Row, " ", f.SlotID, " ", f.Code))
	}
	for group := 1; group < g.groups; group++ {
		last := g.slots + group*(g.slots+2)
		want = append(want, fmt.Sprint(last-1, " none slot_not_found"), fmt.Sprint(last, " S0 invalid_request"))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the file of errors tells\n%q, want\n%q", got, want)
	}
}

// An import is stopped at every one of its calls, before and after the call was carried
// out, and goes on until it is done: nothing is lost, and nothing counts twice.
func TestAStoppedImportGoesOn(t *testing.T) {
	for at := 1; at <= 6; at++ {
		for _, after := range []bool{false, true} {
			s := newShop(t)
			commandsOf := s.slots
			file := s.file("rows.jsonl", manyGroups.rows())
			var count importCount
			err := errors.New("not yet")
			runs := 0
			for ; err != nil && runs < 100; runs++ {
				ctx, cancel := context.WithCancel(t.Context())
				// Every run gets one call further than it must, so that each ends some wave.
				s.slots = &stopping{slotPutter: commandsOf, at: at + 2, after: after, stop: cancel}
				count, err = s.run(ctx, file, importChoice{rowType: string(rowPut)})
				cancel()
				// What a killed process has told of a wave that it did not save.
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				if err != nil {
					appendTo(t, file+errorsSuffix, strings.Repeat("half a li", 1_000))
				}
			}
			if runs < 2 || runs == 100 || count.Rows != manyGroups.lines() || count.Refused != manyGroups.refused() {
				t.Errorf("stopped at %d: %d runs, %+v", at, runs, count)
			}
			manyGroups.want(t, s.store, s.failures(file))
		}
	}
}

func appendTo(t *testing.T, file, text string) {
	t.Helper()
	out, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = out.WriteString(text)
	if err = errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
}

// Rows of one slot take effect in their order, however many batches are on their way.
func TestRowsOfOneSlotKeepTheirOrder(t *testing.T) {
	s := newShop(t)
	var text strings.Builder
	text.WriteString("slot_id,resource_type,resource_id,capacity,unit_amount,currency\n")
	random := rand.New(rand.NewPCG(1, 1))
	last := map[string]int64{}
	for n := range 5_000 {
		id := fmt.Sprint("S", random.IntN(400))
		last[id] = int64(n)
		fmt.Fprintf(&text, "%s,flight,KE0901,5,%d,KRW\n", id, n)
	}
	s.mustRun(s.file("rows.csv", text.String()), importChoice{rowType: string(rowPut)})
	for id, amount := range last {
		slots, err := s.store.Slots(t.Context(), []ledger.SlotID{ledger.SlotID(id)})
		if err != nil || len(slots) != 1 || slots[0].Terms.Price.AmountMinor != amount {
			t.Errorf("%s costs %+v, %v; want %d", id, slots, err, amount)
		}
	}
}

// Every wrong row is told with its line and what to do, and the others are carried out.
func TestWrongRowsOfAFile(t *testing.T) {
	s := newShop(t)
	lines := []string{
		"\xef\xbb\xbfslot_id,resource_type,resource_id,capacity,unit_amount,currency,attributes,open,hold_seconds,inherit,starts_at",
		"good,flight,KE0901,5,1000,KRW,cabin=Y;row=7,false,120,grace_seconds;scarce,2026-12-01T09:30:00Z",
		"short,flight,KE0901,5,1000,KRW",
		"number,flight,KE0901,5.0,1000,KRW,,,,,",
		"less,flight,KE0901,-1,1000,KRW,,,,,",
		"zzz,flight,KE0901,5,1000,ZZZ,,,,,",
		"",
		"bool,flight,KE0901,5,1000,KRW,,yes,,,",
		"attribute,flight,KE0901,5,1000,KRW,cabin,,,,",
		"twice,flight,KE0901,5,1000,KRW,a=1;a=2,,,,",
		`quote,"flight,KE0901,5,1000,KRW,,,,,`,
		"a b,flight,KE0901,5,1000,KRW,,,,,",
		"\xff,flight,KE0901,5,1000,KRW,,,,,",
		"long,flight,KE0901,5,1000,KRW," + strings.Repeat("x", 200_000) + ",,,,",
		"late,flight,KE0901,5,1000,KRW,,,,,2026-13-01T09:30:00Z",
		"seconds,flight,KE0901,5,1000,KRW,,,0,,",
		"missing,flight,KE0901,,1000,KRW,,,,,",
		`quoted,"flight","KE0901","5","1000",KRW,"a=1,2",,,,`,
	}
	file := s.file("rows.csv", strings.Join(lines, "\r\n"))
	count := s.mustRun(file, importChoice{rowType: string(rowPut)})
	want := []rowFailure{
		{3, "short", "invalid_request", "the row has 6 fields, and the header has 11 columns"},
		{4, "number", "invalid_request", `capacity: "5.0" is no whole number`},
		{5, "less", "invalid_request", "capacity must be a whole number from 0 to 1000000000"},
		{6, "zzz", "invalid_request", "currency must be the ISO 4217 code of a currency in use, such as KRW"},
		{8, "bool", "invalid_request", `open: "yes" is neither true nor false`},
		{9, "attribute", "invalid_request", `attributes: "cabin" must be name=value;name=value, each name once`},
		{10, "twice", "invalid_request", `attributes: "a=1;a=2" must be name=value;name=value, each name once`},
		{11, "", "invalid_request", `extraneous or missing " in quoted-field, at character 37`},
		{12, "a b", "invalid_request", "slot_id must be 1 to 128 ASCII letters, digits, or any of . _ : -"},
		{13, "", "invalid_request", errLineNotUTF8.Error()},
		{14, "", "invalid_request", errLineTooLong.Error()},
		{15, "late", "invalid_request", "starts_at must be an RFC 3339 time, such as 2026-12-01T09:30:00.000Z"},
		{16, "seconds", "invalid_request", "hold_seconds must be a whole number from 1 to 604800"},
		{17, "missing", "invalid_request", "capacity this is missing"},
	}
	if got := s.failures(file); !slices.Equal(got, want) {
		for n := range max(len(got), len(want)) {
			if n >= len(got) || n >= len(want) || got[n] != want[n] {
				t.Errorf("from %d on told\n%+v, want\n%+v", n, got[n:], want[n:])
				break
			}
		}
	}
	if count != (importCount{Rows: 16, Created: 2, Refused: 14}) {
		t.Errorf("%+v", count)
	}
	slots, err := s.store.Slots(t.Context(), []ledger.SlotID{"good", "quoted"})
	if err != nil || len(slots) != 2 {
		t.Fatalf("%+v, %v", slots, err)
	}
	good, quoted := slots[0], slots[1]
	if good.ID != "good" {
		good, quoted = quoted, good
	}
	if good.Terms.Open || good.Attributes["row"] != "7" || good.Policy.HoldFor != 2*time.Minute || good.Inherits&ledger.PartHold != 0 || good.Inherits&ledger.PartGrace == 0 {
		t.Errorf("%+v", good)
	}
	if !quoted.Terms.Open || quoted.Attributes["a"] != "1,2" || quoted.Inherits != ledger.AllPolicyParts {
		t.Errorf("%+v", quoted)
	}
}

// Patches of CSV change what their rows name, and an empty field leaves its part.
func TestPatchesOfCSV(t *testing.T) {
	s := newShop(t)
	s.mustRun(s.file("new.csv", "slot_id,resource_type,resource_id,capacity,unit_amount,currency\nA,f,r,5,1000,KRW\nB,f,r,5,1000,KRW\n"), importChoice{rowType: string(rowPut)})
	file := s.file("change.csv", "slot_id,capacity_delta,unit_amount,open\nA,3,,\nB,,1200,false\nC,1,,\nA,-1,,\nB,,,\nA,-100,,")
	choice := importChoice{rowType: string(rowPatch)}
	want := importCount{Rows: 6, Changed: 3, Refused: 3}
	for _, restart := range []bool{false, true} { // the same file adds nothing twice
		choice.restart = restart
		if got := s.mustRun(file, choice); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if a, b := capacityOf(t, s.store, "A"), capacityOf(t, s.store, "B"); a != 7 || b != 5 {
		t.Errorf("capacities %d and %d, want 7 and 5", a, b)
	}
	var got []string
	for _, f := range s.failures(file) {
		got = append(got, fmt.Sprintf("%d %s %s %s", f.Row, f.SlotID, f.Code, f.WhatToDo))
	}
	wantTold := []string{
		"4 C slot_not_found no slot of this id exists; check the id",
		"6 B invalid_request must be an object of at least 1 member",
		"7 A capacity_in_use the capacity would fall below zero",
	}
	if !slices.Equal(got, wantTold) {
		t.Errorf("told\n%q, want\n%q", got, wantTold)
	}
}

// A file whose header can't be read is refused before anything is written, also beside it.
func TestBrokenHeaders(t *testing.T) {
	const whole = "slot_id,resource_type,resource_id,capacity,unit_amount,currency"
	for _, test := range []struct {
		text   string
		choice importChoice
		want   string
	}{
		{"", importChoice{rowType: "put"}, "the file is empty"},
		{"\n\n", importChoice{rowType: "put"}, "the file is empty"},
		{whole + ",seats\n", importChoice{rowType: "put"}, `"seats", which is no column of a put; the columns are slot_id, `},
		{whole + ",capacity_delta\n", importChoice{rowType: "put"}, `"capacity_delta", which is no column of a put`},
		{whole + ",capacity\n", importChoice{rowType: "put"}, "the column capacity twice"},
		{strings.Replace(whole, "capacity,", "", 1), importChoice{rowType: "put"}, "lacks the column capacity"},
		{"open\n", importChoice{rowType: "patch"}, "lacks the column slot_id"},
		{`slot_id,"open`, importChoice{rowType: "patch"}, "the header: "},
		{"slot_id,\xff", importChoice{rowType: "patch"}, "UTF-8"},
		{whole, importChoice{rowType: "put", attributes: "a;b"}, "-attributes names the parts"},
	} {
		s := newShop(t)
		file := s.file("rows.csv", test.text)
		s.refusedRun(file, test.choice, test.want)
		if _, err := os.Stat(file + progressSuffix); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: there is a progress: %v", test.text, err)
		}
	}
}

// An import goes on only with what it began.
func TestWhatAnImportDoesNotGoOnWith(t *testing.T) {
	begin := func(text string) (*shop, string) {
		s := newShop(t)
		commandsOf := s.slots
		file := s.file("rows.jsonl", text)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.slots = &stopping{slotPutter: commandsOf, at: 3, stop: cancel}
		if _, err := s.run(ctx, file, importChoice{rowType: "put"}); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "all rows up to line 130 are done") {
			t.Fatal(err)
		}
		s.slots = commandsOf
		return s, file
	}
	t.Run("another file", func(t *testing.T) {
		s, file := begin(manyGroups.rows())
		appendTo(t, file, `{"slot_id":"S1","patch":{"open":false}}`)
		s.refusedRun(file, importChoice{rowType: "put"}, "the file has changed since its import began")
		if count := s.mustRun(file, importChoice{rowType: "put", restart: true}); count.Rows != manyGroups.lines()+1 {
			t.Errorf("%+v", count)
		}
	})
	t.Run("another meaning", func(t *testing.T) {
		s, file := begin(manyGroups.rows())
		s.refusedRun(file, importChoice{format: "csv", rowType: "put"}, "the header")
		stored, _, err := loadProgress(file)
		if err != nil {
			t.Fatal(err)
		}
		stored.Meaning = "-format csv"
		if err := stored.save(file); err != nil {
			t.Fatal(err)
		}
		s.refusedRun(file, importChoice{rowType: "put"}, "began with -format csv, and not with -format jsonl")
	})
	t.Run("another stage", func(t *testing.T) {
		s, file := begin(manyGroups.rows())
		i := s.importer()
		err := errors.Join(i.open(file, importChoice{rowType: "put"}, "another table"), i.close())
		if err == nil || !strings.Contains(err.Error(), "began on table, and not on another table") {
			t.Error(err)
		}
	})
	t.Run("too old", func(*testing.T) {
		s, file := begin(manyGroups.rows())
		s.clock.Advance(47*time.Hour + time.Second)
		s.refusedRun(file, importChoice{rowType: "put"}, "which rows after line 130 were carried out")
	})
	t.Run("a shorter file of errors", func(t *testing.T) {
		s, file := begin(manyGroups.rows())
		stored, _, err := loadProgress(file)
		if err != nil {
			t.Fatal(err)
		}
		stored.ErrorsBytes = 10
		if err := stored.save(file); err != nil {
			t.Fatal(err)
		}
		s.refusedRun(file, importChoice{rowType: "put"}, "is shorter than when the import stopped")
	})
	t.Run("no progress at all", func(t *testing.T) {
		s, file := begin(manyGroups.rows())
		if err := os.WriteFile(file+progressSuffix, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		s.refusedRun(file, importChoice{rowType: "put"}, "can't be read; -restart begins anew")
	})
	t.Run("another import of it", func(t *testing.T) {
		s, file := begin(manyGroups.rows())
		i := s.importer()
		if err := i.open(file, importChoice{rowType: "put"}, "table"); err != nil {
			t.Fatal(err)
		}
		s.refusedRun(file, importChoice{rowType: "put"}, "another import may be reading")
		if err := i.close(); err != nil {
			t.Error(err)
		}
	})
}

// changing changes the file while its rows are carried out.
type changing struct {
	slotPutter
	change func()
}

func (p changing) PutSlots(ctx context.Context, r commands.Request, rows []commands.SlotRow) ([]commands.SlotOutcome, error) {
	p.change()
	return p.slotPutter.PutSlots(ctx, r, rows)
}

func TestAFileThatChangesMeanwhile(t *testing.T) {
	s := newShop(t)
	file := s.dayFile()
	s.slots = changing{s.slots, sync.OnceFunc(func() { appendTo(t, file, "x") })}
	if _, err := s.run(t.Context(), file, dayChoice); err == nil || !strings.Contains(err.Error(), "changed while it was imported") {
		t.Errorf("error %v", err)
	}
}

// A limit of rows a second holds by the clock, over all batches, and a line tells every few
// seconds how far it is.
func TestImportAtALimitedPace(t *testing.T) {
	s := newShop(t)
	s.parallel = systemtest.OneByOne{}
	began := s.clock.Now()
	choice := dayChoice
	choice.rowsPerSecond = 20
	s.mustRun(s.dayFile(), choice)
	// The first batch goes at once, and the last after the seven before it, of 99 rows each.
	if took := s.clock.Now().Sub(began); took != 34_650*time.Millisecond {
		t.Errorf("696 rows took %s at 20 a second, want 34.65s", took)
	}
	lines := strings.Split(strings.TrimSpace(s.report.String()), "\n")
	want := []string{"import: 297 rows, 0 refused, 30 rows/s", "import: 495 rows, 0 refused, 25 rows/s", "import: 693 rows, 0 refused, 23 rows/s"}
	if !slices.Equal(lines, want) {
		t.Errorf("told %q, want %q", lines, want)
	}
}

// failing refuses so many calls, or rows of calls, that come back.
type failing struct {
	slotPutter
	calls, rows int
}

func (p *failing) PutSlots(ctx context.Context, r commands.Request, rows []commands.SlotRow) ([]commands.SlotOutcome, error) {
	busy := &ledger.Error{Code: ledger.CodeUnavailable, Message: "throttled"}
	if p.calls--; p.calls >= 0 {
		return nil, busy
	}
	out, err := p.slotPutter.PutSlots(ctx, r, rows)
	if p.rows--; p.rows >= 0 && err == nil {
		for n := range out {
			if n%2 == 0 {
				out[n].Did, out[n].Err = commands.SlotRefused, busy
			}
		}
	}
	return out, err
}

// A store that does not answer for a while is asked again. One that does not answer at all
// stops the import; its rows are not told as wrong, and are carried out when it goes on.
func TestAStoreThatDoesNotAnswer(t *testing.T) {
	s := newShop(t)
	s.parallel = systemtest.OneByOne{}
	commandsOf := s.slots
	file := s.dayFile()
	s.slots = &failing{commandsOf, 1_000, 0}
	if _, err := s.run(t.Context(), file, dayChoice); err == nil || !strings.Contains(err.Error(), "99 rows from line 2 on can't be carried out now") {
		t.Errorf("error %v", err)
	}
	if pauses := s.clock.Sleeps(); len(pauses) < importTriesMax-1 || pauses[0] < importPauseMin/2 || slices.Max(pauses) > importPauseMax {
		t.Errorf("pauses %v", pauses)
	}
	if got := s.failures(file); len(got) > 0 {
		t.Errorf("rows are told as wrong: %+v", got)
	}
	s.slots = &failing{commandsOf, 3, 2}
	if got := s.mustRun(file, dayChoice); got.Rows != 696 || got.Refused != 0 || got.Created+got.Unchanged != 696 {
		t.Errorf("%+v", got)
	}
	wantDay(t, s.store)
	choice := dayChoice
	choice.restart = true
	broken := &ledger.Error{Code: ledger.CodeInternal, Message: "a fault"}
	s.slots = faulty{commandsOf, broken}
	if _, err := s.run(t.Context(), file, choice); !errors.Is(err, broken) || !strings.Contains(err.Error(), "line 2, slot flight-20130101-UA1545-EWR-IAH") {
		t.Errorf("error %v", err)
	}
}

// faulty fails each first row with a fault of ours.
type faulty struct {
	slotPutter
	err error
}

func (p faulty) PutSlots(ctx context.Context, r commands.Request, rows []commands.SlotRow) ([]commands.SlotOutcome, error) {
	out, err := p.slotPutter.PutSlots(ctx, r, rows)
	if err == nil {
		out[0].Did, out[0].Err = commands.SlotRefused, p.err
	}
	return out, err
}
