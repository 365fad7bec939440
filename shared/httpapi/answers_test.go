package httpapi_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"holdfast/shared/httpapi"
)

// document is the contract, loaded once.
var document = sync.OnceValues(httpapi.GetSpec)

// describedAs checks that an answer is one that the document describes for its
// operation: the status, the media type, and the body against its schema. Every answer
// of every test goes through it, so the document cannot drift from what is answered.
func describedAs(t testing.TB, c call, a answer) {
	t.Helper()
	contract, err := document()
	if err != nil {
		t.Error(err)
		return
	}
	operation := operationAt(contract, c)
	if operation == nil || operation.OperationID == "takeStripeEvent" {
		return // a route that does not exist here has no description
	}
	response := operation.Responses.Value(strconv.Itoa(a.status))
	if response == nil {
		t.Errorf("%s %s: the document has no answer %d: %s", c.method, c.path, a.status, a.body)
		return
	}
	media := response.Value.Content.Get(a.headers["Content-Type"])
	if media == nil {
		t.Errorf("%s %s: %d is not described as %s", c.method, c.path, a.status, a.headers["Content-Type"])
		return
	}
	var body any
	decoder := json.NewDecoder(strings.NewReader(a.body))
	decoder.UseNumber()
	if err := decoder.Decode(&body); err != nil {
		t.Errorf("%s %s: %v", c.method, c.path, err)
		return
	}
	if err := media.Schema.Value.VisitJSON(body, openapi3.MultiErrors()); err != nil {
		t.Errorf("%s %s: %d is not as described: %v\n%s", c.method, c.path, a.status, err, a.body)
	}
}

// operationAt finds the operation of a path without a router, by its segments.
func operationAt(contract *openapi3.T, c call) *openapi3.Operation {
	got := strings.Split(c.path, "/")
	for _, path := range contract.Paths.InMatchingOrder() {
		want := strings.Split(path, "/")
		if len(want) != len(got) {
			continue
		}
		same := true
		for i := range want {
			same = same && (want[i] == got[i] || (strings.HasPrefix(want[i], "{") && got[i] != ""))
		}
		if same {
			return contract.Paths.Value(path).Operations()[c.method]
		}
	}
	return nil
}
