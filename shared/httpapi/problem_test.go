package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
)

// A problem points into the body, and a body can have names and depths as long as itself.
// The answer repeats only the beginning of them.
func TestAProblemDoesNotRepeatTheBody(t *testing.T) {
	const problemBytesMax = 4_000
	f := newFixture(t)
	long := strings.Repeat("é", 15_000)
	for name, body := range map[string]string{
		"deep":              strings.Repeat("[", 30_000),
		"a long name":       `{"` + long + `":1}`,
		"a long name twice": `{"` + long + `":1,"` + long + `":2}`,
	} {
		a := f.create(owner("U"), body, f.key())
		a.wantProblem(http.StatusBadRequest, "invalid_request")
		if len(a.body) > problemBytesMax {
			t.Errorf("%s: the answer has %d bytes for a body of %d: %.300s", name, len(a.body), len(body), a.body)
		}
	}
}
