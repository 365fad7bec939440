package main

import (
	"testing"
	"time"

	"holdfast/shared/topology"
)

// tlsOnlyQueues returns the queues that refuse plain connections.
func (s synthesis) tlsOnlyQueues(tb testing.TB) map[string]bool {
	tb.Helper()
	refusing := map[string]bool{}
	for _, policy := range s.mustResources(tb, "AWS::SQS::QueuePolicy") {
		for _, statement := range listed(policy.at("PolicyDocument", "Statement")) {
			plain := at(statement, "Condition", "Bool", "aws:SecureTransport") == "false"
			if at(statement, "Effect") == "Deny" && at(statement, "Action") == "sqs:*" && plain {
				refusing[readable(policy.at("Queues", 0))] = true
			}
		}
	}
	return refusing
}

func TestDeadLettersAreKeptAndGuarded(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		for _, name := range []string{"OutboxFailures", "ScheduleFailures", "SagaFailures", "DueFailures", "ExpiryFailed", "AuditFailures"} {
			queue := s.mustResource(t, "AWS::SQS::Queue", name)
			mustBe(t, name+" retention", queue.at("MessageRetentionPeriod"), 14*24*60*60)
			// A FIFO queue cannot be a destination of a stream mapping or of the Scheduler.
			mustBe(t, name+" FIFO", queue.at("FifoQueue"), nil)
			mustBe(t, name+" dead letters", queue.at("RedrivePolicy"), nil)
		}
	})
}

func TestEveryQueueIsEncryptedOnItsWayAndAtRest(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		refusing := s.tlsOnlyQueues(t)
		all := s.mustResources(t, "AWS::SQS::Queue")
		for _, queue := range all {
			mustBe(t, queue.ID+" encryption", queue.at("SqsManagedSseEnabled"), true)
			if !refusing[nameOf(queue.ID)] {
				t.Errorf("%s accepts plain connections", queue.ID)
			}
		}
		if want := 9; len(all) != want {
			t.Errorf("%d queues, want %d", len(all), want)
		}
	})
}

// The numbers are written out, so that a change of the topology is noticed here: a message
// is hidden for six minutes, six times the 55 seconds that a run may take and more, tried
// ten times, and kept for four days.
func TestTheSagaQueueHidesAndGivesUp(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		queue := s.mustResource(t, "AWS::SQS::Queue", "SagaQueue")
		mustBe(t, "visibility", queue.at("VisibilityTimeout"), 360)
		mustBe(t, "receives", queue.at("RedrivePolicy", "maxReceiveCount"), 10)
		mustBeRef(t, "dead letters", queue.at("RedrivePolicy", "deadLetterTargetArn"), "SagaFailures.Arn")
		mustBe(t, "retention", queue.at("MessageRetentionPeriod"), 4*24*60*60)
		mustBe(t, "FIFO", queue.at("FifoQueue"), nil)
		runs, _ := s.mustResource(t, "AWS::Lambda::Function", "SagaFunction").at("Timeout").(float64)
		if hidden, _ := queue.at("VisibilityTimeout").(float64); hidden < 6*runs {
			t.Errorf("a message is hidden for %g s, less than six runs of %g s", hidden, runs)
		}
	})
}

// The due queue is tried for half an hour only: the sweep ends within a minute what a
// message does not, and old messages say nothing any more.
func TestTheDueQueueHidesAndGivesUp(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		queue := s.mustResource(t, "AWS::SQS::Queue", "DueQueue")
		mustBe(t, "visibility", queue.at("VisibilityTimeout"), 360)
		mustBe(t, "receives", queue.at("RedrivePolicy", "maxReceiveCount"), 5)
		mustBeRef(t, "dead letters", queue.at("RedrivePolicy", "deadLetterTargetArn"), "DueFailures.Arn")
		// Each message has a delay of its own.
		mustBe(t, "delay", queue.at("DelaySeconds"), nil)
		mustBe(t, "FIFO", queue.at("FifoQueue"), nil)
		// A message that was kept back for 15 minutes is not late when it is seen.
		old := s.mustResource(t, "AWS::CloudWatch::Alarm", "DueQueueOld")
		mustBe(t, "old after", old.at("Threshold"), 900+720)
	})
}

// A part of an audit is hidden for six times as long as it may take. It is not waited for: the
// next tick sends again what is missing.
func TestTheAuditQueueHidesAndGivesUp(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		queue := s.mustResource(t, "AWS::SQS::Queue", "AuditQueue")
		mustBe(t, "visibility", queue.at("VisibilityTimeout"), 84*60)
		mustBe(t, "receives", queue.at("RedrivePolicy", "maxReceiveCount"), 5)
		mustBeRef(t, "dead letters", queue.at("RedrivePolicy", "deadLetterTargetArn"), "AuditFailures.Arn")
		mustBe(t, "time-out", s.mustResource(t, "AWS::Lambda::Function", "AuditFunction").at("Timeout"), 14*60)
	})
}

func TestQueueMappingsGiveBackWhatFailedOnly(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		mapped := 0
		for _, f := range topology.Functions() {
			if f.Queue == nil {
				continue
			}
			mapped++
			id := constructID(string(f.Name))
			m := s.mustResource(t, "AWS::Lambda::EventSourceMapping", id+"Messages")
			mustBeRef(t, "function", m.at("FunctionName"), id+"Function")
			mustBeRef(t, "queue", m.at("EventSourceArn"), constructID(string(f.Queue.Queue))+".Arn")
			mustBe(t, "partial failures", m.at("FunctionResponseTypes"), []string{"ReportBatchItemFailures"})
			mustBe(t, "batch", m.at("BatchSize"), f.Queue.BatchMessagesMax)
			mustBe(t, "window", m.at("MaximumBatchingWindowInSeconds"), f.Queue.BatchWindow.Seconds())
			mustBe(t, "runs at once", m.at("ScalingConfig"), map[string]any{"MaximumConcurrency": f.Queue.ConcurrencyMax})
			mustDependOnPolicyOf(t, m, id+"FunctionRole")
			// Lambda refuses each of these for a queue.
			for _, ofStreams := range []string{"StartingPosition", "BisectBatchOnFunctionError", "MaximumRetryAttempts", "MaximumRecordAgeInSeconds", "ParallelizationFactor"} {
				mustBe(t, ofStreams, m.at(ofStreams), nil)
			}
			reserved, _ := s.mustResource(t, "AWS::Lambda::Function", id+"Function").at("ReservedConcurrentExecutions").(float64)
			if reserved > 0 && float64(f.Queue.ConcurrencyMax) >= reserved {
				t.Errorf("%s: the queue may use all %g runs", f.Name, reserved)
			}
		}
		if mapped == 0 {
			t.Error("no function has a queue")
		}
	})
}

// Work rings when it has waited as long as two tries of it take, and well before it is
// given up.
func TestOldWorkRings(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		a := s.mustResource(t, "AWS::CloudWatch::Alarm", "SagaQueueOld")
		mustBe(t, "metric", a.at("MetricName"), "ApproximateAgeOfOldestMessage")
		mustBe(t, "statistic", a.at("Statistic"), "Maximum")
		mustBeRef(t, "queue", a.at("Dimensions", 0, "Value"), "SagaQueue.QueueName")
		mustBe(t, "comparison", a.at("ComparisonOperator"), "GreaterThanThreshold")
		mustBe(t, "threshold", a.at("Threshold"), 720)
		saga, _ := topology.FunctionNamed(topology.FunctionSaga)
		if triesTake := time.Duration(saga.Queue.ReceivesMax) * saga.Queue.VisibilityTimeout; triesTake <= 12*time.Minute {
			t.Errorf("a message is a dead letter after %s, before it is old", triesTake)
		}
	})
}
