package alarmcheck_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"holdfast/scripts/internal/build"
	"holdfast/scripts/internal/gateway"
	"holdfast/scripts/internal/lambdahost"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/topology"
)

// obedient is the program of a function that does what its event says. It is built once.
var obedient struct {
	once   sync.Once
	binary string
	err    error
}

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "alarmcheck")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	obedient.binary = filepath.Join(folder, "bootstrap")
	code := m.Run()
	if err := os.RemoveAll(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// hosted is a function in Lambda's place: the real host, with the program that obeys and the
// time-out of the topology. What Lambda would count of it goes to the plant.
type hosted struct {
	*lambdahost.Host
	tb    testing.TB
	clock *systemtest.Clock
}

func (p *plant) mustHost(name topology.FunctionName) hosted {
	p.tb.Helper()
	obedient.once.Do(func() {
		obedient.err = build.Program(context.Background(), "../lambdahost", "./testdata/function", build.LambdaTags, obedient.binary)
	})
	p.must(obedient.err)
	f := p.function(name)
	var mutex sync.Mutex
	host, err := lambdahost.Start(lambdahost.Config{
		Name: string(name), Binary: obedient.binary, MemoryMiB: f.MemoryMiB, Timeout: f.Timeout, ProcessesMax: 1, Region: "us-east-1",
		Log: io.Discard, Clock: p.clock,
		Measured: func(metric lambdahost.Metric, value float64) {
			mutex.Lock()
			defer mutex.Unlock()
			p.count("AWS/Lambda", string(metric), "FunctionName", constructID(string(name))+"Function", value)
		},
	})
	p.must(err)
	p.tb.Cleanup(host.Close)
	return hosted{host, p.tb, p.clock}
}

// echo is an event that goes well.
var echo = []byte(`{"do":"echo"}`)

func (h hosted) mustEcho() {
	h.tb.Helper()
	if _, err := h.Invoke(context.Background(), echo); err != nil {
		h.tb.Fatal(err)
	}
}

// calm lets the function be called, and waits until the numbers of it are in a whole minute.
func (h hosted) calm() {
	h.tb.Helper()
	h.mustEcho()
	h.clock.Advance(time.Minute)
}

// held lets the function work on an event until the returned function is called.
func (h hosted) held() (release func()) {
	h.tb.Helper()
	arrived, leave := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(arrived); <-leave }))
	done := make(chan error, 1)
	go func() {
		_, err := h.Invoke(context.Background(), fmt.Appendf(nil, `{"do":"visit","url":%q}`, server.URL))
		done <- err
	}()
	<-arrived
	return func() {
		h.tb.Helper()
		close(leave)
		if err := <-done; err != nil {
			h.tb.Fatal(err)
		}
		server.Close()
	}
}

// functionProofs are faults of functions as Lambda sees them, and of the gateway before them.
func functionProofs() map[string]proof {
	all := map[string]proof{"ApiServerErrors": gatewayProof()}
	for _, f := range topology.Functions() {
		id := constructID(string(f.Name))
		var host hosted
		calm := func(p *plant) { host = p.mustHost(f.Name); host.calm() }
		all[id+"Errors"] = proof{calm: calm, fault: func(p *plant) {
			if _, err := host.Invoke(context.Background(), []byte(`{"do":"panic"}`)); err == nil {
				p.tb.Error("the function panicked, and nobody was told")
			}
			p.clock.Advance(time.Minute)
		}}
		all[id+"Throttles"] = proof{calm: calm, fault: func(p *plant) {
			release := host.held()
			host.crowd()
			release()
			p.clock.Advance(time.Minute)
		}}
		all[id+"Slow"] = proof{calm: calm, fault: func(p *plant) {
			every := 5 * time.Minute
			if f.Schedule != nil {
				every = max(every, f.Schedule.Every)
			}
			for range 3 {
				release := host.held()
				// A tenth of the time-out is left.
				p.clock.Advance(f.Timeout / 10 * 9)
				release()
				p.clock.Set(p.clock.Now().Truncate(every).Add(every))
			}
		}}
	}
	return all
}

// crowd calls the function more often at once than the host lets wait for it.
func (h hosted) crowd() {
	h.tb.Helper()
	waiting, giveUp := context.WithCancel(context.Background())
	var calls sync.WaitGroup
	refused := make(chan struct{}, lambdahost.QueuedCallsMax)
	for range lambdahost.QueuedCallsMax + 1 {
		calls.Go(func() {
			// The context ends those that are let in.
			if _, err := h.Invoke(waiting, echo); err != nil && waiting.Err() == nil {
				refused <- struct{}{}
			}
		})
	}
	<-refused
	giveUp()
	calls.Wait()
}

// gatewayProof: the function behind the gateway fails, and buyers are answered 500.
func gatewayProof() proof {
	ask := func(p *plant, fails bool) {
		functions := map[topology.FunctionName]gateway.Invoke{}
		for _, r := range topology.Routes() {
			functions[r.Function] = func(context.Context, []byte) ([]byte, error) {
				if fails {
					return nil, &lambdahost.FunctionError{Function: string(r.Function), Type: "Runtime.ExitError"}
				}
				return []byte(`{"statusCode":200}`), nil
			}
		}
		made, err := gateway.New(gateway.Config{
			Routes: topology.Routes(), Functions: functions, Authorizer: &gateway.Authorizer{}, IntegrationTimeout: topology.IntegrationTimeout,
			Now: p.clock.Now, Log: slog.New(slog.DiscardHandler), ClaimsAsSent: gateway.RenderClaims,
			Measured: func(metric gateway.Metric, value float64) {
				p.count("AWS/ApiGateway", string(metric), "ApiId", "Gateway", value)
			},
		})
		p.must(err)
		made.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/health", http.NoBody))
		p.clock.Advance(time.Minute)
	}
	return proof{calm: func(p *plant) { ask(p, false) }, fault: func(p *plant) { ask(p, true) }}
}
