package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"

	"holdfast/scripts/internal/lambdahost"
	"holdfast/shared/topology"
)

// The limits of an HTTP API.
const (
	HeadBytesMax = 10_240   // request line and headers
	BodyBytesMax = 10 << 20 // payload
)

// Invoke gives an event to a function and returns its answer. The context ends when
// the gateway stops waiting; the function may go on.
type Invoke func(ctx context.Context, payload []byte) ([]byte, error)

// Config describes one gateway.
type Config struct {
	Routes    []topology.Route
	Functions map[topology.FunctionName]Invoke
	// Authorizer guards every route that has scopes.
	Authorizer *Authorizer
	// IntegrationTimeout is how long the gateway waits for a function.
	IntegrationTimeout time.Duration
	Now                func() time.Time
	Log                *slog.Logger
	// Measured is told each number that API Gateway would count of a request; nil means nobody
	// is.
	Measured func(metric Metric, value float64)
	// ClaimsAsSent turns the claims of a token into what the function is given. It is
	// RenderClaims, except in a test of what else a function might meet.
	ClaimsAsSent func(claims map[string]any) map[string]any
}

// Gateway is an http.Handler. It must not stand behind an http.ServeMux, which would
// redirect paths that a real gateway passes on.
type Gateway struct {
	config Config
	routes []route
}

// New checks that every route has its function and, where it has scopes, an
// authorizer.
func New(config Config) (*Gateway, error) {
	if config.IntegrationTimeout <= 0 || config.Now == nil || config.Log == nil || config.ClaimsAsSent == nil {
		return nil, errors.New("gateway: time-out, clock, log and rendering of claims are all needed")
	}
	gateway := &Gateway{config: config}
	if gateway.config.Measured == nil {
		gateway.config.Measured = func(Metric, float64) {}
	}
	for _, described := range config.Routes {
		parsed := parseRoute(described)
		if config.Functions[described.Function] == nil {
			return nil, fmt.Errorf("gateway: route %s: no function %q", parsed.key, described.Function)
		}
		if len(described.Scopes) > 0 && config.Authorizer == nil {
			return nil, fmt.Errorf("gateway: route %s has scopes, but there is no authorizer", parsed.key)
		}
		gateway.routes = append(gateway.routes, parsed)
	}
	return gateway, nil
}

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// It closes the connection of whoever sends more, for which it needs the writer itself.
	r.Body = http.MaxBytesReader(w, r.Body, BodyBytesMax)
	noted := &notedStatus{ResponseWriter: w, status: http.StatusOK}
	g.serve(noted, r)
	g.measure(noted.status)
}

func (g *Gateway) serve(w http.ResponseWriter, r *http.Request) {
	id := uuid.NewString()
	w.Header().Set("Apigw-Requestid", id)
	if headBytes(r) > HeadBytesMax {
		refuse(w, http.StatusRequestHeaderFieldsTooLarge, "Request Header Fields Too Large")
		return
	}
	matched, parameters, found := g.match(r)
	if !found {
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	request := incoming{http: r, id: id, at: g.config.Now(), route: matched, parameters: parameters}
	if len(matched.Scopes) > 0 {
		claims, err := g.config.Authorizer.Authorize(r.Header.Values("Authorization"), matched.Scopes)
		if err != nil {
			refuseToken(w, err, matched.Scopes)
			return
		}
		request.claims = g.config.ClaimsAsSent(claims)
	}
	body, err := io.ReadAll(r.Body)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		refuse(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
		return
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "Bad Request")
		return
	}
	request.body = body
	g.integrate(w, request)
}

// integrate calls the function and writes its answer.
func (g *Gateway) integrate(w http.ResponseWriter, request incoming) {
	event, err := request.event()
	if err != nil {
		refuse(w, http.StatusBadRequest, "Bad Request")
		return
	}
	ctx, cancel := context.WithTimeout(request.http.Context(), g.config.IntegrationTimeout)
	defer cancel()
	answer, err := g.config.Functions[request.route.Function](ctx, event)
	if err == nil {
		err = writeAnswer(w, answer)
	}
	if err == nil {
		return
	}
	g.config.Log.Warn("integration failed", "route", request.route.key, "request_id", request.id, "error", err)
	switch {
	case errors.Is(err, lambdahost.ErrPayloadTooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, "Request Entity Too Large")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, lambdahost.ErrThrottled),
		errors.Is(err, lambdahost.ErrClosed):
		refuse(w, http.StatusServiceUnavailable, "Service Unavailable")
	default:
		refuse(w, http.StatusInternalServerError, "Internal Server Error")
	}
}

// headBytes is the size of request line and headers as they came over the wire.
func headBytes(r *http.Request) int {
	size := len(r.Method) + len(r.RequestURI) + len(r.Proto) + len("  \r\n")
	size += len("Host: \r\n") + len(r.Host)
	for name, values := range r.Header {
		for _, value := range values {
			size += len(name) + len(value) + len(": \r\n")
		}
	}
	return size
}
