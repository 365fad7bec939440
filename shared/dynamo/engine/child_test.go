package engine_test

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"holdfast/shared/dynamo/engine"
)

// holder is another process that has started an engine.
type holder struct {
	command   *exec.Cmd
	endpoint  string
	scratch   string
	closeHold func() error
}

func mustHold(tb testing.TB, role string) holder {
	tb.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), roleVariable+"="+role)
	stdin, err := command.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := command.Start(); err != nil {
		tb.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	read := func() string {
		if !lines.Scan() {
			tb.Fatalf("the other process told nothing: %v", errors.Join(lines.Err(), command.Wait()))
		}
		return lines.Text()
	}
	held := holder{command: command, endpoint: read(), scratch: read(), closeHold: stdin.Close}
	tb.Cleanup(func() {
		// The process has ended by now, and could not remove its scratch data.
		if err := os.RemoveAll(held.scratch); err != nil {
			tb.Error(err)
		}
	})
	return held
}

func TestEngineEndsWithAKilledParent(t *testing.T) {
	held := mustHold(t, roleHold)
	mustCreateTable(t, engine.Client(held.endpoint))
	if err := held.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := held.command.Wait(); err == nil {
		t.Error("the killed process ended well")
	}
	mustBeSilent(t, held.endpoint)
}

func TestEngineEndsWithAPanickingParent(t *testing.T) {
	held := mustHold(t, rolePanic)
	mustCreateTable(t, engine.Client(held.endpoint))
	if err := held.closeHold(); err != nil {
		t.Fatal(err)
	}
	if err := held.command.Wait(); err == nil {
		t.Error("the panicking process ended well")
	}
	mustBeSilent(t, held.endpoint)
}

// A parent that ends well without Close is the third way to lose an engine.
func TestEngineEndsWithAParentThatForgetsIt(t *testing.T) {
	held := mustHold(t, roleHold)
	if err := held.closeHold(); err != nil {
		t.Fatal(err)
	}
	if err := held.command.Wait(); err != nil {
		t.Error(err)
	}
	mustBeSilent(t, held.endpoint)
}

// Linux ties the child to the thread that started it. A caller whose thread ends right
// after Start must keep its engine.
func TestEngineOutlivesTheThreadThatAskedForIt(t *testing.T) {
	var started *engine.Engine
	ended := make(chan error)
	go func() {
		// A goroutine that ends while it is locked to its thread takes the thread
		// with it.
		runtime.LockOSThread()
		var err error
		started, err = engine.Start(context.Background(), engine.Options{OwnProcess: true})
		ended <- err
	}()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	mustCreateTable(t, started.Client())
	select {
	case <-started.Ended():
		t.Error("the engine ended with a thread")
	default:
	}
	if err := started.Close(); err != nil {
		t.Error(err)
	}
}

// The scratch data of a killed process is removed by the next engine, and that of a
// living one is not, however old it is.
func TestAbandonedScratchDataIsRemoved(t *testing.T) {
	killed, living := mustHold(t, roleHold), mustStart(t, engine.Options{OwnProcess: true})
	if err := killed.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := killed.command.Wait(); err == nil {
		t.Error("the killed process ended well")
	}
	old := time.Now().Add(-time.Hour)
	for _, directory := range []string{killed.scratch, living.ScratchDirectory()} {
		if err := os.Chtimes(directory, old, old); err != nil {
			t.Fatalf("the scratch data of the killed process should still be there: %v", err)
		}
	}
	mustStart(t, engine.Options{OwnProcess: true})
	if _, err := os.Stat(killed.scratch); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the scratch data of the killed process is still there (%v)", err)
	}
	if _, err := os.Stat(living.DataFile()); err != nil {
		t.Errorf("the scratch data of a living engine is gone: %v", err)
	}
	if !strings.HasPrefix(living.DataFile(), living.ScratchDirectory()) {
		t.Errorf("%s is not in %s", living.DataFile(), living.ScratchDirectory())
	}
}
