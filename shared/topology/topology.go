package topology

import (
	"slices"
	"time"
)

// FunctionName names one Lambda function. The folder functions/<name> holds its
// main package.
type FunctionName string

// The functions of Holdfast.
const (
	FunctionAPI    FunctionName = "api"    // the HTTP API
	FunctionExpiry FunctionName = "expiry" // ends overdue holds
	FunctionOutbox FunctionName = "outbox" // publishes ledger events
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
)

// tableIndexPrefix, with the name of an index after it, names that index as a resource.
const tableIndexPrefix = "table-index-"

// The secondary indexes that functions query, each a resource of its own: who may follow
// what is due need not be able to list the holds of an owner.
const (
	ResourceTableIndexDue      Resource = tableIndexPrefix + "due"
	ResourceTableIndexOwner    Resource = tableIndexPrefix + "owner"
	ResourceTableIndexResource Resource = tableIndexPrefix + "resource"
)

// TableIndex returns the resource that stands for the table's index of that name. It is
// one of Resources only if a function queries the index.
func TableIndex(name string) Resource { return Resource(tableIndexPrefix + name) }

// Resources returns every resource, in a fixed order. The caller owns the result.
func Resources() []Resource {
	return []Resource{
		ResourceTable, ResourceTableIndexDue, ResourceTableIndexOwner, ResourceTableIndexResource, ResourceTableStream,
		ResourceEventBus, ResourceOutboxFailures, ResourceScheduleFailures,
	}
}

// Caller says who uses a grant. A test that compares the calls a function makes
// with what it may do looks at the grants of CallerCode only.
type Caller string

// The callers.
const (
	// CallerCode is the function's own code.
	CallerCode Caller = "code"
	// CallerPlatform is the Lambda service, which polls the stream and sends to a
	// failure destination under the function's role.
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
	VariableStage         Variable = "HOLDFAST_STAGE"            // dev, staging, prod or local
	VariableTableName     Variable = "HOLDFAST_TABLE_NAME"       // name of the table
	VariableEventBusName  Variable = "HOLDFAST_EVENT_BUS_NAME"   // name of the event bus
	VariableOperatorGroup Variable = "HOLDFAST_OPERATOR_GROUP"   // the group whose members are operators
	VariableSweepPage     Variable = "HOLDFAST_SWEEP_PAGE_ITEMS" // due holds read in one page
)

// Variables returns every environment variable, in a fixed order. The caller owns
// the result.
func Variables() []Variable {
	return []Variable{
		VariableStage, VariableTableName, VariableEventBusName,
		VariableOperatorGroup, VariableSweepPage,
	}
}

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
	// APITimeout is the Lambda time-out of the api function. It stands between the
	// database budget and IntegrationTimeout.
	APITimeout = 15 * time.Second
	// DatabaseBudget bounds all database work of one request, retries included.
	DatabaseBudget = 8 * time.Second
)

// streamRetriesMax is the most that an event source mapping takes.
// https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-params.html
const streamRetriesMax = 10_000

// Functions returns every function of Holdfast, in a fixed order. The caller owns
// the result.
func Functions() []Function {
	return []Function{
		{
			Name:        FunctionAPI,
			Description: "HTTP API: slots, availability, holds",
			MemoryMiB:   512,
			Timeout:     APITimeout,
			Variables:   []Variable{VariableStage, VariableTableName, VariableOperatorGroup},
			Grants: []Grant{
				{ResourceTable, CallerCode, []string{
					"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:PutItem", "dynamodb:UpdateItem",
				}},
				{ResourceTableIndexOwner, CallerCode, []string{"dynamodb:Query"}},
				{ResourceTableIndexResource, CallerCode, []string{"dynamodb:Query"}},
			},
			HTTP: &HTTPTrigger{},
		},
		{
			Name:                FunctionExpiry,
			Description:         "Ends holds whose release time has passed",
			MemoryMiB:           256,
			Timeout:             55 * time.Second,
			ReservedConcurrency: 2,
			Variables:           []Variable{VariableStage, VariableTableName, VariableSweepPage},
			Grants: []Grant{
				{ResourceTable, CallerCode, []string{"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}},
				{ResourceTableIndexDue, CallerCode, []string{"dynamodb:Query"}},
				{ResourceScheduleFailures, CallerPlatform, []string{"sqs:SendMessage"}},
			},
			Schedule: &ScheduleTrigger{
				Every: time.Minute,
				// The next tick does the work of a lost one, so late ticks are dropped.
				Retries:            1,
				EventAgeMax:        60 * time.Second,
				FailureDestination: ResourceScheduleFailures,
			},
		},
		{
			Name:        FunctionOutbox,
			Description: "Publishes ledger events from the table's stream",
			MemoryMiB:   256,
			Timeout:     30 * time.Second,
			Variables:   []Variable{VariableStage, VariableTableName, VariableEventBusName},
			Grants: []Grant{
				{ResourceTable, CallerCode, []string{"dynamodb:UpdateItem"}},
				// Lambda refuses to create the mapping when one of the four is missing.
				{ResourceTableStream, CallerPlatform, []string{
					"dynamodb:DescribeStream", "dynamodb:GetRecords",
					"dynamodb:GetShardIterator", "dynamodb:ListStreams",
				}},
				{ResourceEventBus, CallerCode, []string{"events:PutEvents"}},
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
		},
	}
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
