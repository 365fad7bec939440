package stripe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"

	"github.com/stripe/stripe-go/v85"

	"holdfast/shared/payment"
)

var errRefundFailed = errors.New("the refund was made and has failed since")

// conflicts are the codes that mean: the payment is not in a state for this.
// From https://docs.stripe.com/error-codes.
var conflicts = map[stripe.ErrorCode]bool{
	stripe.ErrorCodePaymentIntentUnexpectedState: true,
	stripe.ErrorCodeIntentInvalidState:           true,
	stripe.ErrorCodeChargeAlreadyCaptured:        true,
	stripe.ErrorCodeChargeAlreadyRefunded:        true,
	stripe.ErrorCodeChargeExpiredForCapture:      true,
}

// passing are the codes that mean: not now, whatever the HTTP status is.
var passing = map[stripe.ErrorCode]bool{
	stripe.ErrorCodeLockTimeout:                    true,
	stripe.ErrorCodeRateLimit:                      true,
	stripe.ErrorCodePaymentIntentRateLimitExceeded: true,
	stripe.ErrorCodeAPIKeyExpired:                  true,
	stripe.ErrorCodePlatformAPIKeyExpired:          true,
	stripe.ErrorCodeSecretKeyRequired:              true,
	"idempotency_key_in_use":                       true,
}

// meaning makes an error of the library an error of the port. The text is made anew: the
// library's own text has what Stripe sent, which may quote a card or a secret.
func meaning(err error) error {
	var answered *stripe.Error
	if !errors.As(err, &answered) {
		return &payment.Error{Kind: payment.KindUnreachable, Cause: silence(err)}
	}
	code := string(answered.Code)
	if answered.Type == stripe.ErrorTypeIdempotency && code == "" {
		code = string(answered.Type) // it says by its type alone that the key was used for something else
	}
	return &payment.Error{
		Kind: kindOf(answered), Code: plain(code),
		Cause: fmt.Errorf("stripe answered HTTP %d, %s, request %s",
			answered.HTTPStatusCode, plain(string(answered.Type)), plain(answered.RequestID)),
	}
}

func kindOf(e *stripe.Error) payment.ErrorKind {
	switch {
	case passing[e.Code], e.Type == stripe.ErrorTypeAPI, e.Type == stripe.ErrorTypeRateLimit:
		return payment.KindUnreachable
	case e.HTTPStatusCode >= http.StatusInternalServerError:
		return payment.KindUnreachable
	case e.Code == stripe.ErrorCodeResourceMissing:
		return payment.KindNotFound
	case conflicts[e.Code]:
		return payment.KindConflict
	}
	switch e.HTTPStatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return payment.KindUnreachable
	case http.StatusNotFound:
		// A path that nobody serves. It says nothing about the payment.
		return payment.KindUnreachable
	}
	if e.HTTPStatusCode >= http.StatusBadRequest {
		return payment.KindRefused
	}
	return payment.KindUnreachable
}

// replayed reports whether err is an answer that Stripe saved from an earlier call.
func replayed(err error) bool {
	var answered *stripe.Error
	if !errors.As(err, &answered) || answered.LastResponse == nil {
		return false
	}
	return answered.LastResponse.Header.Get("Idempotent-Replayed") == "true"
}

// silence says why there is no answer, without the words of the network or of whatever
// was answered: they may quote it.
func silence(err error) error {
	var name *net.DNSError
	var operation *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer in time: %w", context.DeadlineExceeded)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("the caller stopped waiting: %w", context.Canceled)
	case errors.As(err, &name):
		return errors.New("the name of the API is not known")
	case errors.As(err, &operation):
		return fmt.Errorf("no connection: %s failed", plain(operation.Op))
	}
	return errors.New("no answer that can be read")
}

var plainPattern = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)

// plain is a code of a fixed form, or "unknown". Nothing else that was sent to us is
// repeated.
func plain(code string) string {
	switch {
	case code == "":
		return ""
	case plainPattern.MatchString(code):
		return code
	}
	return "unknown"
}
