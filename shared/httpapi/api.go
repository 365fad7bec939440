package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/skew"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
)

// Options is what an API needs.
type Options struct {
	Store  ledger.Store
	Clock  system.Clock
	Random system.Random
	// Provider is asked for payments. Without one, every route that needs it is answered
	// with payment_provider_unavailable.
	Provider payment.Provider
	// Waiting lists the parked holds and the quarantined events. Without it the review queue
	// has none.
	Waiting commands.Waiting
	// Gauge measures Clock by the answers that Store gets. Without one the clock is trusted.
	Gauge *skew.Gauge
	// OperatorGroup is the group whose members, with the scope operate, are operators.
	OperatorGroup string
	// OwnerRate is how many requests of one owner this API takes. The zero value limits nobody.
	OwnerRate OwnerRate
	// Logger gets one line for each request.
	Logger *slog.Logger
	// Fared is where Store counts how it fares, for the report of this API; the zero value
	// stands for a store that is not counted.
	Fared telemetry.CommandTally
	// Metrics takes what was counted, and tells of faults of ours and of a clock that is off;
	// nil tells nothing.
	Metrics Metrics
	// Contract may be one that is shared by several APIs; nil loads one.
	Contract *Contract
}

// Metrics takes what is counted. A telemetry.Emitter is one.
type Metrics interface {
	Emit(properties telemetry.Properties, measurements ...telemetry.Measurement) error
}

// Contract is the OpenAPI document and what is prepared from it. Preparing takes longer
// than thousands of requests, so who needs many APIs loads one Contract for all. It is
// safe for concurrent use.
type Contract struct {
	text        []byte
	validations map[string]*validation // by method and path
}

// LoadContract reads the document and prepares a check for each of its operations.
func LoadContract() (*Contract, error) {
	document, err := GetSpec()
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	text, err := GetSpecJSON()
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	c := &Contract{text: text, validations: make(map[string]*validation)}
	for path, item := range document.Paths.Map() {
		for method := range item.Operations() {
			if c.validations[method+" "+path], err = newValidation(document, method, path); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// API answers the requests of the contract. Use New; it is safe for concurrent use.
type API struct {
	store         ledger.Store
	commands      *commands.Commands
	payments      *commands.Payments // nil without a provider
	reviews       *commands.Reviews
	clock         system.Clock
	gauge         *skew.Gauge // nil when the clock is trusted
	skewReport    skewReport
	random        system.Random
	operatorGroup string
	logger        *slog.Logger
	metrics       Metrics
	contract      *Contract
	router        *router
	ownerRates    *ownerRates
	seen          *availabilityCache
	tally         *tally
}

var (
	_ http.Handler    = (*API)(nil)
	_ ServerInterface = (*API)(nil)
)

// New builds an API with its routes and validators. It returns an error if the document
// and the topology do not fit each other.
func New(o Options) (*API, error) {
	contract, err := o.Contract, error(nil)
	if contract == nil {
		if contract, err = LoadContract(); err != nil {
			return nil, err
		}
	}
	counts := &tally{CommandTally: o.Fared}
	if o.Fared.Tally == nil || o.Fared.Spread == nil {
		counts.CommandTally = telemetry.NewCommandTally()
	}
	a := &API{
		store: o.Store, tally: counts,
		commands: commands.NewCounted(o.Store, o.Clock, o.Random, counts),
		clock:    o.Clock, gauge: o.Gauge, random: o.Random, operatorGroup: o.OperatorGroup, logger: o.Logger, metrics: o.Metrics,
		contract: contract, ownerRates: newOwnerRates(o.OwnerRate), seen: newAvailabilityCache(),
	}
	a.reviews = commands.NewReviews(a.commands, o.Waiting)
	if o.Provider != nil {
		a.payments = commands.NewPayments(a.commands, o.Provider)
	}
	if a.router, err = newRouter(a, contract); err != nil {
		return nil, err
	}
	return a, nil
}

// ServeHTTP answers one request, within the budget of its route. It never panics: a panic
// of a handler is a fault of ours, is logged, and is answered as one.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	x := &exchange{
		writer: w, caller: callerOf(ctx), method: r.Method,
		began: a.clock.Now(), route: "none",
	}
	if x.caller.RequestID == "" {
		x.caller.RequestID = ledger.NewRequestID(a.random.Bits128())
	}
	defer a.report(ctx, x)
	defer func() {
		if cause := recover(); cause != nil {
			x.fail(fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
		}
	}()
	if !path.IsAbs(r.URL.Path) || path.Clean(r.URL.Path) != r.URL.Path {
		// net/http would redirect to the clean path, and a client would follow to another
		// resource than it named (case H3).
		x.fail(routeNotFound())
		return
	}
	a.router.ServeHTTP(w, r.WithContext(context.WithValue(ctx, exchangeKey{}, x)))
}

func routeNotFound() error {
	return &refusal{code: codeRouteNotFound, detail: "nothing answers to this method and path; GET /v1/openapi.json lists what does"}
}

// GetHealth answers without looking at the database.
func (a *API) GetHealth(_ http.ResponseWriter, r *http.Request) {
	exchangeOf(r).answerJSON(http.StatusOK, Health{Status: "ok"})
}

// GetDocument answers with the contract.
func (a *API) GetDocument(_ http.ResponseWriter, r *http.Request) {
	exchangeOf(r).answer(http.StatusOK, a.contract.text)
}

// report tells of a request that has been answered: with its line in the log, and if it
// ended in a fault of ours, with a count of one. Every such fault is a mistake in this
// code or its deployment, so a single one is worth an alarm (case G1). A clock that is off
// is told with the request that found it so, and what was counted of many requests with the
// one that finds it due.
func (a *API) report(ctx context.Context, x *exchange) {
	if x.code == ledger.CodeInternal && a.metrics != nil {
		if err := a.metrics.Emit(telemetry.Properties{telemetry.KeyRequestID: string(x.caller.RequestID)},
			telemetry.Count(telemetry.MetricAPIInternalFaults, 1)); err != nil {
			x.causes = append(x.causes, fmt.Errorf("count the fault: %w", err))
		}
	}
	if err := a.reportSkew(x.caller.RequestID); err != nil {
		x.causes = append(x.causes, err)
	}
	if err := a.reportTally(x); err != nil {
		x.causes = append(x.causes, err)
	}
	a.log(ctx, x)
}

// log writes the one line of a request. It has nothing of the headers, the query or the
// body, and of the caller only a hash (promise P12).
func (a *API) log(ctx context.Context, x *exchange) {
	attributes := append(x.correlation(),
		slog.String("method", x.method),
		slog.String("route", x.route),
		slog.Int("status", x.status),
		slog.String("code", string(x.code)),
		slog.Float64("duration_ms", float64(a.clock.Now().Sub(x.began).Microseconds())/1000),
		slog.String("subject_hash", subjectHash(x.caller.Principal.Subject)))
	level := slog.LevelInfo
	if x.replayed {
		attributes = append(attributes, slog.Bool("replayed", true))
	}
	if err := errors.Join(x.causes...); err != nil {
		level = slog.LevelError
		attributes = append(attributes, slog.String("error", err.Error()))
	}
	a.logger.LogAttrs(ctx, level, "request", attributes...)
}
