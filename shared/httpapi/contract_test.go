package httpapi_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"holdfast/shared/httpapi"
	"holdfast/shared/topology"
)

func mustLoad(t *testing.T) *openapi3.T {
	t.Helper()
	document, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func TestTheDocumentIsValid(t *testing.T) {
	if err := mustLoad(t).Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Error(err)
	}
}

// The generated code has a copy of the document. When openapi.yaml is changed without
// generating again, the two differ.
func TestTheGeneratedCodeIsOfThisDocument(t *testing.T) {
	text, err := httpapi.GetSpecJSON()
	if err != nil {
		t.Fatal(err)
	}
	written, err := json.Marshal(mustLoad(t))
	if err != nil {
		t.Fatal(err)
	}
	var embedded, file any
	if err := json.Unmarshal(text, &embedded); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(written, &file); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(embedded, file) {
		t.Error("document.gen.go is not of this openapi.yaml; run go generate ./shared/httpapi")
	}
}

// What is deployed and what is described are the same routes with the same scopes.
func TestTheDocumentAndTheTopologyAgree(t *testing.T) {
	described := make(map[string][]string)
	for path, item := range mustLoad(t).Paths.Map() {
		for method, operation := range item.Operations() {
			scopes := []string{}
			for _, requirement := range *operation.Security {
				if len(requirement) != 1 || len(requirement["token"]) != 1 {
					t.Errorf("%s %s: each alternative is one scope of one scheme, not %v", method, path, requirement)
				}
				scopes = append(scopes, requirement["token"]...)
			}
			described[method+" "+path] = scopes
		}
	}
	deployed := make(map[string][]string)
	for _, route := range topology.Routes() {
		scopes := []string{}
		for _, s := range route.Scopes {
			scopes = append(scopes, string(s))
		}
		deployed[route.Method+" "+route.Path] = scopes
	}
	if !reflect.DeepEqual(described, deployed) {
		t.Errorf("described\n%v\ndeployed\n%v", described, deployed)
	}
}

// Every operation says which answers it may give, and every code is described.
func TestEveryStatusIsDescribed(t *testing.T) {
	const perRow = "putSlots" // whose conflicts are in the results of its rows
	document := mustLoad(t)
	for path, item := range document.Paths.Map() {
		for method, operation := range item.Operations() {
			want := []string{"400", "500"}
			public := len(*operation.Security) == 0
			if !public {
				want = append(want, "401", "403", "429", "503")
			}
			if operation.RequestBody != nil {
				want = append(want, "413")
			}
			if operation.RequestBody != nil && !public {
				want = append(want, "415")
			}
			// A policy can be said anew at any time.
			if operation.RequestBody != nil && !public && operation.OperationID != perRow && !strings.HasPrefix(path, "/v1/policies/") {
				want = append(want, "409")
			}
			if strings.Contains(path, "{") && method != http.MethodPut {
				want = append(want, "404")
			}
			if operation.Parameters.GetByInAndName("header", "Idempotency-Key") != nil && operation.OperationID != perRow {
				want = append(want, "409", "422")
			}
			for _, status := range want {
				if operation.Responses.Value(status) == nil {
					t.Errorf("%s %s does not describe %s", method, path, status)
				}
			}
			if operation.Summary == "" || len(operation.Tags) != 1 {
				t.Errorf("%s %s has no summary or tag", method, path)
			}
		}
	}
}

// What a client reads is the document that requests are checked by.
func TestDocumentIsServed(t *testing.T) {
	f := newFixture(t)
	a := f.get("/v1/openapi.json", "", nil)
	a.want(http.StatusOK)
	document, err := openapi3.NewLoader().LoadFromData([]byte(a.body))
	if err != nil || document.Info.Title != "Holdfast" || a.headers["Content-Type"] != "application/json" {
		t.Errorf("served %v, %v", a.headers, err)
	}
	f.get("/v1/health", "", nil).want(http.StatusOK)
	if body := f.get("/v1/health", "", nil).body; body != `{"status":"ok"}` {
		t.Errorf("health is %s", body)
	}
	f.get("/v1/health", "x=1", nil).wantProblem(http.StatusBadRequest, "invalid_request")
}
