package dynamotest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/engine"
)

// tableNameCharactersMax is DynamoDB's limit, see
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html.
const tableNameCharactersMax = 255

// packageEngine is the one engine of the test binary. It is a package variable because a
// test binary has no other place that TestMain and the tests share.
var packageEngine struct {
	mu      sync.Mutex
	inMain  bool
	engine  *engine.Engine
	startup error
}

// Main runs the tests of a package, and ends their engine after the last one. A test
// package that uses Engine or NewTable calls it from TestMain. The engine is started by
// the first test that wants it, so that running none of them costs nothing. A *testing.M is
// what it runs, or what does something around one.
func Main(m interface{ Run() int }) {
	packageEngine.mu.Lock()
	packageEngine.inMain = true
	packageEngine.mu.Unlock()
	code := m.Run()
	if err := closePackageEngine(); err != nil {
		fmt.Fprintln(os.Stderr, "end the DynamoDB engine of the tests:", err)
		code = 1
	}
	os.Exit(code)
}

// Engine returns the engine of this test package. It belongs to all tests of the
// package: a test that wants to kill one starts its own with engine.Start.
func Engine(tb testing.TB) *engine.Engine {
	tb.Helper()
	packageEngine.mu.Lock()
	defer packageEngine.mu.Unlock()
	if !packageEngine.inMain {
		tb.Fatal("dynamotest needs func TestMain(m *testing.M) { dynamotest.Main(m) } in this test package, which ends the engine")
	}
	if packageEngine.engine == nil && packageEngine.startup == nil {
		packageEngine.engine, packageEngine.startup = engine.Start(context.Background(), engine.Options{Log: os.Stderr})
	}
	if packageEngine.startup != nil {
		tb.Fatalf("start the DynamoDB engine of the tests: %v", packageEngine.startup)
	}
	return packageEngine.engine
}

// NewTable creates an empty table with the schema of Holdfast for this test alone, and
// returns a client for it and its name. The table goes at the end of the test.
func NewTable(tb testing.TB) (client *dynamodb.Client, tableName string) {
	tb.Helper()
	client = Engine(tb).Client()
	tableName = uniqueTableName(tb.Name())
	if err := dynamo.CreateTable(context.Background(), client, tableName); err != nil {
		tb.Fatalf("create the table of the test: %v", err)
	}
	tb.Cleanup(func() {
		_, err := client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &tableName})
		// The SDK asks again when an answer is lost, and then the table is gone already.
		if missing := (*types.ResourceNotFoundException)(nil); err != nil && !errors.As(err, &missing) {
			tb.Errorf("delete the table of the test: %v", err)
		}
	})
	return client, tableName
}

// uniqueTableName keeps the test's name readable, and adds what makes it unique also on
// an engine that several test packages share through DYNAMODB_ENDPOINT.
func uniqueTableName(testName string) string {
	readable := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, testName)
	unique := "-" + rand.Text()
	return readable[:min(len(readable), tableNameCharactersMax-len(unique))] + unique
}

func closePackageEngine() error {
	packageEngine.mu.Lock()
	defer packageEngine.mu.Unlock()
	if packageEngine.engine == nil {
		return nil
	}
	return packageEngine.engine.Close()
}
