package config

import (
	"context"
	"net/http"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"holdfast/shared/skew"
)

// observing are the API options that let gauge see the answers: none for a nil gauge.
func observing(gauge *skew.Gauge) []func(*middleware.Stack) error {
	if gauge == nil {
		return nil
	}
	return []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
		return stack.Deserialize.Add(dateObserver{gauge}, middleware.After)
	}}
}

// dateObserver tells a gauge the Date header of each answer, also of a refusal. It is the
// last part of the Deserialize step, next to the connection, so that a question of several
// tries is one observation for each, and no wait between two of them is counted.
type dateObserver struct{ gauge *skew.Gauge }

// ID names the middleware in a stack.
func (dateObserver) ID() string { return "HoldfastObserveDate" }

// HandleDeserialize passes the question on, and its answer back as it is.
func (o dateObserver) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	sent := o.gauge.Now()
	out, metadata, err := next.HandleDeserialize(ctx, in)
	received := o.gauge.Now()
	answer, isHTTP := out.RawResponse.(*smithyhttp.Response)
	if !isHTTP {
		return out, metadata, err // nothing was sent
	}
	// An answer with an Age was kept by somebody on the way: its date is of then.
	if date, dateErr := http.ParseTime(answer.Header.Get("Date")); dateErr == nil && answer.Header.Get("Age") == "" {
		o.gauge.Observe(sent, received, date)
	}
	return out, metadata, err
}
