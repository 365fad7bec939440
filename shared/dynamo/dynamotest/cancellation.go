package dynamotest

import (
	"fmt"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Reason is why one leg of a transaction canceled it, see
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html.
type Reason string

// The reasons that the store must tell apart.
const (
	ReasonConditionalCheckFailed Reason = "ConditionalCheckFailed"
	ReasonTransactionConflict    Reason = "TransactionConflict"
	ReasonThrottlingError        Reason = "ThrottlingError"
	ReasonThroughputExceeded     Reason = "ProvisionedThroughputExceeded"
	ReasonValidationError        Reason = "ValidationError"
	reasonNone                   Reason = "None"
)

// reasonMessages are texts as DynamoDB sends them; a leg without fault has none.
var reasonMessages = map[Reason]string{
	ReasonConditionalCheckFailed: "The conditional request failed",
	ReasonTransactionConflict:    "Transaction is ongoing for the item",
	ReasonThrottlingError:        "Throughput exceeds the current capacity of your table or index",
	ReasonThroughputExceeded:     "The level of configured provisioned throughput for the table was exceeded",
	ReasonValidationError:        "An operand in the update expression has an incorrect data type",
}

// CanceledLeg says that one action of a transaction fails, and why.
type CanceledLeg struct {
	// Leg is the index of the action in the transaction, from 0.
	Leg    int
	Reason Reason
	// Item is the item as it was, which DynamoDB gives back for a failed condition of an
	// action that has asked for ALL_OLD. Nil means that there was no item.
	Item map[string]types.AttributeValue
}

// leg is what a cancellation must know about one action of a transaction.
type leg struct {
	returnsAllOld bool
}

// cancellation makes the error that DynamoDB would give for these legs. It checks the
// plan against the real transaction, because a plan that does not fit would test
// something that cannot happen.
func (f *Faults) cancellation(legs []leg, planned []CanceledLeg) error {
	f.tb.Helper()
	reasons := make([]types.CancellationReason, len(legs))
	for i := range reasons {
		reasons[i].Code = aws.String(string(reasonNone))
	}
	for _, one := range planned {
		message, known := reasonMessages[one.Reason]
		if !known {
			f.tb.Errorf("planned cancellation: unknown reason %q", one.Reason)
		}
		if one.Leg < 0 || one.Leg >= len(legs) {
			f.tb.Errorf("planned cancellation: the transaction has %d legs, there is no leg %d", len(legs), one.Leg)
			continue
		}
		if one.Item != nil && (one.Reason != ReasonConditionalCheckFailed || !legs[one.Leg].returnsAllOld) {
			f.tb.Errorf("planned cancellation: DynamoDB gives no item for leg %d with reason %s", one.Leg, one.Reason)
			continue
		}
		reasons[one.Leg] = types.CancellationReason{
			Code:    aws.String(string(one.Reason)),
			Message: aws.String(message),
			Item:    one.Item,
		}
	}
	return canceled(reasons)
}

// canceled is the error of a transaction with a reason for each of its actions.
func canceled(reasons []types.CancellationReason) error {
	codes := make([]string, len(reasons))
	for i, reason := range reasons {
		codes[i] = *reason.Code
	}
	return &types.TransactionCanceledException{
		Message: aws.String(fmt.Sprintf("Transaction cancelled, please refer cancellation reasons for specific reasons [%s]",
			strings.Join(codes, ", "))),
		CancellationReasons: reasons,
	}
}

// noAnswer is the error of a request that was sent and never answered: the SDK's own
// type, around a network timeout.
func noAnswer([]leg) error {
	return &smithyhttp.RequestSendError{Err: os.ErrDeadlineExceeded}
}

func writeLegs(actions []types.TransactWriteItem) []leg {
	legs := make([]leg, len(actions))
	for i, action := range actions {
		var returned types.ReturnValuesOnConditionCheckFailure
		switch {
		case action.ConditionCheck != nil:
			returned = action.ConditionCheck.ReturnValuesOnConditionCheckFailure
		case action.Put != nil:
			returned = action.Put.ReturnValuesOnConditionCheckFailure
		case action.Update != nil:
			returned = action.Update.ReturnValuesOnConditionCheckFailure
		case action.Delete != nil:
			returned = action.Delete.ReturnValuesOnConditionCheckFailure
		}
		legs[i].returnsAllOld = returned == types.ReturnValuesOnConditionCheckFailureAllOld
	}
	return legs
}
