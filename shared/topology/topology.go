package topology

import "time"

// FunctionName names one Lambda function. The folder functions/<name> holds its
// main package.
type FunctionName string

// The functions of Holdfast.
const (
	FunctionAPI       FunctionName = "api"       // the HTTP API
	FunctionWebhook   FunctionName = "webhook"   // takes in what the payment provider tells
	FunctionExpiry    FunctionName = "expiry"    // ends overdue holds
	FunctionOutbox    FunctionName = "outbox"    // publishes ledger events, and wakes the saga
	FunctionSaga      FunctionName = "saga"      // drives reservations to their end
	FunctionReconcile FunctionName = "reconcile" // publishes what the outbox missed
	FunctionAudit     FunctionName = "audit"     // compares all of the table with itself, and asks about what differs
	FunctionArchive   FunctionName = "archive"   // moves ended records out of the table
)

// Resource names something that a function is granted actions on or is told the
// address of.
type Resource string

// The resources of Holdfast.
const (
	ResourceTable            Resource = "table"             // the one DynamoDB table
	ResourceTableStream      Resource = "table-stream"      // its change stream
	ResourceEventBus         Resource = "event-bus"         // the EventBridge bus of ledger events
	ResourceOutboxFailures   Resource = "outbox-failures"   // SQS: stream batches that the outbox gave up on
	ResourceScheduleFailures Resource = "schedule-failures" // SQS: Scheduler ticks that were not delivered, or failed
	ResourceSagaQueue        Resource = "saga-queue"        // SQS: reservations to look at
	ResourceSagaFailures     Resource = "saga-failures"     // SQS: messages that the saga could not work on
	ResourcePaymentSecret    Resource = "payment-secret"    // Secrets Manager: the payment provider's keys
	ResourceDueQueue         Resource = "due-queue"         // SQS: holds to end at their due time
	ResourceDueFailures      Resource = "due-failures"      // SQS: due messages that could not be worked on
	ResourceExpiryFailed     Resource = "expiry-failed"     // SQS: holds that could not be ended and are parked
	ResourceArchiveBucket    Resource = "archive-bucket"    // S3: ended records that have left the table
	ResourceAuditQueue       Resource = "audit-queue"       // SQS: parts of an audit to do
	ResourceAuditFailures    Resource = "audit-failures"    // SQS: parts of an audit that could not be done
	ResourceAuditBucket      Resource = "audit-bucket"      // S3: what the parts of an audit saw, and its reports
)

// tableIndexPrefix, with the name of an index after it, names that index as a resource.
const tableIndexPrefix = "table-index-"

// The secondary indexes that functions query, each a resource of its own: who may follow
// what is due need not be able to list the holds of an owner.
const (
	ResourceTableIndexDue      Resource = tableIndexPrefix + "due"
	ResourceTableIndexOwner    Resource = tableIndexPrefix + "owner"
	ResourceTableIndexResource Resource = tableIndexPrefix + "resource"
	// ResourceTableIndexUnpublished has the events that the bus has not accepted yet.
	ResourceTableIndexUnpublished Resource = tableIndexPrefix + "unpublished"
	// ResourceTableIndexReview has what waits for a person.
	ResourceTableIndexReview Resource = tableIndexPrefix + "review"
)

// The prefixes of the objects in the audit's bucket. What the parts of an audit saw goes
// after days, and its reports after months.
const (
	AuditRunPrefix    = "runs/"
	AuditReportPrefix = "reports/"
)

// TableIndex returns the resource that stands for the table's index of that name. It is
// one of Resources only if a function queries the index.
func TableIndex(name string) Resource { return Resource(tableIndexPrefix + name) }

// Resources returns every resource, in a fixed order. The caller owns the result.
func Resources() []Resource {
	return []Resource{
		ResourceTable, ResourceTableIndexDue, ResourceTableIndexOwner, ResourceTableIndexResource, ResourceTableStream,
		ResourceEventBus, ResourceOutboxFailures, ResourceScheduleFailures,
		ResourceSagaQueue, ResourceSagaFailures, ResourcePaymentSecret,
		ResourceDueQueue, ResourceDueFailures, ResourceExpiryFailed,
		ResourceTableIndexUnpublished, ResourceTableIndexReview, ResourceArchiveBucket,
		ResourceAuditQueue, ResourceAuditFailures, ResourceAuditBucket,
	}
}

// Caller says who uses a grant. A test that compares the calls a function makes
// with what it may do looks at the grants of CallerCode only.
type Caller string

// The callers.
const (
	// CallerCode is the function's own code.
	CallerCode Caller = "code"
	// CallerPlatform is the Lambda service, which polls the stream or the queue, and
	// sends to a failure destination, under the function's role.
	CallerPlatform Caller = "platform"
)

// Grant allows Actions (exact IAM action names, never a wildcard) on one resource.
type Grant struct {
	Resource Resource
	Caller   Caller
	Actions  []string
}

// Variable names an environment variable that every function understands. The
// values are read in shared/config and nowhere else.
type Variable string

// The environment variables.
const (
	VariableStage           Variable = "HOLDFAST_STAGE"             // dev, staging, prod or local
	VariableTableName       Variable = "HOLDFAST_TABLE_NAME"        // name of the table
	VariableEventBusName    Variable = "HOLDFAST_EVENT_BUS_NAME"    // name of the event bus
	VariableOperatorGroup   Variable = "HOLDFAST_OPERATOR_GROUP"    // the group whose members are operators
	VariableSweepPage       Variable = "HOLDFAST_SWEEP_PAGE_ITEMS"  // due holds read in one page
	VariableSagaQueueURL    Variable = "HOLDFAST_SAGA_QUEUE_URL"    // address of the saga's queue
	VariablePaymentSecretID Variable = "HOLDFAST_PAYMENT_SECRET_ID" // name or ARN of the payment provider's keys
	VariableDueQueueURL     Variable = "HOLDFAST_DUE_QUEUE_URL"     // address of the queue of holds to end
	// VariableExpiryFailedQueueURL is the address of the queue that is told of parked holds.
	VariableExpiryFailedQueueURL Variable = "HOLDFAST_EXPIRY_FAILED_QUEUE_URL"
	VariableArchiveBucketName    Variable = "HOLDFAST_ARCHIVE_BUCKET_NAME" // name of the archive's bucket
	// VariableArchiveHoldsAfterDays is how many days an ended hold stays in the table, and
	// VariableArchiveReservationsAfterDays a reservation at rest: financial records stay longer.
	VariableArchiveHoldsAfterDays        Variable = "HOLDFAST_ARCHIVE_HOLDS_AFTER_DAYS"
	VariableArchiveReservationsAfterDays Variable = "HOLDFAST_ARCHIVE_RESERVATIONS_AFTER_DAYS"
	VariableAuditQueueURL                Variable = "HOLDFAST_AUDIT_QUEUE_URL"     // address of the audit's queue
	VariableAuditBucketName              Variable = "HOLDFAST_AUDIT_BUCKET_NAME"   // name of the audit's bucket
	VariableAuditEverySeconds            Variable = "HOLDFAST_AUDIT_EVERY_SECONDS" // from the beginning of one audit to that of the next
	VariableAuditRepair                  Variable = "HOLDFAST_AUDIT_REPAIR"        // an AuditRepair
)

// Variables returns every environment variable, in a fixed order. The caller owns
// the result.
func Variables() []Variable {
	return []Variable{
		VariableStage, VariableTableName, VariableEventBusName,
		VariableOperatorGroup, VariableSweepPage, VariableSagaQueueURL, VariablePaymentSecretID,
		VariableDueQueueURL, VariableExpiryFailedQueueURL, VariableArchiveBucketName,
		VariableArchiveHoldsAfterDays, VariableArchiveReservationsAfterDays,
		VariableAuditQueueURL, VariableAuditBucketName, VariableAuditEverySeconds, VariableAuditRepair,
	}
}

// AuditRepair says what an audit writes by itself. Cases for people it opens in any case: a
// case moves nothing.
type AuditRepair string

// The settings.
const (
	// AuditRepairOff leaves every repair to a person, who says so by `ops audit -apply`.
	AuditRepairOff AuditRepair = "off"
	// AuditRepairCertain repairs what is certain and can be undone.
	AuditRepairCertain AuditRepair = "certain"
)

// AuditRepairs returns every setting, in a fixed order. The caller owns the result.
func AuditRepairs() []AuditRepair { return []AuditRepair{AuditRepairOff, AuditRepairCertain} }

// HTTPTrigger starts a function for each request on one of Routes.
type HTTPTrigger struct{}

// StreamTrigger starts a function for batches of the table's stream. Its limits
// are the ones of the event source mapping: finite retries and a destination
// together, because finite retries alone lose records and endless ones block a
// stream shard for a day.
type StreamTrigger struct {
	BatchRecordsMax      int
	BatchWindow          time.Duration
	Retries              int
	RecordAgeMax         time.Duration
	ParallelBatches      int // batches in flight per stream shard; the order per item is kept
	FailureDestination   Resource
	EventNames           []string // stream event names the function decides on, in code
	SortKeyPrefixFilters []string // only items whose sort key starts so are delivered
}

// ScheduleTrigger starts a function at a fixed rate. A missed tick is not made good
// for long: the next one does its work.
//
// Retries and EventAgeMax hold twice, because the Scheduler only queues the call:
// for its delivery to Lambda, and for Lambda's own attempts to run it, which are
// two more within six hours if nothing else is said. Source:
// https://docs.aws.amazon.com/lambda/latest/dg/with-eventbridge-scheduler.html
type ScheduleTrigger struct {
	Every              time.Duration
	Retries            int
	EventAgeMax        time.Duration
	FailureDestination Resource
}

// QueueTrigger starts a function for batches of messages of an SQS queue. The function
// answers which messages of a batch failed; those alone come again after
// VisibilityTimeout, and after ReceivesMax receives the queue moves them to DeadLetters.
//
// VisibilityTimeout is at least six times the function's time-out and BatchWindow more.
// If it were shorter, a message could be given to a second run while the first one still
// works on it. Source:
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
type QueueTrigger struct {
	Queue             Resource
	BatchMessagesMax  int
	BatchWindow       time.Duration
	VisibilityTimeout time.Duration
	ReceivesMax       int
	DeadLetters       Resource
	// DelayMax is the longest that a sender keeps a message back; zero if none does. Such a
	// message is that old when it is first seen, and not late.
	DelayMax time.Duration
	// ConcurrencyMax bounds the runs that the queue starts at once. It is below the
	// function's ReservedConcurrency: a message whose run is refused for lack of
	// concurrency is received in vain, and ends as a dead letter that nobody looked at.
	ConcurrencyMax int
}

// Function describes one Lambda function.
type Function struct {
	Name        FunctionName
	Description string
	MemoryMiB   int
	Timeout     time.Duration
	// ReservedConcurrency bounds how many run at once; zero leaves it to the account.
	ReservedConcurrency int
	Variables           []Variable
	Grants              []Grant
	HTTP                *HTTPTrigger
	Stream              *StreamTrigger
	Queue               *QueueTrigger
	Schedule            *ScheduleTrigger
}

const (
	// IntegrationTimeoutLimit is API Gateway's hard limit for an HTTP API. Source:
	// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html
	IntegrationTimeoutLimit = 30 * time.Second
	// IntegrationTimeout is what API Gateway waits for a function. A client that
	// got 503 there may meet a commit later, so everything below it must end
	// earlier (case H8).
	IntegrationTimeout = 29 * time.Second
	// APITimeout is the Lambda time-out of the api function. It stands between the two
	// budgets together, with room for a cold start, and IntegrationTimeout.
	APITimeout = 25 * time.Second
	// DatabaseBudget bounds all database work of one request, retries included.
	DatabaseBudget = 8 * time.Second
	// ProviderBudget bounds the call to the payment provider in one request. A provider
	// under load took 8 s to begin a payment (case E9); one that takes longer is asked
	// again by the saga.
	ProviderBudget = 10 * time.Second
	// WebhookTimeout is the Lambda time-out of the webhook function: one read, one message.
	// The provider tells again what was not taken in.
	WebhookTimeout = 10 * time.Second
)
