package localrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"holdfast/scripts/internal/gateway"
	"holdfast/shared/topology"
)

const (
	// tokenLife is longer than any run of tests or of a demo.
	tokenLife = 2 * time.Hour
	// answerMax is longer than the gateway waits for a function.
	answerMax = topology.IntegrationTimeout + 5*time.Second
	// answerBytesMax bounds an answer that is read.
	answerBytesMax = 10 << 20
	// connectionsMax keeps a connection for each of many callers at once.
	connectionsMax = 256
)

// Token returns a token that the gateway accepts.
func (s *System) Token(request gateway.TokenRequest) (string, error) {
	return s.issuer.Token(request, time.Now())
}

// Caller makes requests with one token. It is safe for concurrent use.
type Caller struct {
	baseURL string
	token   string
	client  *http.Client
}

// Caller returns a caller of this name with these scopes. One with ScopeOperate is a member
// of the operator group.
func (s *System) Caller(subject string, scopes ...topology.Scope) (*Caller, error) {
	request := gateway.TokenRequest{Subject: subject, Scopes: scopes, Life: tokenLife}
	for _, scope := range scopes {
		if scope == topology.ScopeOperate {
			request.Groups = []string{OperatorGroup}
		}
	}
	token, err := s.Token(request)
	if err != nil {
		return nil, err
	}
	return &Caller{baseURL: s.BaseURL, token: token, client: s.client}, nil
}

// newClient returns a client that keeps its connections, so that a crowd of buyers costs
// requests and not connections.
func newClient() *http.Client {
	return &http.Client{
		Timeout:   answerMax,
		Transport: &http.Transport{MaxIdleConns: connectionsMax, MaxIdleConnsPerHost: connectionsMax},
	}
}

// Request is one request to the HTTP API.
type Request struct {
	Method, Path string
	// Key is the Idempotency-Key; empty leaves the header out.
	Key string
	// Body is sent as JSON; empty sends none.
	Body string
	// Header has what else is sent.
	Header http.Header
}

// Answer is what came back.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do makes the request. Its error says that no whole answer came; what the request did then
// is unknown.
func (c *Caller) Do(ctx context.Context, request Request) (answer Answer, err error) {
	made, err := http.NewRequestWithContext(ctx, request.Method, c.baseURL+request.Path, strings.NewReader(request.Body))
	if err != nil {
		return Answer{}, err
	}
	for name, values := range request.Header {
		made.Header[name] = values
	}
	if c.token != "" && made.Header.Get("Authorization") == "" {
		made.Header.Set("Authorization", "Bearer "+c.token)
	}
	if request.Key != "" {
		made.Header.Set("Idempotency-Key", request.Key)
	}
	if request.Body != "" && made.Header.Get("Content-Type") == "" {
		made.Header.Set("Content-Type", "application/json")
	}
	response, err := c.client.Do(made)
	if err != nil {
		return Answer{}, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMax))
	if err != nil {
		return Answer{}, fmt.Errorf("%s %s: read the answer: %w", request.Method, request.Path, err)
	}
	return Answer{Status: response.StatusCode, Header: response.Header, Body: body}, nil
}

// Decode reads the body, which must be JSON, into value.
func (a Answer) Decode(value any) error {
	if err := json.Unmarshal(a.Body, value); err != nil {
		return fmt.Errorf("answer %d %.200q: %w", a.Status, a.Body, err)
	}
	return nil
}

// ProblemCode is the code of an answer that is a problem, and otherwise empty.
func (a Answer) ProblemCode() string {
	var problem struct {
		Code string `json:"code"`
	}
	if a.Header.Get("Content-Type") != "application/problem+json" || a.Decode(&problem) != nil {
		return ""
	}
	return problem.Code
}
