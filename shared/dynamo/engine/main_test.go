package engine_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"holdfast/shared/dynamo/engine"
)

// roleVariable makes the test binary be another process: one that the tests kill, or
// several that want the same program.
const roleVariable = "HOLDFAST_ENGINE_TEST_ROLE"

const (
	roleHold   = "hold"
	rolePanic  = "panic"
	roleBinary = "binary"
)

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		os.Exit(m.Run())
	case roleHold, rolePanic:
		exitOn(holdEngine(role))
	case roleBinary:
		path, err := engine.Binary(context.Background(), os.Stderr)
		exitOn(err)
		fmt.Println(path)
	default:
		exitOn(fmt.Errorf("unknown role %q", role))
	}
}

// holdEngine starts an engine, tells where it is, and then does not end it.
func holdEngine(role string) error {
	held, err := engine.Start(context.Background(), engine.Options{OwnProcess: true})
	if err != nil {
		return err
	}
	fmt.Println(held.Endpoint())
	fmt.Println(held.ScratchDirectory())
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	if role == rolePanic {
		panic("the test panics while its engine runs")
	}
	return nil
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
