package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
)

// router is the mux that the generated code registers its operations on. It puts the
// checks that every route has in front of each of them.
type router struct {
	api      *API
	contract *Contract
	routes   map[string]topology.Route
	mux      *http.ServeMux
	failures []error
}

var _ ServeMux = (*router)(nil)

// newRouter registers every operation. It returns an error unless the operations of the
// generated server are exactly the api function's routes in the topology. A route of
// another function is described in the document and answered there; here there is none.
func newRouter(a *API, contract *Contract) (*router, error) {
	r := &router{api: a, contract: contract, routes: make(map[string]topology.Route), mux: http.NewServeMux()}
	for _, route := range topology.Routes() {
		if route.Function == topology.FunctionAPI {
			r.routes[route.Method+" "+route.Path] = route
		}
	}
	HandlerWithOptions(a, StdHTTPServerOptions{BaseRouter: r, ErrorHandlerFunc: bindingFailed})
	for pattern, route := range r.routes {
		// A path with its {names} in it is a path that the pattern matches.
		own := &http.Request{Method: route.Method, URL: urlOf(route.Path, "")}
		if _, registered := r.mux.Handler(own); registered != pattern {
			r.failures = append(r.failures, fmt.Errorf("the document has no operation for the route %s", pattern))
		}
	}
	r.mux.HandleFunc("/", func(_ http.ResponseWriter, req *http.Request) { exchangeOf(req).fail(routeNotFound()) })
	return r, errors.Join(r.failures...)
}

// HandleFunc registers one operation of the generated code.
func (r *router) HandleFunc(pattern string, handle func(http.ResponseWriter, *http.Request)) {
	route, known := r.routes[pattern]
	if !known {
		r.failures = append(r.failures, fmt.Errorf("the operation %s is not a route of the topology", pattern))
		return
	}
	validation, known := r.contract.validations[pattern]
	if !known {
		r.failures = append(r.failures, fmt.Errorf("the document has no operation %s", pattern))
		return
	}
	r.mux.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) {
		if err := r.admit(route, validation, req); err != nil {
			exchangeOf(req).fail(err)
			return
		}
		ctx := telemetry.WithCorrelation(req.Context(), exchangeOf(req).correlation()...)
		ctx, cancel := context.WithTimeout(ctx, budgetOf(pattern))
		defer cancel()
		handle(w, req.WithContext(ctx))
	})
}

// budgetOf bounds the work of one request on the route. Where the payment provider is
// waited for, its budget comes on top, so that a slow provider leaves the time to record
// what it said.
func budgetOf(pattern string) time.Duration {
	switch pattern {
	case "POST /v1/holds/{hold_id}/payment", "POST /v1/reservations/{reservation_id}/payment-session":
		return topology.DatabaseBudget + topology.ProviderBudget
	default:
		return topology.DatabaseBudget
	}
}

// ServeHTTP hands the request to its operation.
func (r *router) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.mux.ServeHTTP(w, req) }

// admit checks what can be checked without knowing the operation's meaning. The token
// comes first, so that who may not call learns nothing from how a body is refused.
func (r *router) admit(route topology.Route, v *validation, req *http.Request) error {
	if req.Method != route.Method {
		// The mux lets HEAD through where GET is; the gateway has no such route.
		return routeNotFound()
	}
	x := exchangeOf(req)
	x.route = route.Path
	x.note(req.PathValue("hold_id"), req.PathValue("reservation_id"), req.PathValue("case_id"))
	if err := x.caller.Principal.mayUse(route.Scopes, r.api.operatorGroup); err != nil {
		return err
	}
	if err := r.api.ownerRates.admit(route, x.caller.Principal, r.api.clock.Now()); err != nil {
		return err
	}
	var err error
	if x.body, err = readBody(req); err != nil {
		return err
	}
	return v.check(req, x.body)
}

// bindingFailed answers a parameter that the document allows and its Go type does not,
// such as a date that no calendar has.
func bindingFailed(_ http.ResponseWriter, r *http.Request, err error) {
	name := ""
	if e := (*InvalidParamFormatError)(nil); errors.As(err, &e) {
		name = e.ParamName
	}
	exchangeOf(r).fail(invalid("query", name, "this value is out of range, or not written as described"))
}
