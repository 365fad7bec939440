package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// insides is what a person who uses the API cannot know the meaning of: regular
// expressions, Go's types and names, the words of JSON Schema, and exponents.
var insides = regexp.MustCompile(`\^|\$|\{|\\|[0-9]e[+-]?[0-9]|(?i)json\.|float|int64|regular expression|regexp|schema|nullable|property|unmarshal|strconv|<nil>`)

// inPlainWords checks each mistake that an answer tells of. Every answer of every test
// goes through it.
func inPlainWords(t testing.TB, c call, a answer) {
	t.Helper()
	var problem struct {
		Detail string
		Errors []struct{ Detail string }
	}
	if a.status < http.StatusBadRequest {
		return
	}
	if err := json.Unmarshal([]byte(a.body), &problem); err != nil {
		t.Errorf("%s %s: %v", c.method, c.path, err)
	}
	for _, e := range problem.Errors {
		if e.Detail == "" || insides.MatchString(e.Detail) {
			t.Errorf("%s %s: a mistake is told as %q", c.method, c.path, e.Detail)
		}
	}
}

// slotWith is the body of a slot with one member replaced or, by "", left out.
func slotWith(t *testing.T, member, value string) string {
	t.Helper()
	body := map[string]json.RawMessage{
		"resource_type": []byte(`"flight"`), "resource_id": []byte(`"KE0901"`), "capacity": []byte("5"),
		"unit_amount": []byte("1000"), "currency": []byte(`"KRW"`), "open": []byte("true"),
	}
	if value == "" {
		delete(body, member)
	} else {
		body[member] = []byte(value)
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each mistake is told with its place and with what is wanted there, all of it at once.
func TestMistakesAreToldInPlainWords(t *testing.T) {
	f := newFixture(t)
	put := func(member, value string) call {
		return call{method: http.MethodPut, path: "/v1/slots/seat", body: slotWith(t, member, value), claims: catalog()}
	}
	post := func(body string) call {
		return call{method: http.MethodPost, path: "/v1/holds", body: body, claims: owner("U"), headers: f.key()}
	}
	get := func(path, query string) call {
		return call{method: http.MethodGet, path: path, query: query, claims: operator()}
	}
	cancel := func(body string) call {
		return call{method: http.MethodPost, path: "/v1/reservations/rsv_1/cancel", body: body, claims: owner("U"), headers: f.key()}
	}
	deliver := func(body string) call {
		return call{method: http.MethodPost, path: "/v1/reservations/rsv_1/delivery", body: body, claims: service(), headers: f.key()}
	}
	keyed := func(key string) call {
		c := post(line("seat", 1))
		c.headers = keyed(key)
		return c
	}
	const (
		amount = "must be a whole number from 0 to 1000000000000"
		name   = "must be 1 to 128 ASCII letters, digits, or any of . _ : -"
		time   = "must be an RFC 3339 time, such as 2026-12-01T09:30:00.000Z"
	)
	for _, test := range []struct {
		what string
		call call
		want []string // each as "in name: detail"
	}{
		{"no number", put("unit_amount", `"1000"`), []string{"body /unit_amount: " + amount}},
		{"a number beyond all numbers", put("unit_amount", `1e400`), []string{"body /unit_amount: " + amount}},
		{"a fraction", put("unit_amount", `0.5`), []string{"body /unit_amount: " + amount}},
		{"too low", put("unit_amount", `-1`), []string{"body /unit_amount: " + amount}},
		{"too high", put("unit_amount", `1000000000001`), []string{"body /unit_amount: " + amount}},
		{"null", put("unit_amount", `null`), []string{"body /unit_amount: " + amount}},
		{"no boolean", put("open", `"yes"`), []string{"body /open: must be true or false"}},
		{"no name", put("resource_id", `"a b"`), []string{"body /resource_id: " + name}},
		{"no text", put("resource_id", `7`), []string{"body /resource_id: " + name}},
		{"no time", put("starts_at", `"tomorrow"`), []string{"body /starts_at: " + time}},
		{"no currency", put("currency", `"krw"`), []string{"body /currency: must be the ISO 4217 code of a currency in use, such as KRW"}},
		{"no text in attributes", put("attributes", `{"cabin":1}`), []string{"body /attributes/cabin: must be text of at most 256 characters"}},
		{"too long an attribute", put("attributes", `{"cabin":"`+strings.Repeat("a", 257)+`"}`), []string{"body /attributes/cabin: must be text of at most 256 characters"}},
		{"no object", put("attributes", `[]`), []string{"body /attributes: must be an object of at most 20 members"}},
		{"a missing member", put("capacity", ""), []string{"body /capacity: this is missing"}},
		{
			"several unknown members", post(strings.TrimSuffix(line("seat", 1), "}") + `,"c":1,"a/b":2}`),
			[]string{"body /a~1b: there is no such member", "body /c: there is no such member"},
		},
		{
			"an empty patch", call{method: http.MethodPatch, path: "/v1/slots/seat", body: `{}`, claims: catalog(), headers: f.key()},
			[]string{"body : must be an object of at least 1 member"},
		},
		{"no list", post(`{"lines":7}`), []string{"body /lines: must be a list of 1 to 200 items"}},
		{"an empty list", post(`{"lines":[]}`), []string{"body /lines: must be a list of 1 to 200 items"}},
		{"too long a list", post(`{"lines":[` + strings.Repeat(`{},`, 200) + `{}]}`), nil},
		{
			"several at once", post(`{"lines":[{"slot_id":"seat","quantity":0,"unit_amount":"x"}]}`),
			[]string{"body /lines/0/quantity: must be a whole number from 1 to 10000", "body /lines/0/unit_amount: " + amount},
		},
		{"no body", post(``), []string{"body : this is missing"}},
		{"a body too much", call{method: http.MethodGet, path: "/v1/holds", body: `{}`, claims: owner("U")}, []string{"body : this request takes no body"}},
		{"no key", keyed(""), nil},
		{"a key with a comma", keyed("a,b"), []string{"header Idempotency-Key: must be 1 to 255 printable ASCII characters without space or comma"}},
		{"no status", get("/v1/holds", "status=LOST"), []string{"query status: must be one of HELD, PAYMENT_CHECKING, CONFIRMED, CANCELED, EXPIRED, RETURNED"}},
		{"no limit", get("/v1/holds", "limit=many"), []string{"query limit: must be a whole number from 1 to 100"}},
		{"too high a limit", get("/v1/holds", "limit=1000000000000000000000"), []string{"query limit: must be a whole number from 1 to 100"}},
		{"no owner", get("/v1/holds", "owner="+strings.Repeat("u", 256)), []string{"query owner: must be text of 1 to 255 characters"}},
		{"no cursor", get("/v1/holds", "cursor=a%20b"), []string{"query cursor: must be a next_cursor of an earlier answer, as it was given"}},
		{"no hold id", get("/v1/holds/a.b", ""), []string{"path hold_id: must be 1 to 64 ASCII letters, digits, or any of _ -"}},
		{"no day", get("/v1/availability", "resource_type=r&resource_id=r&date=1.12.2026"), []string{"query date: must be a date, such as 2026-12-01"}},
		{"too many slots", get("/v1/availability", "slot_ids="+strings.Repeat("a,", 50)+"a"), []string{"query slot_ids: must be a list of 1 to 50 items"}},
		{"one odd slot", get("/v1/availability", "slot_ids=a,b%20c"), []string{"query slot_ids: " + name}},
		{"no reservation id", get("/v1/reservations/a.b", ""), []string{"path reservation_id: must be 1 to 64 ASCII letters, digits, or any of _ -"}},
		{"no reservation status", get("/v1/reservations", "owner=U&status=HELD"), []string{
			"query status: must be one of PAYMENT_PENDING, AUTHORIZED, CONFIRMED, CAPTURED, COMPLETED, COMPENSATING, CANCELED, REFUNDED, REFUND_REQUIRED, REVIEW",
		}},
		{"no quantity to give back", cancel(`{"lines":[{"slot_id":"seat","quantity":0}]}`), []string{"body /lines/0/quantity: must be a whole number from 1 to 10000"}},
		{"no line to give back", cancel(`{"lines":[]}`), []string{"body /lines: must be a list of 1 to 50 items"}},
		{
			"a slot named twice", cancel(`{"lines":[{"slot_id":"seat","quantity":1},{"slot_id":"seat","quantity":1}]}`),
			[]string{"body /lines/1/slot_id: must be a slot that no earlier line names"},
		},
		{"no word on the delivery", deliver(`{}`), []string{"body /delivered: this is missing"}},
		{"no clear word on the delivery", deliver(`{"delivered":"yes"}`), []string{"body /delivered: must be true or false"}},
		{"no way to decline", put("policy", `{"on_decline":"maybe"}`), []string{"body /policy/on_decline: must be one of release, keep"}},
		{"no slot to grant to", put("policy", `{"grant_to_slot_id":"a b"}`), []string{
			"body /policy/grant_to_slot_id: must be at most 128 ASCII letters, digits, or any of . _ : -, with or without the placeholder of the owner",
		}},
		{"no time of a sale", put("policy", `{"sale_from":"soon"}`), []string{
			"body /policy/sale_from: must be an RFC 3339 time, or a local time such as 2026-12-01T10:00 with a sale_time_zone, or empty",
		}},
		{"no zone of a local time", put("policy", `{"sale_from":"2026-12-01T10:00"}`), []string{
			"body /policy/sale_from: must have an offset, or a sale_time_zone beside it that says whose local time it is",
		}},
		{"a time that no clock shows", put("policy", `{"sale_until":"2026-03-08T02:30","sale_time_zone":"America/New_York"}`), []string{
			"body /policy/sale_until: must be a time that the clocks of its zone show; they are set past this one",
		}},
		{"no time zone", put("policy", `{"sale_time_zone":"Mars/Olympus"}`), []string{
			"body /policy/sale_time_zone: must be the IANA name of a time zone, such as Asia/Seoul, or empty",
		}},
		{"no part to inherit", put("policy", `{"inherit":["price"]}`), nil},
		{"a part that is set and inherited", put("policy", `{"scarce":true,"inherit":["scarce"]}`), []string{
			"body /policy/inherit: must not name a part that the same body sets",
		}},
		{"no limit", put("policy", `{"holds_max_per_owner":-1}`), []string{"body /policy/holds_max_per_owner: must be a whole number from 0 to 1000000"}},
		{"no signal", post(strings.TrimSuffix(line("seat", 1), "}") + `,"signals":{"device":"é"}}`), []string{"body /signals/device: must be 1 to 256 printable ASCII characters"}},
		{"an empty edit", call{method: http.MethodPatch, path: "/v1/holds/hold_1", body: `{}`, claims: owner("U"), headers: f.key()}, []string{
			"body : must be an object of at least 1 member",
		}},
		{
			"no payment reference",
			call{method: http.MethodPost, path: "/v1/holds/hold_1/confirm", body: `{"payment_reference":"a b"}`, claims: service(), headers: f.key()},
			[]string{"body /payment_reference: must be 1 to 128 printable ASCII characters without space"},
		},
	} {
		t.Run(test.what, func(t *testing.T) {
			a := f.do(test.call).in(t)
			a.want(http.StatusBadRequest)
			var got []string
			mistakes, _ := a.json()["errors"].([]any)
			for _, mistake := range mistakes {
				m := mistake.(map[string]any)
				got = append(got, fmt.Sprintf("%s %s: %s", m["in"], m["name"], m["detail"]))
			}
			slices.Sort(got)
			if len(got) == 0 || (test.want != nil && !slices.Equal(got, test.want)) {
				t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// A new pattern in the document needs words of its own. Only parameters and bodies are
// looked at, because answers are never refused.
func TestEveryPatternHasWords(t *testing.T) {
	f := newFixture(t)
	seen := map[string]bool{}
	for path, item := range mustLoad(t).Paths.Map() {
		for method, operation := range item.Operations() {
			if operation.OperationID == "takeStripeEvent" {
				continue // another function answers it
			}
			for _, p := range append(item.Parameters, operation.Parameters...) {
				if s := p.Value.Schema.Value; s.Pattern != "" && !seen[s.Pattern] {
					seen[s.Pattern] = true
					f.mustHaveWords(method, path, p.Value)
				}
			}
		}
	}
	if len(seen) < 4 {
		t.Errorf("only %d patterns are found", len(seen))
	}
}

// mustHaveWords breaks one parameter and requires that the answer says what is wanted.
func (f *fixture) mustHaveWords(method, path string, p *openapi3.Parameter) {
	f.t.Helper()
	everything := map[string]any{"sub": "olga", "scope": "holds confirm catalog operate", "groups": "ops"}
	c := call{method: method, path: fillIn(path), claims: everything, headers: f.key()}
	switch p.In {
	case openapi3.ParameterInPath:
		c.path = fillIn(strings.Replace(path, "{"+p.Name+"}", "a b", 1))
	case openapi3.ParameterInQuery:
		c.query = p.Name + "=a%20b"
	case openapi3.ParameterInHeader:
		c.headers = map[string]string{strings.ToLower(p.Name): "a b"}
	}
	a := f.do(c)
	a.want(http.StatusBadRequest)
	for i, name := range a.members("errors", "name") {
		if detail := a.members("errors", "detail")[i]; name == p.Name && !strings.Contains(detail, "must be ") {
			f.t.Errorf("%s %s: %s is told as %q", method, path, name, detail)
		}
	}
	if !slices.Contains(a.members("errors", "name"), p.Name) {
		f.t.Errorf("%s %s: the answer does not name %s: %s", method, path, p.Name, a.body)
	}
}

// fillIn puts some name in place of each parameter of a path.
func fillIn(path string) string {
	return strings.NewReplacer("{hold_id}", "hold_1", "{slot_id}", "seat", "{reservation_id}", "rsv_1",
		"{resource_type}", "flight", "{resource_id}", "KE0901").Replace(path)
}

// A currency is one that somebody can be charged in.
func TestOnlyCurrenciesInUse(t *testing.T) {
	f := newFixture(t)
	for _, code := range []string{"ZZZ", "XXX", "XTS", "XAU", "DEM", "krw", "KR", ""} {
		for _, c := range []call{
			{method: http.MethodPut, path: "/v1/slots/never", body: slotWith(t, "currency", fmt.Sprintf("%q", code)), claims: catalog()},
			{method: http.MethodPatch, path: "/v1/slots/never", body: fmt.Sprintf(`{"currency":%q}`, code), claims: catalog(), headers: f.key()},
		} {
			a := f.do(c)
			a.wantProblem(http.StatusBadRequest, "invalid_request")
			if got := a.members("errors", "name"); !slices.Equal(got, []string{"/currency"}) {
				t.Errorf("%s %s: the errors point at %v", c.method, code, got)
			}
		}
	}
	// Among them are some that are younger than many a list.
	for _, code := range []string{"KRW", "USD", "EUR", "JPY", "KWD", "SLE", "VES", "XCG", "ZWG"} {
		c := call{method: http.MethodPut, path: "/v1/slots/" + code, body: slotWith(t, "currency", fmt.Sprintf("%q", code)), claims: catalog()}
		f.do(c).want(http.StatusCreated)
		c = call{method: http.MethodPatch, path: "/v1/slots/" + code, body: fmt.Sprintf(`{"currency":%q}`, code), claims: catalog(), headers: f.key()}
		f.do(c).want(http.StatusOK)
	}
}
