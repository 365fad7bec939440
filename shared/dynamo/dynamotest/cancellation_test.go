package dynamotest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo/dynamotest"
)

func TestCancelGivesAReasonPerLeg(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	faults := dynamotest.NewFaults(t, client)
	faults.Cancel(dynamotest.TransactWriteItems, 1,
		dynamotest.CanceledLeg{Leg: 1, Reason: dynamotest.ReasonConditionalCheckFailed, Item: item("as it was")},
		dynamotest.CanceledLeg{Leg: 2, Reason: dynamotest.ReasonTransactionConflict},
	)
	_, err := faults.TransactWriteItems(context.Background(), transaction(table, "a", "b", "c"))
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) {
		t.Fatalf("got %v, want TransactionCanceledException", err)
	}
	var got []string
	for _, reason := range canceled.CancellationReasons {
		text := aws.ToString(reason.Code)
		if old, ok := reason.Item["pk"].(*types.AttributeValueMemberS); ok {
			text += " of " + old.Value
		}
		got = append(got, text)
	}
	want := "[None ConditionalCheckFailed of as it was TransactionConflict]"
	if fmt.Sprint(got) != want {
		t.Errorf("reasons: %v, want %v", got, want)
	}
	if exists(t, client, table, "a") {
		t.Error("a canceled transaction was performed")
	}
}

func TestCancelOfReads(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	faults := dynamotest.NewFaults(t, client)
	faults.Cancel(dynamotest.TransactGetItems, 1, dynamotest.CanceledLeg{Leg: 0, Reason: dynamotest.ReasonThrottlingError})
	err := callOf[dynamotest.TransactGetItems](context.Background(), faults, table)
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) || aws.ToString(canceled.CancellationReasons[0].Code) != "ThrottlingError" {
		t.Errorf("got %v, want a cancellation with ThrottlingError", err)
	}
}

// The injected cancellation is compared with the engine's own, so that the code under
// test cannot tell them apart.
func TestCancelLooksLikeTheEnginesOwn(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	mustPut(t, client, table, "taken")
	in := transaction(table, "free", "taken")
	in.TransactItems[1].Put.ConditionExpression = aws.String("attribute_not_exists(pk)")
	faults := dynamotest.NewFaults(t, client)
	faults.Cancel(dynamotest.TransactWriteItems, 1,
		dynamotest.CanceledLeg{Leg: 1, Reason: dynamotest.ReasonConditionalCheckFailed, Item: item("taken")})

	var injected, own *types.TransactionCanceledException
	if _, err := faults.TransactWriteItems(context.Background(), in); !errors.As(err, &injected) {
		t.Fatalf("injected: %v", err)
	}
	if _, err := faults.TransactWriteItems(context.Background(), in); !errors.As(err, &own) {
		t.Fatalf("the engine's own: %v", err)
	}
	if injected.ErrorMessage() != own.ErrorMessage() {
		t.Errorf("message %q, the engine's own is %q", injected.ErrorMessage(), own.ErrorMessage())
	}
	for i, reason := range own.CancellationReasons {
		got := injected.CancellationReasons[i]
		if aws.ToString(got.Code) != aws.ToString(reason.Code) || aws.ToString(got.Message) != aws.ToString(reason.Message) || len(got.Item) != len(reason.Item) {
			t.Errorf("leg %d: %s, the engine's own is %s", i, reasonText(got), reasonText(reason))
		}
	}
}

func reasonText(reason types.CancellationReason) string {
	return fmt.Sprintf("%s %q with %d attributes", aws.ToString(reason.Code), aws.ToString(reason.Message), len(reason.Item))
}

// A plan that cannot happen on DynamoDB, or that no call has met, must fail the test
// that made it.
func TestWrongPlanFailsTheTest(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	for _, test := range []struct {
		name string
		plan func(*dynamotest.Faults)
		want string
	}{
		{"no such leg", func(f *dynamotest.Faults) {
			f.Cancel(dynamotest.TransactWriteItems, 1, dynamotest.CanceledLeg{Leg: 1, Reason: dynamotest.ReasonTransactionConflict})
		}, "there is no leg 1"},
		{"unknown reason", func(f *dynamotest.Faults) {
			f.Cancel(dynamotest.TransactWriteItems, 1, dynamotest.CanceledLeg{Leg: 0, Reason: "Mood"})
		}, `unknown reason "Mood"`},
		{"item with a conflict", func(f *dynamotest.Faults) {
			f.Cancel(dynamotest.TransactWriteItems, 1, dynamotest.CanceledLeg{Leg: 0, Reason: dynamotest.ReasonTransactionConflict, Item: item("a")})
		}, "gives no item for leg 0"},
		{"never met", func(f *dynamotest.Faults) {
			f.Fail(dynamotest.TransactWriteItems, 3, dynamotest.InternalError())
		}, "2 planned faults of TransactWriteItems were never met"},
	} {
		t.Run(test.name, func(t *testing.T) {
			recorder := &testRecorder{TB: t}
			faults := dynamotest.NewFaults(recorder, client)
			test.plan(faults)
			if err := callOf[dynamotest.TransactWriteItems](context.Background(), faults, table); err == nil {
				t.Error("the planned call succeeded")
			}
			recorder.cleanup()
			if got := strings.Join(recorder.errors, "\n"); !strings.Contains(got, test.want) {
				t.Errorf("the test was told %q, want %q in it", got, test.want)
			}
		})
	}
}

func TestItemForALegThatDidNotAskFailsTheTest(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	recorder := &testRecorder{TB: t}
	faults := dynamotest.NewFaults(recorder, client)
	faults.Cancel(dynamotest.TransactWriteItems, 1,
		dynamotest.CanceledLeg{Leg: 0, Reason: dynamotest.ReasonConditionalCheckFailed, Item: item("a")})
	in := transaction(table, "a")
	in.TransactItems[0].Put.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureNone
	if _, err := faults.TransactWriteItems(context.Background(), in); err == nil {
		t.Error("the planned call succeeded")
	}
	if len(recorder.errors) != 1 {
		t.Errorf("the test was told %q, want one error", recorder.errors)
	}
}

// testRecorder stands for the test that uses Faults, and keeps what it is told.
type testRecorder struct {
	testing.TB
	errors  []string
	cleanup func()
}

func (r *testRecorder) Errorf(format string, arguments ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, arguments...))
}

func (r *testRecorder) Cleanup(cleanup func()) { r.cleanup = cleanup }
