package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/shared/ledger"
	"holdfast/shared/telemetry"
)

// The codes that only the webhook gives. Like those of package ledger they are never
// renamed.
const (
	codeSignatureInvalid ledger.Code = "signature_invalid"
	codeBodyTooLarge     ledger.Code = "body_too_large"
)

const (
	// problemType, with the code after it, is the problem's type (RFC 9457, 3.1.1).
	problemType = "urn:holdfast:problem:"
	// retryAfterSeconds is what a 503 asks the provider to wait.
	retryAfterSeconds = "5"
)

// outcome is what became of a delivery: how it is counted, and what the sender is told.
type outcome struct {
	name   string
	metric telemetry.MetricName
	status int
	// code, title and detail are of a problem; code is "" for a success.
	code          ledger.Code
	title, detail string
}

var (
	outcomeQueued   = outcome{name: "queued", metric: telemetry.MetricWebhookQueued, status: http.StatusOK}
	outcomeRecorded = outcome{name: "recorded", metric: telemetry.MetricWebhookRecorded, status: http.StatusOK}
	outcomeIgnored  = outcome{name: "ignored", metric: telemetry.MetricWebhookIgnored, status: http.StatusOK}

	outcomeRefused = outcome{
		"refused", telemetry.MetricWebhookRefused, http.StatusUnauthorized, codeSignatureInvalid,
		"The signature is not good", "the body must be signed with the endpoint's secret, at most some minutes ago",
	}
	outcomeTooLarge = outcome{
		"too large", telemetry.MetricWebhookRefused, http.StatusRequestEntityTooLarge, codeBodyTooLarge,
		"The body is too large", fmt.Sprintf("a body may have at most %d bytes", BodyBytesMax),
	}
	outcomeBroken = outcome{
		"broken", telemetry.MetricWebhookRefused, http.StatusBadRequest, ledger.CodeInvalid,
		"The request is not valid", "the body is not the base64 that it is said to be",
	}
	outcomeMalformed = outcome{
		"malformed", telemetry.MetricWebhookMalformed, http.StatusBadRequest, ledger.CodeInvalid,
		"The request is not valid", "the event is signed, and can't be read",
	}
	outcomeFailed = outcome{
		"failed", telemetry.MetricWebhookFailed, http.StatusServiceUnavailable, ledger.CodeUnavailable,
		"Not available now", "the event was not taken in; send it again",
	}
)

// problem is an error's body (RFC 9457). It has the members of the HTTP API's problems.
type problem struct {
	Type      string           `json:"type"`
	Title     string           `json:"title"`
	Status    int              `json:"status"`
	Code      ledger.Code      `json:"code"`
	Detail    string           `json:"detail"`
	RequestID ledger.RequestID `json:"request_id,omitempty"`
}

// answer is the outcome as the gateway takes it. Its texts are all fixed here: nothing of
// a delivery is repeated.
func (o outcome) answer(id ledger.RequestID) events.APIGatewayV2HTTPResponse {
	headers := map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store"}
	var content any = map[string]string{"result": o.name}
	if o.code != "" {
		headers["Content-Type"] = "application/problem+json"
		content = problem{problemType + string(o.code), o.title, o.status, o.code, o.detail, id}
	}
	if o.status == http.StatusServiceUnavailable {
		headers["Retry-After"] = retryAfterSeconds
	}
	body, err := json.Marshal(content)
	if err != nil {
		body = nil // texts and a number always have a form in JSON
	}
	return events.APIGatewayV2HTTPResponse{StatusCode: o.status, Headers: headers, Body: string(body)}
}
