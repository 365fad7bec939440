package topology

import (
	"slices"
	"time"
)

const (
	// streamRetriesMax is the most that an event source mapping takes.
	// https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-params.html
	streamRetriesMax = 10_000
	// workerTimeout is the Lambda time-out of what a minute's tick starts: it has ended
	// when the next tick comes.
	workerTimeout = 55 * time.Second
	// queueDelayMax is the longest that SQS keeps a message back:
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
	queueDelayMax = 15 * time.Minute
)

// Functions returns every function of Holdfast, in a fixed order. The caller owns
// the result.
func Functions() []Function {
	return []Function{apiFunction(), webhookFunction(), expiryFunction(), outboxFunction(), sagaFunction(), reconcileFunction(), auditFunction(), archiveFunction()}
}

// FunctionNamed returns the function with that name, and whether there is one.
func FunctionNamed(name FunctionName) (Function, bool) {
	all := Functions()
	i := slices.IndexFunc(all, func(f Function) bool { return f.Name == name })
	if i < 0 {
		return Function{}, false
	}
	return all[i], true
}

// QueuesForPeople returns the queues that no function takes from, in the order of Resources:
// a person must read what is in them. They are the destinations of what was given up, and
// the queues that only the code of functions sends to. The caller owns the result.
func QueuesForPeople() []Resource {
	functions := Functions()
	isForPeople := map[Resource]bool{}
	for _, f := range functions {
		if f.Stream != nil {
			isForPeople[f.Stream.FailureDestination] = true
		}
		if f.Schedule != nil {
			isForPeople[f.Schedule.FailureDestination] = true
		}
		if f.Queue != nil {
			isForPeople[f.Queue.DeadLetters] = true
		}
		for _, g := range f.Grants {
			if slices.Contains(g.Actions, "sqs:SendMessage") {
				isForPeople[g.Resource] = true
			}
		}
	}
	for _, f := range functions {
		if f.Queue != nil {
			delete(isForPeople, f.Queue.Queue)
		}
	}
	return slices.DeleteFunc(Resources(), func(r Resource) bool { return !isForPeople[r] })
}

func apiFunction() Function {
	return Function{
		Name:        FunctionAPI,
		Description: "HTTP API: slots, availability, holds, reservations, reviews",
		MemoryMiB:   512,
		Timeout:     APITimeout,
		Variables:   []Variable{VariableStage, VariableTableName, VariableOperatorGroup, VariablePaymentSecretID},
		Grants: []Grant{
			// A hold that is only asked whether its owner is in a cool-down checks, and writes
			// nothing of the owner.
			{ResourceTable, CallerCode, []string{
				"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:ConditionCheckItem",
			}},
			{ResourceTableIndexOwner, CallerCode, []string{"dynamodb:Query"}},
			{ResourceTableIndexResource, CallerCode, []string{"dynamodb:Query"}},
			// What waits for a person: reservations and findings, parked holds, quarantined events.
			{ResourceTableIndexReview, CallerCode, []string{"dynamodb:Query"}},
			{ResourceTableIndexDue, CallerCode, []string{"dynamodb:Query"}},
			{ResourceTableIndexUnpublished, CallerCode, []string{"dynamodb:Query"}},
			{ResourcePaymentSecret, CallerCode, []string{"secretsmanager:GetSecretValue"}},
		},
		HTTP: &HTTPTrigger{},
	}
}

// webhookFunction may write nothing but a message: who forges a webhook, or finds a fault
// in its reading, is still far from the stock.
func webhookFunction() Function {
	return Function{
		Name:        FunctionWebhook,
		Description: "Takes in what the payment provider tells, for the saga to look at",
		MemoryMiB:   256,
		Timeout:     WebhookTimeout,
		Variables:   []Variable{VariableStage, VariableTableName, VariableSagaQueueURL, VariablePaymentSecretID},
		Grants: []Grant{
			{ResourceTable, CallerCode, []string{"dynamodb:GetItem"}},
			{ResourceSagaQueue, CallerCode, []string{"sqs:SendMessage"}},
			{ResourcePaymentSecret, CallerCode, []string{"secretsmanager:GetSecretValue"}},
		},
		HTTP: &HTTPTrigger{},
	}
}

func expiryFunction() Function {
	return Function{
		Name:        FunctionExpiry,
		Description: "Ends holds whose release time has passed",
		MemoryMiB:   256,
		Timeout:     workerTimeout,
		// The queue's share and two ticks that overlap.
		ReservedConcurrency: 10,
		Variables: []Variable{
			VariableStage, VariableTableName, VariableSweepPage, VariableDueQueueURL, VariableExpiryFailedQueueURL,
		},
		Grants: []Grant{
			{ResourceTable, CallerCode, []string{
				"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:PutItem", "dynamodb:UpdateItem",
			}},
			{ResourceTableIndexDue, CallerCode, []string{"dynamodb:Query"}},
			// A message whose time has not come is sent on, and a sweep calls for help.
			{ResourceDueQueue, CallerCode, []string{"sqs:SendMessage"}},
			{ResourceExpiryFailed, CallerCode, []string{"sqs:SendMessage"}},
			// Lambda refuses to create the mapping when one of the three is missing.
			{ResourceDueQueue, CallerPlatform, []string{
				"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes",
			}},
			{ResourceScheduleFailures, CallerPlatform, []string{"sqs:SendMessage"}},
		},
		Queue: &QueueTrigger{
			Queue:            ResourceDueQueue,
			BatchMessagesMax: 10,
			BatchWindow:      0,
			// Six times the time-out is 330 s.
			VisibilityTimeout: 6 * time.Minute,
			// Half an hour of tries; the sweep ends within a minute what a message does not.
			ReceivesMax:    5,
			DeadLetters:    ResourceDueFailures,
			DelayMax:       queueDelayMax,
			ConcurrencyMax: 8,
		},
		Schedule: everyMinute(),
	}
}

func outboxFunction() Function {
	return Function{
		Name:        FunctionOutbox,
		Description: "Publishes ledger events from the table's stream, and wakes the saga",
		MemoryMiB:   256,
		Timeout:     30 * time.Second,
		Variables: []Variable{
			VariableStage, VariableTableName, VariableEventBusName, VariableSagaQueueURL, VariableDueQueueURL,
		},
		Grants: []Grant{
			{ResourceTable, CallerCode, []string{"dynamodb:UpdateItem"}},
			// Lambda refuses to create the mapping when one of the four is missing.
			{ResourceTableStream, CallerPlatform, []string{
				"dynamodb:DescribeStream", "dynamodb:GetRecords",
				"dynamodb:GetShardIterator", "dynamodb:ListStreams",
			}},
			{ResourceEventBus, CallerCode, []string{"events:PutEvents"}},
			{ResourceSagaQueue, CallerCode, []string{"sqs:SendMessage"}},
			{ResourceDueQueue, CallerCode, []string{"sqs:SendMessage"}},
			{ResourceOutboxFailures, CallerPlatform, []string{"sqs:SendMessage"}},
		},
		Stream: &StreamTrigger{
			BatchRecordsMax: 100,
			BatchWindow:     0,
			// The record's age is the bound: when the bus is down for hours, a batch must
			// outlast it, and quick failures would use up few retries in seconds. What can
			// never be published does not come back here, so it holds nobody up.
			Retries:              streamRetriesMax,
			RecordAgeMax:         6 * time.Hour,
			ParallelBatches:      2,
			FailureDestination:   ResourceOutboxFailures,
			EventNames:           []string{"INSERT"},
			SortKeyPrefixFilters: []string{"EVENT#"},
		},
	}
}

// sagaFunction is started twice over. A message makes it look at a reservation at once;
// the tick finds in the due index what no message told of, so that a lost message costs
// time and no money.
func sagaFunction() Function {
	return Function{
		Name:        FunctionSaga,
		Description: "Drives reservations: confirms, captures, voids and refunds",
		MemoryMiB:   256,
		Timeout:     workerTimeout,
		// The queue's share and two ticks that overlap.
		ReservedConcurrency: 10,
		Variables:           []Variable{VariableStage, VariableTableName, VariablePaymentSecretID},
		Grants: []Grant{
			{ResourceTable, CallerCode, []string{
				"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:PutItem", "dynamodb:UpdateItem",
			}},
			{ResourceTableIndexDue, CallerCode, []string{"dynamodb:Query"}},
			{ResourcePaymentSecret, CallerCode, []string{"secretsmanager:GetSecretValue"}},
			// Lambda refuses to create the mapping when one of the three is missing.
			{ResourceSagaQueue, CallerPlatform, []string{
				"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes",
			}},
			{ResourceScheduleFailures, CallerPlatform, []string{"sqs:SendMessage"}},
		},
		Queue: &QueueTrigger{
			Queue: ResourceSagaQueue,
			// Each message may cost a call to the provider, so a batch is small enough to be
			// worked on within the time-out, and is not waited for.
			BatchMessagesMax: 10,
			BatchWindow:      0,
			// Six times the time-out is 330 s.
			VisibilityTimeout: 6 * time.Minute,
			// An hour of tries; what is still owed then is found by the tick all the same.
			ReceivesMax:    10,
			DeadLetters:    ResourceSagaFailures,
			ConcurrencyMax: 8,
		},
		Schedule: everyMinute(),
	}
}

// reconcileFunction repeats from the table what the stream could not bring about.
func reconcileFunction() Function {
	return Function{
		Name:                FunctionReconcile,
		Description:         "Publishes events that the outbox missed",
		MemoryMiB:           256,
		Timeout:             4 * time.Minute,
		ReservedConcurrency: 2,
		Variables: []Variable{
			VariableStage, VariableTableName, VariableEventBusName, VariableSagaQueueURL, VariableDueQueueURL,
		},
		Grants: []Grant{
			{ResourceTable, CallerCode, []string{"dynamodb:BatchGetItem", "dynamodb:UpdateItem"}},
			{ResourceTableIndexUnpublished, CallerCode, []string{"dynamodb:Query"}},
			{ResourceEventBus, CallerCode, []string{"events:PutEvents"}},
			{ResourceSagaQueue, CallerCode, []string{"sqs:SendMessage"}},
			{ResourceDueQueue, CallerCode, []string{"sqs:SendMessage"}},
			{ResourceScheduleFailures, CallerPlatform, []string{"sqs:SendMessage"}},
		},
		Schedule: &ScheduleTrigger{
			Every:              5 * time.Minute,
			Retries:            1,
			EventAgeMax:        5 * time.Minute,
			FailureDestination: ResourceScheduleFailures,
		},
	}
}

// auditFunction is started twice over. The tick begins an audit and looks after the one that
// is under way; each message is one part of it. It is a function of its own and not one more
// thing that the reconciler does: a part may take as long as Lambda allows, and the
// reconciler's next tick comes in five minutes. It is the only one that scans, and it
// publishes nothing.
func auditFunction() Function {
	return Function{
		Name:        FunctionAudit,
		Description: "Compares all of the table with itself, and asks about what differs",
		MemoryMiB:   512,
		Timeout:     14 * time.Minute,
		// The queue's share and two ticks that overlap.
		ReservedConcurrency: 6,
		Variables: []Variable{
			VariableStage, VariableTableName, VariablePaymentSecretID,
			VariableAuditQueueURL, VariableAuditBucketName, VariableAuditEverySeconds, VariableAuditRepair,
		},
		Grants: []Grant{
			{ResourceTable, CallerCode, []string{
				"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:Scan", "dynamodb:PutItem", "dynamodb:UpdateItem",
			}},
			{ResourceTableIndexDue, CallerCode, []string{"dynamodb:Query"}},
			{ResourceTableIndexOwner, CallerCode, []string{"dynamodb:Query"}},
			// What the provider has is compared with what we know of it.
			{ResourcePaymentSecret, CallerCode, []string{"secretsmanager:GetSecretValue"}},
			// Without leave to list, an object that is not there reads as forbidden.
			{ResourceAuditBucket, CallerCode, []string{"s3:GetObject", "s3:ListBucket", "s3:PutObject"}},
			{ResourceAuditQueue, CallerCode, []string{"sqs:SendMessage"}},
			// Lambda refuses to create the mapping when one of the three is missing.
			{ResourceAuditQueue, CallerPlatform, []string{
				"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes",
			}},
			{ResourceScheduleFailures, CallerPlatform, []string{"sqs:SendMessage"}},
		},
		Queue: &QueueTrigger{
			Queue: ResourceAuditQueue,
			// A part may use all of the time-out.
			BatchMessagesMax: 1,
			BatchWindow:      0,
			// Six times the time-out. A part whose worker died is not waited for: the next tick
			// sends it again.
			VisibilityTimeout: 84 * time.Minute,
			ReceivesMax:       5,
			DeadLetters:       ResourceAuditFailures,
			// Each reads some 15 MB of the table in a second, which is 2,000 read units: four
			// stay below what a new table on demand gives, with as much left for the traffic.
			ConcurrencyMax: 4,
		},
		Schedule: &ScheduleTrigger{
			// Longer than the time-out, so that what a tick finds missing is not being done.
			Every:              15 * time.Minute,
			Retries:            1,
			EventAgeMax:        15 * time.Minute,
			FailureDestination: ResourceScheduleFailures,
		},
	}
}

// archiveFunction writes what it takes out of the table to the bucket, and may not delete
// there.
func archiveFunction() Function {
	return Function{
		Name:                FunctionArchive,
		Description:         "Moves ended records from the table to the archive",
		MemoryMiB:           512,
		Timeout:             14 * time.Minute,
		ReservedConcurrency: 2,
		Variables: []Variable{
			VariableStage, VariableTableName, VariableArchiveBucketName,
			VariableArchiveHoldsAfterDays, VariableArchiveReservationsAfterDays,
		},
		Grants: []Grant{
			// The condition of each mark is that the worker still has its lease.
			{ResourceTable, CallerCode, []string{
				"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:Query", "dynamodb:ConditionCheckItem",
			}},
			{ResourceTableIndexDue, CallerCode, []string{"dynamodb:Query"}},
			// Without leave to list, an object that is not there reads as forbidden.
			{ResourceArchiveBucket, CallerCode, []string{"s3:GetObject", "s3:ListBucket", "s3:PutObject"}},
			{ResourceScheduleFailures, CallerPlatform, []string{"sqs:SendMessage"}},
		},
		Schedule: &ScheduleTrigger{
			// One run moves some fifteen thousand records. With a run always under way a stage
			// may end about fifteen holds a second, day and night, before the archive falls
			// behind; its alarm says so.
			Every:              15 * time.Minute,
			Retries:            1,
			EventAgeMax:        15 * time.Minute,
			FailureDestination: ResourceScheduleFailures,
		},
	}
}

// everyMinute is the tick of a worker that looks for what is due. The next tick does the
// work of a lost one, so late ticks are dropped.
func everyMinute() *ScheduleTrigger {
	return &ScheduleTrigger{
		Every:              time.Minute,
		Retries:            1,
		EventAgeMax:        60 * time.Second,
		FailureDestination: ResourceScheduleFailures,
	}
}
