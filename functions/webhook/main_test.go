package main

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/stripetest"
	"holdfast/shared/system"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/telemetry/telemetrytest"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

const (
	reservation ledger.ReservationID = "rsv_6vgqk3t9m2x4n8r5c7w1z0hjsd"
	// eventID and paymentID are those of the sample events.
	eventID   ledger.ProviderEventID = "evt_3QK9aB2eZvKYlo2C1x7Yt0aB"
	paymentID ledger.PaymentID       = "pi_3QK9aB2eZvKYlo2C1q2w3e4r"
	// oldSecret and newSecret are both good while the secret is being changed.
	oldSecret = "whsec_old-secret-marker"
	newSecret = "whsec_new-secret-marker"
)

var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// cloud speaks the calls of SQS and Secrets Manager that the function makes.
type cloud struct {
	mutex    sync.Mutex
	messages []string
	queueURL string
	down     map[string]bool // by the call's name
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	target := r.Header.Get("X-Amz-Target")
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if c.down[target] {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	switch target {
	case "secretsmanager.GetSecretValue":
		_, _ = fmt.Fprintf(w, `{"Name":"payment","SecretString":%q}`,
			fmt.Sprintf(`{"api_key":"sk_test_key-marker","webhook_secrets":[%q,%q]}`, oldSecret, newSecret))
	case "AmazonSQS.SendMessage":
		var call struct {
			QueueURL string `json:"QueueUrl"`
			Body     string `json:"MessageBody"`
		}
		if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.messages, c.queueURL = append(c.messages, call.Body), call.QueueURL
		_, _ = fmt.Fprintf(w, `{"MessageId":"m","MD5OfMessageBody":"%x"}`, md5.Sum([]byte(call.Body)))
	default:
		w.WriteHeader(http.StatusBadRequest)
	}
}

// world is the function on a real table, with a clock for its signatures.
type world struct {
	t      *testing.T
	clock  *systemtest.Clock
	cloud  *cloud
	store  *dynamo.Store
	handle handler
	output func() string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	client, table := dynamotest.NewTable(t)
	w := &world{
		t: t, clock: systemtest.NewClock(start), cloud: &cloud{down: map[string]bool{}}, output: telemetrytest.Output(t),
		store: dynamo.NewStore(client, table, system.RealClock{}, system.RealRandom{}),
	}
	server := httptest.NewServer(w.cloud)
	t.Cleanup(server.Close)
	environment(t, table, *client.Options().BaseEndpoint, server.URL)
	handle, err := compose(t.Context(), w.clock)
	if err != nil {
		t.Fatal(err)
	}
	w.handle = handle
	return w
}

func environment(t *testing.T, table, dynamoDB, others string) {
	t.Helper()
	t.Setenv("HOLDFAST_STAGE", "local")
	t.Setenv("HOLDFAST_TABLE_NAME", table)
	t.Setenv("HOLDFAST_SAGA_QUEUE_URL", "http://127.0.0.1:1/saga")
	t.Setenv("HOLDFAST_PAYMENT_SECRET_ID", "payment")
	t.Setenv("HOLDFAST_LOCAL_DYNAMODB_ENDPOINT", dynamoDB)
	t.Setenv("HOLDFAST_LOCAL_SQS_ENDPOINT", others)
	t.Setenv("HOLDFAST_LOCAL_SECRETS_ENDPOINT", others)
}

// sample is one of the sample events, and the body that is in it.
func sample(t *testing.T, file string) (map[string]any, string) {
	t.Helper()
	text, err := os.ReadFile("../../events/lambda/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var event map[string]any
	if err := json.Unmarshal(text, &event); err != nil {
		t.Fatal(err)
	}
	body, _ := event["body"].(string)
	if event["isBase64Encoded"] == true {
		decoded, err := base64.StdEncoding.DecodeString(body)
		if err != nil {
			t.Fatal(err)
		}
		body = string(decoded)
	}
	return event, body
}

// send sends a body under that signature, in the form of the sample event.
func (w *world) send(file, body, signature string, status int) events.APIGatewayV2HTTPResponse {
	w.t.Helper()
	event, _ := sample(w.t, file)
	headers, _ := event["headers"].(map[string]any)
	delete(headers, "stripe-signature")
	if signature != "" {
		headers["stripe-signature"] = signature
	}
	event["body"] = body
	if event["isBase64Encoded"] == true {
		event["body"] = base64.StdEncoding.EncodeToString([]byte(body))
	}
	text, err := json.Marshal(event)
	if err != nil {
		w.t.Fatal(err)
	}
	answer, err := w.handle(w.t.Context(), text)
	if err != nil || answer.StatusCode != status {
		w.t.Errorf("answered %d %s, %v; want %d", answer.StatusCode, answer.Body, err, status)
	}
	w.wantDescribed(answer)
	return answer
}

// wantDescribed requires that the HTTP document has the code of an answer that is a
// problem.
func (w *world) wantDescribed(answer events.APIGatewayV2HTTPResponse) {
	w.t.Helper()
	if answer.StatusCode < http.StatusBadRequest {
		return
	}
	var problem httpapi.Problem
	if err := json.Unmarshal([]byte(answer.Body), &problem); err != nil {
		w.t.Fatal(err)
	}
	if !problem.Code.Valid() {
		w.t.Errorf("the document has no code %q", problem.Code)
	}
}

func (w *world) sign(body string, off time.Duration, secrets ...string) string {
	var wrapped []payment.Secret
	for _, s := range secrets {
		wrapped = append(wrapped, payment.NewSecret(s))
	}
	return stripetest.SignatureHeader([]byte(body), w.clock.Now().Add(off), wrapped...)
}

// record claims the event, as a Change of the saga does.
func (w *world) record(id ledger.ProviderEventID) {
	w.t.Helper()
	now := system.Millisecond(w.clock)
	change := ledger.ReservationStep(ledger.Reservation{}, ledger.Reservation{
		ID: reservation, Owner: "U-17", Hold: "hold_00000000000000000000000000", Status: ledger.ReservationPaymentPending,
		Amount:   ledger.Money{AmountMinor: 100000, Currency: "KRW"},
		Attempts: []ledger.Attempt{{Number: 1, State: ledger.AttemptOpen, OpenedAt: now}}, LookAt: now,
	}, ledger.EventReservationPaymentStarted, nil, ledger.Origin{
		Actor: ledger.ActorSystem, Command: ledger.CommandDriveReservation, RequestID: "request_test", EventID: ledger.NewEventID(system.RealRandom{}.Bits128()),
	}, now)
	change.Uniqueness = []ledger.Uniqueness{{Kind: ledger.UniqueProviderEvent, Value: string(id), Reservation: reservation}}
	if err := w.store.Commit(w.t.Context(), change); err != nil {
		w.t.Fatal(err)
	}
}

// The real wiring, with Stripe's real check: the sample events, as text and as base64
// (case H1), are queued as one notice each, until the table has the claim on the event
// (cases D13 and D14).
func TestTheWiringWorks(t *testing.T) {
	w := newWorld(t)
	for _, file := range []string{"webhook.json", "webhook_base64.json"} {
		_, body := sample(t, file)
		if answer := w.send(file, body, w.sign(body, 0, newSecret), 200); answer.Body != `{"result":"queued"}` {
			t.Errorf("%s: answered %s", file, answer.Body)
		}
	}
	if len(w.cloud.messages) != 2 || w.cloud.messages[0] != w.cloud.messages[1] || w.cloud.queueURL != "http://127.0.0.1:1/saga" {
		t.Fatalf("the queue %s has %v", w.cloud.queueURL, w.cloud.messages)
	}
	m, err := payment.DecodeMessage(w.cloud.messages[0])
	if err != nil {
		t.Fatal(err)
	}
	want := payment.Notice{
		ID: eventID, Type: "payment_intent.amount_capturable_updated", Payment: paymentID, Reservation: reservation, Attempt: 1,
		OccurredAt: start, AmountMinor: 100000, Currency: "KRW", Status: payment.StatusAuthorized,
	}
	if m.Reservation != reservation || m.Notice == nil || *m.Notice != want {
		t.Errorf("queued %s", w.cloud.messages[0])
	}
	w.record(eventID)
	_, body := sample(t, "webhook.json")
	w.clock.Advance(3 * 24 * time.Hour)
	if answer := w.send("webhook.json", body, w.sign(body, 0, newSecret), 200); answer.Body != `{"result":"recorded"}` || len(w.cloud.messages) != 2 {
		t.Errorf("answered %s, %d messages", answer.Body, len(w.cloud.messages))
	}
}

// Case J3, with Stripe's real check: 299 s off is good and 301 s is not, to both sides; so
// is no time, one that is no number, and one in milliseconds.
func TestCaseJ3_SmallClockDifferences(t *testing.T) {
	w := newWorld(t)
	_, body := sample(t, "webhook.json")
	for _, off := range []time.Duration{-299 * time.Second, 0, 299 * time.Second} {
		w.send("webhook.json", body, w.sign(body, off, newSecret), 200)
	}
	good := w.sign(body, 0, newSecret)
	stamp := fmt.Sprintf("t=%d", start.Unix())
	for _, signature := range []string{
		w.sign(body, -301*time.Second, newSecret), w.sign(body, 301*time.Second, newSecret),
		strings.Replace(good, stamp+",", "", 1), strings.Replace(good, stamp, "t=NaN", 1), strings.Replace(good, stamp, stamp+"000", 1),
	} {
		w.send("webhook.json", body, signature, 401)
	}
	if len(w.cloud.messages) != 3 {
		t.Errorf("%d messages", len(w.cloud.messages))
	}
}

// Case L2, with Stripe's real check: what passes is the exact bytes. One flipped bit is
// another body.
func TestCaseL2_TheExactBytesCount(t *testing.T) {
	w := newWorld(t)
	_, body := sample(t, "webhook.json")
	sent := 0
	for name, form := range map[string]string{
		"extra spaces":      strings.ReplaceAll(body, "\n", " \n  "),
		"1.0":               strings.ReplaceAll(body, `"amount": 100000`, `"amount": 100000.0`),
		"an escape":         strings.ReplaceAll(body, "payment_intent", `payment\u005fintent`),
		"a name twice":      strings.Replace(body, "{", `{"livemode": true,`, 1),
		"a CRLF at the end": body + "\r\n",
	} {
		for _, file := range []string{"webhook.json", "webhook_base64.json"} {
			signature := w.sign(form, 0, newSecret)
			sent++
			if w.send(file, form, signature, 200); len(w.cloud.messages) != sent {
				t.Errorf("%s in %s: %d messages, want %d", name, file, len(w.cloud.messages), sent)
			}
			w.send(file, form[:7]+string(form[7]^1)+form[8:], signature, 401)
		}
	}
	if len(w.cloud.messages) != sent {
		t.Errorf("%d messages, want %d", len(w.cloud.messages), sent)
	}
}

// Case L3, with Stripe's real check: while the secret is being changed, one good signature
// of several is enough, of the old secret or the new. A strange secret signs nothing.
func TestCaseL3_SecretsAreChanged(t *testing.T) {
	w := newWorld(t)
	_, body := sample(t, "webhook.json")
	for _, secrets := range [][]string{{oldSecret}, {newSecret}, {oldSecret, newSecret}, {"strange", newSecret}, {oldSecret, "strange"}} {
		w.send("webhook.json", body, w.sign(body, 0, secrets...), 200)
	}
	original := w.sign(body, 0, newSecret)
	w.clock.Advance(time.Minute)
	rewritten := strings.Replace(original, fmt.Sprint(start.Unix()), fmt.Sprint(w.clock.Now().Unix()), 1)
	for _, signature := range []string{w.sign(body, 0, "strange"), "", rewritten} {
		w.send("webhook.json", body, signature, 401)
	}
	w.send("webhook.json", body, original, 200)
	if len(w.cloud.messages) != 6 {
		t.Errorf("%d messages", len(w.cloud.messages))
	}
}

// What is signed and not ours is no error of anybody; what is ours and can't be read is.
func TestOtherEventsAreAnswered(t *testing.T) {
	w := newWorld(t)
	_, body := sample(t, "webhook.json")
	for other, status := range map[string]int{
		strings.ReplaceAll(body, "holdfast_", "somebody_"):     200,
		strings.ReplaceAll(body, "payment_intent", "customer"): 200,
		strings.ReplaceAll(body, `"1"`, `"one"`):               400,
		strings.ReplaceAll(body, `"1"`, `"21"`):                400,
		strings.ReplaceAll(body, string(reservation), "rsv_1"): 400,
		`not JSON`: 400,
	} {
		w.send("webhook.json", other, w.sign(other, 0, newSecret), status)
	}
	if len(w.cloud.messages) > 0 {
		t.Errorf("queued %v", w.cloud.messages)
	}
}

// Each part that is down makes the provider come again, and nothing of it is told (L5).
func TestCaseL5_APartThatIsDown(t *testing.T) {
	for _, down := range []string{"secretsmanager.GetSecretValue", "AmazonSQS.SendMessage", "table"} {
		w := newWorld(t)
		if down == "table" {
			t.Setenv("HOLDFAST_TABLE_NAME", "no-such-table")
			handle, err := compose(t.Context(), w.clock)
			if err != nil {
				t.Fatal(err)
			}
			w.handle = handle
		}
		w.cloud.down[down] = true
		_, body := sample(t, "webhook.json")
		body = strings.Replace(body, "{", `{"client_secret": "pi_secret_body-marker",`, 1)
		signature := w.sign(body, 0, newSecret)
		answer := w.send("webhook.json", body, signature, 503)
		if answer.Headers["Retry-After"] == "" || len(w.cloud.messages) > 0 {
			t.Errorf("%s: answered %v, queued %v", down, answer.Headers, w.cloud.messages)
		}
		told := w.output() + answer.Body
		for _, marker := range []string{"-marker", signature, "_secret"} {
			if strings.Contains(told, marker) {
				t.Errorf("%s: %s is told: %s", down, marker, told)
			}
		}
		if !strings.Contains(told, `"webhook_failed":1`) {
			t.Errorf("%s: %s", down, told)
		}
	}
}

func TestAnIncompleteEnvironmentStopsTheStart(t *testing.T) {
	environment(t, "table", "http://127.0.0.1:1", "http://127.0.0.1:1")
	t.Setenv("HOLDFAST_SAGA_QUEUE_URL", "")
	if _, err := compose(t.Context(), system.RealClock{}); err == nil || !strings.Contains(err.Error(), "HOLDFAST_SAGA_QUEUE_URL") {
		t.Errorf("error %v", err)
	}
}
