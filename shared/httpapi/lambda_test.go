package httpapi_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"holdfast/shared/httpapi"
)

// Case H1: encoded bodies were read as plain text.
func TestCaseH1_BodiesInBase64(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 100)
	post := func(body string, isBase64 bool) answer {
		return f.do(call{method: http.MethodPost, path: "/v1/holds", body: body, isBase64: isBase64, claims: owner("U"), headers: f.key()})
	}
	text, coded := post(line("seat", 1), false), post(encoded(line("seat", 1)), true)
	text.want(http.StatusCreated)
	coded.want(http.StatusCreated)
	for _, broken := range []string{"!!!!", encoded(line("seat", 1)) + "*", encoded(line("seat", 1))[:21]} {
		post(broken, true).wantProblem(http.StatusBadRequest, "invalid_request")
	}
	sized := func(bytes int) string {
		body := line("seat", 1)
		return body + strings.Repeat(" ", bytes-len(body))
	}
	for _, isBase64 := range []bool{false, true} {
		sent := func(body string) string {
			if isBase64 {
				return encoded(body)
			}
			return body
		}
		post(sent(sized(httpapi.BodyBytesMax)), isBase64).want(http.StatusCreated)
		post(sent(sized(httpapi.BodyBytesMax+1)), isBase64).wantProblem(http.StatusRequestEntityTooLarge, "body_too_large")
	}
	f.counters("seat", 96, 4, 0, 100)
}

// Case H3: an encoded character in a path reached another resource. The gateway has
// decoded the path once already.
func TestCaseH3_OddPaths(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 5)
	hold := f.mustHold(owner("U"), "seat", 1)
	for path, code := range map[string]string{
		"a/b":                   "route_not_found", // a%2Fb
		"x?admin=true":          "invalid_request", // x%3Fadmin%3Dtrue
		"a#b":                   "invalid_request", // a%23b
		"a\x00b":                "invalid_request", // a%00b
		"€":                     "invalid_request", // %E2%82%AC
		"a%2Fb":                 "invalid_request", // a%252Fb
		"..":                    "route_not_found",
		"../holds":              "route_not_found",
		hold + "/":              "route_not_found",
		"/" + hold:              "route_not_found",
		"./" + hold:             "route_not_found",
		hold + "\n":             "invalid_request",
		hold + " ":              "invalid_request",
		hold + ";x=y":           "invalid_request",
		strings.Repeat("h", 65): "invalid_request",
		"%68" + hold[1:]:        "invalid_request", // decoded again it would be the hold
		hold + "/confirm/x":     "route_not_found",
	} {
		a := f.get("/v1/holds/"+path, "", owner("U"))
		status := http.StatusBadRequest
		if code == "route_not_found" {
			status = http.StatusNotFound
		}
		if a.status != status || a.text("code") != code || a.headers["Location"] != "" {
			t.Errorf("%q: %d %s %v", path, a.status, a.body, a.headers)
		}
	}
	for _, path := range []string{"", "v1/health", "//v1/health", "/v1/health/", "/v1", "/", "/v1/HOLDS", "*"} {
		f.do(call{method: http.MethodGet, path: path, claims: owner("U")}).wantProblem(http.StatusNotFound, "route_not_found")
	}
	for _, method := range []string{http.MethodHead, http.MethodDelete, http.MethodOptions, http.MethodConnect, "get", ""} {
		f.do(call{method: method, path: "/v1/health"}).wantProblem(http.StatusNotFound, "route_not_found")
	}
}

// A named stage is in the path and is taken off once; what only looks like one is not.
func TestStageIsTakenOffThePath(t *testing.T) {
	f := newFixture(t)
	for _, c := range []call{
		{path: "/v1/health", stage: "$default"},
		{path: "/dev/v1/health", stage: "dev"},
		{path: "/v1/health", stage: "dev"},
		{path: "/v1/health", stage: "v"},
	} {
		c.method = http.MethodGet
		f.do(c).want(http.StatusOK)
	}
	for _, c := range []call{
		{path: "/dev/v1/health", stage: "$default"},
		{path: "/dev/dev/v1/health", stage: "dev"},
		{path: "/devv1/health", stage: "dev"},
	} {
		c.method = http.MethodGet
		f.do(c).wantProblem(http.StatusNotFound, "route_not_found")
	}
}

// Case H4: repeated headers and query values were joined into one.
func TestCaseH4_JoinedValues(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 5)
	f.create(owner("U"), line("seat", 1), keyed("a,b")).wantProblem(http.StatusBadRequest, "invalid_request")
	f.counters("seat", 5, 0, 0, 5)
	for _, query := range []string{"status=HELD&status=EXPIRED", "status=HELD,EXPIRED", "status=HELD%2CEXPIRED", "limit=1&limit=2", "status=HELD&status=HELD"} {
		a := f.get("/v1/holds", query, owner("U"))
		a.wantProblem(http.StatusBadRequest, "invalid_request")
		if told := strings.Contains(a.body, "more than once"); told != strings.Contains(query, "&") {
			t.Errorf("%s: %s", query, a.body)
		}
	}
}

// Case H6: unusual claim types broke every request or gave wrong rights.
func TestCaseH6_ClaimTypes(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 5)
	hold := f.mustHold(owner("U"), "seat", 1)
	allowed := map[string]any{
		"as rendered":       "[ops support]",
		"alone as rendered": "[ops]",
		"one name":          "ops",
		"JSON text":         `["support","ops"]`,
		"a true list":       []any{"support", "ops"},
		"a mixed list":      []any{1, nil, true, "ops"},
	}
	refused := map[string]any{
		"one odd name":          []any{"ops support]"},
		"one odd name rendered": "[ops support]]",
		"a name with spaces":    "ops support",
		"a list in a list":      []any{[]any{"ops"}},
		"not closed":            "[ops support",
		"part of a name":        "[devops opsy]",
		"JSON text, odd":        `["ops support"]`,
		"empty":                 "",
		"empty list":            []any{},
		"rendered empty":        "[]",
		"a number":              7,
		"a boolean":             true,
		"an object":             map[string]any{"ops": true},
		"null":                  nil,
		"other case":            "OPS",
	}
	odd := map[string]any{
		"sub": "olga", "scope": "operate", "exp": 1795694400, "iat": 1.7956944e9, "email_verified": true,
		"address": map[string]any{"country": "KR"}, "amr": []any{"pwd", 1}, "nothing": nil,
	}
	try := func(claim string, groups any, status int) {
		t.Helper()
		claims := maps.Clone(odd)
		claims[claim] = groups
		for _, path := range []string{"/v1/holds/" + hold, "/v1/slots/seat"} {
			if a := f.get(path, "", claims); a.status != status {
				t.Errorf("%s = %v: GET %s answers %d, want %d: %s", claim, groups, path, a.status, status, a.body)
			}
		}
		if a := f.get("/v1/holds", "owner=U", claims); a.status != status {
			t.Errorf("%s = %v: the list answers %d, want %d", claim, groups, a.status, status)
		}
	}
	for _, claim := range []string{"groups", "cognito:groups"} {
		for _, groups := range allowed {
			try(claim, groups, http.StatusOK)
		}
		for _, groups := range refused {
			try(claim, groups, http.StatusForbidden)
		}
	}
	try("no groups at all", "x", http.StatusForbidden)
	f.counters("seat", 4, 1, 0, 5)
}

// The other claims may be odd as well; a right comes only from what is understood.
func TestScopesAndSubjects(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		name   string
		claims map[string]any
		status int
	}{
		{"one scope", map[string]any{"sub": "U", "scope": "holds"}, http.StatusOK},
		{"several", map[string]any{"sub": "U", "scope": "openid holds"}, http.StatusOK},
		{"a list", map[string]any{"sub": "U", "scp": []any{"openid", "holds"}}, http.StatusOK},
		{"a rendered list", map[string]any{"sub": "U", "scp": "[openid holds]"}, http.StatusOK},
		{"no scope", map[string]any{"sub": "U"}, http.StatusForbidden},
		{"another scope", map[string]any{"sub": "U", "scope": "catalog confirm"}, http.StatusForbidden},
		{"part of a scope", map[string]any{"sub": "U", "scope": "holdsx"}, http.StatusForbidden},
		{"a number as scope", map[string]any{"sub": "U", "scope": 1}, http.StatusForbidden},
		{"no subject", map[string]any{"scope": "holds"}, http.StatusUnauthorized},
		{"empty subject", map[string]any{"sub": "", "scope": "holds"}, http.StatusUnauthorized},
		{"a number as subject", map[string]any{"sub": 17, "scope": "holds"}, http.StatusUnauthorized},
		{"null as subject", map[string]any{"sub": nil, "scope": "holds"}, http.StatusUnauthorized},
		{"a list as subject", map[string]any{"sub": []any{"U"}, "scope": "holds"}, http.StatusUnauthorized},
		{"a subject too long", map[string]any{"sub": strings.Repeat("u", 256), "scope": "holds"}, http.StatusUnauthorized},
		{"no authorizer", nil, http.StatusUnauthorized},
	} {
		if a := f.get("/v1/holds", "", c.claims); a.status != c.status {
			t.Errorf("%s: status %d, want %d: %s", c.name, a.status, c.status, a.body)
		}
	}
}

// What is no event of an HTTP API is answered as a fault, not with a panic or an error
// that the gateway would turn into an answer of its own.
func TestOddEvents(t *testing.T) {
	f := newFixture(t)
	for _, event := range []string{``, `null`, `[]`, `"x"`, `{`, `{}`, `{"headers":[]}`, `{"requestContext":7}`, `{"rawPath":"/v1/health"}`} {
		response, err := f.api.Lambda(t.Context(), json.RawMessage(event))
		if err != nil || response.StatusCode < 400 || response.Headers["Content-Type"] != "application/problem+json" {
			t.Errorf("%s: %v %v", event, response, err)
		}
	}
}

// The gateway's request id names the request everywhere; an odd one is replaced.
func TestRequestIDIsTheGateways(t *testing.T) {
	f := newFixture(t)
	a := f.get("/v1/nothing", "", nil)
	if a.text("request_id") != "GaTeWaY-1=" || !strings.Contains(f.logs.String(), `"request_id":"GaTeWaY-1="`) {
		t.Errorf("answer %s, logs %s", a.body, f.logs.String())
	}
	event := strings.Replace(string(call{method: "GET", path: "/v1/nothing"}.event(t)), "GaTeWaY-1=", `<b>\u0000`, 1)
	response, err := f.api.Lambda(t.Context(), json.RawMessage(event))
	if err != nil || !strings.Contains(response.Body, `"request_id":"request_`) {
		t.Errorf("answer %s, %v", response.Body, err)
	}
}
