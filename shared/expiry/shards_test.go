package expiry_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/expiry"
	"holdfast/shared/lease"
	"holdfast/shared/ledger"
)

// callFunc is the helpers of a sweep.
type callFunc func(n int) error

func (f callFunc) Call(_ context.Context, n int) error { return f(n) }

// enderFunc is an ender that does what the test says.
type enderFunc func(ctx context.Context, entry ledger.DueHold, request ledger.RequestID) expiry.Ending

func (f enderFunc) End(ctx context.Context, entry ledger.DueHold, request ledger.RequestID) expiry.Ending {
	return f(ctx, entry, request)
}

// overdue makes n holds and lets a minute pass after they are due.
func (w *world) overdue(n int) {
	w.tb.Helper()
	w.holds(n, time.Millisecond)
	w.clock.Set(w.clock.Now().Add(holdFor + time.Minute))
}

// leased counts the shards that somebody has now.
func (w *world) leased() int {
	n := 0
	for shard := range ledger.DueShards {
		if w.leases.Stored(lease.KindExpiry, shard).Until.After(w.clock.Now()) {
			n++
		}
	}
	return n
}

// shardsOf are the shards of these holds, in their order.
func shardsOf(ids []ledger.HoldID) []int {
	var shards []int
	for _, id := range ids {
		shards = append(shards, ledger.DueShard(id))
	}
	slices.Sort(shards)
	return slices.Compact(shards)
}

// leaseOf lets another worker lease the shard now.
func (w *world) leaseOf(worker lease.Worker, shard int, until time.Time) {
	w.tb.Helper()
	if _, taken, err := w.leases.TakeLease(context.Background(), lease.KindExpiry, shard, worker, w.clock.Now(), until); err != nil || !taken {
		w.tb.Fatalf("%s takes shard %d: %t, %v", worker, shard, taken, err)
	}
}

// Only shards with something due are leased, and all are given back.
func TestOnlyWhatIsDueIsLeased(t *testing.T) {
	w := newWorld(t, 10)
	mustRun(t, w.sweep(nil, nil, 100))
	if w.leases.Takes() != 0 {
		t.Errorf("%d leases with nothing due", w.leases.Takes())
	}
	w.overdue(3)
	shards := shardsOf(w.ids)
	checked := enderFunc(func(ctx context.Context, e ledger.DueHold, request ledger.RequestID) expiry.Ending {
		held := w.leases.Stored(lease.KindExpiry, ledger.DueShard(e.ID))
		if held.Worker != lease.Worker(request) || !held.Until.Equal(w.clock.Now().Add(expiry.LeaseFor)) {
			t.Errorf("while it works it has %+v", held)
		}
		return w.ender(nil).End(ctx, e, request)
	})
	if report := mustRun(t, w.sweepWith(expiry.SweepPorts{Ender: checked}, expiry.SweepSettings{})); report.Released != 3 {
		t.Errorf("report = %+v", report)
	}
	if w.leases.Takes() != len(shards) {
		t.Errorf("%d leases for %d shards", w.leases.Takes(), len(shards))
	}
	for _, shard := range shards {
		if held := w.leases.Stored(lease.KindExpiry, shard); held.Until.After(w.clock.Now()) {
			t.Errorf("shard %d is not given back: %+v", shard, held)
		}
	}
	w.mustBeExpired()
}

// A worker has died and its lease is still there: what it had waits until then, and no
// longer, and everything else does not wait. The lag counts it all the same.
func TestADeadWorkersShardWaitsForItsLease(t *testing.T) {
	w := newWorld(t, 60)
	w.overdue(60)
	dead := ledger.DueShard(w.ids[0])
	w.leaseOf("dead", dead, w.clock.Now().Add(expiry.LeaseFor))
	began := w.clock.Now()
	var after []ledger.HoldID // that were ended after the wait
	ender := enderFunc(func(ctx context.Context, e ledger.DueHold, request ledger.RequestID) expiry.Ending {
		if ledger.DueShard(e.ID) == dead && w.clock.Now().Before(began.Add(expiry.LeaseFor)) {
			t.Errorf("hold %s of the leased shard is ended at %s", e.ID, w.clock.Now())
		}
		if w.clock.Now().After(began) {
			after = append(after, e.ID)
		}
		return w.ender(nil).End(ctx, e, request)
	})
	report := mustRun(t, w.sweepWith(expiry.SweepPorts{Ender: ender}, expiry.SweepSettings{}))
	if report.Released != 60 || report.LeftToOthers != 0 || report.Truncated || report.Lag != w.clock.Now().Sub(w.read(w.ids[0]).ReleaseAt)-expiry.LeaseFor {
		t.Errorf("report = %+v", report)
	}
	if got := shardsOf(after); !slices.Equal(got, []int{dead}) || !slices.Equal(w.clock.Sleeps(), []time.Duration{expiry.LeaseFor}) {
		t.Errorf("shards %v waited, %v", got, w.clock.Sleeps())
	}
	w.mustBeExpired()
}

// The wait is for a worker that died. One that lives has renewed its lease by then, and
// its shard is left to it. A wait that would not end in time is not begun, and a helper
// never waits.
func TestALivingWorkerIsLeftAlone(t *testing.T) {
	for name, test := range map[string]struct {
		lease  time.Duration
		help   bool
		time   time.Duration
		renews bool
		sleeps []time.Duration
	}{
		"renewed meanwhile": {lease: 5 * time.Second, renews: true, time: time.Minute, sleeps: []time.Duration{5 * time.Second}},
		"no time to wait":   {lease: expiry.LeaseFor, time: expiry.MarginBeforeDeadline + expiry.LeaseFor},
		"helper":            {lease: expiry.LeaseFor, help: true, time: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 10)
			w.overdue(1)
			shard := ledger.DueShard(w.ids[0])
			w.leaseOf("other", shard, w.clock.Now().Add(test.lease))
			store := storeFunc{w.store, func(asked int, now time.Time, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
				if asked == shard && test.renews && len(w.clock.Sleeps()) > 0 {
					w.leaseOf("other", shard, w.clock.Now().Add(test.lease))
				}
				return w.store.Due(context.Background(), asked, now, page)
			}}
			sweep := w.sweep(store, nil, 100)
			ctx := endsAt{context.Background(), w.clock.Now().Add(test.time)}
			run := sweep.Run
			if test.help {
				run = sweep.Help
			}
			report, err := run(ctx, "request_sweep")
			want := expiry.Report{Lag: time.Minute, LagKnown: true, LeftToOthers: 1}
			if err != nil || report != want || !slices.Equal(w.clock.Sleeps(), test.sleeps) {
				t.Errorf("report = %+v, %v after pauses %v; want %+v", report, err, w.clock.Sleeps(), want)
			}
		})
	}
}

// Another worker, whose clock is ahead, has taken a shard. This one finds out at the
// renewal and leaves that shard, and no other. When the other has died, it takes the shard
// again after the other's lease.
func TestALostShardIsLeft(t *testing.T) {
	const holds = 400
	for name, othersFor := range map[string]time.Duration{"to a living worker": time.Hour, "to a dying worker": 40 * time.Second} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, holds)
			w.overdue(holds)
			began := w.clock.Now()
			lost, ended := ledger.DueShard(w.ids[holds-1]), 0
			isLost := func() bool { return ended > 1 && w.clock.Now().Before(began.Add(othersFor)) }
			ender := enderFunc(func(ctx context.Context, e ledger.DueHold, request ledger.RequestID) expiry.Ending {
				if ended++; ended == 1 {
					w.clock.Advance(expiry.LeaseFor)
					w.leaseOf("other", lost, began.Add(othersFor))
					w.clock.Set(began.Add(expiry.LeaseFor / 2))
				} else if isLost() && ledger.DueShard(e.ID) == lost {
					t.Errorf("hold %s of the lost shard is ended", e.ID)
				}
				return w.ender(nil).End(ctx, e, request)
			})
			store := storeFunc{w.store, func(shard int, now time.Time, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
				if shard == lost && page.After != "" && isLost() {
					t.Error("a page of the lost shard is read")
				}
				return w.store.Due(context.Background(), shard, now, page)
			}}
			// The first round is one hold, because the time of a round is over after it.
			sweep := w.sweepWith(expiry.SweepPorts{Store: store, Ender: ender}, expiry.SweepSettings{PageItems: 5, ParallelMax: 1})
			report := mustRun(t, sweep)
			inLost := 0
			for _, id := range w.ids {
				if ledger.DueShard(id) == lost && w.read(id).Status == ledger.StatusHeld {
					inLost++
				}
			}
			wantLeft := 0
			if othersFor > expiry.SweepForMax {
				wantLeft = 1
			}
			if (inLost > 0) != (wantLeft == 1) || report.Released != holds-inLost || report.LeftToOthers != wantLeft || report.Truncated {
				t.Errorf("report = %+v; %d holds are left in the lost shard", report, inLost)
			}
			if held := w.leases.Stored(lease.KindExpiry, lost); wantLeft == 1 && (held.Worker != "other" || !held.Until.Equal(began.Add(othersFor))) {
				t.Errorf("the other's lease is %+v", held)
			}
		})
	}
}

// Leases are renewed in a long sweep, so that nobody comes between.
func TestLeasesAreRenewedInTime(t *testing.T) {
	w := newWorld(t, 40)
	w.overdue(40)
	ender := enderFunc(func(ctx context.Context, e ledger.DueHold, request ledger.RequestID) expiry.Ending {
		w.clock.Advance(time.Second)
		if held := w.leases.Stored(lease.KindExpiry, ledger.DueShard(e.ID)); held.Until.Sub(w.clock.Now()) < expiry.LeaseFor/4 {
			t.Errorf("at %s the lease ends at %s", w.clock.Now(), held.Until)
		}
		return w.ender(nil).End(ctx, e, request)
	})
	if report := mustRun(t, w.sweepWith(expiry.SweepPorts{Ender: ender}, expiry.SweepSettings{})); report.Released != 40 {
		t.Errorf("report = %+v", report)
	}
	// In 40 s half of a lease is over twice.
	if most := 2 * len(shardsOf(w.ids)); w.leases.Renews() > most {
		t.Errorf("%d renewals, want %d at the most", w.leases.Renews(), most)
	}
}

// Safety does not rest on leases: when they can't be kept, from the beginning or from the
// middle on, everything is ended all the same, and the log says so once.
func TestWithoutLeasesTheSweepGoesOn(t *testing.T) {
	for _, after := range []int{0, 25} {
		w := newWorld(t, 60)
		w.overdue(60)
		w.leaseOf("other", ledger.DueShard(w.ids[0]), w.clock.Now().Add(time.Hour))
		var logs bytes.Buffer
		ended := 0
		breakAt := func() {
			if ended == after {
				w.leases.Break(errors.New("throttled"))
			}
			ended++
		}
		if after == 0 {
			breakAt()
		}
		ender := enderFunc(func(ctx context.Context, e ledger.DueHold, request ledger.RequestID) expiry.Ending {
			w.clock.Advance(time.Second)
			breakAt()
			return w.ender(nil).End(ctx, e, request)
		})
		ctx := endsAt{context.Background(), w.clock.Now().Add(10 * time.Minute)}
		ports := expiry.SweepPorts{Ender: ender, Logger: slog.New(slog.NewTextHandler(&logs, nil))}
		_, err := w.sweepWith(ports, expiry.SweepSettings{}).Run(ctx, "request_sweep")
		if err != nil || strings.Count(logs.String(), "goes on without them") != 1 {
			t.Errorf("broken after %d: %v, %s", after, err, logs.String())
		}
		w.leases.Break(nil)
		w.clock.Advance(time.Hour)
		mustRun(t, w.sweep(nil, nil, 100))
		w.mustBeExpired()
	}
}

// Lambda ends the call, so that a renewal fails. The shards are given back all the same, for
// the next worker.
func TestAnEndedCallGivesItsShardsBack(t *testing.T) {
	w := newWorld(t, 10)
	w.overdue(10)
	ctx, cancel := context.WithCancel(context.Background())
	ender := enderFunc(func(context.Context, ledger.DueHold, ledger.RequestID) expiry.Ending {
		w.clock.Advance(expiry.LeaseFor / 2)
		cancel()
		return expiry.Ending{Outcome: expiry.OutcomeFailed, Strained: true}
	})
	report, err := w.sweepWith(expiry.SweepPorts{Ender: ender}, expiry.SweepSettings{}).Run(ctx, "request_sweep")
	if err != nil || !report.Truncated || report.RemainingMin != 9 || w.leased() != 0 {
		t.Errorf("report = %+v, %v; %d shards are leased", report, err, w.leased())
	}
}

// With more to do than one worker does in a round, others are called once, as many as have
// something to do, and the sweep takes a share of the shards at a time. It does all of the
// work if they do not come.
func TestABacklogIsShared(t *testing.T) {
	for _, test := range []struct{ holds, pageItems, parallelMax, called int }{
		{holds: 60, pageItems: 100, parallelMax: 8, called: 0},
		{holds: 201, pageItems: 100, parallelMax: 8, called: 1},
		{holds: 201, pageItems: 100, parallelMax: 1, called: expiry.WorkersMax - 1},
		{holds: 60, pageItems: 2, parallelMax: 8, called: expiry.WorkersMax - 1}, // the first pages are full
	} {
		w := newWorld(t, ledger.Units(test.holds))
		w.overdue(test.holds)
		var calls []int
		var first ledger.HoldID
		at := map[int]bool{}
		ports := expiry.SweepPorts{
			Helpers: callFunc(func(n int) error { calls = append(calls, n); return nil }),
			Ender: enderFunc(func(ctx context.Context, e ledger.DueHold, request ledger.RequestID) expiry.Ending {
				at[w.leased()] = true
				first = cmp.Or(first, e.ID)
				return w.ender(nil).End(ctx, e, request)
			}),
		}
		settings := expiry.SweepSettings{PageItems: test.pageItems, ParallelMax: test.parallelMax}
		report := mustRun(t, w.sweepWith(ports, settings))
		if report.Released != test.holds || report.Helpers != test.called {
			t.Errorf("%+v: report = %+v", test, report)
		}
		share := (len(shardsOf(w.ids)) + test.called) / (test.called + 1)
		for leased := range at {
			if leased > share {
				t.Errorf("%+v: it has %d shards at once, and its share is %d", test, leased, share)
			}
		}
		if wantCalls := min(1, test.called); len(calls) != wantCalls || wantCalls == 1 && calls[0] != test.called {
			t.Errorf("%+v: called %v", test, calls)
		}
		if first != w.ids[0] {
			t.Errorf("%+v: it begins with %s, and %s is overdue longest", test, first, w.ids[0])
		}
		w.mustBeExpired()
	}
}

// While a sweep works on its share, a helper does the rest. The sweep looks again before it
// takes more, and tries nothing that the helper has ended.
func TestWhatAHelperHasDoneIsNotTried(t *testing.T) {
	w := newWorld(t, 300)
	w.overdue(300)
	var helper expiry.Report
	ports := expiry.SweepPorts{
		Helpers: callFunc(func(int) error { return nil }),
		Ender: enderFunc(func(ctx context.Context, e ledger.DueHold, request ledger.RequestID) expiry.Ending {
			if helper.Released == 0 {
				var err error
				if helper, err = w.sweep(nil, nil, 100).Help(ctx, "request_helper"); err != nil {
					t.Error(err)
				}
			}
			return w.ender(nil).End(ctx, e, request)
		}),
	}
	report := mustRun(t, w.sweepWith(ports, expiry.SweepSettings{}))
	if report.Released == 0 || helper.Released == 0 || report.Released+helper.Released != 300 || report.AlreadyEnded != 0 {
		t.Errorf("the sweep reports %+v, the helper %+v", report, helper)
	}
	w.mustBeExpired()
}

// Helpers that can't be called are no error: the sweep does the work, the longest overdue
// first. A helper calls nobody, so that calls do not multiply.
func TestASweepWithoutHelpWorksAlone(t *testing.T) {
	w := newWorld(t, 300)
	w.overdue(300)
	var asked []ledger.HoldID
	ports := expiry.SweepPorts{
		Helpers: callFunc(func(int) error { return errors.New("no queue") }),
		Ender: enderFunc(func(ctx context.Context, e ledger.DueHold, request ledger.RequestID) expiry.Ending {
			asked = append(asked, e.ID)
			return w.ender(nil).End(ctx, e, request)
		}),
	}
	if report := mustRun(t, w.sweepWith(ports, expiry.SweepSettings{})); report.Released != 300 || report.Helpers != 0 || !slices.Equal(asked, w.ids) {
		t.Errorf("report = %+v", report)
	}
	w.ids = nil
	w.overdue(300)
	ports = expiry.SweepPorts{
		Helpers: callFunc(func(int) error { t.Error("a helper calls"); return nil }),
		Ender: enderFunc(func(ctx context.Context, e ledger.DueHold, request ledger.RequestID) expiry.Ending {
			if w.leased() > ledger.DueShards/2 {
				t.Errorf("a helper has %d shards at once", w.leased())
			}
			return w.ender(nil).End(ctx, e, request)
		}),
	}
	report, err := w.sweepWith(ports, expiry.SweepSettings{}).Help(context.Background(), "request_helper")
	if err != nil || report.Released != 300 {
		t.Errorf("helper: %+v, %v", report, err)
	}
	w.mustBeExpired()
}

// A sweep that has no time left hands over: its shards are free at once, and the next
// worker does not wait for them.
func TestAStoppedSweepHandsOver(t *testing.T) {
	w := newWorld(t, 40)
	w.overdue(40)
	slow := enderFunc(func(ctx context.Context, e ledger.DueHold, request ledger.RequestID) expiry.Ending {
		w.clock.Advance(time.Second)
		return w.ender(nil).End(ctx, e, request)
	})
	ctx := endsAt{context.Background(), w.clock.Now().Add(15 * time.Second)}
	report, err := w.sweepWith(expiry.SweepPorts{Ender: slow}, expiry.SweepSettings{}).Run(ctx, "request_1")
	if err != nil || !report.Truncated || report.Released != 10 || report.RemainingMin != 30 {
		t.Errorf("report = %+v, %v", report, err)
	}
	if report := mustRun(t, w.sweep(nil, nil, 100)); report.Released != 30 || len(w.clock.Sleeps()) != 0 {
		t.Errorf("report = %+v after pauses %v", report, w.clock.Sleeps())
	}
	w.mustBeExpired()
}

// The database is strained from some round on: the sweep gives way, whatever
// Parallel allows.
func TestAStrainedDatabaseGetsLess(t *testing.T) {
	w := newWorld(t, 500)
	w.overdue(500)
	ended := 0
	widths := &widths{}
	ports := expiry.SweepPorts{Parallel: widths, Ender: enderFunc(func(ctx context.Context, e ledger.DueHold, request ledger.RequestID) expiry.Ending {
		if ended++; ended > 200 {
			return expiry.Ending{Outcome: expiry.OutcomeFailed, Strained: true}
		}
		return w.ender(nil).End(ctx, e, request)
	})}
	mustRun(t, w.sweepWith(ports, expiry.SweepSettings{}))
	// The first step looks at the oldest hold. 25, 50, 75 and 100 holds are one round each, and in
	// the fourth the strain begins.
	if want := []int{8, 1, 2, 3, 4, 2, 1, 1}; !slices.Equal(widths.seen[:min(len(want), len(widths.seen))], want) {
		t.Errorf("at once: %v, want %v", widths.seen, want)
	}
}

// widths is a system.Parallel that does one thing after the other, and remembers how many
// it was to do at once.
type widths struct{ seen []int }

func (p *widths) Do(n, width int, step func(i int)) {
	p.seen = append(p.seen, width)
	for i := range n {
		step(i)
	}
}
