package sim

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"holdfast/shared/archive"
	"holdfast/shared/dynamo"
	"holdfast/shared/expiry"
	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
	"holdfast/shared/outbox"
	"holdfast/shared/reconcile"
	"holdfast/shared/saga"
	"holdfast/shared/skew"
	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
	"holdfast/shared/webhook"
)

const (
	// clockJumpMax is how wrong a clock may be that is wrong by more than skew.
	clockJumpMax = 25 * time.Second
	// clockWildMin and clockWildMax are how wrong a clock is by which nothing may be ended. The
	// least is over the bound by what a Date header leaves open. One that is further ahead
	// takes its deadline for over, and so ends nothing anyway.
	clockWildMin, clockWildMax = skew.UnreliableOver + 2*time.Second, 50 * time.Second
	tableName                  = "sim"
	busName                    = "sim"
	stageName                  = "local"
)

// noLogger is for what the trace tells better.
var noLogger = slog.New(slog.DiscardHandler)

// instance is one process of a function, with its own clock and caches. When it ends, all
// that runs in it ends, and a new process takes its place.
type instance struct {
	world    *world
	name     string
	function topology.Function
	clock    *nodeClock
	gauge    *skew.Gauge
	calls    []*invocation // what runs in it, in the order in which it began
	starts   int

	api        *httpapi.API
	expiry     *expiry.Handler
	outbox     *outbox.Relay
	inbox      *webhook.Inbox
	saga       *saga.Handler
	reconciler *reconcile.Handler
	archiver   *archive.Handler
	auditor    *auditor
}

func (w *world) newInstance(name string, function topology.FunctionName) *instance {
	f, found := topology.FunctionNamed(function)
	if !found {
		panic("sim: the topology has no function " + string(function))
	}
	i := &instance{world: w, name: name, function: f}
	i.start()
	return i
}

// start wires a new process, as functions/<name>/main.go does, on simulated ports.
func (i *instance) start() {
	w := i.world
	i.starts++
	d := w.dice("instance " + i.name + " " + string(rune('a'+i.starts)))
	wrong := drawSkew(d, &w.faults)
	if i.function.Name == topology.FunctionExpiry && d.chance(w.faults.ClockWild) {
		wrong = pick(d, []time.Duration{-1, 1}) * d.between(clockWildMin, clockWildMax).Truncate(time.Millisecond)
	}
	i.clock = &nodeClock{kernel: w.kernel, skew: wrong, skewMin: wrong, skewMax: wrong}
	i.gauge = skew.NewGauge(i.clock)
	if d.chance(w.faults.ClockJump) {
		i.jump(d)
	}
	random := taskRandom{w.kernel}
	store := dynamo.NewStore(&session{database: w.database, instance: i}, tableName, i.clock, random)
	var err error
	switch i.function.Name {
	case topology.FunctionAPI:
		i.api, err = httpapi.New(httpapi.Options{
			Contract: w.contract, Store: store, Clock: i.clock, Random: random, OperatorGroup: operatorGroup, Logger: noLogger,
			Provider: &provider{w, i}, Gauge: i.gauge,
		})
	case topology.FunctionExpiry:
		i.expiry, err = i.newExpiry(store)
	case topology.FunctionOutbox:
		i.outbox, err = i.newRelay(store)
	case topology.FunctionReconcile:
		i.reconciler, err = i.newReconciler(store)
	case topology.FunctionAudit:
		i.auditor = i.newAuditor(store)
	case topology.FunctionArchive:
		i.archiver, err = i.newArchiver(store)
	case topology.FunctionWebhook:
		i.inbox, err = webhook.NewInbox(webhook.Ports{
			Verify: readNotice, Queue: &sender{w, i}, Metrics: noMetrics{}, Clock: i.clock, Logger: noLogger,
			Recorded: func(ctx context.Context, id ledger.ProviderEventID) (bool, error) {
				_, recorded, err := store.Claimed(ctx, ledger.UniqueProviderEvent, string(id))
				return recorded, err
			},
		}, webhook.Settings{SignatureHeader: signatureHeader, SagaQueueURL: sagaQueueURL})
	case topology.FunctionSaga:
		dwells := &telemetry.Spread{}
		driver := saga.NewDriver(saga.Ports{
			Store: store, Provider: &provider{w, i}, Clock: i.clock, Random: random, Metrics: noMetrics{}, Dwells: dwells, Logger: noLogger,
		})
		i.saga = saga.NewHandler(saga.NewWorker(driver, noMetrics{}, i.clock, noLogger),
			saga.NewTick(store, driver, i.clock, noLogger), dwells, noMetrics{}, random, noLogger)
	default:
		panic("sim: nobody has told the simulation how to start function " + string(i.function.Name))
	}
	if err != nil {
		panic("sim: start " + i.name + ": " + err.Error())
	}
}

// jump makes the instance's clock jump at some time of its life, forward or back.
func (i *instance) jump(d *dice) {
	clock, to := i.clock, d.between(-clockJumpMax, clockJumpMax).Truncate(time.Millisecond)
	i.world.kernel.after(d.between(0, faultsFor), func() {
		if i.clock == clock && i.world.faults != (Faults{}) {
			i.world.trace.add("the clock of %s jumps from %s to %s off", i.name, clock.skew, to)
			clock.set(to)
		}
	})
}

// drawSkew draws how wrong a clock is when its process starts.
func drawSkew(d *dice, f *Faults) time.Duration {
	if d.chance(f.ClockJump) {
		return d.between(-clockJumpMax, clockJumpMax).Truncate(time.Millisecond)
	}
	return d.between(-f.ClockSkewMax, f.ClockSkewMax).Truncate(time.Millisecond)
}

// invocation is one call of a function.
type invocation struct {
	task *task
	// ended is told once: true when the call came to its end, false when its process or
	// its time ended before.
	ended func(completed bool)
}

// invoke runs body in the instance as one call of the function.
func (i *instance) invoke(name string, body func(), ended func(completed bool)) {
	k := i.world.kernel
	call := &invocation{ended: ended}
	call.task = k.spawn(k.now, name+" in "+i.name, i.world.dice(name), func(*task) {
		body()
		if i.remove(call) {
			// A task must not resume another: the kernel tells whoever waits for the answer.
			k.after(0, func() { call.ended(true) })
		}
	})
	i.calls = append(i.calls, call)
	k.after(i.function.Timeout, func() {
		if slices.Contains(i.calls, call) {
			i.world.trace.add("%s: its time is up", call.task.name)
			i.crash()
		}
	})
}

// remove takes the call off the list, and reports whether it was there.
func (i *instance) remove(call *invocation) bool {
	at := slices.Index(i.calls, call)
	if at >= 0 {
		i.calls = slices.Delete(i.calls, at, at+1)
	}
	return at >= 0
}

// crash ends the process: all its calls end where they are, and a new process starts.
func (i *instance) crash() {
	i.world.trace.add("%s crashes", i.name)
	calls := i.calls
	i.calls = nil
	i.start()
	for _, call := range calls {
		call.task.kill()
		i.world.kernel.after(0, func() { call.ended(false) })
	}
}

// lambdaContext is the context that a call of a function has: its deadline is of the
// history's time. It is over when the process is, so it is never done before.
type lambdaContext struct {
	context.Context
	deadline time.Time
}

// Deadline is when the call's time is up.
func (c lambdaContext) Deadline() (time.Time, bool) { return c.deadline, true }

// deadline is the context of a call that begins now.
func (i *instance) deadline() context.Context {
	return lambdaContext{contextOfHistory, i.world.kernel.now.Add(i.function.Timeout)}
}

// noMetrics takes numbers and forgets them: what they tell, the world knows better.
type noMetrics struct{}

// Emit forgets the numbers.
func (noMetrics) Emit(telemetry.Properties, ...telemetry.Measurement) error { return nil }
