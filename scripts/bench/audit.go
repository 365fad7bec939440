package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"holdfast/shared/dynamo"
	"holdfast/shared/reconcile"
	"holdfast/shared/system"
)

const (
	// Floors and ceilings: the audit's cost is linear in the table, and one worker can hold it.
	auditReadUnitsSpread = 1.01
	auditCPUSpread       = 1.20
	auditMemoryMiBMax    = 512
	// auditRounds are the audits of each table; the cheapest is judged, as others share the
	// machine.
	auditRounds = 3
	mebibyte    = 1 << 20
)

// waiting is how an audit waits between two looks: for the indexes of a real table, or, as those
// of the local engine never lag, not at all.
type waiting func(context.Context, time.Duration) error

// auditCost is what one audit has cost.
type auditCost struct {
	holds     int
	readUnits float64 // per hold
	cpu       time.Duration
	took      time.Duration
	memoryMiB float64
	pages     int
}

// runAuditCost audits tables of those sizes, at rest, and requires that a hold costs the same
// in all of them. The engine is another process; its time is in took alone, and it is not
// linear: a segment of the local engine is found by reading what is not of it.
func runAuditCost(ctx context.Context, out io.Writer, sizes []int) error {
	fmt.Fprintf(out, "audit of %d segments, one after the other; the engine's time is only in seconds\n", reconcile.AuditSegments)
	fmt.Fprintf(out, "%10s %18s %16s %12s %10s %8s\n", "holds", "read units/hold", "our CPU/hold", "memory MiB", "seconds", "pages")
	var costs []auditCost
	for _, size := range sizes {
		cost, err := measureAudit(ctx, size)
		if err != nil {
			return fmt.Errorf("table of %d holds: %w", size, err)
		}
		costs = append(costs, cost)
		fmt.Fprintf(out, "%10d %18.4f %16s %12.1f %10.1f %8d\n", cost.holds, cost.readUnits, cost.cpu.Round(10*time.Nanosecond),
			cost.memoryMiB, cost.took.Seconds(), cost.pages)
	}
	return judgeAuditCosts(costs)
}

// judgeAuditCosts returns an error for an audit whose cost grows faster than its table.
func judgeAuditCosts(costs []auditCost) error {
	var failures []error
	first := costs[0]
	leastUnits, mostUnits, leastCPU, mostCPU := first.readUnits, first.readUnits, first.cpu, first.cpu
	for _, c := range costs {
		leastUnits, mostUnits = min(leastUnits, c.readUnits), max(mostUnits, c.readUnits)
		leastCPU, mostCPU = min(leastCPU, c.cpu), max(mostCPU, c.cpu)
		if c.memoryMiB > auditMemoryMiBMax {
			failures = append(failures, fmt.Errorf("an audit of %d holds needs %.0f MiB, more than %d", c.holds, c.memoryMiB, auditMemoryMiBMax))
		}
	}
	if mostUnits > leastUnits*auditReadUnitsSpread {
		failures = append(failures, fmt.Errorf("a hold costs %.4f to %.4f read units", leastUnits, mostUnits))
	}
	if float64(mostCPU) > float64(leastCPU)*auditCPUSpread {
		failures = append(failures, fmt.Errorf("a hold costs %s to %s of our CPU", leastCPU, mostCPU))
	}
	return errors.Join(failures...)
}

func measureAudit(ctx context.Context, size int) (cost auditCost, err error) {
	t, err := newScaleTable(ctx, size, false, nil)
	if err != nil {
		return cost, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if _, err := newMarket(ctx, t.meter.Client, size); err != nil {
		return cost, err
	}
	cost.holds = size
	for round := range auditRounds {
		runtime.GC()
		memory := watchMemory()
		began, cpu := time.Now(), userTime()
		report, err := reconcile.Audit(ctx, auditPorts(t))
		if err != nil {
			memory.peakMiB()
			return cost, err
		}
		used := (userTime() - cpu) / time.Duration(size)
		cost.memoryMiB = max(cost.memoryMiB, memory.peakMiB())
		if len(report.Findings)+report.Suspects > 0 || report.Holds != size {
			return cost, fmt.Errorf("the audit counts %d holds, and finds %v", report.Holds, report.Findings)
		}
		if round == 0 || used < cost.cpu {
			cost.cpu, cost.took = used, time.Since(began)
		}
		cost.readUnits, cost.pages = report.ReadUnits/float64(size), report.Pages
	}
	return cost, nil
}

func auditPorts(t *scaleTable) reconcile.AuditPorts {
	clock := system.RealClock{}
	return reconcile.AuditPorts{
		Segments: dynamo.NewScan(t.meter.Client, tableName), Store: dynamo.NewStore(t.meter.Client, tableName, clock, system.RealRandom{}),
		Clock: clock, Wait: clock.Sleep,
	}
}

// userTime is the time that this process has had of the processors for its own code.
func userTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0 // it has no other error than a wrong argument
	}
	return time.Duration(usage.Utime.Nano())
}

// memoryWatch remembers the largest heap.
type memoryWatch struct {
	peak  atomic.Uint64
	ended chan struct{}
	done  chan struct{}
}

// memoryEvery is how often the heap is looked at.
const memoryEvery = 50 * time.Millisecond

func watchMemory() *memoryWatch {
	w := &memoryWatch{ended: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(memoryEvery)
		defer tick.Stop()
		for {
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			w.peak.Store(max(w.peak.Load(), stats.HeapInuse))
			select {
			case <-tick.C:
			case <-w.ended:
				return
			}
		}
	}()
	return w
}

// peakMiB ends the watch.
func (w *memoryWatch) peakMiB() float64 {
	close(w.ended)
	<-w.done
	return float64(w.peak.Load()) / mebibyte
}

// runAuditFaults audits a table of mixed holds under traffic: clean so many times, then with the
// faults, then after their repair.
func runAuditFaults(ctx context.Context, out io.Writer, holds, rounds int, wait waiting) (err error) {
	t, err := newScaleTable(ctx, holds, false, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	m, err := newMarket(ctx, t.meter.Client, holds)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d mixed holds, %d steps a second beside every audit\n", holds, trafficPerSecond)
	traffic := startTraffic(ctx, t.meter.Client, len(m.slots))
	err = auditUnderTraffic(ctx, out, t, m, rounds, wait)
	steps, trafficErr := traffic.stop()
	fmt.Fprintf(out, "the traffic made %d steps in %s\n", steps, traffic.lasted().Round(time.Second))
	return errors.Join(err, trafficErr)
}

func auditUnderTraffic(ctx context.Context, out io.Writer, t *scaleTable, m *market, rounds int, wait waiting) error {
	audit := func(title string) (reconcile.Report, error) {
		began := time.Now()
		ports := auditPorts(t)
		ports.Wait = wait
		report, err := reconcile.Audit(ctx, ports)
		if err != nil {
			return report, err
		}
		fmt.Fprintf(out, "%-22s %4d suspects, %3d findings, %2d unsettled, %d holds, %s\n", title, report.Suspects, len(report.Findings),
			report.Unsettled, report.Holds, time.Since(began).Round(100*time.Millisecond))
		return report, nil
	}
	for round := range rounds {
		report, err := audit(fmt.Sprintf("clean, round %d", round+1))
		if err == nil && len(report.Findings) > 0 {
			err = fmt.Errorf("false findings: %v", report.Findings)
		}
		if err != nil {
			return err
		}
	}
	faults := m.faults(time.Now())
	if err := plant(ctx, t.meter.Client, faults); err != nil {
		return err
	}
	report, err := audit(fmt.Sprintf("%d faults", len(faults)))
	if err != nil {
		return err
	}
	for _, f := range report.Findings {
		fmt.Fprintf(out, "  %s\n    because %s\n", f, f.Cause)
	}
	if err := judgeFindings(report.Findings, faults); err != nil {
		return err
	}
	return repairUnderTraffic(ctx, out, t, faults, report.Findings, audit)
}

// repairUnderTraffic repairs dry, then for good, then once more; and audits what is left.
func repairUnderTraffic(ctx context.Context, out io.Writer, t *scaleTable, faults []fault, findings []reconcile.Finding,
	audit func(string) (reconcile.Report, error)) error {
	repairer := newBenchRepairer(t.meter.Client)
	dry, err := repairer.Run(ctx, findings, false)
	if err != nil {
		return err
	}
	if dry.Written() > 0 {
		return fmt.Errorf("a dry run wrote %d", dry.Written())
	}
	certain := 0
	for _, f := range faults {
		if f.certain {
			certain++
		}
	}
	applied, err := repairer.Run(ctx, findings, true)
	fmt.Fprintf(out, "%-22s %d planned dry; %d repaired, %d queued\n", "repair", dry.Count(reconcile.RepairPlanned), applied.Count(reconcile.RepairDone), applied.Count(reconcile.RepairQueued))
	if err != nil || applied.Count(reconcile.RepairDone) != certain || applied.Count(reconcile.RepairQueued) != len(faults)-certain {
		return errors.Join(err, fmt.Errorf("of %d faults %d are certain: %+v", len(faults), certain, applied.Results))
	}
	report, err := audit("after the repair")
	if err != nil {
		return err
	}
	var left []fault
	for _, f := range faults {
		if !f.certain {
			left = append(left, f)
		}
	}
	if err := judgeFindings(report.Findings, left); err != nil {
		return fmt.Errorf("what is queued is still so, and nothing else: %w", err)
	}
	again, err := repairer.Run(ctx, report.Findings, true)
	fmt.Fprintf(out, "%-22s %d written, %d known\n", "second repair", again.Written(), again.Count(reconcile.RepairKnown))
	if err != nil || again.Written() > 0 {
		return errors.Join(err, fmt.Errorf("a second repair wrote: %+v", again.Results))
	}
	return nil
}
