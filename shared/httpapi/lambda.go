package httpapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/shared/ledger"
)

// defaultStage is the one stage whose name is not in the path.
const defaultStage = "$default"

// gatewayRequestID is the form of a request id that is taken over from the gateway.
var gatewayRequestID = regexp.MustCompile(`^[A-Za-z0-9=_-]{1,128}$`)

// gatewayEvent is the part of an API Gateway event of payload format 2.0 that is used.
// The claims stay as they are: the types of aws-lambda-go take texts only, and one claim
// that is a number would break every request (case H6). Source:
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
type gatewayEvent struct {
	RawPath         string            `json:"rawPath"`
	RawQueryString  string            `json:"rawQueryString"`
	Headers         map[string]string `json:"headers"`
	Body            string            `json:"body"`
	IsBase64Encoded bool              `json:"isBase64Encoded"`
	RequestContext  struct {
		RequestID string `json:"requestId"`
		Stage     string `json:"stage"`
		HTTP      struct {
			Method string `json:"method"`
		} `json:"http"`
		Authorizer struct {
			JWT struct {
				Claims Claims `json:"claims"`
			} `json:"jwt"`
		} `json:"authorizer"`
	} `json:"requestContext"`
}

// Lambda answers one event of an HTTP API. Every event has an answer: the error is
// always nil, because API Gateway would turn one into a 500 without a problem.
func (a *API) Lambda(ctx context.Context, event json.RawMessage) (events.APIGatewayV2HTTPResponse, error) {
	var e gatewayEvent
	answer := &lambdaAnswer{header: make(http.Header)}
	if err := json.Unmarshal(event, &e); err != nil {
		a.refuseEvent(ctx, answer, err)
		return answer.response(), nil
	}
	a.ServeHTTP(answer, e.request(ctx))
	return answer.response(), nil
}

// refuseEvent answers what is no event of an HTTP API. Only a wrong trigger sends that.
func (a *API) refuseEvent(ctx context.Context, w http.ResponseWriter, cause error) {
	x := &exchange{writer: w, began: a.clock.Now(), route: "none"}
	x.caller.RequestID = ledger.NewRequestID(a.random.Bits128())
	x.fail(fmt.Errorf("read the event: %w", cause))
	a.report(ctx, x)
}

// request turns the event into a request. The path is already decoded, so it is used as
// it is: decoding it again would let %252F reach another resource (case H3).
func (e gatewayEvent) request(ctx context.Context) *http.Request {
	caller := Caller{Principal: PrincipalFromClaims(e.RequestContext.Authorizer.JWT.Claims)}
	if id := e.RequestContext.RequestID; gatewayRequestID.MatchString(id) {
		caller.RequestID = ledger.RequestID(id)
	}
	path := e.RawPath
	if stage := e.RequestContext.Stage; stage != "" && stage != defaultStage {
		if rest, prefixed := strings.CutPrefix(path, "/"+stage); prefixed && strings.HasPrefix(rest, "/") {
			path = rest
		}
	}
	header := make(http.Header, len(e.Headers))
	for name, value := range e.Headers {
		header.Set(name, value)
	}
	body, length := e.body()
	r := &http.Request{
		Method: e.RequestContext.HTTP.Method, URL: urlOf(path, e.RawQueryString), Host: header.Get("Host"),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: body, ContentLength: length,
	}
	return r.WithContext(WithCaller(ctx, caller))
}

// body undoes the transport's base64. A body that is not what it claims is found when it
// is read, so that it meets the same answers as any other.
func (e gatewayEvent) body() (io.ReadCloser, int64) {
	switch {
	case e.Body == "":
		return http.NoBody, 0
	case !e.IsBase64Encoded:
		return io.NopCloser(strings.NewReader(e.Body)), int64(len(e.Body))
	}
	// The length is not known before decoding.
	return io.NopCloser(base64.NewDecoder(base64.StdEncoding, strings.NewReader(e.Body))), -1
}

func urlOf(path, query string) *url.URL { return &url.URL{Path: path, RawQuery: query} }

// lambdaAnswer is an http.ResponseWriter that keeps what is written.
type lambdaAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header is what is sent before the body.
func (a *lambdaAnswer) Header() http.Header { return a.header }

// WriteHeader keeps the status.
func (a *lambdaAnswer) WriteHeader(status int) { a.status = status }

// Write keeps a part of the body.
func (a *lambdaAnswer) Write(b []byte) (int, error) { return a.body.Write(b) }

func (a *lambdaAnswer) response() events.APIGatewayV2HTTPResponse {
	out := events.APIGatewayV2HTTPResponse{
		StatusCode: a.status, Headers: make(map[string]string, len(a.header)), Body: a.body.String(),
	}
	for name, values := range a.header {
		out.Headers[name] = strings.Join(values, ",")
	}
	return out
}
