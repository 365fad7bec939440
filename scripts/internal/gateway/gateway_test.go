package gateway_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/scripts/internal/gateway"
	"holdfast/scripts/internal/lambdahost"
	"holdfast/shared/topology"
)

var now = time.Date(2026, 3, 1, 12, 30, 15, 123_000_000, time.UTC)

// function plays the api function: it keeps the last event and does as it is told.
type function struct {
	payload []byte
	answer  string
	err     error
	waits   bool // for the end of its caller's patience
}

func (f *function) invoke(ctx context.Context, payload []byte) ([]byte, error) {
	f.payload = slices.Clone(payload)
	if f.waits {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return []byte(f.answer), f.err
}

func (f *function) event(t *testing.T) events.APIGatewayV2HTTPRequest {
	t.Helper()
	var event events.APIGatewayV2HTTPRequest
	if err := json.Unmarshal(f.payload, &event); err != nil {
		t.Fatalf("event %s: %v", f.payload, err)
	}
	return event
}

type setup struct {
	function *function
	server   *httptest.Server
	issuer   *gateway.Issuer
}

func mustServe(t *testing.T, change func(*gateway.Config)) setup {
	t.Helper()
	issuer, err := gateway.LoadIssuer(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	called := &function{answer: `{"statusCode":204}`}
	clock := func() time.Time { return now }
	config := gateway.Config{
		Routes:    topology.Routes(),
		Functions: map[topology.FunctionName]gateway.Invoke{topology.FunctionAPI: called.invoke, topology.FunctionWebhook: called.invoke},
		Authorizer: &gateway.Authorizer{
			Keys: issuer.PublicKeys(), Issuer: gateway.LocalIssuer, Audience: gateway.LocalAudience, Now: clock,
		},
		IntegrationTimeout: topology.IntegrationTimeout,
		Now:                clock,
		Log:                slog.New(slog.NewTextHandler(io.Discard, nil)),
		ClaimsAsSent:       gateway.RenderClaims,
	}
	if change != nil {
		change(&config)
	}
	handler, err := gateway.New(config)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return setup{called, server, issuer}
}

func (s setup) token(t *testing.T, scopes ...topology.Scope) string {
	t.Helper()
	token, err := s.issuer.Token(gateway.TokenRequest{
		Subject: "U-17", Scopes: scopes, Groups: []string{"ops", "support"}, Life: time.Hour,
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// send writes the request as it is, so that nothing is tidied up on the way.
func (s setup) send(t *testing.T, head []string, body string) (*http.Response, string) {
	t.Helper()
	connection, err := net.Dial("tcp", s.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	head = append(head, "Host: api.example.com:8080", "Connection: close", fmt.Sprintf("Content-Length: %d", len(body)))
	if _, err := io.WriteString(connection, strings.Join(head, "\r\n")+"\r\n\r\n"+body); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(head[0], " ") // the answer to HEAD has no body
	response, err := http.ReadResponse(bufio.NewReader(connection), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(answer)
}

func wantAnswer(t *testing.T, response *http.Response, body string, status int, want string) {
	t.Helper()
	if response.StatusCode != status || body != want {
		t.Errorf("answer = %d %s, want %d %s", response.StatusCode, body, status, want)
	}
}

func TestRequestBecomesAnEventOfFormat2(t *testing.T) {
	s := mustServe(t, nil)
	response, body := s.send(t, []string{
		"POST /v1/holds/hold_%C3%A9+1/cancel?status=HELD&status=EXPIRED&q=a%20b HTTP/1.1",
		"Authorization: Bearer " + s.token(t, topology.ScopeHolds),
		"Content-Type: application/json; charset=utf-8",
		"Idempotency-Key: a", "IDEMPOTENCY-KEY: b",
		"Cookie: one=1; two=2", "User-Agent: test",
	}, `{"a":"é"}`)
	wantAnswer(t, response, body, http.StatusNoContent, "")

	got := s.function.event(t)
	headers := maps.Clone(got.Headers)
	delete(headers, "authorization")
	checks := []struct {
		name      string
		got, want any
	}{
		{"version", got.Version, "2.0"},
		{"route key", got.RouteKey, "POST /v1/holds/{hold_id}/cancel"},
		{"raw path", got.RawPath, "/v1/holds/hold_é+1/cancel"},
		{"raw query", got.RawQueryString, "status=HELD&status=EXPIRED&q=a%20b"},
		{"cookies", got.Cookies, []string{"one=1", "two=2"}},
		{"headers", headers, map[string]string{
			"content-type": "application/json; charset=utf-8", "idempotency-key": "a,b", "user-agent": "test",
			"host": "api.example.com:8080", "connection": "close", "content-length": "10",
			"x-forwarded-for": "127.0.0.1", "x-forwarded-proto": "http",
		}},
		{"query", got.QueryStringParameters, map[string]string{"status": "HELD,EXPIRED", "q": "a b"}},
		{"path parameters", got.PathParameters, map[string]string{"hold_id": "hold_é+1"}},
		{"body", got.Body, `{"a":"é"}`},
		{"base64", got.IsBase64Encoded, false},
		{"request id", got.RequestContext.RequestID, response.Header.Get("Apigw-Requestid")},
		{"stage", got.RequestContext.Stage, "$default"},
		{"time", got.RequestContext.Time, "01/Mar/2026:12:30:15 +0000"},
		{"time epoch", got.RequestContext.TimeEpoch, now.UnixMilli()},
		{"domain", got.RequestContext.DomainName + " " + got.RequestContext.DomainPrefix, "api.example.com api"},
		{"http", got.RequestContext.HTTP, events.APIGatewayV2HTTPRequestContextHTTPDescription{
			Method: "POST", Path: "/v1/holds/hold_é+1/cancel", Protocol: "HTTP/1.1", SourceIP: "127.0.0.1", UserAgent: "test",
		}},
		{"claims", got.RequestContext.Authorizer.JWT.Claims, map[string]string{
			"iss": gateway.LocalIssuer, "aud": "[" + gateway.LocalAudience + "]", "sub": "U-17", "scope": "holds",
			"groups": "[ops support]", "iat": fmt.Sprint(now.Unix()), "exp": fmt.Sprint(now.Unix() + 3600),
		}},
		{"scopes", got.RequestContext.Authorizer.JWT.Scopes, []string{"holds"}},
	}
	for _, check := range checks {
		if got, want := mustJSON(t, check.got), mustJSON(t, check.want); got != want {
			t.Errorf("%s = %s, want %s", check.name, got, want)
		}
	}
}

func mustJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestPublicRouteHasNoAuthorizerContext(t *testing.T) {
	s := mustServe(t, nil)
	s.send(t, []string{"GET /v1/health HTTP/1.1"}, "")
	if strings.Contains(string(s.function.payload), `"authorizer"`) {
		t.Errorf("event = %s, want no authorizer in it", s.function.payload)
	}
}

// Case H1, the gateway's side: which bodies arrive as base64.
func TestCaseH1_BodyEncodingFollowsTheContentType(t *testing.T) {
	tests := map[string]bool{
		"application/json": false, "Application/JSON; charset=utf-8": false, "text/plain": false,
		"text/csv": false, "application/xml": false, "application/javascript": false,
		"application/x-www-form-urlencoded": true, "application/octet-stream": true,
		"application/problem+json": true, "application/jsonp": true, "": true, "application/json;;": true,
	}
	s := mustServe(t, nil)
	for contentType, want := range tests {
		head := []string{"POST /v1/holds HTTP/1.1", "Authorization: " + s.token(t, topology.ScopeHolds)}
		if contentType != "" {
			head = append(head, "Content-Type: "+contentType)
		}
		s.send(t, head, "{}")
		got := s.function.event(t)
		wantBody := map[bool]string{false: "{}", true: "e30="}[want]
		if got.IsBase64Encoded != want || got.Body != wantBody {
			t.Errorf("%q: base64 %v, body %q; want %v, %q", contentType, got.IsBase64Encoded, got.Body, want, wantBody)
		}
	}
	s.send(t, []string{"GET /v1/health HTTP/1.1"}, "")
	if got := s.function.event(t); got.IsBase64Encoded || got.Body != "" {
		t.Errorf("without a body: base64 %v, body %q", got.IsBase64Encoded, got.Body)
	}
}

// Case H1: a webhook is signed over the exact bytes of its body, and its signature is in a
// header with commas. Both reach the function as they were sent, whatever is in them.
func TestCaseH1_SignedBodiesArriveToTheByte(t *testing.T) {
	const signature = "t=1772368215,v1=aa==,v1=bb"
	s := mustServe(t, nil)
	for _, contentType := range []string{"application/json; charset=utf-8", "application/octet-stream"} {
		for _, body := range []string{
			`{"id":"evt_1"}`, " {\r\n\t\"id\" : 1 }\n\n", `{"a":"<&>\u003c\/"}`, `{"a":"é한😀"}`, "{\"a\":\"\u2028\u2029\ufeff\"}", "\x00\x7f",
		} {
			s.send(t, []string{
				"POST /v1/webhooks/stripe HTTP/1.1", "STRIPE-Signature: " + signature, "Content-Type: " + contentType,
			}, body)
			got := s.function.event(t)
			arrived := []byte(got.Body)
			if got.IsBase64Encoded {
				var err error
				if arrived, err = base64.StdEncoding.DecodeString(got.Body); err != nil {
					t.Fatal(err)
				}
			}
			if string(arrived) != body || got.Headers["stripe-signature"] != signature {
				t.Errorf("%s: body %q and signature %q, want %q and %q", contentType, arrived, got.Headers["stripe-signature"], body, signature)
			}
			if got.RequestContext.Authorizer != nil {
				t.Error("a webhook has an authorizer")
			}
		}
	}
}

// Case H3: the path is decoded before it is matched.
func TestCaseH3_Routes(t *testing.T) {
	const notFound = `{"message":"Not Found"}`
	tests := []struct {
		line string
		id   string // "" means that no route matches
	}{
		{"GET /v1/holds/hold_1", "hold_1"},
		{"GET /v1/holds/x%3Fadmin%3Dtrue", "x?admin=true"},
		{"GET /v1/holds/a%23b", "a#b"},
		{"GET /v1/holds/a%00b", "a\x00b"},
		{"GET /v1/holds/%E2%82%AC", "€"},
		{"GET /v1/holds/a%252Fb", "a%2Fb"},
		{"GET /v1/holds/a%2Fb", ""},
		{"GET /v1/holds/", ""},
		{"GET /v1/holds/hold_1/", ""},
		{"GET //v1/holds/hold_1", ""},
		{"GET /v1/holds/../holds/hold_1", ""},
		{"DELETE /v1/holds/hold_1", ""},
		{"HEAD /v1/health", ""},
		{"GET /", ""},
	}
	s := mustServe(t, nil)
	for _, test := range tests {
		s.function.payload = nil
		response, body := s.send(t, []string{test.line + " HTTP/1.1", "Authorization: " + s.token(t, topology.ScopeHolds)}, "")
		if test.id == "" {
			if strings.HasPrefix(test.line, "HEAD") {
				body = notFound
			}
			wantAnswer(t, response, body, http.StatusNotFound, notFound)
			if s.function.payload != nil {
				t.Errorf("%s reached the function", test.line)
			}
			continue
		}
		if got := s.function.event(t).PathParameters["hold_id"]; got != test.id {
			t.Errorf("%s: hold_id = %q, want %q", test.line, got, test.id)
		}
	}
}

func TestLimitsOfARequest(t *testing.T) {
	s := mustServe(t, nil)
	head := func(fill int) []string {
		return []string{"GET /v1/health HTTP/1.1", "X-Fill: " + strings.Repeat("x", fill)}
	}
	used := len("GET /v1/health HTTP/1.1\r\nX-Fill: \r\nHost: api.example.com:8080\r\nConnection: close\r\nContent-Length: 0\r\n")
	response, body := s.send(t, head(gateway.HeadBytesMax-used), "")
	wantAnswer(t, response, body, http.StatusNoContent, "")
	response, body = s.send(t, head(gateway.HeadBytesMax-used+1), "")
	wantAnswer(t, response, body, http.StatusRequestHeaderFieldsTooLarge, `{"message":"Request Header Fields Too Large"}`)

	post := []string{"POST /v1/holds HTTP/1.1", "Authorization: " + s.token(t, topology.ScopeHolds)}
	response, body = s.send(t, post, strings.Repeat("x", gateway.BodyBytesMax))
	wantAnswer(t, response, body, http.StatusNoContent, "")
	s.function.payload = nil
	request, err := http.NewRequest("POST", s.server.URL+"/v1/holds", strings.NewReader(strings.Repeat("x", gateway.BodyBytesMax+1)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", s.token(t, topology.ScopeHolds))
	recorder := httptest.NewRecorder()
	s.server.Config.Handler.ServeHTTP(recorder, request)
	wantAnswer(t, recorder.Result(), recorder.Body.String(), http.StatusRequestEntityTooLarge, `{"message":"Request Entity Too Large"}`)
	if s.function.payload != nil {
		t.Error("the oversize body reached the function")
	}
	response, body = s.send(t, []string{"GET /v1/health?a=%zz HTTP/1.1"}, "")
	wantAnswer(t, response, body, http.StatusBadRequest, `{"message":"Bad Request"}`)
}

func TestAnswersOfAFunction(t *testing.T) {
	const failed = `{"message":"Internal Server Error"}`
	tests := []struct {
		name, answer string
		status       int
		contentType  string
		body         string
	}{
		{"plain", `{"statusCode":409,"headers":{"content-type":"application/problem+json"},"body":"{}"}`, 409, "application/problem+json", "{}"},
		{"base64", `{"statusCode":200,"isBase64Encoded":true,"body":"aMOp"}`, 200, "text/plain; charset=utf-8", "hé"},
		{"no status code", `{"message":"hello"}`, 200, "application/json", `{"message":"hello"}`},
		{"a bare text", `"hello"`, 200, "application/json", `"hello"`},
		{"broken base64", `{"statusCode":200,"isBase64Encoded":true,"body":"%"}`, 500, "application/json", failed},
		{"not JSON", `hello`, 500, "application/json", failed},
		{"impossible status", `{"statusCode":9}`, 500, "application/json", failed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := mustServe(t, nil)
			s.function.answer = test.answer
			response, body := s.send(t, []string{"GET /v1/health HTTP/1.1"}, "")
			wantAnswer(t, response, body, test.status, test.body)
			if got := response.Header.Get("Content-Type"); got != test.contentType {
				t.Errorf("content type = %q, want %q", got, test.contentType)
			}
		})
	}
	s := mustServe(t, nil)
	s.function.answer = `{"statusCode":200,"cookies":["a=1","b=2"],"headers":{"retry-after":"1"}}`
	response, _ := s.send(t, []string{"GET /v1/health HTTP/1.1"}, "")
	if got := response.Header.Values("Set-Cookie"); !slices.Equal(got, []string{"a=1", "b=2"}) || response.Header.Get("Retry-After") != "1" {
		t.Errorf("header = %v", response.Header)
	}
}

// Case H8, the gateway's side: a function that takes too long is 503, one that fails
// is 500, and neither says why.
func TestCaseH8_FailuresOfAFunction(t *testing.T) {
	const failed, unavailable = `{"message":"Internal Server Error"}`, `{"message":"Service Unavailable"}`
	tests := []struct {
		name   string
		err    error
		status int
		body   string
	}{
		{"error", &lambdahost.FunctionError{Function: "api", Type: "errorString", Message: "secret"}, 500, failed},
		{"time-out", &lambdahost.TimeoutError{Function: "api", Timeout: time.Second}, 500, failed},
		{"crash", &lambdahost.CrashError{Function: "api", Cause: errors.New("exit status 1")}, 500, failed},
		{"throttled", lambdahost.ErrThrottled, 503, unavailable},
		{"closed", lambdahost.ErrClosed, 503, unavailable},
		{"too large", lambdahost.ErrPayloadTooLarge, 413, `{"message":"Request Entity Too Large"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := mustServe(t, nil)
			s.function.err = test.err
			response, body := s.send(t, []string{"GET /v1/health HTTP/1.1"}, "")
			wantAnswer(t, response, body, test.status, test.body)
		})
	}
	s := mustServe(t, func(c *gateway.Config) { c.IntegrationTimeout = time.Millisecond })
	s.function.waits = true
	response, body := s.send(t, []string{"GET /v1/health HTTP/1.1"}, "")
	wantAnswer(t, response, body, http.StatusServiceUnavailable, unavailable)
}

// Case H6: a test can send claims in forms that the gateway itself does not make.
func TestCaseH6_ClaimsOfOddTypesCanBeSent(t *testing.T) {
	s := mustServe(t, func(c *gateway.Config) {
		c.ClaimsAsSent = func(claims map[string]any) map[string]any { return claims }
	})
	s.send(t, []string{"GET /v1/holds HTTP/1.1", "Authorization: " + s.token(t, topology.ScopeHolds)}, "")
	for _, want := range []string{`"groups":["ops","support"]`, fmt.Sprintf(`"iat":%d`, now.Unix())} {
		if !strings.Contains(string(s.function.payload), want) {
			t.Errorf("event = %s, want %s in it", s.function.payload, want)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	valid := gateway.Config{
		Routes: topology.Routes(),
		Functions: map[topology.FunctionName]gateway.Invoke{
			topology.FunctionAPI: (&function{}).invoke, topology.FunctionWebhook: (&function{}).invoke,
		},
		Authorizer:         &gateway.Authorizer{},
		IntegrationTimeout: time.Second, Now: time.Now, Log: slog.Default(), ClaimsAsSent: gateway.RenderClaims,
	}
	if _, err := gateway.New(valid); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*gateway.Config){
		"no function":   func(c *gateway.Config) { c.Functions = nil },
		"no authorizer": func(c *gateway.Config) { c.Authorizer = nil },
		"no time-out":   func(c *gateway.Config) { c.IntegrationTimeout = 0 },
		"no clock":      func(c *gateway.Config) { c.Now = nil },
		"no log":        func(c *gateway.Config) { c.Log = nil },
		"no rendering":  func(c *gateway.Config) { c.ClaimsAsSent = nil },
	} {
		config := valid
		spoil(&config)
		if _, err := gateway.New(config); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
