package config_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"holdfast/shared/config"
	"holdfast/shared/skew"
	"holdfast/shared/system/systemtest"
)

// liar is a server that dates its answers as it is told, and a gauge that measures a clock
// which stands still at noon by what clients of the local configuration hear from it.
type liar struct {
	t      *testing.T
	gauge  *skew.Gauge
	clock  *systemtest.Clock
	status int
	date   string // of the next answers; "" for no header
	age    string
	tables *dynamodb.Client
	queues *sqs.Client
}

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func newLiar(t *testing.T) *liar {
	t.Helper()
	l := &liar{t: t, clock: systemtest.NewClock(noon), status: http.StatusOK}
	l.gauge = skew.NewGauge(l.clock)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Date"] = nil // net/http dates nothing by itself
		if l.date != "" {
			w.Header().Set("Date", l.date)
		}
		if l.age != "" {
			w.Header().Set("Age", l.age)
		}
		w.WriteHeader(l.status)
		if _, err := w.Write([]byte("{}")); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	c := config.Config{Stage: config.StageLocal, LocalDynamoDBEndpoint: server.URL, LocalSQSEndpoint: server.URL}
	shared, err := c.AWS(t.Context(), l.gauge)
	if err != nil {
		t.Fatal(err)
	}
	l.tables = dynamodb.NewFromConfig(shared, func(o *dynamodb.Options) { o.BaseEndpoint = config.Endpoint(c.LocalDynamoDBEndpoint) })
	l.queues = sqs.NewFromConfig(shared, func(o *sqs.Options) { o.BaseEndpoint = config.Endpoint(c.LocalSQSEndpoint) })
	return l
}

// ask makes a call of each client, and requires both to fail or to succeed as the status
// says.
func (l *liar) ask() {
	l.t.Helper()
	_, tableErr := l.tables.ListTables(l.t.Context(), &dynamodb.ListTablesInput{})
	_, queueErr := l.queues.ListQueues(l.t.Context(), &sqs.ListQueuesInput{})
	if failed := l.status != http.StatusOK; (tableErr != nil) != failed || (queueErr != nil) != failed {
		l.t.Fatalf("status %d: %v, %v", l.status, tableErr, queueErr)
	}
}

// Every client of the configuration measures, by the clock that the function was given.
func TestAnswersAreObserved(t *testing.T) {
	l := newLiar(t)
	l.date = noon.Add(-time.Minute).Format(http.TimeFormat)
	l.ask()
	if l.gauge.Known() {
		t.Error("two answers are enough")
	}
	l.ask()
	if got := l.gauge.Skew(); got != 59*time.Second || !l.gauge.Unreliable() {
		t.Errorf("a server that is a minute behind: skew %s, unreliable %t", got, l.gauge.Unreliable())
	}
	l.date = noon.Format(http.TimeFormat)
	l.ask()
	if l.gauge.Unreliable() {
		t.Errorf("the clocks agree again: skew %s", l.gauge.Skew())
	}
}

// A refusal has a date as well, and each try of a call is an observation: a database that
// throttles says as much about the clock as one that answers.
func TestRefusalsAreObserved(t *testing.T) {
	l := newLiar(t)
	l.status, l.date = http.StatusInternalServerError, noon.Add(time.Minute).Format(http.TimeFormat)
	l.ask() // two calls of two tries
	if got := l.gauge.Skew(); got != -time.Minute {
		t.Errorf("skew %s, want a minute behind", got)
	}
}

// What has no date, an unreadable one, or one of another time says nothing, and harms
// nothing.
func TestAnswersWithoutAUsableDate(t *testing.T) {
	for name, set := range map[string]func(*liar){
		"no date":            func(*liar) {},
		"no time":            func(l *liar) { l.date = "yesterday" },
		"kept by a cache":    func(l *liar) { l.date, l.age = noon.Add(-time.Hour).Format(http.TimeFormat), "3600" },
		"another time zone":  func(l *liar) { l.date = noon.Format(time.RFC3339) },
		"a date of no month": func(l *liar) { l.date = "Tue, 01 Xyz 2026 12:00:00 GMT" },
	} {
		l := newLiar(t)
		set(l)
		for range skew.Observations {
			l.ask()
		}
		if l.gauge.Known() || l.gauge.Skew() != 0 {
			t.Errorf("%s: known %t, skew %s", name, l.gauge.Known(), l.gauge.Skew())
		}
	}
}

// When nobody answers there is nothing to observe, and the call fails as it would.
func TestNoAnswerIsNoObservation(t *testing.T) {
	gauge := skew.NewGauge(systemtest.NewClock(noon))
	c := config.Config{Stage: config.StageLocal, LocalDynamoDBEndpoint: "http://127.0.0.1:1"}
	shared, err := c.AWS(t.Context(), gauge)
	if err != nil {
		t.Fatal(err)
	}
	client := dynamodb.NewFromConfig(shared, func(o *dynamodb.Options) { o.BaseEndpoint = config.Endpoint(c.LocalDynamoDBEndpoint) })
	for range skew.Observations {
		if _, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{}); err == nil {
			t.Error("a call to nobody succeeds")
		}
	}
	if gauge.Known() {
		t.Error("something was observed")
	}
}
