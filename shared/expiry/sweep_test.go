package expiry_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/expiry"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/system"
	"holdfast/shared/system/systemtest"
)

// Holds made one second apart are spread over the due shards by chance, and must come
// back in the order in which they are over.
func TestTheLongestOverdueComesFirst(t *testing.T) {
	w := newWorld(t, 100)
	w.holds(60, time.Second)
	w.clock.Advance(holdFor)
	used := map[int]bool{}
	for _, id := range w.ids {
		used[ledger.DueShard(id)] = true
	}
	if len(used) < 2 {
		t.Fatal("the test needs holds in several shards")
	}
	releaser := &releaserFunc{do: func(ctx context.Context, id ledger.HoldID) (bool, error) {
		return w.commands.ExpireHold(ctx, id, "request_sweep")
	}}
	// Pages of two: the order holds across pages too.
	report := mustRun(t, w.sweep(nil, releaser, 2))
	if !slices.Equal(releaser.asked, w.ids) {
		t.Errorf("released in the order\n%v, want\n%v", releaser.asked, w.ids)
	}
	if report.Released != 60 || report.Truncated || report.Failed+report.AlreadyEnded+report.RemainingMin != 0 {
		t.Errorf("report = %+v", report)
	}
	w.mustBeExpired()
}

// P4: release_at is the first moment at which a hold is over, to the millisecond.
func TestP4_TheBoundaryIsReleaseAt(t *testing.T) {
	for _, test := range []struct {
		at       time.Duration
		released int
	}{{-time.Millisecond, 0}, {0, 1}, {time.Millisecond, 1}} {
		w := newWorld(t, 1)
		w.hold(1)
		w.clock.Set(start.Add(holdFor + test.at))
		report := mustRun(t, w.sweep(nil, nil, 100))
		if report.Released != test.released || !report.LagKnown || report.Lag != max(test.at, 0) {
			t.Errorf("at release_at%+v: %+v, want %d released", test.at, report, test.released)
		}
	}
}

// Case B1: the sweep said that it was fine and did nothing. The lag it reports is how
// long holds have been over, not how much it has done, and it grows.
func TestCaseB1_ASweepThatDoesNothingReportsTheLag(t *testing.T) {
	w := newWorld(t, 25)
	w.holds(25, 0)
	idle := &releaserFunc{do: func(context.Context, ledger.HoldID) (bool, error) { return false, nil }}
	for _, overdue := range []time.Duration{time.Minute, 2 * time.Minute, 6 * time.Minute} {
		w.clock.Set(start.Add(holdFor + overdue))
		report := mustRun(t, w.sweep(nil, idle, 100))
		if !report.LagKnown || report.Lag != overdue || report.Released != 0 {
			t.Errorf("%s after release_at: %+v", overdue, report)
		}
	}
	for _, id := range w.ids {
		_, err := w.commands.ConfirmHold(context.Background(), commands.Request{Actor: "shop", RequestID: "request_c"}, id, "", nil, renderHold)
		if ledger.CodeOf(err) != ledger.CodeHoldNotActive {
			t.Fatalf("a confirm after release_at gives %v", err)
		}
	}
	if report := mustRun(t, w.sweep(nil, nil, 100)); report.Released != 25 || report.Lag != 6*time.Minute {
		t.Errorf("the real sweep: %+v", report)
	}
	w.mustBeExpired()
	if report := mustRun(t, w.sweep(nil, nil, 100)); !report.LagKnown || report.Lag != 0 || report.Released != 0 {
		t.Errorf("with nothing overdue: %+v", report)
	}
}

func renderHold(ledger.Hold, time.Time) (ledger.Response, error) {
	return ledger.Response{Status: 200}, nil
}

// The index may still list holds that have ended. They are no work and no lag.
func TestLateIndexEntriesAreNoLag(t *testing.T) {
	w := newWorld(t, 10)
	w.holds(3, time.Minute)
	w.clock.Set(start.Add(holdFor + 10*time.Minute))
	listed := map[int][]ledger.DueHold{}
	for i, id := range w.ids {
		listed[ledger.DueShard(id)] = append(listed[ledger.DueShard(id)], ledger.DueHold{ID: id, DueAt: start.Add(holdFor + time.Duration(i)*time.Minute)})
	}
	// An entry without any hold is the oldest of all.
	ghost := ledger.HoldID("hold_00000000000000000000000000")
	listed[ledger.DueShard(ghost)] = slices.Insert(listed[ledger.DueShard(ghost)], 0, ledger.DueHold{ID: ghost, DueAt: start})
	if _, err := w.commands.ExpireHold(context.Background(), w.ids[0], "request_other"); err != nil {
		t.Fatal(err)
	}
	// The index still lists this hold at an old time, but it is not over yet.
	expired := slices.Clone(w.ids)
	moved := w.hold(1)
	listed[ledger.DueShard(moved)] = slices.Insert(listed[ledger.DueShard(moved)], 0, ledger.DueHold{ID: moved, DueAt: start})
	stale := storeFunc{w.store, func(shard int, _ time.Time, _ ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
		return listed[shard], "", nil
	}}
	report := mustRun(t, w.sweep(stale, nil, 100))
	want := expiry.Report{Lag: 9 * time.Minute, LagKnown: true, Released: 2, ReleaseDelayP95: 9 * time.Minute, AlreadyEnded: 3}
	if report != want {
		t.Errorf("report = %+v, want %+v", report, want)
	}
	// The same list again: everything has ended, and nothing is overdue.
	report = mustRun(t, w.sweep(stale, nil, 100))
	if want := (expiry.Report{LagKnown: true, AlreadyEnded: 5}); report != want {
		t.Errorf("report = %+v, want %+v", report, want)
	}
	for _, id := range expired {
		if w.endings(id) != 1 || w.read(id).Status != ledger.StatusExpired {
			t.Errorf("hold %s has not ended once", id)
		}
	}
	if w.endings(moved) != 0 || w.counters() != (ledger.Counters{Available: 9, Held: 1, Capacity: 10}) {
		t.Errorf("the hold that is not over was touched: %+v", w.counters())
	}
}

// The index lists thousands of holds that have ended, which are looked at in vain. The sweep
// does not look for ever: it takes the next for overdue, since a lag that is too long wakes
// somebody, and comes to the hold that waits behind them.
func TestManyLateEntriesAreNotLookedAtForEver(t *testing.T) {
	const late = 3_000
	w := newWorld(t, 1)
	w.overdue(1)
	shard := ledger.DueShard(w.ids[0])
	listed := make([]ledger.DueHold, late, late+1)
	for i := range listed {
		listed[i] = ledger.DueHold{ID: ledger.HoldID(fmt.Sprintf("hold_%026d", i)), DueAt: w.clock.Now().Add(-time.Hour)}
	}
	listed = append(listed, ledger.DueHold{ID: w.ids[0], DueAt: w.read(w.ids[0]).ReleaseAt})
	store := storeFunc{w.store, func(asked int, _ time.Time, _ ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
		if asked != shard {
			return nil, "", nil
		}
		return listed, "", nil
	}}
	report := mustRun(t, w.sweep(store, nil, 100))
	want := expiry.Report{Lag: time.Hour, LagKnown: true, Released: 1, ReleaseDelayP95: time.Minute, AlreadyEnded: late}
	if report != want {
		t.Errorf("report = %+v, want %+v", report, want)
	}
}

// One hold that can never be ended costs one try in each sweep and blocks nobody,
// whether it fails with an error or with a panic. The third failure puts it aside.
func TestABadHoldBlocksNobody(t *testing.T) {
	for name, fail := range map[string]func() (bool, error){
		"error": func() (bool, error) { return false, errors.New("broken item") },
		"panic": func() (bool, error) { panic("nil line") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 50)
			w.holds(40, time.Second)
			w.clock.Set(start.Add(holdFor + time.Hour))
			bad := w.ids[0] // the oldest, so it is met first
			releaser := &releaserFunc{}
			releaser.do = func(ctx context.Context, id ledger.HoldID) (bool, error) {
				if id == bad {
					return fail()
				}
				return w.commands.ExpireHold(ctx, id, "request_sweep")
			}
			for round := range expiry.FailuresMax {
				releaser.asked = nil
				report := mustRun(t, w.sweep(nil, releaser, 2))
				want := expiry.Report{Lag: time.Hour, LagKnown: true}
				switch round {
				case 0:
					// The holds became due one second apart, an hour and less ago.
					want.Released, want.ReleaseDelayP95, want.Failed = 39, time.Hour-2*time.Second, 1
				case expiry.FailuresMax - 1:
					want.Parked = 1
				default:
					want.Failed = 1
				}
				if report != want || len(releaser.asked) != want.Released+1 {
					t.Errorf("round %d: %+v after %d tries, want %+v", round, report, len(releaser.asked), want)
				}
			}
		})
	}
}

// The oldest hold can't be read. Nobody knows whether it is overdue, so it counts: a
// lag that is too short lets everybody sleep.
func TestAHoldThatCannotBeReadCountsAsOverdue(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return &ledger.Error{Code: ledger.CodeUnavailable, Message: "throttled"} },
		"panic": func() error { panic("nil line") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 10)
			w.holds(2, time.Minute)
			w.clock.Set(start.Add(holdFor + 5*time.Minute))
			report := mustRun(t, w.sweep(unreadableHold{w, w.ids[0], fail}, nil, 100))
			if !report.LagKnown || report.Lag != 5*time.Minute || report.Released != 2 {
				t.Errorf("report = %+v", report)
			}
		})
	}
}

// unreadableHold fails when the sweep itself reads the hold of that id.
type unreadableHold struct {
	*world
	id   ledger.HoldID
	fail func() error
}

func (s unreadableHold) Due(ctx context.Context, shard int, now time.Time, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
	return s.store.Due(ctx, shard, now, page)
}

func (s unreadableHold) Hold(ctx context.Context, id ledger.HoldID) (ledger.Hold, error) {
	if id == s.id {
		return ledger.Hold{}, s.fail()
	}
	return s.store.Hold(ctx, id)
}

// A shard that can't be read takes nothing from the others, but the sweep must not pass
// for a whole one: it has an error, and its lag is not known.
func TestAnUnreadableShardIsNotHidden(t *testing.T) {
	w := newWorld(t, 100)
	w.holds(60, time.Second)
	w.clock.Set(start.Add(holdFor + time.Hour))
	broken := ledger.DueShard(w.ids[0])
	inBroken := 0
	for _, id := range w.ids {
		if ledger.DueShard(id) == broken {
			inBroken++
		}
	}
	store := storeFunc{w.store, func(shard int, now time.Time, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
		if shard == broken {
			return nil, "", &ledger.Error{Code: ledger.CodeUnavailable, Message: "throttled"}
		}
		return w.store.Due(context.Background(), shard, now, page)
	}}
	report, err := w.sweep(store, nil, 100).Run(context.Background(), "request_sweep")
	if err == nil || report.LagKnown || report.Released != 60-inBroken {
		t.Errorf("report = %+v, err = %v; want the %d holds of the other shards", report, err, 60-inBroken)
	}
	// With nothing in the other shards: no hold was seen, and still nobody knows.
	report, err = w.sweep(store, nil, 100).Run(context.Background(), "request_sweep")
	if err == nil || report.LagKnown || report.Released != 0 {
		t.Errorf("report = %+v, err = %v", report, err)
	}
}

// A list that leads in a circle ends the shard with an error, not the sweep in a loop.
func TestACursorThatStandsStillIsAnError(t *testing.T) {
	w := newWorld(t, 1)
	calls := 0
	store := storeFunc{w.store, func(shard int, _ time.Time, _ ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
		calls++
		if shard == 3 {
			return nil, "again", nil
		}
		return nil, "", nil
	}}
	_, err := w.sweep(store, nil, 100).Run(context.Background(), "request_sweep")
	if err == nil || calls != ledger.DueShards+1 {
		t.Errorf("err = %v after %d pages", err, calls)
	}
}

// Each release takes a second. With 20 seconds until the deadline, and five of them
// kept free, fifteen holds end, and the sweep says that it stopped.
func TestASweepStopsBeforeItsDeadlineAndSaysSo(t *testing.T) {
	w := newWorld(t, 100)
	w.holds(40, time.Second)
	w.clock.Set(start.Add(holdFor + time.Hour))
	slow := &releaserFunc{do: func(ctx context.Context, id ledger.HoldID) (bool, error) {
		released, err := w.commands.ExpireHold(ctx, id, "request_sweep")
		w.clock.Advance(time.Second)
		return released, err
	}}
	ctx := endsAt{context.Background(), w.clock.Now().Add(20 * time.Second)}
	report, err := w.sweep(nil, slow, 100).Run(ctx, "request_sweep")
	want := expiry.Report{Lag: time.Hour, LagKnown: true, Released: 15, ReleaseDelayP95: time.Hour + time.Second, Truncated: true, RemainingMin: 25}
	if err != nil || report != want {
		t.Errorf("report = %+v, %v, want %+v", report, err, want)
	}
	// The second sweep begins where the first one stopped.
	slow.asked = nil
	ctx.at = w.clock.Now().Add(55 * time.Second)
	report, err = w.sweep(nil, slow, 100).Run(ctx, "request_sweep")
	if err != nil || report.Released != 25 || report.Truncated || slow.asked[0] != w.ids[15] {
		t.Errorf("report = %+v, %v", report, err)
	}
	w.mustBeExpired()
}

// Without time for a first page nothing is known, and nothing is claimed.
func TestASweepWithoutTimeClaimsNothing(t *testing.T) {
	w := newWorld(t, 1)
	w.hold(1)
	w.clock.Set(start.Add(holdFor))
	ctx := endsAt{context.Background(), w.clock.Now().Add(expiry.MarginBeforeDeadline)}
	report, err := w.sweep(nil, nil, 100).Run(ctx, "request_sweep")
	if want := (expiry.Report{Truncated: true}); err != nil || report != want {
		t.Errorf("report = %+v, %v, want %+v", report, err, want)
	}
}

// Case B2: one crash stopped the release job for ever. A run leaves nothing behind that
// could stop the next one.
func TestCaseB2_ACrashStopsNothing(t *testing.T) {
	w := newWorld(t, 10)
	w.holds(10, 0)
	w.clock.Set(start.Add(holdFor + time.Minute))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("run 1 should have crashed")
			}
		}()
		pages := 0
		crash := storeFunc{w.store, func(shard int, now time.Time, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
			if pages++; pages > ledger.DueShards/2 {
				panic("out of memory")
			}
			return w.store.Due(context.Background(), shard, now, page)
		}}
		_, _ = w.sweep(crash, nil, 100).Run(context.Background(), "request_1")
	}()
	ctx, cancel := context.WithCancel(context.Background())
	hanging := &releaserFunc{do: func(ctx context.Context, _ ledger.HoldID) (bool, error) {
		cancel() // Lambda ends the run in the middle of a release
		return false, ctx.Err()
	}}
	report, _ := w.sweep(nil, hanging, 100).Run(ctx, "request_2")
	if !report.Truncated || report.Released != 0 || len(hanging.asked) != 1 {
		t.Errorf("run 2: %+v after %d tries", report, len(hanging.asked))
	}
	// Run 2 has given its shards back, so run 3 waits for nobody.
	if report := mustRun(t, w.sweep(nil, nil, 100)); report.Released != 10 || len(w.clock.Sleeps()) != 0 {
		t.Errorf("run 3: %+v", report)
	}
	w.mustBeExpired()
}

// Case B8: what the sweep lists is exactly what is HELD.
func TestCaseB8_TheSweepSeesEveryHold(t *testing.T) {
	w := newWorld(t, 48)
	w.holds(48, 30*time.Minute) // two in each hour of a day
	w.clock.Advance(holdFor)
	var listed []ledger.HoldID
	for shard := range ledger.DueShards {
		entries, _, err := w.store.Due(context.Background(), shard, w.clock.Now(), ledger.Page{Limit: ledger.PageItemsMax})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			listed = append(listed, e.ID)
		}
	}
	held, _, err := w.store.HoldsOfOwner(context.Background(), "U-1", ledger.Page{Limit: ledger.PageItemsMax})
	if err != nil {
		t.Fatal(err)
	}
	var all []ledger.HoldID
	for _, h := range held {
		all = append(all, h.ID)
	}
	slices.Sort(listed)
	slices.Sort(all)
	if len(all) != 48 || !slices.Equal(listed, all) {
		t.Fatalf("the index lists %d of %d holds", len(listed), len(all))
	}
	mustRun(t, w.sweep(nil, nil, 100))
	w.mustBeExpired()
}

// Case C6: reads of an overdue hold show EXPIRED and release nothing; the sweep makes
// the one release.
func TestCaseC6_ReadersReleaseNothing(t *testing.T) {
	w := newWorld(t, 5)
	id := w.hold(2)
	w.clock.Set(start.Add(holdFor))
	var readers sync.WaitGroup
	for range 50 {
		readers.Go(func() {
			hold, err := w.store.Hold(context.Background(), id)
			if err != nil || hold.StatusAt(w.clock.Now()) != ledger.StatusExpired {
				t.Errorf("a reader sees %s, %v", hold.StatusAt(w.clock.Now()), err)
			}
		})
	}
	readers.Wait()
	if got, want := w.counters(), (ledger.Counters{Available: 3, Held: 2, Capacity: 5}); got != want {
		t.Errorf("after the reads: %+v, want %+v", got, want)
	}
	mustRun(t, w.sweep(nil, nil, 100))
	w.mustBeExpired()
}

// Case C3: several sweeps and helpers at once, each of which ends several holds at once,
// give the stock back once: with leases, and when leases can't be kept and all of them
// race for the same holds.
func TestCaseC3_SweepsAtOnceReleaseOnce(t *testing.T) {
	const holds = 400
	for name, leases := range map[string]error{"with leases": nil, "without leases": errors.New("throttled")} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, holds)
			w.overdue(holds)
			w.leases.Break(leases)
			sweep := w.sweepWith(expiry.SweepPorts{
				Parallel: system.RealParallel{}, Helpers: callFunc(func(int) error { return nil }),
			}, expiry.SweepSettings{PageItems: 10})
			var sweeps sync.WaitGroup
			var released atomic.Int64
			for i, run := range []func(context.Context, ledger.RequestID) (expiry.Report, error){sweep.Run, sweep.Help, sweep.Run, sweep.Help} {
				sweeps.Go(func() {
					report, err := run(context.Background(), ledger.RequestID(fmt.Sprintf("request_%d", i)))
					if err != nil || report.Failed+report.Parked > 0 || report.Released+report.AlreadyEnded > holds {
						t.Errorf("report = %+v, %v", report, err)
					}
					released.Add(int64(report.Released))
				})
			}
			sweeps.Wait()
			// The pauses of one sweep move the clock of all, so that none may have time to the end.
			w.clock.Advance(expiry.LeaseFor)
			if n := released.Load() + int64(mustRun(t, w.sweep(nil, nil, 100)).Released); n != holds {
				t.Errorf("the sweeps count %d releases of %d holds", n, holds)
			}
			w.mustBeExpired()
		})
	}
}

// Case G9: work after the first page was never done. The first page of every shard is
// empty and has a cursor, and the rest comes in many pages.
func TestCaseG9_EverythingAfterTheFirstPageIsDone(t *testing.T) {
	const overdue = 5000
	w := newWorld(t, overdue)
	w.holds(overdue, time.Millisecond)
	w.clock.Advance(holdFor)
	const pageItems = 200
	asked := map[string]bool{}
	store := storeFunc{w.store, func(shard int, now time.Time, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
		which := fmt.Sprintf("%d after %q", shard, page.After)
		if asked[which] {
			t.Errorf("the page of shard %s is read again", which)
		}
		asked[which] = true
		// The first page is small, because most of the time it is all there is.
		want := pageItems
		if page.After == "" {
			want = 100
		}
		if page.Limit != want {
			t.Errorf("for the page of shard %s %d items are asked for, want %d", which, page.Limit, want)
		}
		switch page.After {
		case "":
			return nil, "first", nil
		case "first":
			page.After = ""
		}
		return w.store.Due(context.Background(), shard, now, page)
	}}
	if report := mustRun(t, w.sweep(store, nil, pageItems)); report.Released != overdue {
		t.Errorf("report = %+v", report)
	}
	w.mustBeExpired()
}

// pausedStore is the world's store, with something that happens between the decision of
// a caller and its write.
type pausedStore struct {
	*memory.Store
	beforeCommit func()
}

func (s pausedStore) Commit(ctx context.Context, c ledger.Change) error {
	if s.beforeCommit != nil {
		s.beforeCommit()
	}
	return s.Store.Commit(ctx, c)
}

// Case J4: a sweep whose clock is 2 s fast and a confirm whose clock is 2 s slow meet at
// the limit. The condition of the write decides, and one of them wins. In a third of the
// rounds each side is overtaken between its decision and its write; in the last third
// nobody orders them.
func TestCaseJ4_TwoClocksAtTheLimit(t *testing.T) {
	const rounds, skew = 201, 2 * time.Second
	sold := fmt.Sprintf("CONFIRMED released=false code= %+v events=1", ledger.Counters{Confirmed: 1, Capacity: 1})
	back := fmt.Sprintf("EXPIRED released=true code=hold_not_active %+v events=1", ledger.Counters{Available: 1, Capacity: 1})
	for round := range rounds {
		w := newWorld(t, 1)
		id := w.hold(1)
		limit := w.read(id).ReleaseAt
		var once sync.Once
		var released bool
		var confirmErr error
		expire := func(store ledger.Store) {
			clock := systemtest.NewClock(limit.Add(skew))
			fast := commands.New(store, clock, systemtest.NewRandom(uint64(round)))
			report, err := w.sweepWith(expiry.SweepPorts{Clock: clock, Ender: w.ender(fast)}, expiry.SweepSettings{}).Run(context.Background(), "request_a")
			// A confirm that was faster has taken the hold out of the index, or only out of HELD.
			if err != nil || report.Failed+report.Parked > 0 || report.Released+report.AlreadyEnded > 1 {
				t.Errorf("round %d: expire: %+v, %v", round, report, err)
			}
			released = report.Released == 1
		}
		confirm := func(store ledger.Store) {
			slow := commands.New(store, systemtest.NewClock(limit.Add(-skew)), systemtest.NewRandom(uint64(round)+rounds))
			_, confirmErr = slow.ConfirmHold(context.Background(), commands.Request{Actor: "shop", RequestID: "request_b"}, id, "", nil, renderHold)
		}
		var want []string
		switch round % 3 {
		case 0:
			want = []string{sold}
			expire(pausedStore{w.store, func() { once.Do(func() { confirm(w.store) }) }})
		case 1:
			want = []string{back}
			confirm(pausedStore{w.store, func() { once.Do(func() { expire(w.store) }) }})
		case 2:
			want = []string{sold, back}
			var both sync.WaitGroup
			for _, side := range []func(ledger.Store){expire, confirm} {
				both.Go(func() { side(w.store) })
			}
			both.Wait()
		}
		outcome := fmt.Sprintf("%s released=%t code=%s %+v events=%d",
			w.read(id).Status, released, ledger.CodeOf(confirmErr), w.counters(), w.endings(id))
		if !slices.Contains(want, outcome) {
			t.Errorf("round %d: %s, want %v", round, outcome, want)
		}
	}
}

func TestTheSettingsAreBounded(t *testing.T) {
	w := newWorld(t, 1)
	ports := expiry.SweepPorts{
		Store: w.store, Ender: w.ender(nil), Leases: w.leases, Clock: w.clock,
		Parallel: systemtest.OneByOne{}, Logger: slog.New(slog.DiscardHandler),
	}
	for items, allowed := range map[int]bool{0: false, 1: true, ledger.PageItemsMax: true, ledger.PageItemsMax + 1: false} {
		if _, err := expiry.NewSweep(ports, expiry.SweepSettings{PageItems: items, ParallelMax: 1}); (err == nil) != allowed {
			t.Errorf("a page of %d items: %v", items, err)
		}
	}
	for parallel, allowed := range map[int]bool{0: false, 1: true, expiry.ParallelLimit: true, expiry.ParallelLimit + 1: false} {
		if _, err := expiry.NewSweep(ports, expiry.SweepSettings{PageItems: 1, ParallelMax: parallel}); (err == nil) != allowed {
			t.Errorf("%d holds at once: %v", parallel, err)
		}
	}
	ports.Leases = nil
	if _, err := expiry.NewSweep(ports, expiry.SweepSettings{PageItems: 1, ParallelMax: 1}); err == nil {
		t.Error("a sweep without leases is made")
	}
}
