package dynamo

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// failureKind says what a failed transaction means for its caller.
type failureKind int

const (
	// failureAmbiguous: the answer is lost, the transaction may have been applied.
	failureAmbiguous failureKind = iota
	// failureRefused: a condition was false; nothing was written.
	failureRefused
	// failureConflict: it met another transaction; nothing was written, try again.
	failureConflict
	// failureThrottle: there was no capacity; nothing was written, try again later.
	failureThrottle
	// failureFault: the request can never succeed; nothing was written.
	failureFault
)

// The reasons of a cancelled transaction, one for each action in order.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
const (
	reasonNone        = "None"
	reasonCondition   = "ConditionalCheckFailed"
	reasonConflict    = "TransactionConflict"
	reasonThrottling  = "ThrottlingError"
	reasonThroughput  = "ProvisionedThroughputExceeded"
	codeThrottling    = "ThrottlingException"
	codeRequestLimit  = "RequestLimitExceeded"
	codeValidation    = "ValidationException"
	codeAccessDenied  = "AccessDeniedException"
	codeNotAuthorized = "UnrecognizedClientException"
)

// failure is a classified error of a transaction.
type failure struct {
	kind    failureKind
	reasons []types.CancellationReason
	// contended: a refused transaction also met conflicts, so its conditions may not be
	// the last word.
	contended bool
}

// classify reads an error of TransactWriteItems or TransactGetItems. What it does not
// know is ambiguous, because not knowing must never be taken for "not written".
func classify(err error) failure {
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) {
		return classifyReasons(canceled.CancellationReasons)
	}
	var throughput *types.ProvisionedThroughputExceededException
	var limit *types.RequestLimitExceeded
	var inProgress *types.TransactionInProgressException
	var missing *types.ResourceNotFoundException
	switch {
	case errors.As(err, &throughput), errors.As(err, &limit):
		return failure{kind: failureThrottle}
	case errors.As(err, &inProgress):
		return failure{kind: failureAmbiguous}
	case errors.As(err, &missing):
		return failure{kind: failureFault}
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		switch api.ErrorCode() {
		case codeThrottling, codeRequestLimit:
			return failure{kind: failureThrottle}
		case codeValidation, codeAccessDenied, codeNotAuthorized:
			return failure{kind: failureFault}
		}
	}
	return failure{kind: failureAmbiguous}
}

// classifyReasons weighs the reasons of all actions together (cases G1 and G2). One that
// can never succeed outweighs all; a throttle outweighs conditions, because the table
// must be left alone first; a condition outweighs a conflict, but is marked as not
// being the last word.
func classifyReasons(reasons []types.CancellationReason) failure {
	seen := make(map[string]bool)
	for _, reason := range reasons {
		seen[aws.ToString(reason.Code)] = true
	}
	delete(seen, reasonNone)
	f := failure{reasons: reasons, contended: seen[reasonConflict]}
	throttled := seen[reasonThrottling] || seen[reasonThroughput]
	conditions := seen[reasonCondition]
	for _, known := range []string{reasonCondition, reasonConflict, reasonThrottling, reasonThroughput} {
		delete(seen, known)
	}
	switch {
	case len(seen) > 0:
		f.kind = failureFault
	case throttled:
		f.kind = failureThrottle
	case conditions:
		f.kind = failureRefused
	case f.contended:
		f.kind = failureConflict
	default:
		f.kind = failureFault // cancelled without a reason
	}
	return f
}
