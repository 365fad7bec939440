package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/scripts/local/flights"
)

// runsWithin bounds one run, with its builds.
const runsWithin = 10 * time.Minute

// screen is what a run prints. It may be read while the run goes on.
type screen struct {
	mu      sync.Mutex
	printed bytes.Buffer
	changed chan struct{}
}

func newScreen() *screen { return &screen{changed: make(chan struct{}, 1)} }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.printed.Write(p)
	select {
	case s.changed <- struct{}{}:
	default: // the reader has not looked since the last change
	}
	return len(p), nil
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.printed.String()
}

// The demo ends well, and its last line counts the books from the table.
func TestDemo(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), runsWithin)
	defer cancel()
	out := newScreen()
	if err := run(ctx, []string{"-demo"}, out); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	last := lines[len(lines)-1]
	// How many notices of the provider come before it is looked at is not the same in each
	// run, and each of them is an event.
	want := regexp.MustCompile(`^books balance: slots=696 holds=12 reservations=5 events=7\d\d money: captured=109737 refunded=17592 owed=0 violations=0$`)
	if !want.MatchString(last) {
		t.Errorf("the last line is %q, want %q", last, want)
	}
	if !strings.Contains(out.String(), "40 buyers want the last seat at the same moment: 1 × 201, 39 × 409 insufficient_stock") {
		t.Errorf("the race is not told:\n%s", out)
	}
}

// Each of the other demos ends well, told one after the other on one system, and the books balance.
func TestOtherDemos(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), runsWithin)
	defer cancel()
	out := newScreen()
	if err := runDemos(ctx, out, demoNames()[1:]...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, told := range []string{
		"nora holds 3 nights, and makes them 4 in the same hold", "a customer may have 4",
		"it lives 300 s with 30 s of grace", "100 buyers, 25 at a time: 60 × 201, 40 × 409",
	} {
		if !strings.Contains(out.String(), told) {
			t.Errorf("it is not told that %q:\n%s", told, out)
		}
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := regexp.MustCompile(`^books balance: slots=29 holds=63 reservations=3 events=1\d\d money: captured=68700 refunded=12000 owed=0 violations=0$`)
	if last := lines[len(lines)-1]; !want.MatchString(last) {
		t.Errorf("the last line is %q, want %q", last, want)
	}
}

// A name that there is not is told with those that there are.
func TestNoSuchDemo(t *testing.T) {
	err := run(t.Context(), []string{"-demo=circus"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "flights, hotel, cinema, basket, drop") {
		t.Errorf("error %v", err)
	}
}

// session is one run of the local server, until its test ends it.
type session struct {
	t      *testing.T
	url    string
	folder string
	out    *screen
	end    func()
}

// mustServe starts a local server on the folder, and returns when it has told what to try.
func mustServe(t *testing.T, folder string, arguments ...string) *session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runsWithin)
	s := &session{t: t, folder: folder, out: newScreen()}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, append([]string{"-data", folder, "-port", "0"}, arguments...), s.out) }()
	var once sync.Once
	s.end = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("the run ended with %v\n%s", err, s.out)
			}
		})
	}
	t.Cleanup(s.end)
	for !strings.Contains(s.out.String(), "Ctrl-C ends everything") {
		select {
		case err := <-ended:
			ended <- nil
			t.Fatalf("the run ended with %v\n%s", err, s.out)
		case <-s.out.changed:
		}
	}
	found := regexp.MustCompile(`URL=(\S+)`).FindStringSubmatch(s.out.String())
	s.url = found[1]
	return s
}

// token prints a token with the sub-command.
func (s *session) token(arguments ...string) string {
	s.t.Helper()
	var out bytes.Buffer
	if err := run(s.t.Context(), append([]string{"token", "-data", s.folder}, arguments...), &out); err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

func (s *session) do(method, path, token, body string) (int, map[string]any) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Idempotency-Key", method+"-"+s.t.Name())
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	var answer map[string]any
	if err := json.Unmarshal(text, &answer); err != nil {
		s.t.Fatalf("%d %q: %v", response.StatusCode, text, err)
	}
	return response.StatusCode, answer
}

// What the user made is there after a restart and is not loaded over; a token of before
// stays valid; -fresh begins anew.
func TestDataSurvivesARestart(t *testing.T) {
	folder := t.TempDir()
	day, err := flights.Day()
	if err != nil {
		t.Fatal(err)
	}
	path := slotPath(day[0])
	first := mustServe(t, folder)
	if !strings.Contains(first.out.String(), "loaded 696 flights") {
		t.Errorf("the flights were not loaded:\n%s", first.out)
	}
	catalog := first.token("-sub", "catalogue", "-scope", "catalog")
	if status, answer := first.do(http.MethodPatch, path, catalog, `{"unit_amount":4321}`); status != http.StatusOK {
		t.Fatalf("%d %v", status, answer)
	}
	first.end()

	second := mustServe(t, folder)
	if status, answer := second.do(http.MethodGet, path, catalog, ""); status != http.StatusOK || answer["unit_amount"] != 4321.0 {
		t.Errorf("after a restart: %d %v", status, answer)
	}
	operator := second.token("-sub", "olga", "-scope", "operate", "-group", "ops")
	if status, answer := second.do(http.MethodGet, path, operator, ""); status != http.StatusOK {
		t.Errorf("an operator: %d %v", status, answer)
	}
	if status, answer := second.do(http.MethodGet, path, second.token("-sub", "U", "-scope", "holds"), ""); status != http.StatusForbidden {
		t.Errorf("another scope: %d %v", status, answer)
	}
	second.end()

	third := mustServe(t, folder, "-fresh")
	if status, answer := third.do(http.MethodGet, path, catalog, ""); status != http.StatusOK || answer["unit_amount"] != float64(day[0].Terms.Price.AmountMinor) {
		t.Errorf("after -fresh: %d %v", status, answer)
	}
}

func TestWrongCommandLines(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		{"-what", "not defined: -what"},
		{"serve", `unknown argument "serve"`},
		{"-sweep -1s", "-sweep cannot be negative"},
		{"token", "-sub is needed"},
		{"token -sub U extra", `unknown argument "extra"`},
		{"token -sub U -scope hold", `no scope "hold"; the scopes are holds, confirm, catalog, operate`},
		{"token -sub U -ttl -1h", "-ttl must be more than 0"},
		{"token -sub U -ttl 9999h", "-ttl must be more than 0"},
	} {
		var out bytes.Buffer
		err := run(t.Context(), strings.Fields(test.line), &out)
		if err == nil || !strings.Contains(err.Error(), test.want) || out.Len() > 0 {
			t.Errorf("%s: %v and %q, want %q", test.line, err, out.String(), test.want)
		}
	}
}
