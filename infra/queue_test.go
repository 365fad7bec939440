package main

import "testing"

func TestDeadLettersAreKeptAndGuarded(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		tlsOnly := map[string]bool{}
		for _, policy := range s.mustResources(t, "AWS::SQS::QueuePolicy") {
			for _, statement := range listed(policy.at("PolicyDocument", "Statement")) {
				plain := at(statement, "Condition", "Bool", "aws:SecureTransport") == "false"
				if at(statement, "Effect") == "Deny" && at(statement, "Action") == "sqs:*" && plain {
					tlsOnly[readable(policy.at("Queues", 0))] = true
				}
			}
		}
		for _, name := range []string{"OutboxFailures", "ScheduleFailures"} {
			queue := s.mustResource(t, "AWS::SQS::Queue", name)
			mustBe(t, name+" encryption", queue.at("SqsManagedSseEnabled"), true)
			mustBe(t, name+" retention", queue.at("MessageRetentionPeriod"), 14*24*60*60)
			// A FIFO queue cannot be a destination of a stream mapping or of the Scheduler.
			mustBe(t, name+" FIFO", queue.at("FifoQueue"), nil)
			if !tlsOnly[name] {
				t.Errorf("%s accepts plain connections", name)
			}
		}
	})
}
