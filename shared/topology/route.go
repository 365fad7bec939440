package topology

// Scope is an OAuth scope that a token may carry.
type Scope string

// The scopes.
const (
	ScopeHolds   Scope = "holds"   // an owner: makes, reads, pays and cancels own holds
	ScopeConfirm Scope = "confirm" // a trusted service: confirms holds it has been paid for, and delivers
	ScopeCatalog Scope = "catalog" // defines, prices, opens and closes slots
	ScopeOperate Scope = "operate" // an operator: reads everything; also needs the operator group
)

// Scopes returns every scope, in a fixed order. The caller owns the result.
func Scopes() []Scope {
	return []Scope{ScopeHolds, ScopeConfirm, ScopeCatalog, ScopeOperate}
}

// Route is one route of the HTTP API.
type Route struct {
	Method string
	// Path in the gateway's own notation, with {names} for path parameters.
	Path string
	// Scopes lists the scopes of which a token must carry at least one. An empty
	// list means that the route is public: it has no authorizer.
	Scopes []Scope
	// RequestsPerSecond and Burst are the route's throttle at the gateway.
	RequestsPerSecond, Burst int
	Function                 FunctionName
}

// Routes returns every HTTP route, in a fixed order. The OpenAPI document has the
// same list; a test compares them. The caller owns the result.
func Routes() []Route {
	const (
		readPerSecond, readBurst   = 1000, 500
		writePerSecond, writeBurst = 500, 250
		batchPerSecond, batchBurst = 50, 30 // whole numbers also at a tenth and at half of it, as the smaller stages have
	)
	read := func(method, path string, scopes ...Scope) Route {
		return Route{method, path, scopes, readPerSecond, readBurst, FunctionAPI}
	}
	write := func(method, path string, scopes ...Scope) Route {
		return Route{method, path, scopes, writePerSecond, writeBurst, FunctionAPI}
	}
	return []Route{
		read("GET", "/v1/health"),
		read("GET", "/v1/openapi.json"),
		read("GET", "/v1/availability"),
		// Each of these requests may write a hundred slots.
		{"POST", "/v1/slots/batch", []Scope{ScopeCatalog}, batchPerSecond, batchBurst, FunctionAPI},
		write("PUT", "/v1/slots/{slot_id}", ScopeCatalog),
		write("PATCH", "/v1/slots/{slot_id}", ScopeCatalog),
		read("GET", "/v1/slots/{slot_id}", ScopeCatalog, ScopeOperate),
		write("PUT", "/v1/policies/{resource_type}", ScopeCatalog),
		read("GET", "/v1/policies/{resource_type}", ScopeCatalog, ScopeOperate),
		write("PUT", "/v1/policies/{resource_type}/{resource_id}", ScopeCatalog),
		read("GET", "/v1/policies/{resource_type}/{resource_id}", ScopeCatalog, ScopeOperate),
		write("POST", "/v1/holds", ScopeHolds),
		read("GET", "/v1/holds", ScopeHolds, ScopeOperate),
		read("GET", "/v1/holds/{hold_id}", ScopeHolds, ScopeConfirm, ScopeOperate),
		write("PATCH", "/v1/holds/{hold_id}", ScopeHolds),
		write("POST", "/v1/holds/{hold_id}/extend", ScopeHolds),
		write("POST", "/v1/holds/{hold_id}/confirm", ScopeConfirm),
		write("POST", "/v1/holds/{hold_id}/return", ScopeConfirm),
		write("POST", "/v1/holds/{hold_id}/cancel", ScopeHolds),
		write("POST", "/v1/holds/{hold_id}/payment", ScopeHolds),
		read("GET", "/v1/reservations", ScopeHolds, ScopeOperate),
		read("GET", "/v1/reservations/{reservation_id}", ScopeHolds, ScopeConfirm, ScopeOperate),
		write("POST", "/v1/reservations/{reservation_id}/payment-session", ScopeHolds),
		write("POST", "/v1/reservations/{reservation_id}/cancel", ScopeHolds, ScopeOperate),
		write("POST", "/v1/reservations/{reservation_id}/delivery", ScopeConfirm),
		read("GET", "/v1/reviews", ScopeOperate),
		read("GET", "/v1/reviews/{case_id}", ScopeOperate),
		write("POST", "/v1/reviews/{case_id}/claim", ScopeOperate),
		write("POST", "/v1/reviews/{case_id}/decision", ScopeOperate),
		// The signature on the body is the authority, and only the function can check it.
		{"POST", "/v1/webhooks/stripe", nil, writePerSecond, writeBurst, FunctionWebhook},
	}
}
