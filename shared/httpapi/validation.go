package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"holdfast/shared/ledger"
)

// keyHeader is the header that makes a request repeatable.
const keyHeader = "Idempotency-Key"

// validation checks the requests of one operation against the document. It is built once
// and safe for concurrent use.
type validation struct {
	route      *routers.Route
	options    *openapi3filter.Options
	queries    map[string]bool
	pathParams []string
}

// newValidation prepares the operation at path and method. It returns an error if the
// document has none there.
func newValidation(document *openapi3.T, method, path string) (*validation, error) {
	item := document.Paths.Find(path)
	if item == nil || item.GetOperation(method) == nil {
		return nil, fmt.Errorf("the document has no operation %s %s", method, path)
	}
	// Scopes are checked from the topology, so the copy that is validated has none.
	operation := *item.GetOperation(method)
	operation.Security = openapi3.NewSecurityRequirements()
	v := &validation{
		route: &routers.Route{Spec: document, Path: path, PathItem: item, Method: method, Operation: &operation},
		options: &openapi3filter.Options{
			MultiError:          true,
			SkipSettingDefaults: true,
		},
		queries: make(map[string]bool),
	}
	for _, parameters := range []openapi3.Parameters{item.Parameters, operation.Parameters} {
		for _, p := range parameters {
			switch p.Value.In {
			case openapi3.ParameterInQuery:
				v.queries[p.Value.Name] = true
			case openapi3.ParameterInPath:
				v.pathParams = append(v.pathParams, p.Value.Name)
			}
		}
	}
	return v, nil
}

// check returns nil if the request is what the document describes. body is all of the
// request's body.
func (v *validation) check(r *http.Request, body []byte) error {
	query, err := v.checkQuery(r.URL)
	if err != nil {
		return err
	}
	if keys := r.Header.Values(keyHeader); len(keys) > 1 {
		// As a gateway joins them. The comma makes the key invalid (case H4).
		r.Header.Set(keyHeader, strings.Join(keys, ","))
	}
	r.Body, r.ContentLength, r.GetBody = http.NoBody, int64(len(body)), nil
	if len(body) > 0 {
		if v.route.Operation.RequestBody == nil {
			return invalid("body", "", noBodyDetail)
		}
		if err := checkJSON(body, r.Header); err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	input := &openapi3filter.RequestValidationInput{
		Request: r, Route: v.route, QueryParams: query, Options: v.options,
		PathParams: make(map[string]string, len(v.pathParams)),
	}
	for _, name := range v.pathParams {
		input.PathParams[name] = r.PathValue(name)
	}
	if err := openapi3filter.ValidateRequest(r.Context(), input); err != nil {
		return refusalOf(err)
	}
	return nil
}

// checkQuery refuses a query parameter that the operation does not have, or that comes
// twice: whoever sent it believes that it has an effect.
func (v *validation) checkQuery(u *url.URL) (url.Values, error) {
	if u.RawQuery == "" {
		return url.Values{}, nil
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, &refusal{code: ledger.CodeInvalid, detail: "the query string is not well formed"}
	}
	for name, values := range query {
		if !v.queries[name] {
			return nil, invalid("query", name, "there is no such query parameter")
		}
		if len(values) != 1 {
			return nil, invalid("query", name, "the query parameter is there more than once")
		}
	}
	return query, nil
}

// refusalOf turns the validator's error, which may be a tree of them, into one refusal
// that points at each mistake and says what is wanted there. It tells nothing of the
// value, and nothing in the validator's own words.
func refusalOf(err error) error {
	r := &refusal{code: ledger.CodeInvalid, detail: "the request is not as described; see errors"}
	collectErrors(err, place{in: "body"}, r)
	for _, e := range r.errors {
		if e.In == openapi3.ParameterInHeader && e.Name == keyHeader && e.Detail == missingDetail {
			r.code, r.detail = codeKeyMissing, "send an Idempotency-Key: a new one for a new request, the same one to ask again"
		}
	}
	return r
}

// place is the part of a request that an error is about, and what the document says of it.
type place struct {
	in, name string
	schema   *openapi3.Schema
}

func collectErrors(err error, at place, into *refusal) {
	var several openapi3.MultiError
	var request *openapi3filter.RequestError
	var schema *openapi3.SchemaError
	// The kinds nest, so each is asked for as the outermost one: errors.As would look
	// through it.
	switch {
	case is(err, &several):
		for _, e := range several {
			collectErrors(e, at, into)
		}
	case is(err, &request):
		if p := request.Parameter; p != nil {
			at = place{p.In, p.Name, p.Schema.Value}
		}
		collectErrors(request.Err, at, into)
	case is(err, &schema):
		collectMistakes(schema, at, into)
	case errors.Is(err, openapi3filter.ErrInvalidRequired):
		into.add(at.in, at.name, missingDetail)
	default:
		into.add(at.in, at.name, wanted(at.schema))
	}
}

// collectMistakes tells what is wanted where a value differs from its schema.
func collectMistakes(e *openapi3.SchemaError, at place, into *refusal) {
	name := at.name
	if at.in == "body" {
		name = jsonPointer(e.JSONPointer())
	}
	switch e.SchemaField {
	case "required":
		into.add(at.in, name, missingDetail)
	case "properties":
		// There is one such error for each unknown member, and none says which it is for.
		for _, member := range unknownMembers(e.Schema, e.Value) {
			into.add(at.in, name+jsonPointer([]string{member}), unknownMemberDetail)
		}
	default:
		into.add(at.in, name, wanted(e.Schema))
	}
}

// is reports whether err itself is a T, and sets target to it.
func is[T error](err error, target *T) bool {
	found, yes := err.(T) //nolint:errorlint // the outermost error is meant
	if yes {
		*target = found
	}
	return yes
}
