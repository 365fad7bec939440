// Package shared_test holds the rule that imports point inward, and the test that the
// rule can fail.
package shared_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

const modulePath = "holdfast"

// inward are the packages that every other may use: the domain, the machine's ports,
// names of metrics, and what is deployed as data.
var inward = []string{"shared/ledger", "shared/system", "shared/telemetry", "shared/topology"}

// mayImport names, for each part of the module, which other parts it may import. A new
// part has to be entered here, so that its place is decided and not found.
var mayImport = map[string][]string{
	"shared/ledger":    {},
	"shared/system":    {},
	"shared/topology":  {},
	"shared/telemetry": {"shared/ledger", "shared/system", "shared/topology"},
	"shared/commands":  {"shared/ledger", "shared/system", "shared/payment"},
	"shared/payment":   {"shared/ledger", "shared/system"},
	"shared/config":    append([]string{"shared/payment", "shared/skew"}, inward...), // the provider's keys are payment.Secret
	"shared/lease":     {},
	"shared/skew":      {"shared/system"},
	"shared/dynamo":    append([]string{"shared/lease"}, inward...),
	"shared/due":       {"shared/ledger"},
	"shared/explain":   {"shared/ledger"},
	"shared/outbox":    append([]string{"shared/payment", "shared/due"}, inward...), // a wake-up is a payment.Message
	"shared/objects":   {"shared/system"},
	"shared/archive":   append([]string{"shared/due", "shared/lease", "shared/objects"}, inward...),
	"shared/webhook":   append([]string{"shared/payment"}, inward...),
	"shared/saga":      append([]string{"shared/commands", "shared/due", "shared/payment"}, inward...),
	"shared/reconcile": append([]string{"shared/outbox", "shared/objects", "shared/payment"}, inward...), // it redrives through the relay
	"shared/expiry":    append([]string{"shared/commands", "shared/due", "shared/lease", "shared/skew"}, inward...),
	"shared/httpapi":   append([]string{"shared/commands", "shared/payment", "shared/skew"}, inward...),
	"infra":            {"shared/topology", "shared/dynamo", "shared/telemetry"},
	"functions":        {"shared"},
	"scripts":          {"shared"},
	"events":           {"shared"},
}

// adapters put a port on one provider. What uses the port must not know which.
var adapters = []string{"shared/payment/stripe"}

var (
	// standardLibraryOnly are the parts that nothing outside Go itself can break.
	standardLibraryOnly = []string{"shared/ledger", "shared/commands", "shared/explain", "shared/system", "shared/topology"}
	// withoutMachine are the parts that a simulation must own to the last bit.
	withoutMachine  = []string{"shared/ledger", "shared/commands", "shared/explain"}
	machinePackages = []string{"os", "os/exec", "math/rand", "math/rand/v2", "crypto/rand", "net", "net/http", "syscall"}
	clockNames      = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}
	// withoutGoroutines are the parts whose order of steps a simulation replays.
	withoutGoroutines = []string{
		"shared/ledger", "shared/commands", "shared/dynamo", "shared/expiry", "shared/outbox", "shared/httpapi", "shared/reconcile",
		"shared/due", "shared/saga", "shared/webhook", "shared/payment", "shared/lease", "shared/objects", "shared/archive",
	}
)

// isSupport reports whether the package in dir is made for tests and local runs: fakes
// and suites by their name, the store in memory, the engine that stands in for
// DynamoDB, and the simulation, which puts all parts together.
func isSupport(dir string) bool {
	for _, part := range strings.Split(dir, "/") {
		if strings.HasSuffix(part, "test") {
			return true
		}
	}
	return dir == "shared/ledger/memory" || dir == "shared/dynamo/engine" || dir == "shared/sim" || strings.HasPrefix(dir, "shared/sim/")
}

// TestImportsPointInward checks every Go file of the module.
func TestImportsPointInward(t *testing.T) {
	found, err := violations(os.DirFS(".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, violation := range found {
		t.Error(violation)
	}
}

// TestEachRuleCanFail shows the checker one breach of each rule and requires exactly
// that breach to be reported, and shows it what is allowed beside it.
func TestEachRuleCanFail(t *testing.T) {
	tests := []struct {
		path, source string
		want         string // of the only violation; "" for none
	}{
		{"shared/ledger/a.go", `package ledger; import "holdfast/shared/system"`, "may import of ours only"},
		{"shared/ledger/a.go", `package ledger; import "golang.org/x/sync/errgroup"`, "standard library only"},
		{"shared/ledger/a_test.go", `package ledger_test; import "pgregory.net/rapid"`, ""},
		{"shared/ledger/a_test.go", `package ledger_test; import "holdfast/shared/ledger/memory"`, ""},
		{"shared/ledger/a.go", `package ledger; import "holdfast/shared/ledger/memory"`, "what is deployed does not import"},
		{"shared/ledger/memory/a.go", `package memory; import "holdfast/shared/ledger"`, ""},
		{"shared/ledger/ledgertest/a.go", `package ledgertest; import "os"; func f() { go f() }`, ""},
		{"shared/ledger/a.go", `package ledger; import "os"`, "does not ask the machine"},
		{"shared/ledger/a.go", `package ledger; import "math/rand/v2"`, "does not ask the machine"},
		{"shared/commands/a.go", `package commands; import "crypto/rand"`, "does not ask the machine"},
		{"shared/commands/a.go", `package commands; import "net/http"`, "does not ask the machine"},
		{"shared/ledger/a.go", `package ledger; import "time"; var now = time.Now`, "time.Now"},
		{"shared/ledger/a.go", `package ledger; import clock "time"; var now = clock.Now()`, "time.Now"},
		{"shared/commands/a.go", `package commands; import "time"; func f() { time.Sleep(1) }`, "time.Sleep"},
		{"shared/commands/a.go", `package commands; import "time"; func f(s time.Time) any { return time.Since(s) }`, "time.Since"},
		{"shared/ledger/a.go", `package ledger; import "time"; func f(s time.Time) any { return s.After(s) }`, ""},
		{"shared/ledger/a_test.go", `package ledger_test; import "time"; var now = time.Now()`, ""},
		{"shared/ledger/a.go", `package ledger; func f() { go f() }`, "starts no goroutine"},
		{"shared/commands/a.go", `package commands; func f() { go f() }`, "starts no goroutine"},
		{"shared/dynamo/a.go", `package dynamo; func f() { go f() }`, "starts no goroutine"},
		{"shared/expiry/a.go", `package expiry; func f() { go f() }`, "starts no goroutine"},
		{"shared/outbox/a.go", `package outbox; func f() { go f() }`, "starts no goroutine"},
		{"shared/httpapi/a.go", `package httpapi; func f() { go f() }`, "starts no goroutine"},
		{"shared/expiry/a.go", `package expiry; import "sync"; func f(g *sync.WaitGroup) { g.Go(nil) }`, "call of Go"},
		{"shared/dynamo/engine/a.go", `package engine; func f() { go f() }`, ""},
		{"shared/system/a.go", `package system; import "holdfast/shared/ledger"`, "may import of ours only"},
		{"shared/topology/a.go", `package topology; import "holdfast/shared/dynamo"`, "may import of ours only"},
		{"shared/telemetry/a.go", `package telemetry; import "holdfast/shared/dynamo"`, "may import of ours only"},
		{"shared/commands/a.go", `package commands; import "holdfast/shared/ledger"`, ""},
		{"shared/commands/a.go", `package commands; import "holdfast/shared/dynamo"`, "may import of ours only"},
		{"shared/commands/a.go", `package commands; import "github.com/aws/aws-sdk-go-v2/aws"`, "standard library only"},
		{"shared/dynamo/a.go", `package dynamo; import "holdfast/shared/commands"`, "may import of ours only"},
		{"shared/dynamo/a.go", `package dynamo; import "holdfast/shared/httpapi"`, "may import of ours only"},
		{"shared/dynamo/a_test.go", `package dynamo_test; import "holdfast/shared/commands"`, ""},
		{"shared/outbox/a.go", `package outbox; import "holdfast/shared/dynamo"`, "may import of ours only"},
		{"shared/outbox/a.go", `package outbox; import "holdfast/shared/commands"`, "may import of ours only"},
		{"shared/outbox/a.go", `package outbox; import "holdfast/shared/payment"`, ""},
		{"shared/due/a.go", `package due; import "holdfast/shared/ledger"`, ""},
		{"shared/due/a.go", `package due; import "holdfast/shared/expiry"`, "may import of ours only"},
		{"shared/due/a.go", `package due; func f() { go f() }`, "starts no goroutine"},
		{"shared/webhook/a.go", `package webhook; import "holdfast/shared/payment"`, ""},
		{"shared/payment/a.go", `package payment; import "holdfast/shared/dynamo"`, "may import of ours only"},
		{"shared/payment/stripe/a.go", `package stripe; import "holdfast/shared/commands"`, "may import of ours only"},
		{"shared/payment/stripe/a.go", `package stripe; import "holdfast/shared/payment/paymenttest"`, "what is deployed does not import"},
		{"shared/payment/stripe/a.go", `package stripe; func f() { go f() }`, "starts no goroutine"},
		{"shared/payment/stripetest/a.go", `package stripetest; func f() { go f() }`, ""},
		{"shared/webhook/a.go", `package webhook; import "holdfast/shared/dynamo"`, "may import of ours only"},
		{"shared/webhook/a.go", `package webhook; func f() { go f() }`, "starts no goroutine"},
		{"shared/saga/a.go", `package saga; import "holdfast/shared/due"`, ""},
		{"shared/saga/a.go", `package saga; import "holdfast/shared/payment/stripe"`, "only a function chooses its adapter"},
		{"shared/payment/a.go", `package payment; import "holdfast/shared/payment/stripe"`, "only a function chooses its adapter"},
		{"functions/saga/a.go", `package main; import "holdfast/shared/payment/stripe"`, ""},
		{"shared/saga/a.go", `package saga; import "holdfast/shared/dynamo"`, "may import of ours only"},
		{"shared/saga/a.go", `package saga; func f() { go f() }`, "starts no goroutine"},
		{"shared/httpapi/a.go", `package httpapi; import "holdfast/shared/commands"`, ""},
		{"shared/httpapi/a.go", `package httpapi; import "holdfast/shared/dynamo"`, "may import of ours only"},
		{"shared/httpapi/a.go", `package httpapi; import "holdfast/shared/expiry"`, "may import of ours only"},
		{"shared/expiry/a.go", `package expiry; import "holdfast/shared/commands"`, ""},
		{"shared/expiry/a.go", `package expiry; import "holdfast/shared/outbox"`, "may import of ours only"},
		{"shared/config/a.go", `package config; import "holdfast/shared/dynamo"`, "may import of ours only"},
		{"shared/config/a.go", `package config; import "holdfast/shared/payment"`, ""},
		{"shared/config/a.go", `package config; import "holdfast/shared/payment/stripetest"`, "what is deployed does not import"},
		{"shared/unheard/a.go", `package unheard; import "holdfast/shared/ledger"`, "has no import rule"},
		{"shared/dynamo/a.go", `package dynamo; import "holdfast/functions/api"`, "nothing imports functions or infra"},
		{"shared/dynamo/a_test.go", `package dynamo_test; import "holdfast/functions/api"`, "nothing imports functions or infra"},
		{"shared/dynamo/dynamotest/a.go", `package dynamotest; import "holdfast/infra"`, "nothing imports functions or infra"},
		{"functions/api/a.go", `package main; import "holdfast/functions/expiry"`, "nothing imports functions or infra"},
		{"functions/api/a.go", `package main; import "holdfast/shared/httpapi"`, ""},
		{"functions/api/a.go", `package main; import "holdfast/shared/ledger/memory"`, "what is deployed does not import"},
		{"functions/api/a.go", `package main; import "holdfast/shared/dynamo/dynamotest"`, "what is deployed does not import"},
		{"functions/api/a_test.go", `package main; import "holdfast/shared/dynamo/dynamotest"`, ""},
		{"functions/api/a.go", `package main; import "holdfast/scripts/internal/build"`, "only scripts import scripts"},
		{"shared/expiry/a_test.go", `package expiry_test; import "holdfast/scripts/internal/build"`, "only scripts import scripts"},
		{"shared/sim/a.go", `package sim; import "holdfast/shared/dynamo"`, ""},
		{"shared/sim/a.go", `package sim; import "holdfast/functions/api"`, "nothing imports functions or infra"},
		{"functions/api/a.go", `package main; import "holdfast/shared/sim"`, "what is deployed does not import"},
		{"infra/a.go", `package main; import "holdfast/shared/topology"`, ""},
		{"infra/a.go", `package main; import "holdfast/shared/dynamo"`, ""},
		{"infra/a.go", `package main; import "holdfast/shared/ledger"`, "may import of ours only"},
		{"infra/a.go", `package main; import "holdfast/shared/httpapi"`, "may import of ours only"},
		{"scripts/local/a.go", `package main; import "holdfast/shared/dynamo/engine"`, ""},
		{"scripts/local/a.go", `package main; import "holdfast/infra"`, "nothing imports functions or infra"},
		{"scripts/local/a.go", `package main; import "holdfast/functions/api"`, "nothing imports functions or infra"},
		{"scripts/local/a.go", `package main; import "holdfast/scripts/internal/build"`, ""},
		{"shared/ledger/testdata/a.go", `package ledger; import "os"`, ""},
	}
	for _, test := range tests {
		found, err := violations(fstest.MapFS{test.path: {Data: []byte(test.source)}})
		if err != nil {
			t.Errorf("%s: %s: %v", test.path, test.source, err)
			continue
		}
		switch {
		case test.want == "" && len(found) > 0:
			t.Errorf("%s: %s: should be allowed, but: %v", test.path, test.source, found)
		case test.want != "" && (len(found) != 1 || !strings.Contains(found[0], test.want) || !strings.HasPrefix(found[0], test.path+":1: ")):
			t.Errorf("%s: %s: found %q, want one violation that says %q", test.path, test.source, found, test.want)
		}
	}
}

func TestFileThatDoesNotParseIsAnError(t *testing.T) {
	if found, err := violations(fstest.MapFS{"shared/ledger/a.go": {Data: []byte("package")}}); err == nil {
		t.Errorf("found %v and no error", found)
	}
}
