package alarmcheck_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"

	"holdfast/scripts/internal/alarmcheck"
	"holdfast/shared/sim/table"
	"holdfast/shared/topology"
)

const (
	// calmFor is the traffic before most faults: what reports each minute has.
	calmFor = 3 * time.Minute
	// longCalmFor is the traffic before a fault of what runs more seldom: each heartbeat but the
	// audit's has beaten in it.
	longCalmFor = 16 * time.Minute
)

// proof is a fault that must make an alarm ring.
type proof struct {
	// calm is what goes before the fault; nil means calmFor of traffic. The alarm must be OK
	// after it.
	calm func(p *plant)
	// fault injects the fault and lets as much time pass as the alarm needs.
	fault func(p *plant)
}

// proofs are all proofs, by the id of the alarm.
func proofs() map[string]proof {
	all := map[string]proof{}
	for _, some := range []map[string]proof{
		expiryProofs(), eventProofs(), paymentProofs(), requestProofs(), archiveProofs(), auditProofs(), queueProofs(), functionProofs(),
	} {
		maps.Copy(all, some)
	}
	return all
}

// For each alarm, a fault is injected, the functions and the local parts of AWS report what
// they report, and the alarm's own expression over it is in ALARM. Before the fault it is OK.
// An alarm without a proof fails here, and so does a proof of no alarm.
func TestEveryAlarmRingsForItsFault(t *testing.T) {
	alarms, all := mustAlarms(t), proofs()
	for _, a := range alarms {
		t.Run(a.ID, func(t *testing.T) {
			shown, found := all[a.ID]
			if !found {
				t.Fatal("nothing shows that this alarm rings")
			}
			p := newPlant(t)
			if shown.calm == nil {
				shown.calm = func(p *plant) { p.run(calmFor) }
			}
			shown.calm(p)
			p.mustBe(a, alarmcheck.OK, "before the fault")
			p.broken = true
			shown.fault(p)
			p.mustBe(a, alarmcheck.InAlarm, "after the fault")
		})
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if !slices.ContainsFunc(alarms, func(a alarmcheck.Alarm) bool { return a.ID == id }) {
			t.Errorf("there is a proof of %s, and no such alarm", id)
		}
	}
}

// longCalm is what goes before faults of what runs more seldom than each minute.
func longCalm(p *plant) { p.run(longCalmFor) }

func (p *plant) mustBe(a alarmcheck.Alarm, want alarmcheck.State, when string) {
	p.tb.Helper()
	samples := p.samplesOf(a)
	state, err := a.State(samples, p.clock.Now())
	if err != nil {
		p.tb.Fatal(err)
	}
	if state == want {
		return
	}
	p.tb.Errorf("%s %s is in %s, want %s", when, a.ID, state, want)
	for _, s := range samples {
		p.tb.Logf("%s %s %g", s.At.Format(time.TimeOnly), s.Metric, s.Value)
	}
}

var (
	// errDenied is what a function is told whose role lacks a permission; no retry helps.
	errDenied = &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "is not authorized to perform"}
	// errNoAnswer is a request that was sent and never answered.
	errNoAnswer = &smithyhttp.RequestSendError{Err: errQueueDown}
	// errInvalid is what a request is told that a mistake in the code has made.
	errInvalid = &smithy.GenericAPIError{Code: "ValidationException", Message: "Invalid UpdateExpression"}
)

// refusing turns away what a function asks of the database, if it is one of the operations;
// no operation means all.
func (p *plant) refusing(by topology.FunctionName, err error, operations ...string) {
	p.database.refuse = func(f topology.FunctionName, call dbCall) error {
		if f == by && (len(operations) == 0 || slices.Contains(operations, call.operation)) {
			return err
		}
		return nil
	}
}

// slowing lets time pass before each write of a function.
func (p *plant) slowing(by topology.FunctionName, each time.Duration, operations ...string) {
	p.database.refuse = func(f topology.FunctionName, call dbCall) error {
		if f == by && slices.Contains(operations, call.operation) {
			p.clock.Advance(each)
		}
		return nil
	}
}

// outrunning lets so many tries of each transaction of a function find that somebody else was
// faster.
func (p *plant) outrunning(by topology.FunctionName, tries int) {
	n := 0
	p.database.refuse = func(f topology.FunctionName, call dbCall) error {
		if f != by || call.operation != "TransactWriteItems" {
			return nil
		}
		if n++; n%(tries+1) == 0 {
			return nil
		}
		reasons := make([]types.CancellationReason, len(call.keys))
		for i := range reasons {
			reasons[i].Code = aws.String("None")
		}
		reasons[0].Code = aws.String("ConditionalCheckFailed")
		return table.Canceled(reasons)
	}
}

// Case B1: who says nothing does not work. Each alarm that takes silence for a fault rings when
// all functions stop, after its own periods and the two that CloudWatch looks back further.
func TestCaseB1_SilenceRings(t *testing.T) {
	p := newPlant(t)
	p.run(auditEvery + longCalmFor)
	heard := 0
	for _, a := range mustAlarms(t) {
		if a.Missing != alarmcheck.MissingBreaching {
			continue
		}
		heard++
		p.mustBe(a, alarmcheck.OK, "before the silence")
		samples := p.samplesOf(a)
		// The minute that begins now has a number already.
		silent := time.Minute + a.Period*time.Duration(a.Periods+2)
		state, err := a.State(samples, p.clock.Now().Add(silent))
		if err != nil || state != alarmcheck.InAlarm {
			t.Errorf("after the silence %s is in %s, %v", a.ID, state, err)
		}
	}
	if heard == 0 {
		t.Error("no alarm hears silence")
	}
}

// writes are the operations with which the store writes.
func writes() []string { return []string{"TransactWriteItems", "UpdateItem", "PutItem"} }
