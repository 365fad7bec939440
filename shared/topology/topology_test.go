package topology_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/topology"
)

// The limits of the platform. Sources are beside each one.
const (
	// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
	lambdaMemoryMiBMin, lambdaMemoryMiBMax = 128, 10240
	lambdaTimeoutMax                       = 15 * time.Minute
	// https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-params.html
	streamBatchRecordsLimit  = 10000
	streamBatchWindowLimit   = 300 * time.Second
	streamParallelLimit      = 10
	streamRecordAgeLimitMin  = 60 * time.Second
	streamRecordsKept        = 24 * time.Hour
	streamFilterPatternLimit = 5
	// https://docs.aws.amazon.com/lambda/latest/api/API_FunctionEventInvokeConfig.html
	// is narrower than the Scheduler's own limits, and both get the same values.
	invokeRetriesLimit                     = 2
	invokeEventAgeMin, invokeEventAgeLimit = 60 * time.Second, 6 * time.Hour
	// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-parameters.html
	queueBatchMessagesWithoutWindowLimit = 10
	queueConcurrencyMin                  = 2
	// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
	queueVisibilityFactor, queueReceivesMin = 6, 5
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
	queueVisibilityLimit = 12 * time.Hour
	queueDelayLimit      = 15 * time.Minute
)

// services says which IAM service prefix belongs to each resource, so that an
// action cannot be granted on something it does not act on.
func services() map[topology.Resource]string {
	return map[topology.Resource]string{
		topology.ResourceTable:                 "dynamodb",
		topology.ResourceTableIndexDue:         "dynamodb",
		topology.ResourceTableIndexOwner:       "dynamodb",
		topology.ResourceTableIndexResource:    "dynamodb",
		topology.ResourceTableIndexUnpublished: "dynamodb",
		topology.ResourceTableIndexReview:      "dynamodb",
		topology.ResourceTableStream:           "dynamodb",
		topology.ResourceEventBus:              "events",
		topology.ResourceOutboxFailures:        "sqs",
		topology.ResourceScheduleFailures:      "sqs",
		topology.ResourceSagaQueue:             "sqs",
		topology.ResourceSagaFailures:          "sqs",
		topology.ResourceDueQueue:              "sqs",
		topology.ResourceDueFailures:           "sqs",
		topology.ResourceExpiryFailed:          "sqs",
		topology.ResourcePaymentSecret:         "secretsmanager",
		topology.ResourceArchiveBucket:         "s3",
		topology.ResourceAuditQueue:            "sqs",
		topology.ResourceAuditFailures:         "sqs",
		topology.ResourceAuditBucket:           "s3",
	}
}

func TestFunctionNamesAreUniqueAndFound(t *testing.T) {
	seen := map[topology.FunctionName]bool{}
	for _, f := range topology.Functions() {
		if seen[f.Name] {
			t.Errorf("%s is listed twice", f.Name)
		}
		seen[f.Name] = true
		got, ok := topology.FunctionNamed(f.Name)
		if !ok || got.Name != f.Name || f.Description == "" {
			t.Errorf("FunctionNamed(%q) = %+v, %t; want the function with a description", f.Name, got, ok)
		}
	}
	if _, ok := topology.FunctionNamed("no-such-function"); ok {
		t.Error("FunctionNamed finds a function that does not exist")
	}
}

func TestEachFunctionHasATrigger(t *testing.T) {
	for _, f := range topology.Functions() {
		if f.HTTP == nil && f.Stream == nil && f.Queue == nil && f.Schedule == nil {
			t.Errorf("%s: nothing starts it", f.Name)
		}
	}
}

func TestGrantsAreExact(t *testing.T) {
	forbidden := []string{
		"dynamodb:Scan", "dynamodb:DeleteItem", "dynamodb:DeleteTable", "s3:DeleteObject", "s3:DeleteObjectVersion",
	}
	for _, f := range topology.Functions() {
		granted := map[string]bool{}
		for _, g := range f.Grants {
			service, known := services()[g.Resource]
			if !known || !slices.Contains(topology.Resources(), g.Resource) {
				t.Errorf("%s: grant on unknown resource %q", f.Name, g.Resource)
			}
			if g.Caller != topology.CallerCode && g.Caller != topology.CallerPlatform {
				t.Errorf("%s: grant on %s has the unknown caller %q", f.Name, g.Resource, g.Caller)
			}
			if len(g.Actions) == 0 {
				t.Errorf("%s: grant on %s allows nothing", f.Name, g.Resource)
			}
			for _, action := range g.Actions {
				prefix, name, _ := strings.Cut(action, ":")
				if prefix != service || name == "" || strings.ContainsAny(action, "*?") {
					t.Errorf("%s: %q is not an exact action on %s", f.Name, action, g.Resource)
				}
				// What an index leaves out can't be found with that index, so one function scans.
				mayScan := f.Name == topology.FunctionAudit && action == "dynamodb:Scan"
				if slices.Contains(forbidden, action) && !mayScan {
					t.Errorf("%s: %s must not be granted: functions delete nothing, and one of them scans", f.Name, action)
				}
				if key := string(g.Resource) + action; granted[key] {
					t.Errorf("%s: %s on %s is granted twice", f.Name, action, g.Resource)
				} else {
					granted[key] = true
				}
			}
		}
	}
}

// An index tells of many items at once, so a function queries only those that its work
// needs: the api lists an owner's holds, a resource's slots and what waits for a person, the sweep, the saga and the
// archive what is due, the reconciler what is not published, and the relay and the webhook
// are told of their work. The archive also reads the events of a hold, from the table.
func TestEachFunctionQueriesItsOwnIndexes(t *testing.T) {
	want := map[topology.FunctionName][]topology.Resource{
		topology.FunctionAPI: {
			topology.TableIndex("owner"), topology.TableIndex("resource"),
			topology.TableIndex("review"), topology.TableIndex("due"), topology.TableIndex("unpublished"),
		},
		topology.FunctionWebhook: nil,
		topology.FunctionExpiry:  {topology.TableIndex("due")},
		topology.FunctionOutbox:  nil,
		topology.FunctionSaga:    {topology.TableIndex("due")},

		topology.FunctionReconcile: {topology.TableIndex("unpublished")},
		topology.FunctionAudit:     {topology.ResourceTable, topology.TableIndex("due"), topology.TableIndex("owner")},
		topology.FunctionArchive:   {topology.ResourceTable, topology.TableIndex("due")},
	}
	for _, f := range topology.Functions() {
		var got []topology.Resource
		for _, g := range f.Grants {
			if slices.Contains(g.Actions, "dynamodb:Query") {
				got = append(got, g.Resource)
			}
		}
		if !slices.Equal(got, want[f.Name]) {
			t.Errorf("%s may query %v, want %v", f.Name, got, want[f.Name])
		}
	}
}

func TestEveryResourceIsUsed(t *testing.T) {
	for _, resource := range topology.Resources() {
		used := slices.ContainsFunc(topology.Functions(), func(f topology.Function) bool {
			// The queue moves its dead letters by itself: no function sends them.
			return f.Queue != nil && f.Queue.DeadLetters == resource ||
				slices.ContainsFunc(f.Grants, func(g topology.Grant) bool { return g.Resource == resource })
		})
		if !used {
			t.Errorf("no function uses %s", resource)
		}
	}
}

// A function whose code may use a resource must be told its name, and one that is told a
// name without being allowed anything on it carries a useless variable.
func TestVariablesMatchGrants(t *testing.T) {
	names := map[topology.Resource]topology.Variable{
		topology.ResourceTable:         topology.VariableTableName,
		topology.ResourceEventBus:      topology.VariableEventBusName,
		topology.ResourceSagaQueue:     topology.VariableSagaQueueURL,
		topology.ResourcePaymentSecret: topology.VariablePaymentSecretID,
		topology.ResourceDueQueue:      topology.VariableDueQueueURL,
		topology.ResourceExpiryFailed:  topology.VariableExpiryFailedQueueURL,
		topology.ResourceArchiveBucket: topology.VariableArchiveBucketName,
		topology.ResourceAuditQueue:    topology.VariableAuditQueueURL,
		topology.ResourceAuditBucket:   topology.VariableAuditBucketName,
	}
	for _, f := range topology.Functions() {
		if !slices.Contains(f.Variables, topology.VariableStage) {
			t.Errorf("%s does not know its stage, which every metric carries", f.Name)
		}
		for _, v := range f.Variables {
			if !slices.Contains(topology.Variables(), v) {
				t.Errorf("%s: unknown variable %q", f.Name, v)
			}
		}
		for resource, variable := range names {
			granted := slices.ContainsFunc(f.Grants, func(g topology.Grant) bool {
				return g.Resource == resource && g.Caller == topology.CallerCode
			})
			if told := slices.Contains(f.Variables, variable); told != granted {
				t.Errorf("%s: granted on %s is %t, but told its name is %t", f.Name, resource, granted, told)
			}
		}
	}
}

// Who may do what to the keys of the payment provider, to the saga's queue and to stock is
// written out here, so that a grant that comes or goes is seen. The webhook is open to
// everybody: it writes nothing but a message.
func TestTheWebhookAndTheSagaMayDoTheirWorkOnly(t *testing.T) {
	of := func(name topology.FunctionName) map[topology.Resource][]string {
		f, _ := topology.FunctionNamed(name)
		actions := map[topology.Resource][]string{}
		for _, g := range f.Grants {
			actions[g.Resource] = append(actions[g.Resource], g.Actions...)
		}
		return actions
	}
	read := []string{"secretsmanager:GetSecretValue"}
	send := []string{"sqs:SendMessage"}
	for name, want := range map[topology.FunctionName]map[topology.Resource][]string{
		topology.FunctionWebhook: {
			topology.ResourceTable: {"dynamodb:GetItem"}, topology.ResourceSagaQueue: send, topology.ResourcePaymentSecret: read,
		},
		topology.FunctionSaga: {
			topology.ResourceTable:            {"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"},
			topology.ResourceTableIndexDue:    {"dynamodb:Query"},
			topology.ResourcePaymentSecret:    read,
			topology.ResourceSagaQueue:        {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"},
			topology.ResourceScheduleFailures: send,
		},
	} {
		if got := of(name); !reflect.DeepEqual(got, want) {
			t.Errorf("%s may %v, want %v", name, got, want)
		}
	}
	for name, want := range map[topology.FunctionName][2]bool{
		topology.FunctionAPI: {false, true}, topology.FunctionOutbox: {true, false}, topology.FunctionExpiry: {false, false},
		topology.FunctionReconcile: {true, false}, topology.FunctionAudit: {false, true}, topology.FunctionArchive: {false, false},
	} {
		got := of(name)
		if sends, reads := got[topology.ResourceSagaQueue] != nil, got[topology.ResourcePaymentSecret] != nil; want != [2]bool{sends, reads} {
			t.Errorf("%s sends to the saga: %t, reads the payment secret: %t; want %v", name, sends, reads, want)
		}
	}
}

// The due queue is both a queue of work, which Lambda takes from, and one that code sends
// to: the relays, and the expiry function itself; and so is that of the audit. Each bucket
// is reached by one function, which may not delete there.
func TestWhoUsesTheDueQueueTheAuditAndTheArchive(t *testing.T) {
	type use struct {
		resource topology.Resource
		caller   topology.Caller
	}
	send := []string{"sqs:SendMessage"}
	want := map[topology.FunctionName]map[use][]string{
		topology.FunctionExpiry: {
			{topology.ResourceDueQueue, topology.CallerCode}:     send,
			{topology.ResourceDueQueue, topology.CallerPlatform}: {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"},
		},
		topology.FunctionOutbox:    {{topology.ResourceDueQueue, topology.CallerCode}: send},
		topology.FunctionReconcile: {{topology.ResourceDueQueue, topology.CallerCode}: send},
		topology.FunctionArchive: {
			{topology.ResourceArchiveBucket, topology.CallerCode}: {"s3:GetObject", "s3:ListBucket", "s3:PutObject"},
		},
		topology.FunctionAudit: {
			{topology.ResourceAuditQueue, topology.CallerCode}:     send,
			{topology.ResourceAuditQueue, topology.CallerPlatform}: {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"},
			{topology.ResourceAuditBucket, topology.CallerCode}:    {"s3:GetObject", "s3:ListBucket", "s3:PutObject"},
		},
	}
	watched := []topology.Resource{
		topology.ResourceDueQueue, topology.ResourceArchiveBucket, topology.ResourceAuditQueue, topology.ResourceAuditBucket,
	}
	for _, f := range topology.Functions() {
		got := map[use][]string{}
		for _, g := range f.Grants {
			if slices.Contains(watched, g.Resource) {
				got[use{g.Resource, g.Caller}] = g.Actions
			}
		}
		if len(got)+len(want[f.Name]) > 0 && !reflect.DeepEqual(got, want[f.Name]) {
			t.Errorf("%s may %v, want %v", f.Name, got, want[f.Name])
		}
	}
}

// Case H8: the client saw 503 at 30 s, and the order was saved a second later.
func TestCaseH8_TimeoutsAreOrdered(t *testing.T) {
	api, _ := topology.FunctionNamed(topology.FunctionAPI)
	if api.Timeout != topology.APITimeout {
		t.Errorf("the api function ends after %s, want APITimeout %s", api.Timeout, topology.APITimeout)
	}
	// coldStartAndAnswer is room for a start from nothing and for writing the answer: a cold
	// start with clients stays well below a second, and the secret is read within it.
	const coldStartAndAnswer = 5 * time.Second
	ordered := []time.Duration{
		0, topology.DatabaseBudget, topology.DatabaseBudget + topology.ProviderBudget + coldStartAndAnswer, topology.APITimeout,
		topology.IntegrationTimeout, topology.IntegrationTimeoutLimit,
	}
	for i := 1; i < len(ordered); i++ {
		if ordered[i-1] >= ordered[i] {
			t.Errorf("want 0 < DatabaseBudget < both budgets and room < APITimeout < IntegrationTimeout < limit, got %v", ordered)
		}
	}
	if topology.IntegrationTimeoutLimit != 30*time.Second {
		t.Errorf("API Gateway's limit is 30 s, not %s", topology.IntegrationTimeoutLimit)
	}
}

// Case E9: a provider that needs 8 s to begin a payment is waited for.
func TestCaseE9_ASlowProviderIsWaitedFor(t *testing.T) {
	const slow = 8 * time.Second
	if topology.ProviderBudget <= slow {
		t.Errorf("a provider is given %s, and one was seen to take %s", topology.ProviderBudget, slow)
	}
}

func TestFunctionSizesAreAllowed(t *testing.T) {
	for _, f := range topology.Functions() {
		if f.MemoryMiB < lambdaMemoryMiBMin || f.MemoryMiB > lambdaMemoryMiBMax {
			t.Errorf("%s: %d MiB of memory", f.Name, f.MemoryMiB)
		}
		if f.Timeout <= 0 || f.Timeout > lambdaTimeoutMax || f.Timeout%time.Second != 0 {
			t.Errorf("%s: time-out %s", f.Name, f.Timeout)
		}
		if f.ReservedConcurrency < 0 {
			t.Errorf("%s: reserved concurrency %d", f.Name, f.ReservedConcurrency)
		}
	}
}

func TestStreamTriggersLoseNothingAndBlockNobody(t *testing.T) {
	for _, f := range topology.Functions() {
		s := f.Stream
		if s == nil {
			continue
		}
		if s.BatchRecordsMax < 1 || s.BatchRecordsMax > streamBatchRecordsLimit ||
			s.BatchWindow < 0 || s.BatchWindow > streamBatchWindowLimit ||
			s.ParallelBatches < 1 || s.ParallelBatches > streamParallelLimit {
			t.Errorf("%s: batch limits out of range: %+v", f.Name, *s)
		}
		if s.Retries < 1 || s.RecordAgeMax < streamRecordAgeLimitMin || s.RecordAgeMax >= streamRecordsKept {
			t.Errorf("%s: retries must be finite and end while the stream still has the record: %+v", f.Name, *s)
		}
		if n := len(s.SortKeyPrefixFilters); n < 1 || n > streamFilterPatternLimit {
			t.Errorf("%s: %d filter patterns", f.Name, n)
		}
		if len(s.EventNames) == 0 {
			t.Errorf("%s: decides on no event name", f.Name)
		}
		mustSendTo(t, f, s.FailureDestination)
		mustBeGranted(t, f, topology.ResourceTableStream, "dynamodb:GetRecords")
	}
}

func TestScheduleTriggersDoNotPileUp(t *testing.T) {
	for _, f := range topology.Functions() {
		s := f.Schedule
		if s == nil {
			continue
		}
		if s.Every < time.Minute || s.Every%time.Minute != 0 {
			t.Errorf("%s: every %s, but the Scheduler counts in whole minutes", f.Name, s.Every)
		}
		if f.Timeout >= s.Every {
			t.Errorf("%s: runs up to %s, longer than from one tick to the next (%s)", f.Name, f.Timeout, s.Every)
		}
		if s.Retries < 0 || s.Retries > invokeRetriesLimit ||
			s.EventAgeMax < invokeEventAgeMin || s.EventAgeMax > invokeEventAgeLimit {
			t.Errorf("%s: retries or age out of range: %+v", f.Name, *s)
		}
		if s.EventAgeMax > 2*s.Every {
			t.Errorf("%s: a tick is kept for %s although the next one does its work", f.Name, s.EventAgeMax)
		}
		mustSendTo(t, f, s.FailureDestination)
	}
}

func TestQueueTriggersGiveNoMessageToTwoRuns(t *testing.T) {
	for _, f := range topology.Functions() {
		q := f.Queue
		if q == nil {
			continue
		}
		// A larger batch needs a window of a second, which every message would wait for.
		if q.BatchMessagesMax < 1 || q.BatchMessagesMax > queueBatchMessagesWithoutWindowLimit || q.BatchWindow != 0 {
			t.Errorf("%s: batch limits out of range: %+v", f.Name, *q)
		}
		if q.VisibilityTimeout < queueVisibilityFactor*f.Timeout+q.BatchWindow || q.VisibilityTimeout > queueVisibilityLimit {
			t.Errorf("%s: a message is hidden for %s, but a run takes up to %s", f.Name, q.VisibilityTimeout, f.Timeout)
		}
		if q.DelayMax < 0 || q.DelayMax > queueDelayLimit {
			t.Errorf("%s: a message is kept back for %s", f.Name, q.DelayMax)
		}
		if q.ReceivesMax < queueReceivesMin {
			t.Errorf("%s: %d receives, which throttling alone can use up", f.Name, q.ReceivesMax)
		}
		if q.ConcurrencyMax < queueConcurrencyMin || f.ReservedConcurrency > 0 && q.ConcurrencyMax >= f.ReservedConcurrency {
			t.Errorf("%s: %d runs for the queue, of %d reserved", f.Name, q.ConcurrencyMax, f.ReservedConcurrency)
		}
		for _, resource := range []topology.Resource{q.Queue, q.DeadLetters} {
			if !slices.Contains(topology.Resources(), resource) {
				t.Errorf("%s: unknown queue %q", f.Name, resource)
			}
		}
		if q.Queue == q.DeadLetters {
			t.Errorf("%s: the queue %s is its own dead-letter queue", f.Name, q.Queue)
		}
		for _, action := range []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"} {
			mustBeGranted(t, f, q.Queue, action)
		}
	}
}

// A queue that nobody is woken for keeps its messages until they are gone, so it is known
// which ones a person must read: all that are not worked on.
func TestEveryQueueIsWorkedOnOrReadByAPerson(t *testing.T) {
	want := []topology.Resource{
		topology.ResourceOutboxFailures, topology.ResourceScheduleFailures, topology.ResourceSagaFailures,
		topology.ResourceDueFailures, topology.ResourceExpiryFailed, topology.ResourceAuditFailures,
	}
	if got := topology.QueuesForPeople(); !slices.Equal(got, want) {
		t.Errorf("read by people: %v, want %v", got, want)
	}
	for _, resource := range topology.Resources() {
		isWorkedOn := slices.ContainsFunc(topology.Functions(), func(f topology.Function) bool {
			return f.Queue != nil && f.Queue.Queue == resource
		})
		if isQueue := services()[resource] == "sqs"; isQueue && isWorkedOn == slices.Contains(want, resource) {
			t.Errorf("%s: worked on by a function: %t", resource, isWorkedOn)
		}
	}
}

func mustSendTo(t *testing.T, f topology.Function, destination topology.Resource) {
	t.Helper()
	if !slices.Contains(topology.Resources(), destination) {
		t.Errorf("%s: unknown failure destination %q", f.Name, destination)
	}
	mustBeGranted(t, f, destination, "sqs:SendMessage")
}

func mustBeGranted(t *testing.T, f topology.Function, resource topology.Resource, action string) {
	t.Helper()
	ok := slices.ContainsFunc(f.Grants, func(g topology.Grant) bool {
		return g.Resource == resource && slices.Contains(g.Actions, action)
	})
	if !ok {
		t.Errorf("%s: %s on %s is not granted", f.Name, action, resource)
	}
}

// What a caller does to the answer must not reach the next caller.
func TestTheCallerOwnsTheResult(t *testing.T) {
	topology.Functions()[0].Grants[0].Actions[0] = "changed"
	topology.Routes()[0].Path = "changed"
	if topology.Functions()[0].Grants[0].Actions[0] == "changed" || topology.Routes()[0].Path == "changed" {
		t.Error("a change by one caller is seen by the next")
	}
}
