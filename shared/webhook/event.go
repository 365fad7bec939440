package webhook

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"holdfast/shared/ledger"
)

// BodyBytesMax bounds a body after the transport's base64 is undone. It is that of the
// HTTP API; Stripe's events are a few KiB.
const BodyBytesMax = 64 << 10

var (
	errBodyTooLarge = errors.New("the body is too large")
	errBodyBroken   = errors.New("the body is not the base64 that it is said to be")
)

// gatewayRequestID is the form of a request id that is taken over from the gateway.
var gatewayRequestID = regexp.MustCompile(`^[A-Za-z0-9=_-]{1,128}$`)

// gatewayEvent is the part of an API Gateway event of payload format 2.0 that is used.
// Source:
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
type gatewayEvent struct {
	Headers         map[string]string `json:"headers"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
	RequestContext  struct {
		RequestID string `json:"requestId"`
	} `json:"requestContext"`
}

func readEvent(raw json.RawMessage) (gatewayEvent, error) {
	var e gatewayEvent
	err := json.Unmarshal(raw, &e)
	return e, err
}

// requestID is the gateway's id of the request, or "" if it has none that can be told.
func (e gatewayEvent) requestID() ledger.RequestID {
	if id := e.RequestContext.RequestID; gatewayRequestID.MatchString(id) {
		return ledger.RequestID(id)
	}
	return ""
}

// header is the value under that name in any case. Two names that differ in case alone
// are no value: nobody could say which one counts.
func (e gatewayEvent) header(name string) string {
	value, found := "", 0
	for candidate, v := range e.Headers {
		if strings.EqualFold(candidate, name) {
			value, found = v, found+1
		}
	}
	if found != 1 {
		return ""
	}
	return value
}

// bytes is the body exactly as it was sent: the signature is over these bytes, so
// nothing but the transport's base64 is undone (cases H1 and L2).
func (e gatewayEvent) bytes() ([]byte, error) {
	body := []byte(e.Body)
	if e.IsBase64Encoded {
		if base64.StdEncoding.DecodedLen(len(body)) > BodyBytesMax+2 { // two for the padding
			return nil, errBodyTooLarge
		}
		decoded, err := base64.StdEncoding.DecodeString(e.Body)
		if err != nil {
			return nil, errBodyBroken
		}
		body = decoded
	}
	if len(body) > BodyBytesMax {
		return nil, errBodyTooLarge
	}
	return body, nil
}
