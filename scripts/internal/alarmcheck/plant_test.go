package alarmcheck_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/scripts/internal/alarmcheck"
	"holdfast/shared/archive"
	"holdfast/shared/archive/archivetest"
	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/expiry"
	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
	"holdfast/shared/objects"
	"holdfast/shared/outbox"
	"holdfast/shared/outbox/outboxtest"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/payment/stripe"
	"holdfast/shared/payment/stripetest"
	"holdfast/shared/reconcile"
	"holdfast/shared/saga"
	"holdfast/shared/skew"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
	"holdfast/shared/webhook"
)

const (
	testStage       = "dev"
	tableName       = "table"
	busName         = "bus"
	bucketName      = "archive"
	auditBucketName = "audit"
	// auditEvery is from the beginning of one audit to that of the next, as the stage says.
	auditEvery = time.Hour
	// stepEvery is how often the plant delivers what waits in streams and queues.
	stepEvery = 10 * time.Second
	// buyAfter is when in each minute buyers come.
	buyAfter = stepEvery
	// batchRecordsMax is the mapping's largest batch.
	batchRecordsMax = 100
	// holdFor is how long a hold of the plant's slot lasts.
	holdFor = 2 * time.Minute
	// retained is how long an ended record stays in the plant's table.
	retained = 24 * time.Hour
)

// plantStart lies in the past: a deadline by the plant's clock is then always before one by
// the machine's, and package context keeps it when code sets a shorter time-out.
var plantStart = time.Date(2005, 1, 1, 0, 0, 0, 0, time.UTC)

var webhookSecret = payment.NewSecret("whsec_plant")

// plant is every function of Holdfast in one process, wired as it is deployed, with a clock
// that the test moves. The table, the queues, the bus, the bucket and the provider are in
// memory and fail when they are told to. What the functions write to their output is kept,
// as CloudWatch keeps it.
type plant struct {
	tb       testing.TB
	clock    *systemtest.Clock
	random   *systemtest.Random
	database *database
	queues   *queues
	bus      *outboxtest.Bus
	bucket   *archivetest.Bucket
	bank     *paymenttest.Bank
	provider *paymenttest.Provider
	output   bytes.Buffer
	// counted is what AWS counts by itself. Both go into series, as far as they are read.
	counted    []alarmcheck.Sample
	outputRead int
	series     map[alarmcheck.Metric][]alarmcheck.Sample

	api        *httpapi.API
	expiry     *expiry.Handler
	relay      *outbox.Relay
	inbox      *webhook.Inbox
	saga       *saga.Handler
	reconciler *reconcile.Handler
	archiver   *archive.Handler
	auditor    *reconcile.FanoutHandler

	// streamDelay is how old a record of the stream is before it is delivered.
	streamDelay time.Duration
	// queueHeld keeps what waits in a queue from its function.
	queueHeld map[topology.Resource]bool
	// broken says that a fault is injected, so that functions may fail.
	broken bool
	// noTraffic says that nobody asks for anything.
	noTraffic bool
	requests  int
}

func newPlant(tb testing.TB) *plant {
	tb.Helper()
	clock := systemtest.NewClock(plantStart)
	bank := paymenttest.NewBank(clock.Now)
	p := &plant{
		tb: tb, clock: clock, random: systemtest.NewRandom(1), database: newDatabase(tb, clock), queues: newQueues(clock),
		bus: outboxtest.NewBus(outbox.CallBytesMaxDefault), bucket: archivetest.NewBucket(bucketName),
		bank: bank, provider: paymenttest.NewProvider(bank),
		queueHeld: map[topology.Resource]bool{}, series: map[alarmcheck.Metric][]alarmcheck.Sample{},
	}
	p.wire()
	p.defineSlot("seat", "")
	return p
}

func (p *plant) must(err error) {
	p.tb.Helper()
	if err != nil {
		p.tb.Fatal(err)
	}
}

// part is what every function is made of.
type part struct {
	session session
	store   *dynamo.Store
	metrics *telemetry.Emitter
	source  telemetry.Source
}

func (p *plant) part(name topology.FunctionName) part {
	source := telemetry.Source{Stage: testStage, Function: string(name)}
	s := session{p.database, name, skew.NewGauge(p.clock)}
	return part{s, dynamo.NewStore(s, tableName, p.clock, p.random), telemetry.NewEmitter(&p.output, p.clock, source), source}
}

// wire puts the functions together, as their mains do.
func (p *plant) wire() {
	p.tb.Helper()
	var err error
	of := p.part(topology.FunctionAPI)
	p.api, err = httpapi.New(httpapi.Options{
		Store: of.store, Waiting: of.store, Clock: p.clock, Gauge: of.session.gauge, Random: p.random, OperatorGroup: "ops",
		Provider: p.provider, Logger: telemetry.NewLogger(&p.output, of.source), Metrics: of.metrics,
	})
	p.must(err)
	of = p.part(topology.FunctionExpiry)
	ahead := expiry.NewReadAhead(of.store)
	p.expiry, err = expiry.NewFunction(expiry.FunctionPorts{
		Store: of.store, Releaser: commands.New(ahead, p.clock, p.random), Ahead: ahead, Parking: of.store, Leases: of.store,
		Due: expiry.NewQueue(p.queues, string(topology.ResourceDueQueue)), Failed: expiry.NewQueue(p.queues, string(topology.ResourceExpiryFailed)),
		Skew: of.session.gauge, Commands: telemetry.NewCommandTally(), Metrics: of.metrics, Clock: p.clock, Random: p.random, Parallel: systemtest.OneByOne{},
		Logger: telemetry.NewLogger(&p.output, of.source),
	}, expiry.SweepSettings{PageItems: 100, ParallelMax: expiry.ParallelMaxDefault})
	p.must(err)
	p.relay = p.newRelay(p.part(topology.FunctionOutbox))
	of = p.part(topology.FunctionWebhook)
	p.inbox, err = webhook.NewInbox(webhook.Ports{
		Verify: func(_ context.Context, body []byte, signature string, now time.Time) (payment.Notice, error) {
			return stripe.Verify(body, signature, []payment.Secret{webhookSecret}, now)
		},
		Recorded: func(ctx context.Context, id ledger.ProviderEventID) (bool, error) {
			_, claimed, err := of.store.Claimed(ctx, ledger.UniqueProviderEvent, string(id))
			return claimed, err
		},
		Queue: p.queues, Metrics: of.metrics, Clock: p.clock, Logger: telemetry.NewLogger(&p.output, of.source),
	}, webhook.Settings{SignatureHeader: stripe.SignatureHeader, SagaQueueURL: string(topology.ResourceSagaQueue)})
	p.must(err)
	sagaPart := p.part(topology.FunctionSaga)
	logger := telemetry.NewLogger(&p.output, sagaPart.source)
	dwells := &telemetry.Spread{}
	driver := saga.NewDriver(saga.Ports{
		Store: sagaPart.store, Provider: p.provider, Clock: p.clock, Random: p.random, Metrics: sagaPart.metrics, Dwells: dwells, Logger: logger,
	})
	p.saga = saga.NewHandler(saga.NewWorker(driver, sagaPart.metrics, p.clock, logger),
		saga.NewTick(sagaPart.store, driver, p.clock, logger), dwells, sagaPart.metrics, p.random, logger)
	of = p.part(topology.FunctionReconcile)
	p.reconciler = reconcile.NewHandler(reconcile.Ports{
		Redrive: outbox.NewRedrive(p.newRelay(of), of.store), Quarantine: of.store,
		Metrics: of.metrics, Clock: p.clock, Logger: telemetry.NewLogger(&p.output, of.source),
	})
	of = p.part(topology.FunctionArchive)
	worker, err := archive.NewWorker(archive.Ports{
		Store: of.store, Bucket: archive.NewBucket(p.bucket, bucketName, p.clock, p.random), Clock: p.clock, Random: p.random,
		Logger: telemetry.NewLogger(&p.output, of.source),
	}, archive.Retention{Holds: retained, Reservations: retained})
	p.must(err)
	p.archiver = archive.NewHandler(worker, of.metrics, p.random, telemetry.NewLogger(&p.output, of.source))
	p.wireAudit(p.part(topology.FunctionAudit))
}

// wireAudit puts the audit together. It repairs nothing, so that what is found stays.
func (p *plant) wireAudit(of part) {
	p.tb.Helper()
	logger := telemetry.NewLogger(&p.output, of.source)
	fanout, err := reconcile.NewFanout(reconcile.FanoutPorts{
		Segments: dynamo.NewScan(of.session, tableName),
		Shelf:    reconcile.NewShelf(objects.NewBucket(archivetest.NewBucket(auditBucketName), auditBucketName, p.clock, p.random)),
		Tasks:    reconcile.NewTaskQueue(p.queues, string(topology.ResourceAuditQueue)),
		Examine:  &reconcile.Examiner{Store: of.store, Clock: p.clock, Wait: p.clock.Sleep},
		Repair: func(request ledger.RequestID) reconcile.Repairs {
			return &reconcile.Repairer{
				Store: of.store, Expire: commands.New(of.store, p.clock, p.random), Clock: p.clock, Random: p.random,
				Actor: ledger.ActorAudit, RequestID: request,
			}
		},
		Metrics: of.metrics, Clock: p.clock, Logger: logger,
	}, reconcile.FanoutSettings{Every: auditEvery, Repair: topology.AuditRepairOff})
	p.must(err)
	p.auditor = reconcile.NewFanoutHandler(fanout, p.random, logger)
}

func (p *plant) newRelay(of part) *outbox.Relay {
	p.tb.Helper()
	relay, err := outbox.NewRelay(outbox.Ports{
		Publisher: p.bus, Queue: p.queues, Marker: of.store, Decode: dynamo.DecodeEventImage, Metrics: of.metrics,
		Clock: p.clock, Random: p.random, Logger: telemetry.NewLogger(&p.output, of.source),
	}, outbox.Settings{
		Bus: busName, Stage: testStage, CallBytesMax: outbox.CallBytesMaxDefault,
		SagaQueueURL: string(topology.ResourceSagaQueue), DueQueueURL: string(topology.ResourceDueQueue),
	})
	p.must(err)
	return relay
}

// callContext is the context of a call: its deadline is by the plant's clock.
type callContext struct {
	context.Context
	deadline time.Time
}

// Deadline is when the call's time is up.
func (c callContext) Deadline() (time.Time, bool) { return c.deadline, true }

func (p *plant) function(name topology.FunctionName) topology.Function {
	p.tb.Helper()
	f, known := topology.FunctionNamed(name)
	if !known {
		p.tb.Fatalf("there is no function %s", name)
	}
	return f
}

// fedBy is the function that the queue feeds.
func (p *plant) fedBy(queue topology.Resource) topology.Function {
	p.tb.Helper()
	for _, f := range topology.Functions() {
		if f.Queue != nil && f.Queue.Queue == queue {
			return f
		}
	}
	p.tb.Fatalf("the queue %s feeds no function", queue)
	return topology.Function{}
}

func (p *plant) call(name topology.FunctionName) context.Context {
	p.tb.Helper()
	return callContext{context.Background(), p.clock.Now().Add(p.function(name).Timeout)}
}

// run lets time pass: requests come, ticks are due, and streams and queues are delivered.
func (p *plant) run(d time.Duration) {
	p.tb.Helper()
	for end := p.clock.Now().Add(d); p.clock.Now().Before(end); {
		next := p.clock.Now().Truncate(stepEvery).Add(stepEvery)
		p.clock.Set(next)
		switch next {
		case next.Truncate(time.Minute):
			p.tick()
		case next.Truncate(time.Minute).Add(buyAfter):
			// Between two ticks, so that what is due is not swept in the same moment.
			if !p.noTraffic {
				p.buy()
			}
		}
		p.deliver()
	}
}

// runOnly lets time pass in which nothing happens but the ticks of one function.
func (p *plant) runOnly(name topology.FunctionName, d time.Duration) {
	p.tb.Helper()
	f := p.function(name)
	for end := p.clock.Now().Add(d); p.clock.Now().Before(end); {
		p.clock.Set(p.clock.Now().Truncate(f.Schedule.Every).Add(f.Schedule.Every))
		p.start(f)
	}
}

// tick does what the Scheduler does at a full minute.
func (p *plant) tick() {
	p.tb.Helper()
	for _, f := range topology.Functions() {
		if f.Schedule != nil && p.clock.Now().Equal(p.clock.Now().Truncate(f.Schedule.Every)) {
			p.start(f)
		}
	}
}

// start hands a tick to a function. A tick that fails is an error of its function, which is
// meant only while something is broken.
func (p *plant) start(f topology.Function) {
	p.tb.Helper()
	event, at, ctx := json.RawMessage(`{}`), p.clock.Now(), p.call(f.Name)
	var err error
	switch f.Name {
	case topology.FunctionExpiry:
		_, err = p.expiry.Handle(ctx, event)
	case topology.FunctionSaga:
		_, err = p.saga.Handle(ctx, event)
	case topology.FunctionReconcile:
		err = p.reconciler.Handle(ctx, event)
	case topology.FunctionArchive:
		err = p.archiver.Handle(ctx, event)
	case topology.FunctionAudit:
		_, err = p.auditor.Handle(ctx, event)
	default:
		p.tb.Fatalf("nobody has told the plant how to start the function %s", f.Name)
	}
	if err != nil && !p.broken {
		p.tb.Errorf("tick of %s: %v", f.Name, err)
	}
	// Functions run beside each other: what one takes is none of another's time.
	p.clock.Set(at)
}

// deliver hands on what waits in the stream, in the bank, and in the queues of work.
func (p *plant) deliver() {
	p.tb.Helper()
	p.deliverStream()
	for _, e := range p.bank.TakeEvents() {
		body := stripetest.WebhookBody(e)
		p.webhook(body, stripetest.SignatureHeader(body, p.clock.Now(), webhookSecret))
	}
	for resource, handle := range map[topology.Resource]func(context.Context, json.RawMessage) (any, error){
		topology.ResourceDueQueue: p.expiry.Handle, topology.ResourceSagaQueue: p.saga.Handle, topology.ResourceAuditQueue: p.auditor.Handle,
	} {
		if !p.queueHeld[resource] {
			p.deliverQueue(resource, handle)
		}
	}
	for _, q := range p.queues.all {
		if q.dead == nil && p.clock.Now().Equal(p.clock.Now().Truncate(time.Minute)) {
			p.count("AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", constructID(string(q.name)), float64(q.visible(p.clock.Now())))
		}
	}
}

func (p *plant) deliverStream() {
	var records []events.DynamoDBEventRecord
	for _, one := range p.database.stream {
		if p.clock.Now().Sub(one.at) >= p.streamDelay && len(records) < batchRecordsMax {
			records = append(records, one.record)
		}
	}
	if len(records) == 0 {
		return
	}
	at := p.clock.Now()
	response, err := p.relay.Handle(p.call(topology.FunctionOutbox), events.DynamoDBEvent{Records: records})
	p.clock.Set(at)
	done := len(records)
	if err != nil {
		done = 0
	}
	for _, failure := range response.BatchItemFailures {
		for i, record := range records {
			if record.Change.SequenceNumber == failure.ItemIdentifier {
				done = min(done, i)
			}
		}
	}
	p.database.stream = p.database.stream[done:]
}

func (p *plant) deliverQueue(resource topology.Resource, handle func(context.Context, json.RawMessage) (any, error)) {
	p.tb.Helper()
	q, f := p.queues.of(resource), p.fedBy(resource)
	for {
		batch := q.receive(p.clock.Now(), f.Queue.BatchMessagesMax)
		if len(batch) == 0 {
			return
		}
		var event events.SQSEvent
		for _, m := range batch {
			event.Records = append(event.Records, events.SQSMessage{MessageId: m.id, Body: m.body})
		}
		payload, err := json.Marshal(event)
		p.must(err)
		at := p.clock.Now()
		answer, err := handle(p.call(f.Name), payload)
		p.clock.Set(at)
		if err != nil {
			continue
		}
		failed := map[string]bool{}
		response, _ := answer.(events.SQSEventResponse)
		for _, failure := range response.BatchItemFailures {
			failed[failure.ItemIdentifier] = true
		}
		for _, m := range batch {
			if !failed[m.id] {
				q.remove(m.id)
			}
		}
	}
}

// webhook hands a delivery of the provider to its function.
func (p *plant) webhook(body []byte, signature string) {
	p.tb.Helper()
	event, err := json.Marshal(events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "POST /v1/webhooks/stripe", RawPath: "/v1/webhooks/stripe", Body: string(body),
		Headers: map[string]string{"content-type": "application/json", "stripe-signature": signature},
	})
	p.must(err)
	_, err = p.inbox.Handle(p.call(topology.FunctionWebhook), event)
	p.must(err)
}

// count notes a number that AWS counts by itself.
func (p *plant) count(namespace, metric, dimension, of string, value float64) {
	p.counted = append(p.counted, alarmcheck.Sample{
		Metric: alarmcheck.NewMetric(namespace, metric, map[string]string{dimension: of}), At: p.clock.Now(), Value: value,
	})
}

// samplesOf is what was reported of the series that the alarm watches.
func (p *plant) samplesOf(a alarmcheck.Alarm) []alarmcheck.Sample {
	p.tb.Helper()
	read, err := alarmcheck.ReadLines(bytes.NewReader(p.output.Bytes()[p.outputRead:]))
	p.must(err)
	p.outputRead = p.output.Len()
	for _, s := range append(read, p.counted...) {
		p.series[s.Metric] = append(p.series[s.Metric], s)
	}
	p.counted = nil
	var samples []alarmcheck.Sample
	for _, stat := range a.Watched.Stats {
		samples = append(samples, p.series[stat.Metric]...)
	}
	return samples
}

// request makes a request to the API, and returns the status and the body.
func (p *plant) request(method, path, scope, body string) (int, map[string]any) {
	p.tb.Helper()
	p.requests++
	event, err := json.Marshal(map[string]any{
		"version": "2.0", "rawPath": path, "body": body,
		"headers": map[string]string{"content-type": "application/json", "idempotency-key": fmt.Sprintf("key-%d", p.requests)},
		"requestContext": map[string]any{
			"requestId": fmt.Sprintf("request-%d", p.requests), "stage": "$default", "http": map[string]any{"method": method},
			"authorizer": map[string]any{"jwt": map[string]any{"claims": map[string]any{"sub": fmt.Sprintf("owner-%d", p.requests/10), "scope": scope}}},
		},
	})
	p.must(err)
	at := p.clock.Now()
	answer, err := p.api.Lambda(p.call(topology.FunctionAPI), event)
	p.must(err)
	p.clock.Set(at)
	var members map[string]any
	p.must(json.Unmarshal([]byte(answer.Body), &members))
	return answer.StatusCode, members
}

// defineSlot defines a slot. further is members of the body, each after a comma.
func (p *plant) defineSlot(id, further string) {
	p.tb.Helper()
	status, body := p.request(http.MethodPut, "/v1/slots/"+id, "catalog", fmt.Sprintf(
		`{"resource_type":"hall","resource_id":"hall","capacity":10000,"unit_amount":1000,"currency":"KRW","open":true,"policy":{"hold_seconds":%d}%s}`,
		int(holdFor.Seconds()), further))
	if status != http.StatusCreated {
		p.tb.Fatalf("define the slot: %d %v", status, body)
	}
}

// hold asks for a hold of one unit, and returns its id, or "" if it is refused.
func (p *plant) hold() string {
	p.tb.Helper()
	_, body := p.request(http.MethodPost, "/v1/holds", "holds", `{"lines":[{"slot_id":"seat","quantity":1,"unit_amount":1000}]}`)
	id, _ := body["hold_id"].(string)
	return id
}

// begin begins to pay for a new hold, and returns the reservation and what the buyer pays
// with; "" if it is refused.
func (p *plant) begin() (reservation, secret string) {
	p.tb.Helper()
	// The owner of the hold pays for it.
	p.requests = p.requests/10*10 + 10
	id := p.hold()
	_, body := p.request(http.MethodPost, "/v1/holds/"+id+"/payment", "holds", ``)
	reservation, _ = body["reservation_id"].(string)
	secret, _ = body["client_secret"].(string)
	return reservation, secret
}

// buy is the traffic of a minute: one hold that is left to expire, and one that is paid for.
func (p *plant) buy() {
	p.tb.Helper()
	p.hold()
	if _, secret := p.begin(); secret != "" {
		if _, err := p.bank.Pay(secret); err != nil {
			p.tb.Errorf("pay: %v", err)
		}
	}
}
