package reconcile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"holdfast/shared/archive/archivetest"
	"holdfast/shared/ledger"
	"holdfast/shared/objects"
	"holdfast/shared/reconcile"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
)

const (
	fanoutSegments = 3
	fanoutEvery    = time.Hour
	// fanoutTick is the rate of the schedule.
	fanoutTick = 15 * time.Minute
)

// killed is the panic of a worker that dies.
type killed struct{}

// spread is a Fanout with all that is around it. Each call of a port passes by step, before
// it is made and after, where a worker may die.
type spread struct {
	*testing.T
	clock   *systemtest.Clock
	bucket  *archivetest.Bucket
	queue   []string // bodies that nobody has taken yet
	sent    int
	scans   map[int]int // by segment
	looks   int         // of the examination
	found   []reconcile.Finding
	dealt   map[string]int // how often something was written about a finding, by its subject
	metrics bytes.Buffer
	logs    bytes.Buffer
	setting topology.AuditRepair
	step    func(call string, done bool)
	faults  map[string]error // by the call
}

func newSpread(t *testing.T) *spread {
	t.Helper()
	return &spread{
		T: t, clock: systemtest.NewClock(start.Truncate(fanoutEvery).Add(7 * time.Minute)), bucket: archivetest.NewBucket("audit"),
		scans: map[int]int{}, dealt: map[string]int{}, setting: topology.AuditRepairCertain, faults: map[string]error{},
		found: []reconcile.Finding{
			{Kind: reconcile.FindingGhostHold, Promise: "P4", Subject: "hold_1", Hold: "hold_1", Evidence: "HELD", Cause: "no sweep has ended it"},
			{Kind: reconcile.FindingMoneyMismatch, Promise: "P8", Subject: "rsv_1", Reservation: "rsv_1", Evidence: "100 and 90", Cause: "unknown"},
			{Kind: reconcile.FindingEventUnpublished, Promise: "P5", Subject: "HOLD#hold_2", Evidence: "for an hour", Cause: "the bus"},
		},
	}
}

// pass lets a call pass by step on both sides. What is dead calls nobody.
func pass[T any](s *spread, call string, make func() (T, error)) (T, error) {
	if s.step != nil {
		s.step(call, false)
	}
	var got T
	err := s.faults[call]
	if err == nil {
		got, err = make()
	}
	if s.step != nil {
		s.step(call, true)
	}
	return got, err
}

// worker is a process of the function.
func (s *spread) worker() *reconcile.FanoutHandler {
	s.Helper()
	source := telemetry.Source{Stage: "dev", Function: "audit"}
	random := systemtest.NewRandom(3)
	fanout, err := reconcile.NewFanout(reconcile.FanoutPorts{
		Segments: spreadSegments{s}, Shelf: s.shelf(), Tasks: reconcile.NewTaskQueue(spreadQueue{s}, "https://queue"),
		Examine: spreadExamination{s}, Repair: func(ledger.RequestID) reconcile.Repairs { return spreadRepairs{s} },
		Metrics: spreadMetrics{s, telemetry.NewEmitter(&s.metrics, s.clock, source)}, Clock: s.clock, Logger: telemetry.NewLogger(&s.logs, source),
	}, reconcile.FanoutSettings{Every: fanoutEvery, Repair: s.setting, Segments: fanoutSegments})
	if err != nil {
		s.Fatal(err)
	}
	return reconcile.NewFanoutHandler(fanout, random, telemetry.NewLogger(&s.logs, source))
}

func (s *spread) shelf() *reconcile.Shelf {
	return reconcile.NewShelf(objects.NewBucket(spreadBucket{s}, "audit", s.clock, systemtest.NewRandom(2)))
}

// tick hands a tick to a worker, and reports whether it died.
func (s *spread) tick() (died bool) {
	s.Helper()
	_, died = s.handle(json.RawMessage(`{"detail-type":"Scheduled Event"}`))
	return died
}

// handle hands an event to a worker, and reports whether it died.
func (s *spread) handle(event json.RawMessage) (answer any, died bool) {
	s.Helper()
	defer func() {
		if cause := recover(); cause != nil {
			if _, died = cause.(killed); !died {
				panic(cause)
			}
		}
	}()
	answer, err := s.worker().Handle(s.Context(), event)
	if err != nil {
		s.Logf("%v", err)
	}
	return answer, false
}

// deliver hands a message to a worker, and reports whether it was done.
func (s *spread) deliver(body string) (done, died bool) {
	s.Helper()
	event, err := json.Marshal(map[string]any{"Records": []map[string]any{{"messageId": "m-1", "body": body}}})
	if err != nil {
		s.Fatal(err)
	}
	answer, died := s.handle(event)
	if died {
		return false, true
	}
	text, err := json.Marshal(answer)
	if err != nil {
		s.Fatal(err)
	}
	return string(text) == `{"batchItemFailures":[]}`, false
}

// drain delivers every message, times times each, also those that are sent meanwhile. What is
// not done does not come back: its time to be hidden is longer than the audit. It reports
// whether a worker died.
func (s *spread) drain(times int) (died bool) {
	s.Helper()
	for len(s.queue) > 0 {
		body := s.queue[0]
		s.queue = s.queue[1:]
		for range times {
			_, one := s.deliver(body)
			died = died || one
		}
	}
	return died
}

// run lets ticks and messages go on for so many ticks.
func (s *spread) run(ticks int) {
	s.Helper()
	for range ticks {
		s.tick()
		s.drain(1)
		s.clock.Advance(fanoutTick)
	}
}

// last is the last report, which must be there.
func (s *spread) last() (reconcile.AuditReport, *reconcile.Settlement) {
	s.Helper()
	report, settlement, found, err := s.shelf().Last(s.Context(), s.clock.Now())
	if err != nil || !found {
		s.Fatalf("no report: %v", err)
	}
	return report, settlement
}

// reported adds up what was reported of a metric.
func (s *spread) reported(metric telemetry.MetricName) int {
	s.Helper()
	sum := 0.0
	for line := range strings.Lines(s.metrics.String()) {
		var members map[string]any
		if err := json.Unmarshal([]byte(line), &members); err != nil {
			s.Fatal(err)
		}
		value, _ := members[string(metric)].(float64)
		sum += value
	}
	return int(sum)
}

// endedOnce checks that the audit that began first has come to its end, with all that it
// found, and that nothing was dealt with twice.
func (s *spread) endedOnce() {
	s.Helper()
	reports, settled := 0, 0
	for _, key := range s.bucket.Keys() {
		if strings.HasSuffix(key, "/report.json") {
			reports++
		}
		if strings.HasSuffix(key, "/settled.json") {
			settled++
		}
	}
	if reports != 1 || settled != 1 {
		s.Errorf("%d reports, of which %d have come to their end: %v", reports, settled, s.bucket.Keys())
	}
	report, settlement := s.last()
	if len(report.Report.Findings) != len(s.found) || settlement == nil {
		s.Errorf("the report has %v, and %v became of it", report.Report.Findings, settlement)
	}
	if s.dealt["hold_1"] != 1 || s.dealt["rsv_1"] != 1 || len(s.dealt) != 2 {
		s.Errorf("dealt with %v", s.dealt)
	}
	if n := s.reported(telemetry.MetricAuditHeartbeat); n < 1 {
		s.Errorf("%d audits were told of", n)
	}
	if violations := s.bucket.Violations(); len(violations) > 0 {
		s.Error(violations)
	}
}

type spreadSegments struct{ *spread }

// ScanSegment reads an empty page.
func (s spreadSegments) ScanSegment(_ context.Context, segment, total int, _ ledger.Cursor) (ledger.RecordsPage, error) {
	return pass(s.spread, "ScanSegment", func() (ledger.RecordsPage, error) {
		if total != fanoutSegments {
			return ledger.RecordsPage{}, fmt.Errorf("segment %d of %d", segment, total)
		}
		s.scans[segment]++
		return ledger.RecordsPage{}, nil
	})
}

type spreadBucket struct{ *spread }

func (s spreadBucket) PutObject(ctx context.Context, in *s3.PutObjectInput, o ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	return pass(s.spread, "PutObject", func() (*s3.PutObjectOutput, error) { return s.bucket.PutObject(ctx, in, o...) })
}

func (s spreadBucket) GetObject(ctx context.Context, in *s3.GetObjectInput, o ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	return pass(s.spread, "GetObject", func() (*s3.GetObjectOutput, error) { return s.bucket.GetObject(ctx, in, o...) })
}

func (s spreadBucket) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, o ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	return pass(s.spread, "ListObjectsV2", func() (*s3.ListObjectsV2Output, error) { return s.bucket.ListObjectsV2(ctx, in, o...) })
}

type spreadQueue struct{ *spread }

// SendMessageBatch takes all messages but those that the fault refuses.
func (s spreadQueue) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return pass(s.spread, "SendMessageBatch", func() (*sqs.SendMessageBatchOutput, error) {
		out := &sqs.SendMessageBatchOutput{}
		for _, entry := range in.Entries {
			if err := s.faults["entry "+aws.ToString(entry.Id)]; err != nil {
				out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: entry.Id, Code: aws.String(err.Error())})
				continue
			}
			s.queue = append(s.queue, aws.ToString(entry.MessageBody))
			s.sent++
		}
		return out, nil
	})
}

type spreadExamination struct{ *spread }

func (s spreadExamination) Examine(_ context.Context, tally *reconcile.Tally) (reconcile.Report, error) {
	return pass(s.spread, "Examine", func() (reconcile.Report, error) {
		if tally == nil {
			return reconcile.Report{}, errors.New("there is no tally")
		}
		s.looks++
		return reconcile.Report{Findings: slices.Clone(s.found), Unsettled: 4, ReadUnits: 12.5}, nil
	})
}

type spreadRepairs struct{ *spread }

// Run writes about each finding once, as the conditions of a Repairer make it.
func (s spreadRepairs) Run(_ context.Context, findings []reconcile.Finding, apply bool) (reconcile.RepairReport, error) {
	return pass(s.spread, "Repair", func() (reconcile.RepairReport, error) {
		report := reconcile.RepairReport{Applied: apply}
		for _, f := range findings {
			outcome := reconcile.RepairKnown
			if s.dealt[f.Subject] == 0 {
				s.dealt[f.Subject]++
				outcome = reconcile.RepairDone
			}
			report.Results = append(report.Results, reconcile.RepairResult{Action: reconcile.Plan(f), Outcome: outcome})
		}
		return report, nil
	})
}

type spreadMetrics struct {
	*spread
	emitter *telemetry.Emitter
}

func (s spreadMetrics) Emit(properties telemetry.Properties, measurements ...telemetry.Measurement) error {
	_, err := pass(s.spread, "Emit", func() (struct{}, error) { return struct{}{}, s.emitter.Emit(properties, measurements...) })
	return err
}
