package dynamotest

import (
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
)

// Operation is a method of dynamo.Client, by its name in DynamoDB's API.
type Operation string

// The operations that can be told to fail: all of dynamo.Client.
const (
	TransactWriteItems Operation = "TransactWriteItems"
	TransactGetItems   Operation = "TransactGetItems"
	GetItem            Operation = "GetItem"
	BatchGetItem       Operation = "BatchGetItem"
	Query              Operation = "Query"
	UpdateItem         Operation = "UpdateItem"
	PutItem            Operation = "PutItem"
)

// Faults is a dynamo.Client that fails as it is told, and otherwise hands each call on
// to a real client. Each method that plans a fault adds to the line of its operation,
// and each call takes one from the front of that line:
//
//	faults.Pass(dynamotest.TransactWriteItems, 2)
//	faults.LoseAnswer(dynamotest.TransactWriteItems, 1)
//
// lets two transactions through and loses the answer of the third. A fault that no call
// has met by the end of the test fails the test, because such a test proves nothing.
//
// Faults stands where the SDK's client stands, so what it returns is what is left after
// the SDK's own retries. Errors are wrapped as the SDK wraps them. It may be used by
// several goroutines.
type Faults struct {
	tb     testing.TB
	client dynamo.Client

	mu      sync.Mutex
	planned map[Operation][]fault
	calls   map[Operation]int
}

var _ dynamo.Client = (*Faults)(nil)

// fault is what happens to one call. The zero value lets the call through.
type fault struct {
	// before runs before anything else happens to the call.
	before func()
	// drop keeps the call away from the table.
	drop bool
	// err makes the error that the caller gets instead of the answer; nil keeps the
	// answer. The legs are those of a transaction, and nil for other calls.
	err func(legs []leg) error
	// itemsMax, when positive, is how many items a BatchGetItem or Query handles.
	itemsMax int
}

// NewFaults returns a client without any planned fault in front of client.
func NewFaults(tb testing.TB, client dynamo.Client) *Faults {
	f := &Faults{
		tb:      tb,
		client:  client,
		planned: make(map[Operation][]fault),
		calls:   make(map[Operation]int),
	}
	tb.Cleanup(f.reportUnmet)
	return f
}

// Calls returns how many calls of the operation were made so far, failed ones included.
func (f *Faults) Calls(operation Operation) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[operation]
}

// Pass lets the next calls through, before the fault that is planned after it.
func (f *Faults) Pass(operation Operation, times int) {
	f.plan(operation, times, fault{})
}

// Fail makes the next calls return err without reaching the table. Conflict, Throttle
// and InternalError make the errors that DynamoDB itself would give.
func (f *Faults) Fail(operation Operation, times int, err error) {
	f.plan(operation, times, fault{drop: true, err: func([]leg) error { return err }})
}

// Drop loses the next calls on their way to the table: nothing is written, and the
// caller gets the same error as from LoseAnswer, because it cannot know the difference.
func (f *Faults) Drop(operation Operation, times int) {
	f.plan(operation, times, fault{drop: true, err: noAnswer})
}

// LoseAnswer lets the table perform the next calls, and loses the answer, whatever it
// was. The caller gets an error that is a timeout.
func (f *Faults) LoseAnswer(operation Operation, times int) {
	f.plan(operation, times, fault{err: noAnswer})
}

// Interrupt runs a function just before the next call reaches the table, and then lets
// the call through: what another caller does between this caller's read and its write.
// The function may use the same Faults.
func (f *Faults) Interrupt(operation Operation, run func()) {
	f.plan(operation, 1, fault{before: run})
}

// Cancel cancels the next transactions, of TransactWriteItems or TransactGetItems, at
// the given legs, without reaching the table. All other legs get the reason "None", as
// on DynamoDB. A leg that the transaction does not have fails the test, and so does an
// item for a leg that has not asked for it.
func (f *Faults) Cancel(operation Operation, times int, canceled ...CanceledLeg) {
	f.tb.Helper()
	if operation != TransactWriteItems && operation != TransactGetItems {
		f.tb.Fatalf("%s is no transaction and cannot be canceled", operation)
	}
	f.plan(operation, times, fault{drop: true, err: func(legs []leg) error {
		return f.cancellation(legs, canceled)
	}})
}

// Shorten makes the next calls of Query or BatchGetItem handle at most itemsMax items
// and leave the rest for a later call, as DynamoDB may do at any time: Query then
// returns a LastEvaluatedKey, and BatchGetItem UnprocessedKeys.
func (f *Faults) Shorten(operation Operation, times, itemsMax int) {
	f.tb.Helper()
	if operation != Query && operation != BatchGetItem {
		f.tb.Fatalf("%s has no partial answer", operation)
	}
	if itemsMax < 1 {
		f.tb.Fatalf("a call cannot be shortened to %d items", itemsMax)
	}
	f.plan(operation, times, fault{itemsMax: itemsMax})
}

// Conflict is the error of a single-item call that met a running transaction.
func Conflict() error {
	return &types.TransactionConflictException{Message: aws.String("Transaction is ongoing for the item")}
}

// Throttle is the error of a call to a partition that is over its limit.
func Throttle() error {
	return &types.ProvisionedThroughputExceededException{
		Message: aws.String("The level of configured provisioned throughput for the table was exceeded."),
	}
}

// InternalError is DynamoDB's own failure, after which a write may or may not have been
// performed.
func InternalError() error {
	return &types.InternalServerError{Message: aws.String("Internal server error")}
}

func (f *Faults) plan(operation Operation, times int, planned fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range times {
		f.planned[operation] = append(f.planned[operation], planned)
	}
}

// next counts a call and takes the fault that is planned for it.
func (f *Faults) next(operation Operation) fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[operation]++
	line := f.planned[operation]
	if len(line) == 0 {
		return fault{}
	}
	f.planned[operation] = line[1:]
	return line[0]
}

func (f *Faults) reportUnmet() {
	f.tb.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, operation := range slices.Sorted(maps.Keys(f.planned)) {
		if unmet := len(f.planned[operation]); unmet > 0 {
			f.tb.Errorf("%d planned faults of %s were never met", unmet, operation)
		}
	}
}
