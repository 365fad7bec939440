package topology_test

import (
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
)

// services says which IAM service prefix belongs to each resource, so that an
// action cannot be granted on something it does not act on.
func services() map[topology.Resource]string {
	return map[topology.Resource]string{
		topology.ResourceTable:              "dynamodb",
		topology.ResourceTableIndexDue:      "dynamodb",
		topology.ResourceTableIndexOwner:    "dynamodb",
		topology.ResourceTableIndexResource: "dynamodb",
		topology.ResourceTableStream:        "dynamodb",
		topology.ResourceEventBus:           "events",
		topology.ResourceOutboxFailures:     "sqs",
		topology.ResourceScheduleFailures:   "sqs",
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
		if f.HTTP == nil && f.Stream == nil && f.Schedule == nil {
			t.Errorf("%s: nothing starts it", f.Name)
		}
	}
}

func TestGrantsAreExact(t *testing.T) {
	forbidden := []string{"dynamodb:Scan", "dynamodb:DeleteItem", "dynamodb:DeleteTable"}
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
				if slices.Contains(forbidden, action) {
					t.Errorf("%s: %s must not be granted: the ledger deletes and scans nothing", f.Name, action)
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
// needs: the api lists an owner's holds and a resource's slots, the sweep what is due, and
// the relay gets its work from the stream.
func TestEachFunctionQueriesItsOwnIndexes(t *testing.T) {
	want := map[topology.FunctionName][]topology.Resource{
		topology.FunctionAPI:    {topology.TableIndex("owner"), topology.TableIndex("resource")},
		topology.FunctionExpiry: {topology.TableIndex("due")},
		topology.FunctionOutbox: nil,
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
			return slices.ContainsFunc(f.Grants, func(g topology.Grant) bool { return g.Resource == resource })
		})
		if !used {
			t.Errorf("no function may use %s", resource)
		}
	}
}

// A function that may use a resource must be told its name, and one that is told a
// name without being allowed anything on it carries a useless variable.
func TestVariablesMatchGrants(t *testing.T) {
	names := map[topology.Resource]topology.Variable{
		topology.ResourceTable:    topology.VariableTableName,
		topology.ResourceEventBus: topology.VariableEventBusName,
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
			granted := slices.ContainsFunc(f.Grants, func(g topology.Grant) bool { return g.Resource == resource })
			if told := slices.Contains(f.Variables, variable); told != granted {
				t.Errorf("%s: granted on %s is %t, but told its name is %t", f.Name, resource, granted, told)
			}
		}
	}
}

// Case H8: the client saw 503 at 30 s, and the order was saved a second later.
func TestCaseH8_TimeoutsAreOrdered(t *testing.T) {
	api, _ := topology.FunctionNamed(topology.FunctionAPI)
	if api.Timeout != topology.APITimeout {
		t.Errorf("the api function ends after %s, want APITimeout %s", api.Timeout, topology.APITimeout)
	}
	ordered := []time.Duration{
		0, topology.DatabaseBudget, topology.APITimeout,
		topology.IntegrationTimeout, topology.IntegrationTimeoutLimit,
	}
	for i := 1; i < len(ordered); i++ {
		if ordered[i-1] >= ordered[i] {
			t.Errorf("want 0 < DatabaseBudget < APITimeout < IntegrationTimeout < limit, got %v", ordered)
		}
	}
	if topology.IntegrationTimeoutLimit != 30*time.Second {
		t.Errorf("API Gateway's limit is 30 s, not %s", topology.IntegrationTimeoutLimit)
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
