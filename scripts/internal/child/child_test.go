package child_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/scripts/internal/child"
)

// roleVariable tells a copy of this test binary which part it plays.
const roleVariable = "CHILD_TEST_ROLE"

// exitWait bounds the wait for a process to end or to speak.
const exitWait = 20 * time.Second

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "parent": // starts a grandchild, prints its id, and never ends by itself
		grandchild, err := child.Start(child.Command{
			Program: os.Args[0], Environment: []string{roleVariable + "=waiting"}, Output: os.Stderr,
		})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(grandchild.ID())
		<-grandchild.Exited()
	case "waiting": // a bare select{} would be found out as a deadlock and end the program
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGUSR1)
		<-signals
	case "failing":
		fmt.Println("spoken before the end")
		os.Exit(3)
	case "environment":
		fmt.Println(strings.Join(os.Environ(), " "))
	default:
		os.Exit(m.Run())
	}
}

func mustStart(t *testing.T, role string, output *bytes.Buffer) *child.Process {
	t.Helper()
	process, err := child.Start(child.Command{
		Program: os.Args[0], Environment: []string{roleVariable + "=" + role}, Output: output,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	return process
}

func waitForExit(t *testing.T, process *child.Process) {
	t.Helper()
	select {
	case <-process.Exited():
	case <-time.After(exitWait):
		t.Fatal("the child did not end")
	}
}

func TestExitStatusAndOutput(t *testing.T) {
	var output bytes.Buffer
	process := mustStart(t, "failing", &output)
	waitForExit(t, process)
	var exit *exec.ExitError
	if !errors.As(process.ExitError(), &exit) || exit.ExitCode() != 3 {
		t.Errorf("exit error = %v, want status 3", process.ExitError())
	}
	if got := output.String(); got != "spoken before the end\n" {
		t.Errorf("output = %q", got)
	}
}

func TestNothingOfTheEnvironmentIsInherited(t *testing.T) {
	t.Setenv("AWS_PROFILE", "production")
	var output bytes.Buffer
	process := mustStart(t, "environment", &output)
	waitForExit(t, process)
	if got, want := strings.TrimSpace(output.String()), roleVariable+"=environment"; got != want {
		t.Errorf("environment = %q, want %q", got, want)
	}
}

func TestKillEndsAndWaits(t *testing.T) {
	process := mustStart(t, "waiting", &bytes.Buffer{})
	if !alive(process.ID()) {
		t.Fatal("the child ended by itself")
	}
	process.Kill()
	process.Kill()
	if alive(process.ID()) {
		t.Error("the child is still there after Kill returned")
	}
}

func TestMissingProgramIsAnError(t *testing.T) {
	_, err := child.Start(child.Command{Program: t.TempDir() + "/missing"})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error = %v, want os.ErrNotExist", err)
	}
}

// A child must not outlive a parent that was killed and could not clean up. Only
// Linux can promise that for any program.
func TestChildEndsWithKilledParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("this system has no death signal; nothing is promised here")
		return
	}
	parent := exec.Command(os.Args[0])
	parent.Env = []string{roleVariable + "=parent"}
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var line [32]byte
	n, readErr := output.Read(line[:])
	killErr := parent.Process.Kill()
	waitErr := parent.Wait()
	if readErr != nil || killErr != nil || waitErr == nil {
		t.Fatalf("read: %v, kill: %v, wait: %v", readErr, killErr, waitErr)
	}
	grandchild, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), exitWait)
	defer cancel()
	for alive(grandchild) {
		if ctx.Err() != nil {
			_ = syscall.Kill(grandchild, syscall.SIGKILL)
			t.Fatal("the grandchild outlived its killed parent")
		}
		runtime.Gosched()
	}
}

// alive says whether a process runs. An ended process that nobody has waited for yet
// still has an id, so its state is read too.
func alive(id int) bool {
	if syscall.Kill(id, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	if err != nil {
		return runtime.GOOS != "linux"
	}
	_, afterName, found := strings.Cut(string(stat), ") ")
	return found && !strings.HasPrefix(afterName, "Z")
}
