package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/expiry"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/topology"
)

const (
	// drainFloor is the least ratio of the drain rate to that of the bare transaction.
	drainFloor = 0.8
	// confirmCeiling is how much longer the p95 of a confirm may take beside a sweep that
	// releases two holds at once.
	confirmCeiling = 1.5
	// memoryCeilingMiB is the memory of the function.
	memoryCeilingMiB = 256
	// bareHolds are released bare before and after each drain.
	bareHolds = 5_000
	// confirmEvery is the pace of the buyers beside the sweep.
	confirmEvery = 25 * time.Millisecond
	// confirmsQuiet are confirmed with nobody else at work.
	confirmsQuiet = 400
	// confirmsMax is enough for the longest drain.
	confirmsMax = 8_000
	// sweepsMax bounds the runs of one drain.
	sweepsMax = 100
)

// measureExpiry prints how fast overdue holds are ended against the bare transaction at the
// same parallelism, how long confirms take beside a sweep that may end as many at once and
// gives way, and the memory of the process, in which the function is the largest part.
func (b *bench) measureExpiry(ctx context.Context, out io.Writer, holds int) error {
	fmt.Fprintf(out, "ending overdue holds, so many at once; bare is the release transaction alone, %d before and %d after\n", bareHolds, bareHolds)
	fmt.Fprintf(out, "%8s %9s %9s %9s %6s %6s\n", "holds", "at once", "drain/s", "bare/s", "ratio", "floor")
	failures := []error{
		b.measureDrain(ctx, out, holds, 2),
		b.measureDrain(ctx, out, max(1, holds/6), 8),
	}
	fmt.Fprintf(out, "confirms beside a sweep that gives way; the local engine does one write after the other\n")
	fmt.Fprintf(out, "%8s %9s %9s %9s %12s %12s %6s %8s\n", "holds", "at most", "drain/s", "confirms", "p95 quiet", "p95 beside", "ratio", "ceiling")
	failures = append(failures,
		b.measureConfirms(ctx, out, max(1, holds/12), 2, true),
		b.measureConfirms(ctx, out, max(1, holds/12), 8, false))
	peak, err := memoryPeakMiB()
	if err != nil {
		return errors.Join(append(failures, err)...)
	}
	fmt.Fprintf(out, "memory of this process at its peak: %.0f MiB (at most %d), the seeding and the buyers included\n", peak, memoryCeilingMiB)
	if peak > memoryCeilingMiB {
		failures = append(failures, fmt.Errorf("the process used %.0f MiB, more than %d", peak, memoryCeilingMiB))
	}
	return errors.Join(failures...)
}

// measureDrain ends holds with so many at once, whatever writes take, and nobody else at
// work. It returns an error when that is too slow.
func (b *bench) measureDrain(ctx context.Context, out io.Writer, holds, parallel int) error {
	before, err := b.releaseBare(ctx, parallel)
	if err != nil {
		return err
	}
	rate, err := b.drain(ctx, holds, expiry.SweepSettings{ParallelMin: parallel, ParallelMax: parallel})
	if err != nil {
		return err
	}
	after, err := b.releaseBare(ctx, parallel)
	if err != nil {
		return err
	}
	bare := (before + after) / 2
	fmt.Fprintf(out, "%8d %9d %9.0f %9.0f %6.2f %6.2f\n", holds, parallel, rate, bare, rate/bare, drainFloor)
	if rate/bare < drainFloor {
		return fmt.Errorf("with %d at once the drain does %.2f of the bare transaction, less than %.2f", parallel, rate/bare, drainFloor)
	}
	return nil
}

// measureConfirms confirms with nobody else at work, and then beside a sweep that may end
// so many holds at once and gives way. It returns an error, where that is judged, when the
// buyers wait too much longer.
func (b *bench) measureConfirms(ctx context.Context, out io.Writer, holds, parallelMax int, judged bool) error {
	confirms, err := b.liveHolds(ctx)
	if err != nil {
		return err
	}
	quiet, err := b.confirmSome(ctx, confirms[:confirmsQuiet])
	if err != nil {
		return err
	}
	buying, enough := context.WithCancel(ctx)
	defer enough()
	var beside []time.Duration
	var group errgroup.Group
	rate, err := b.drainWith(ctx, holds, expiry.SweepSettings{ParallelMax: parallelMax}, func() {
		group.Go(func() (err error) {
			beside, err = b.confirmUntil(buying, confirms[confirmsQuiet:])
			return err
		})
	})
	enough()
	if err := errors.Join(err, group.Wait()); err != nil {
		return err
	}
	if len(beside) == 0 {
		return errors.New("the drain ended before the first confirm; take more holds")
	}
	quietP95, besideP95 := percentile95(quiet), percentile95(beside)
	slower := float64(besideP95) / float64(quietP95)
	fmt.Fprintf(out, "%8d %9d %9.0f %9d %12s %12s %6.2f %8.2f\n", holds, parallelMax, rate, len(beside),
		quietP95.Round(10*time.Microsecond), besideP95.Round(10*time.Microsecond), slower, confirmCeiling)
	if judged && slower > confirmCeiling {
		return fmt.Errorf("confirms take %.2f times as long beside a sweep of at most %d at once, more than %.2f", slower, parallelMax, confirmCeiling)
	}
	return nil
}

// drain seeds holds and ends them all, and returns how many were ended in a second.
func (b *bench) drain(ctx context.Context, holds int, settings expiry.SweepSettings) (float64, error) {
	return b.drainWith(ctx, holds, settings, func() {})
}

// drainWith is drain, and begins something else when the sweep begins.
func (b *bench) drainWith(ctx context.Context, holds int, settings expiry.SweepSettings, begin func()) (float64, error) {
	ids, err := b.seedHolds(ctx, holds, time.Now().Add(-time.Second))
	if err != nil {
		return 0, err
	}
	begin()
	started := time.Now()
	released, err := b.sweepAll(ctx, settings)
	elapsed := time.Since(started)
	if err == nil && released != holds {
		err = fmt.Errorf("%d of %d holds were ended", released, holds)
	}
	if err != nil {
		return 0, err
	}
	return float64(released) / elapsed.Seconds(), b.checkReleased(ctx, ids)
}

// sweepAll runs the sweep as Lambda does, one run after the other, each with the
// function's time-out.
func (b *bench) sweepAll(ctx context.Context, settings expiry.SweepSettings) (int, error) {
	function, _ := topology.FunctionNamed(topology.FunctionExpiry)
	sweep, err := b.newSweep(settings)
	if err != nil {
		return 0, err
	}
	released := 0
	for range sweepsMax {
		run, cancel := context.WithTimeout(ctx, function.Timeout)
		report, err := sweep.Run(run, "bench")
		cancel()
		if err != nil {
			return released, err
		}
		released += report.Released
		if report.Failed > 0 {
			return released, fmt.Errorf("%d holds could not be ended", report.Failed)
		}
		if !report.Truncated && report.Released == 0 {
			return released, nil
		}
	}
	return released, fmt.Errorf("still not done after %d sweeps", sweepsMax)
}

// releaseBare sends the release transactions that the sweep makes, so many at once, and
// returns how many were done in a second.
func (b *bench) releaseBare(ctx context.Context, parallel int) (float64, error) {
	ids, err := b.seedHolds(ctx, bareHolds, time.Now().Add(-time.Second))
	if err != nil {
		return 0, err
	}
	recorded := &recorder{Client: b.client}
	store := dynamo.NewStore(recorded, tableName, system.RealClock{}, system.RealRandom{})
	release := commands.New(store, system.RealClock{}, system.RealRandom{})
	for _, id := range ids {
		if _, err := release.ExpireHold(ctx, id, "bench"); err != nil {
			return 0, fmt.Errorf("record a release: %w", err)
		}
	}
	return perSecond(len(recorded.inputs), parallel, func(i int) error {
		_, err := b.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: recorded.inputs[i].TransactItems})
		return err
	})
}

// liveHolds seeds holds that buyers can confirm for as long as a drain takes.
func (b *bench) liveHolds(ctx context.Context) ([]ledger.HoldID, error) {
	return b.seedHolds(ctx, confirmsMax, time.Now().Add(time.Hour))
}

// confirmSome confirms every hold, at the pace of the buyers.
func (b *bench) confirmSome(ctx context.Context, ids []ledger.HoldID) ([]time.Duration, error) {
	took, err := b.confirmUntil(ctx, ids)
	if err == nil && len(took) != len(ids) {
		err = fmt.Errorf("%d of %d holds were confirmed", len(took), len(ids))
	}
	return took, err
}

// confirmUntil confirms one hold after the other until the context ends, and returns how
// long each took.
func (b *bench) confirmUntil(ctx context.Context, ids []ledger.HoldID) ([]time.Duration, error) {
	var took []time.Duration
	next := time.NewTicker(confirmEvery)
	defer next.Stop()
	for _, id := range ids {
		select {
		case <-ctx.Done():
			return took, nil
		case <-next.C:
		}
		started := time.Now()
		answer, err := invoke(context.WithoutCancel(ctx), b.api, request(http.MethodPost, "/v1/holds/"+string(id)+"/confirm", "confirm", "bench-"+string(id), "{}"))
		if err != nil || answer.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("confirm a hold: %d %s: %w", answer.StatusCode, answer.Body, err)
		}
		took = append(took, time.Since(started))
	}
	return took, nil
}

// checkReleased returns an error unless every hold is EXPIRED with exactly one event that
// says so, and no unit of theirs is held.
func (b *bench) checkReleased(ctx context.Context, ids []ledger.HoldID) error {
	store := dynamo.NewStore(b.client, tableName, system.RealClock{}, system.RealRandom{})
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for _, id := range ids {
		group.Go(func() error {
			events, err := store.HoldEvents(ctx, id)
			if err == nil && (len(events) != 2 || events[1].Type != ledger.EventHoldExpired || events[1].Hold.Status != ledger.StatusExpired) {
				err = fmt.Errorf("hold %s has not ended by exactly one event", id)
			}
			return err
		})
	}
	return group.Wait()
}

// percentile95 is the time that 95 % of the calls stay under.
func percentile95(took []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[(len(sorted)*95+99)/100-1]
}

// memoryPeakMiB is the most memory that this process has had at once.
func memoryPeakMiB() (float64, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("measure the memory: %w", err)
	}
	unit := 1024.0 // Linux counts in KiB, macOS in bytes
	if runtime.GOOS == "darwin" {
		unit = 1
	}
	return float64(usage.Maxrss) * unit / (1 << 20), nil
}

// newSweep is the sweep as functions/expiry wires it, but that it calls no helpers: what is
// measured is one worker.
func (b *bench) newSweep(settings expiry.SweepSettings) (*expiry.Sweep, error) {
	settings.PageItems = ledger.PageItemsMax
	clock, random, logger := system.RealClock{}, system.RealRandom{}, slog.New(slog.NewTextHandler(os.Stderr, nil))
	store := dynamo.NewStore(b.client, tableName, clock, random)
	ahead := expiry.NewReadAhead(store)
	ender, err := expiry.NewEnder(expiry.EnderPorts{
		Releaser: commands.New(ahead, clock, random), Parking: store, Failed: noQueue{}, Clock: clock, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	return expiry.NewSweep(expiry.SweepPorts{
		Store: store, Ender: ender, Leases: store, Ahead: ahead, Clock: clock, Parallel: system.RealParallel{}, Logger: logger,
	}, settings)
}

// noQueue takes no message: no hold of a measurement may be parked.
type noQueue struct{}

// Send refuses the message.
func (noQueue) Send(context.Context, string, time.Duration) error {
	return errors.New("a measurement has no queue")
}
