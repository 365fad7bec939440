package reconcile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast/shared/reconcile"
	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
)

// An audit that nothing happens to: one tick sends a message for each segment, the last of
// them one for the merge, and that tells of all that was found.
func TestAnAuditIsSpreadAndToldOf(t *testing.T) {
	s := newSpread(t)
	s.tick()
	if len(s.queue) != fanoutSegments {
		t.Fatalf("the tick sends %v", s.queue)
	}
	s.drain(1)
	s.endedOnce()
	if s.sent != fanoutSegments+1 || s.looks != 1 || len(s.scans) != fanoutSegments {
		t.Errorf("%d messages, %d examinations, segments %v", s.sent, s.looks, s.scans)
	}
	for metric, want := range map[telemetry.MetricName]int{
		telemetry.MetricAuditHeartbeat: 1, telemetry.MetricAuditFindingsCritical: 1, telemetry.MetricAuditFindingsWarning: 2,
		telemetry.MetricAuditGhosts: 1, telemetry.MetricAuditMismatch: 0, telemetry.MetricAuditUnsettled: 4,
		telemetry.MetricAuditReadUnits: 12, telemetry.MetricAuditAbandoned: 0, telemetry.MetricExpiryIndexHoles: 0,
	} {
		if got := s.reported(metric); got != want {
			t.Errorf("%s is %d, want %d", metric, got, want)
		}
	}
	for _, want := range []string{`"hold_id":"hold_1"`, `"reservation_id":"rsv_1"`, `"finding":"money_mismatch"`, `"audit_run":"`, `"request_id":"`} {
		if !strings.Contains(s.logs.String(), want) {
			t.Errorf("the log lacks %s: %s", want, s.logs.String())
		}
	}
	report, settlement := s.last()
	if report.Run != reconcile.RunAt(s.clock.Now(), fanoutEvery) || !settlement.Repair.Applied || len(settlement.Repair.Results) != 2 {
		t.Errorf("report %+v, settlement %+v", report, settlement)
	}
	// The ticks of the rest of the hour find nothing to do, and the next hour's begins anew.
	sent := s.sent
	for range 3 {
		s.clock.Advance(fanoutTick)
		s.tick()
	}
	if s.sent != sent {
		t.Errorf("%d more messages for an audit that has ended", s.sent-sent)
	}
	s.clock.Advance(fanoutTick)
	s.tick()
	if s.sent != sent+fanoutSegments {
		t.Errorf("the next audit begins with %d messages", s.sent-sent)
	}
}

// The run follows from the time alone: whatever the tick says, and however often it comes.
func TestTheRunFollowsFromTheTime(t *testing.T) {
	hour := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	for at, want := range map[time.Duration]reconcile.RunID{
		0: "20260301T090000Z", time.Hour - time.Millisecond: "20260301T090000Z", time.Hour: "20260301T100000Z", -time.Millisecond: "20260301T080000Z",
	} {
		if got := reconcile.RunAt(hour.Add(at).In(time.FixedZone("KST", 9*3600)), time.Hour); got != want {
			t.Errorf("%s after nine: %s, want %s", at, got, want)
		}
	}
	s := newSpread(t)
	s.tick()
	s.tick()
	s.clock.Advance(time.Second)
	s.tick()
	begun := 0
	for _, key := range s.bucket.Keys() {
		if strings.HasSuffix(key, "/begun.json") {
			begun++
		}
	}
	s.drain(1)
	s.endedOnce()
	for segment, scans := range s.scans {
		if scans != 1 {
			t.Errorf("segment %d was read %d times", segment, scans)
		}
	}
	if begun != 1 || s.looks != 1 || s.reported(telemetry.MetricAuditHeartbeat) != 1 {
		t.Errorf("%d audits begun, %d examinations", begun, s.looks)
	}
}

// Two ticks begin an audit at once: all its parts are of the beginning that was written first.
func TestTheFirstBeginningCounts(t *testing.T) {
	s := newSpread(t)
	s.step = func(call string, done bool) {
		if call == "PutObject" && !done {
			s.step = nil
			s.clock.Advance(time.Minute)
			s.tick()
		}
	}
	began := s.clock.Now().Add(time.Minute)
	s.tick()
	if len(s.queue) != 2*fanoutSegments {
		t.Fatalf("messages %v", s.queue)
	}
	for _, body := range s.queue {
		var task reconcile.Task
		if err := json.Unmarshal([]byte(body), &task); err != nil || !task.BegunAt.Equal(began) {
			t.Errorf("%s: want one begun at %s, %v", body, began, err)
		}
	}
}

// Two merges at once see different things: only what the first report has is dealt with.
func TestTheFirstReportCounts(t *testing.T) {
	s := newSpread(t)
	first := s.found
	s.step = func(call string, done bool) {
		if call == "Examine" && !done {
			s.step = nil
			s.clock.Advance(fanoutTick)
			s.tick()
			s.drain(1)
			s.found = []reconcile.Finding{{Kind: reconcile.FindingMoneyMismatch, Subject: "rsv_2", Reservation: "rsv_2"}}
		}
	}
	s.tick()
	s.drain(1)
	s.found = first
	s.endedOnce()
	if s.looks != 2 {
		t.Errorf("%d examinations", s.looks)
	}
}

// Every message comes twice, and some do so when all is over.
func TestMessagesThatComeTwiceChangeNothing(t *testing.T) {
	s := newSpread(t)
	s.tick()
	again := append([]string(nil), s.queue...)
	s.drain(2)
	again = append(again, strings.Replace(again[0], `"tally"`, `"merge"`, 1))
	s.endedOnce()
	told, sent := s.reported(telemetry.MetricAuditHeartbeat), s.sent
	for _, body := range again {
		if done, _ := s.deliver(body); !done {
			t.Errorf("%s was not done", body)
		}
	}
	s.endedOnce()
	if s.looks != 1 || told != 1 || s.reported(telemetry.MetricAuditHeartbeat) != 1 || s.sent != sent {
		t.Errorf("%d examinations, told %d times and then %d, %d messages and then %d", s.looks, told, s.reported(telemetry.MetricAuditHeartbeat), sent, s.sent)
	}
	for segment, scans := range s.scans {
		if scans != 1 {
			t.Errorf("segment %d was read %d times", segment, scans)
		}
	}
}

// A message never comes: the next tick sends what is missing, and no more.
func TestWhatIsMissingIsSentAgain(t *testing.T) {
	for lost := range fanoutSegments + 1 {
		s := newSpread(t)
		s.tick()
		if lost < fanoutSegments {
			s.queue = append(s.queue[:lost:lost], s.queue[lost+1:]...)
			s.drain(1)
		} else {
			for range fanoutSegments {
				s.deliver(s.queue[0])
				s.queue = s.queue[1:]
			}
			s.queue = nil // the merge
		}
		sent := s.sent
		s.clock.Advance(fanoutTick)
		s.tick()
		if s.sent != sent+1 {
			t.Errorf("message %d is lost: %d are sent again", lost, s.sent-sent)
		}
		s.drain(1)
		s.endedOnce()
	}
}

// An audit that has not ended when its time is over is given up, and that is told once; what
// still comes of it is not done any more. The next one begins as if nothing had been.
func TestAnAuditThatDoesNotEndIsGivenUp(t *testing.T) {
	s := newSpread(t)
	s.tick()
	late := append([]string(nil), s.queue...)
	for range int(fanoutEvery/fanoutTick) - 1 {
		s.queue = nil
		s.clock.Advance(fanoutTick)
		s.tick()
	}
	if s.reported(telemetry.MetricAuditAbandoned) != 0 {
		t.Error("it is given up before its time is over")
	}
	s.queue = nil
	s.clock.Advance(fanoutTick)
	for range 2 {
		s.tick()
	}
	if n := s.reported(telemetry.MetricAuditAbandoned); n != 1 || !strings.Contains(s.logs.String(), `"segments_missing":3`) {
		t.Errorf("it is given up %d times: %s", n, s.logs.String())
	}
	for _, body := range late {
		if done, _ := s.deliver(body); !done {
			t.Errorf("%s was not done", body)
		}
	}
	if len(s.scans) > 0 {
		t.Errorf("segments %v were read when the time was over", s.scans)
	}
	s.drain(1)
	s.endedOnce()
	if s.reported(telemetry.MetricAuditHeartbeat) != 1 {
		t.Error("the next audit is not told of")
	}
}

// Where nothing is to be repaired by itself, cases are opened all the same: they move nothing.
func TestWithoutRepairsCasesAreOpened(t *testing.T) {
	s := newSpread(t)
	s.setting = topology.AuditRepairOff
	s.run(1)
	if _, settlement := s.last(); settlement == nil || len(s.dealt) != 1 || s.dealt["rsv_1"] != 1 {
		t.Errorf("dealt with %v", s.dealt)
	}
}

// Nothing found, nothing written.
func TestAnAuditThatFindsNothingDealsWithNothing(t *testing.T) {
	s := newSpread(t)
	s.found = nil
	s.faults["Repair"] = errors.New("nobody should be asked")
	s.run(1)
	report, settlement := s.last()
	if len(report.Report.Findings) != 0 || settlement == nil || s.reported(telemetry.MetricAuditHeartbeat) != 1 || s.reported(telemetry.MetricAuditFindingsCritical) != 0 {
		t.Errorf("report %+v, settlement %+v", report, settlement)
	}
}

// A call that fails makes its message come again, and the audit ends when the fault does.
func TestEachFaultCostsTheTimeUntilTheNextTick(t *testing.T) {
	for _, call := range []string{"ScanSegment", "PutObject", "GetObject", "ListObjectsV2", "SendMessageBatch", "Examine", "Repair", "Emit", "entry 1"} {
		s := newSpread(t)
		s.faults[call] = errors.New("fault of " + call)
		s.run(1)
		// What was found is told also when nothing can be done about it. One segment is lost to
		// the refused entry.
		if told := s.reported(telemetry.MetricAuditHeartbeat) > 0; told != (call == "Repair") {
			t.Errorf("%s: the audit was told of: %t", call, told)
		}
		delete(s.faults, call)
		s.run(2)
		s.endedOnce()
		if t.Failed() {
			t.Fatalf("with a fault of %s; log %s", call, s.logs.String())
		}
	}
}

// Many findings are few lines, and all in the report and the numbers.
func TestManyFindingsAreFewLines(t *testing.T) {
	s := newSpread(t)
	s.found = nil
	for n := range 3 * reconcile.FindingLinesMax {
		s.found = append(s.found, reconcile.Finding{Kind: reconcile.FindingStockMismatch, Subject: fmt.Sprint("S-", n), Slot: "S", Owner: "U-17", Cause: "a test"})
	}
	s.run(1)
	if lines := strings.Count(s.logs.String(), `"level":"ERROR"`); lines != reconcile.FindingLinesMax || s.reported(telemetry.MetricAuditMismatch) != len(s.found) {
		t.Errorf("%d lines, %d counted", lines, s.reported(telemetry.MetricAuditMismatch))
	}
	if strings.Contains(s.logs.String(), "U-17") {
		t.Error("the log says whose it is")
	}
}

// Whatever sum is not that of its parts counts as a mismatch, for which somebody is paged.
func TestEachWrongSumIsAMismatch(t *testing.T) {
	s := newSpread(t)
	s.found = nil
	for _, kind := range []reconcile.FindingKind{
		reconcile.FindingStockMismatch, reconcile.FindingStockImpossible, reconcile.FindingTerminalStock, reconcile.FindingQuotaMismatch,
	} {
		s.found = append(s.found, reconcile.Finding{Kind: kind, Subject: "S", Slot: "S", Cause: "a test"})
	}
	s.run(1)
	if got := s.reported(telemetry.MetricAuditMismatch); got != len(s.found) {
		t.Errorf("%d mismatches, want %d", got, len(s.found))
	}
}

// A message that nobody of us has sent fails until it is a dead letter, and says nothing of
// what is in it.
func TestAStrangeMessageBecomesADeadLetter(t *testing.T) {
	s := newSpread(t)
	s.tick()
	for _, body := range []string{
		``, `secret`, `{}`, `{"run":"20260301T090000Z","do":"tally","segment":3,"segments":3,"begun_at":"2026-03-01T09:00:00Z"}`,
		`{"run":"../reports","do":"merge","segments":3,"begun_at":"2026-03-01T09:00:00Z"}`,
		`{"run":"20260301T090000Z","do":"secret","segments":3,"begun_at":"2026-03-01T09:00:00Z"}`,
		`{"run":"20260301T090000Z","do":"merge","segments":3}`,
		`{"run":"20260301T090000Z","do":"merge","segments":3,"begun_at":"secret"}`,
	} {
		if done, died := s.deliver(body); done || died {
			t.Errorf("%s: done %t, died %t", body, done, died)
		}
	}
	if strings.Contains(s.logs.String(), "secret") {
		t.Errorf("log %s", s.logs.String())
	}
}

// A batch and a tick are told apart.
func TestTheSampleEventsOfTheAuditAreHandled(t *testing.T) {
	for file, want := range map[string]string{"audit.json": `{"batchItemFailures":[]}`, "audit_tick.json": `null`} {
		event, err := os.ReadFile("../../events/lambda/" + file)
		if err != nil {
			t.Fatal(err)
		}
		s := newSpread(t)
		answer, _ := s.handle(event)
		if text, err := json.Marshal(answer); err != nil || string(text) != want {
			t.Errorf("%s: %s, %v", file, text, err)
		}
		if file == "audit_tick.json" && s.sent != fanoutSegments {
			t.Errorf("the tick sends %d messages", s.sent)
		}
	}
	s := newSpread(t)
	if answer, _ := s.handle(json.RawMessage(`{"Records":7}`)); answer != nil || s.sent != 0 {
		t.Errorf("strange records are taken for a tick: %v", answer)
	}
}

// No report is no error, and one of yesterday is none that tells of today.
func TestTheLastReportIsOfToday(t *testing.T) {
	s := newSpread(t)
	if _, _, found, err := s.shelf().Last(t.Context(), s.clock.Now()); err != nil || found {
		t.Errorf("an empty shelf has a report: %v", err)
	}
	s.run(1)
	first, _ := s.last()
	s.clock.Advance(fanoutEvery)
	s.run(1)
	if second, settlement := s.last(); second.Run <= first.Run || settlement == nil || settlement.Run != second.Run {
		t.Errorf("the last report is %s after %s", second.Run, first.Run)
	}
	s.clock.Advance(reconcile.LastReportWithin + fanoutEvery)
	if _, _, found, err := s.shelf().Last(t.Context(), s.clock.Now()); err != nil || found {
		t.Errorf("a report of the day before yesterday is the last one: %v", err)
	}
}

func TestSettingsWithWhichNoAuditEndsAreRefused(t *testing.T) {
	for _, settings := range []reconcile.FanoutSettings{{}, {Every: -time.Hour}, {Every: time.Hour, Segments: -1}} {
		if _, err := reconcile.NewFanout(reconcile.FanoutPorts{}, settings); err == nil {
			t.Errorf("%+v is accepted", settings)
		}
	}
}
