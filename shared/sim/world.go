package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/archive/archivetest"
	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/expiry"
	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
	"holdfast/shared/topology"
)

// historyStart is when every history begins. It is a quiet date of its own, so that a
// time in a trace can't be mistaken for a real one. It lies in the past, so that a
// deadline of the history's time is always before one of the machine's time: package
// context then keeps the former when code sets a shorter time-out.
var historyStart = time.Date(2005, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	// faultsFor is how long a history is unkind. The last requests of the workload are in
	// the calm after it.
	faultsFor = workloadFor - 20*time.Second
	// settleFor is the calm at the end, in which everything must come to its end: every
	// hold by its release time and the bound of promise P9, every event on the bus.
	settleFor = 75*time.Second + endsWithin + time.Minute
	// endsWithin is the published bound of P9: a HELD hold outlives its due time by at
	// most this while the workers run.
	endsWithin = 2 * time.Minute
)

type attributeValue = types.AttributeValue

// world is one history: the functions, what surrounds them, the clients, and the books.
type world struct {
	seed     uint64
	faults   Faults
	kernel   *kernel
	trace    *trace
	contract *httpapi.Contract
	database *database
	books    *books

	apis       []*instance
	sweepers   []*instance
	sweep      expiry.SweepSettings
	outbox     *instance
	webhook    *instance
	reconciler *instance
	auditor    *instance
	audits     int // that came to their end beside the traffic
	// planted counts what was damaged on purpose, and writesAfterPlanting what is written after.
	planted, writesAfterPlanting int
	archivers                    []*instance // none before the archive begins
	bucket                       *archivetest.Bucket
	sagas                        []*instance
	queues                       map[string]*queue // by their address
	bank                         *bank
	stream                       []*streamShard
	sequence                     int
	// relayOutage and sweepOutage are when no batch reaches the relay, and no tick the sweep.
	relayOutage, sweepOutage outage
	// poison says that one hold in n can't be ended by the expiry function before the calm.
	poison    int
	envelopes int

	calmSince time.Time
	requests  []*request
	current   map[string]*request // by the task that sends it or works on it
	answers   map[string]*answered
	notFound  map[ledger.Code]string
	// secrets are what the buyers have been told, by the reservation.
	secrets map[ledger.ReservationID]string

	violations []Violation
}

// Violation is a broken promise.
type Violation struct {
	Promise string
	At      time.Duration // since the history began
	Text    string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s broken at %s: %s", v.Promise, v.At, v.Text)
}

func (w *world) violated(promise, format string, args ...any) {
	v := Violation{Promise: promise, At: w.kernel.now.Sub(historyStart), Text: fmt.Sprintf(format, args...)}
	w.violations = append(w.violations, v)
	w.trace.add("VIOLATION %s", v)
}

// dice returns the dice of this name in this history.
func (w *world) dice(name string) *dice { return newDice(w.seed, name) }

// calm reports whether faults have been off for long enough that nothing of them is left.
func (w *world) calm() bool {
	return w.kernel.now.Sub(w.calmSince) > gatewayGivesUpAfter
}

func newWorld(seed uint64, faults Faults, contract *httpapi.Contract, keepTrace bool) *world {
	w := &world{
		seed: seed, faults: faults, poison: faults.Poison, kernel: newKernel(historyStart), contract: contract,
		current: map[string]*request{}, answers: map[string]*answered{},
		notFound: map[ledger.Code]string{}, secrets: map[ledger.ReservationID]string{},
		calmSince: historyStart.Add(math.MaxInt64 / 4),
	}
	w.trace = newTrace(w.kernel, keepTrace)
	w.books = newBooks(w)
	w.database = newDatabase(w.kernel, &w.faults, w.committed)
	w.database.poisoned = w.preventsEnd
	for n := range streamShards {
		w.stream = append(w.stream, &streamShard{world: w, number: n})
	}
	w.bank = newBank(w)
	w.relayOutage, w.sweepOutage = w.drawOutage("the relay", faults.RelayOutageMax), w.drawOutage("the sweep's ticks", faults.SweepOffMax)
	w.queues = map[string]*queue{
		sagaQueueURL: {world: w, name: "saga"}, expiryFailedQueueURL: {world: w, name: "expiry-failed"},
		dueQueueURL: {world: w, name: "due", loses: &w.faults.DueLost, off: faults.DueQueueOff},
	}
	w.startSaga()
	w.apis = []*instance{w.newInstance("api-0", topology.FunctionAPI), w.newInstance("api-1", topology.FunctionAPI)}
	w.startExpiry()
	w.outbox = w.newInstance("outbox", topology.FunctionOutbox)
	w.webhook = w.newInstance("webhook", topology.FunctionWebhook)
	w.reconciler = w.newInstance("reconcile", topology.FunctionReconcile)
	w.auditor = w.newInstance("audit", topology.FunctionAudit)
	w.bucket = archivetest.NewBucket(bucketName)
	return w
}

// instances are all processes, in a fixed order.
func (w *world) instances() []*instance {
	return slices.Concat(w.sweepers, []*instance{w.outbox, w.webhook, w.reconciler, w.auditor}, w.apis, w.sagas, w.archivers)
}

// committed takes every change of the table to the books and to the stream.
func (w *world) committed(c commit) {
	w.books.write(c, w.current[c.by])
	for _, m := range c.mutations {
		w.sequence++
		if strings.HasPrefix(m.Key.Sort, "EVENT#") && m.New != nil {
			shard := newDice(0, m.Key.Partition).IntN(streamShards)
			w.stream[shard].put(m, w.sequence)
		}
	}
}

func (w *world) nextEnvelope() int {
	w.envelopes++
	return w.envelopes
}

// holdOf is the hold that a planned create has made, if it has.
func (w *world) holdOf(number int) ledger.HoldID {
	for id, hold := range w.books.holds {
		if hold.by != nil && hold.by.number == number {
			return id
		}
	}
	return ""
}

// define makes the slots, in calm, before the history begins.
func (w *world) define(slots []slotPlan) {
	store := dynamo.NewStore(&session{database: w.database, instance: w.apis[0]}, tableName, &nodeClock{kernel: w.kernel}, taskRandom{w.kernel})
	catalog := commands.New(store, &nodeClock{kernel: w.kernel}, taskRandom{w.kernel})
	unkind := w.faults
	w.faults = Faults{}
	w.kernel.spawn(w.kernel.now, "define the policy", w.dice("define the policy"), func(*task) {
		life := lifeAtFirst
		layer := ledger.PolicyPatch{HoldFor: &life}.Apply(ledger.InheritAll())
		_, err := catalog.PutPolicy(contextOfHistory, commands.Request{Actor: "catalog"}, ledger.PolicyScope{ResourceType: resourceType}, layer,
			func(ledger.ScopePolicy, bool) (ledger.Response, error) { return ledger.Response{}, nil })
		if err != nil {
			w.violated("liveness", "the policy could not be made: %v", err)
		}
	})
	for _, s := range slots {
		w.kernel.spawn(w.kernel.now, "define "+string(s.id), w.dice("define "+string(s.id)), func(*task) {
			_, err := catalog.PutSlot(contextOfHistory, commands.Request{Actor: "catalog"}, s.id, ledger.SlotDefinition{
				ResourceType: resourceType, ResourceID: resourceID, Capacity: s.capacity, Policy: s.policy, Inherits: s.inherits, StartsAt: s.startsAt,
				Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: s.amount, Currency: "USD"}, Shards: s.shards},
			}, func(ledger.Slot, ledger.Policy, ledger.Counters, bool) (ledger.Response, error) {
				return ledger.Response{}, nil
			})
			if err != nil {
				w.violated("liveness", "slot %s could not be made: %v", s.id, err)
			}
		})
	}
	w.kernel.run(historyStart.Add(time.Second))
	w.faults = unkind
}

// settle turns the faults off and puts every instance on the true time.
func (w *world) settle() {
	w.trace.add("the faults end")
	w.faults = Faults{}
	w.calmSince = w.kernel.now
	for _, i := range w.instances() {
		i.crash()
	}
}
