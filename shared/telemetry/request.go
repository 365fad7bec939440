package telemetry

import (
	"context"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// RequestID is Lambda's name of this call of the function, so that an event leads to its
// log lines. Where nobody has named the call, a name is drawn.
func RequestID(ctx context.Context, random system.Random) ledger.RequestID {
	if call, known := lambdacontext.FromContext(ctx); known && call.AwsRequestID != "" {
		return ledger.RequestID(call.AwsRequestID)
	}
	return ledger.NewRequestID(random.Bits128())
}
