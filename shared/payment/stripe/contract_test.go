package stripe_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/payment/stripe"
	"holdfast/shared/payment/stripetest"
	"holdfast/shared/system/systemtest"
)

// mockVersion is the version of Stripe's own mock, which checks requests against Stripe's
// description of its API and answers with examples from it.
const mockVersion = "v0.203.0"

// mockBuildWithin bounds the one build of the mock; it takes some seconds.
const mockBuildWithin = 5 * time.Minute

// mustMock starts Stripe's mock. There is no skipping: without it nothing holds our
// server's shapes to Stripe's.
func mustMock(t *testing.T) string {
	t.Helper()
	command := exec.Command(mustMockProgram(t), "-http-addr", "127.0.0.1:0", "-https-addr", "127.0.0.1:0")
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("stripe-mock does not start: %v", err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill() // it may have ended already
		_ = command.Wait()
	})
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if address, found := strings.CutPrefix(lines.Text(), "Listening for HTTP at address: "); found {
			return "http://" + address
		}
	}
	t.Fatal("stripe-mock ended without saying where it listens")
	return ""
}

// mustMockProgram finds the mock of our version in the cache, or builds it there.
func mustMockProgram(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(cache, "holdfast", "stripe-mock-"+mockVersion)
	program := filepath.Join(folder, "stripe-mock")
	if _, err := os.Stat(program); err == nil {
		return program
	}
	ctx, cancel := context.WithTimeout(context.Background(), mockBuildWithin)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "install", "github.com/stripe/stripe-mock@"+mockVersion)
	build.Env = append(os.Environ(), "GOBIN="+folder, "GOFLAGS=")
	build.Dir = t.TempDir()
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("stripe-mock %s can't be built, and this test can't do without it: %v\n%s", mockVersion, err, said)
	}
	return program
}

// exchange is one request of the adapter and what was answered.
type exchange struct {
	method, path string
	header       http.Header
	sent, got    []byte
	status       int
}

// recorder keeps what passes through it.
type recorder struct {
	next      http.RoundTripper
	exchanges []exchange
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	e := exchange{method: request.Method, path: request.URL.RequestURI(), header: request.Header.Clone()}
	if request.Body != nil {
		sent, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}
		e.sent = sent
		request.Body = io.NopCloser(bytes.NewReader(sent))
	}
	answered, err := r.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	e.got, err = io.ReadAll(answered.Body)
	if err = errors.Join(err, answered.Body.Close()); err != nil {
		return nil, err
	}
	answered.Body = io.NopCloser(bytes.NewReader(e.got))
	e.status = answered.StatusCode
	r.exchanges = append(r.exchanges, e)
	return answered, nil
}

func mustRecorded(t *testing.T, url string) (*recorder, *stripe.Provider) {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	r := &recorder{next: transport}
	p, err := stripe.New(stripe.Options{APIKey: payment.NewSecret("sk_test_123"), BaseURL: url, Transport: r, Clock: systemtest.NewClock(start)})
	if err != nil {
		t.Fatal(err)
	}
	return r, p
}

// TestStripesMockTakesEveryCall sends each call of the port to Stripe's own mock, which
// refuses what Stripe's description does not allow.
func TestStripesMockTakesEveryCall(t *testing.T) {
	_, p := mustRecorded(t, mustMock(t))
	ctx := context.Background()
	created, err := p.Create(ctx, creation(1, usd(1000)))
	if err != nil || created.ID == "" || created.Secret.Empty() || created.Amount != usd(1000) {
		t.Fatalf("create: %+v, %v", created, err)
	}
	for name, call := range map[string]func() (payment.Payment, error){
		"look up": func() (payment.Payment, error) { return p.LookUp(ctx, created.ID) },
		"capture": func() (payment.Payment, error) { return p.Capture(ctx, "c", created.ID, 1000) },
		"void":    func() (payment.Payment, error) { return p.Void(ctx, "v", created.ID) },
		"refund":  func() (payment.Payment, error) { return p.Refund(ctx, "r", created.ID, 400) },
	} {
		if got, err := call(); err != nil || got.ID != created.ID {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// membersRead are the members that the adapter reads, by the object they are in.
var membersRead = map[string][]string{
	"payment_intent": {"id", "object", "status", "amount", "amount_capturable", "amount_received", "currency", "client_secret", "metadata", "last_payment_error", "latest_charge"},
	"charge":         {"id", "object", "status", "amount", "amount_refunded", "created"},
	"refund":         {"id", "object", "status", "amount", "currency", "metadata", "created"},
	"list":           {"object", "has_more", "data", "url"},
}

// mayBeNull are the members that Stripe's description allows to be null. The mock fills
// them in, or not, as its examples go.
var mayBeNull = []string{"payment_intent.last_payment_error", "payment_intent.latest_charge"}

// TestServerHasTheShapesOfStripesMock plays a history on our server, sends the same
// requests to Stripe's mock, and compares the types of all that the adapter reads.
func TestServerHasTheShapesOfStripesMock(t *testing.T) {
	seen := map[string]bool{}
	mock := mustMock(t)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for _, e := range history(t) {
		request, err := http.NewRequest(e.method, mock+e.path, bytes.NewReader(e.sent))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = e.header
		answered, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := io.ReadAll(answered.Body)
		if err = errors.Join(err, answered.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if answered.StatusCode != http.StatusOK {
			t.Errorf("%s %s: the mock answered %d %s", e.method, e.path, answered.StatusCode, theirs)
			continue
		}
		if e.status == http.StatusOK {
			compare(t, e.method+" "+e.path, decode(t, e.got), decode(t, theirs), seen)
		}
	}
	for object, members := range membersRead {
		for _, member := range members {
			if !seen[object+"."+member] {
				t.Errorf("%s.%s was never compared", object, member)
			}
		}
	}
}

// history is what the adapter sends and gets over a payment's whole life, at our server.
func history(t *testing.T) []exchange {
	t.Helper()
	server, err := stripetest.Start(stripetest.Options{APIKey: payment.NewSecret("sk_test_123"), Clock: systemtest.NewClock(start)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	r, p := mustRecorded(t, server.URL())
	ctx := context.Background()
	created, err := p.Create(ctx, creation(1, usd(1000)))
	if err != nil {
		t.Fatal(err)
	}
	other, err := p.Create(ctx, creation(2, usd(1000)))
	if err != nil {
		t.Fatal(err)
	}
	for _, act := range []func() error{
		func() error { _, err := server.Bank().Decline(string(created.ID)); return err },
		func() error { _, err := p.LookUp(ctx, created.ID); return err },
		func() error { _, err := server.Bank().Pay(string(created.ID)); return err },
		func() error { _, err := p.LookUp(ctx, created.ID); return err },
		func() error { _, err := p.Capture(ctx, "c", created.ID, 1000); return err },
		func() error { _, err := p.Refund(ctx, "r1", created.ID, 400); return err },
		func() error { _, err := p.Refund(ctx, "r2", created.ID, 600); return err },
		func() error { _, err := p.Void(ctx, "v", other.ID); return err },
	} {
		if err := act(); err != nil {
			t.Fatal(err)
		}
	}
	return r.exchanges
}

func decode(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(body, &object); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return object
}

// compare compares what is read of an object, and then of the objects in it.
func compare(t *testing.T, where string, ours, theirs map[string]any, seen map[string]bool) {
	t.Helper()
	object, _ := theirs["object"].(string)
	if ours["object"] != object {
		t.Errorf("%s: our object is %v, theirs %v", where, ours["object"], object)
		return
	}
	for _, member := range membersRead[object] {
		name := object + "." + member
		mine, has := ours[member]
		its, described := theirs[member]
		if !has || !described {
			t.Errorf("%s: %s: ours has it: %v, theirs: %v", where, name, has, described)
			continue
		}
		if (mine == nil || its == nil) && slices.Contains(mayBeNull, name) {
			continue
		}
		if kind(mine) != kind(its) {
			t.Errorf("%s: %s is %s, theirs is %s", where, name, kind(mine), kind(its))
			continue
		}
		seen[name] = true
		compareWithin(t, where+" "+name, mine, its, seen)
	}
}

func compareWithin(t *testing.T, where string, mine, its any, seen map[string]bool) {
	t.Helper()
	switch mine := mine.(type) {
	case map[string]any:
		if its := its.(map[string]any); its["object"] != nil {
			compare(t, where, mine, its, seen)
		}
	case []any:
		for _, element := range mine {
			compare(t, where, element.(map[string]any), its.([]any)[0].(map[string]any), seen)
		}
	}
}

// kind is the JSON type of a value. Stripe writes every number that is read here as a
// whole one.
func kind(value any) string {
	if number, isNumber := value.(float64); isNumber && number != float64(int64(number)) {
		return "a fraction"
	}
	return fmt.Sprintf("%T", value)
}

// TestErrorsHaveTheShapeOfStripesMock sends what is wrong to both, and compares what the
// adapter reads of the error.
func TestErrorsHaveTheShapeOfStripesMock(t *testing.T) {
	w := mustWorld(t)
	for _, url := range []string{w.server.URL(), mustMock(t)} {
		request, err := http.NewRequest(http.MethodPost, url+"/v1/payment_intents", strings.NewReader("amount=1000&capture_method=manual"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+apiKey.Reveal())
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		transport := &http.Transport{}
		answered, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answered.Body)
		if err = errors.Join(err, answered.Body.Close()); err != nil {
			t.Fatal(err)
		}
		transport.CloseIdleConnections()
		inner, _ := decode(t, body)["error"].(map[string]any)
		if answered.StatusCode != http.StatusBadRequest || inner["type"] != "invalid_request_error" || kind(inner["message"]) != "string" {
			t.Errorf("%s answered %d %s", url, answered.StatusCode, body)
		}
	}
	_, err := w.provider.Capture(context.Background(), "c", "pi_unheard", 1)
	wantKind(t, err, payment.KindNotFound, paymenttest.CodeMissing)
}
