package topology_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"holdfast/shared/topology"
)

// The account's throttle at the gateway. Source:
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html
const accountRequestsPerSecond, accountBurst = 10000, 5000

func TestRoutesAreUnique(t *testing.T) {
	parameter := regexp.MustCompile(`\{[^}]*\}`)
	seen := map[string]bool{}
	for _, r := range topology.Routes() {
		// Two routes that differ only in a parameter's name are one to the gateway.
		key := r.Method + " " + parameter.ReplaceAllString(r.Path, "{}")
		if seen[key] {
			t.Errorf("%s %s is listed twice", r.Method, r.Path)
		}
		seen[key] = true
	}
}

func TestRoutesAreWellFormed(t *testing.T) {
	methods := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	path := regexp.MustCompile(`^/v1(/([a-z]+(-[a-z]+)*(\.json)?|\{[a-z]+(_[a-z]+)*\}))+$`)
	for _, r := range topology.Routes() {
		if !slices.Contains(methods, r.Method) || !path.MatchString(r.Path) {
			t.Errorf("malformed route %q %q", r.Method, r.Path)
		}
		if r.RequestsPerSecond < 1 || r.RequestsPerSecond > accountRequestsPerSecond ||
			r.Burst < 1 || r.Burst > accountBurst {
			t.Errorf("%s %s: throttle %d/s, burst %d", r.Method, r.Path, r.RequestsPerSecond, r.Burst)
		}
	}
}

func TestEveryScopeIsKnownAndUsed(t *testing.T) {
	used := map[topology.Scope]bool{}
	for _, r := range topology.Routes() {
		for _, scope := range r.Scopes {
			if !slices.Contains(topology.Scopes(), scope) {
				t.Errorf("%s %s: unknown scope %q", r.Method, r.Path, scope)
			}
			used[scope] = true
		}
	}
	for _, scope := range topology.Scopes() {
		if !used[scope] {
			t.Errorf("scope %s opens no route", scope)
		}
	}
}

// Who forgets the scopes of a new route makes it public; this list is the second
// place that must agree.
func TestOnlyTheseRoutesArePublic(t *testing.T) {
	want := []string{"GET /v1/availability", "GET /v1/health", "GET /v1/openapi.json", "POST /v1/webhooks/stripe"}
	var got []string
	for _, r := range topology.Routes() {
		if len(r.Scopes) == 0 {
			got = append(got, r.Method+" "+r.Path)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("public routes are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The provider carries no token of ours, so its webhook is public; what is behind it must
// be the function that checks signatures and may do least.
func TestOnlyTheWebhookFunctionIsBehindItsRoute(t *testing.T) {
	for _, r := range topology.Routes() {
		isWebhook := strings.HasPrefix(r.Path, "/v1/webhooks/")
		if isWebhook != (r.Function == topology.FunctionWebhook) {
			t.Errorf("%s %s goes to %s", r.Method, r.Path, r.Function)
		}
	}
}

func TestRoutesAndHTTPFunctionsMatch(t *testing.T) {
	routed := map[topology.FunctionName]bool{}
	for _, r := range topology.Routes() {
		f, ok := topology.FunctionNamed(r.Function)
		if !ok || f.HTTP == nil {
			t.Errorf("%s %s goes to %q, which has no HTTP trigger", r.Method, r.Path, r.Function)
		}
		if f.Timeout >= topology.IntegrationTimeout {
			t.Errorf("%s: %s outlives the gateway's wait", f.Name, f.Timeout)
		}
		routed[r.Function] = true
	}
	for _, f := range topology.Functions() {
		if f.HTTP != nil && !routed[f.Name] {
			t.Errorf("%s has an HTTP trigger and no route", f.Name)
		}
	}
}
