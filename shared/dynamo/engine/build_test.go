package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast/shared/dynamo/engine"
)

// findRoot is the part of a made-up cargo that reads where to put the program.
const findRoot = `#!/bin/sh
while [ $# -gt 0 ]; do
	if [ "$1" = --root ]; then root=$2; fi
	shift
done
`

// countedCargo notes that it runs, does not end before something opens the other end of
// its gate, and then installs a program that works.
func countedCargo(runs, gate string) string {
	return findRoot + fmt.Sprintf(`echo run >>'%s'
echo cargo is at work
cat '%s'
mkdir -p "$root/bin"
printf '%%s\n' '#!/bin/sh' 'echo dynoxide 1.5.0' >"$root/bin/dynoxide"
chmod +x "$root/bin/dynoxide"
`, runs, gate)
}

// The tests of one `go test ./...` are many processes, and a new machine must not build
// the engine once for each of them.
func TestManyProcessesBuildOnce(t *testing.T) {
	const processes = 4
	m := mustMachine(t, t.Setenv)
	runs, gate := filepath.Join(t.TempDir(), "runs"), filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	mustWriteProgram(t, m.onPath("cargo"), countedCargo(runs, gate))

	type builder struct {
		command *exec.Cmd
		found   strings.Builder
		told    *log
	}
	start := func() *builder {
		b := &builder{command: exec.Command(os.Args[0]), told: newLog()}
		b.command.Env = append(os.Environ(), roleVariable+"="+roleBinary)
		b.command.Stdout, b.command.Stderr = &b.found, b.told
		if err := b.command.Start(); err != nil {
			t.Fatal(err)
		}
		return b
	}
	builders := []*builder{start()}
	builders[0].told.MustWaitFor(t, "cargo is at work")
	for range processes - 1 {
		builders = append(builders, start())
	}
	for _, waiting := range builders[1:] {
		waiting.told.MustWaitFor(t, "waiting for another process that is building")
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, b := range builders {
		if err := b.command.Wait(); err != nil {
			t.Errorf("process %d: %v; it said:\n%s", i, err, b.told)
		}
		if found := strings.TrimSpace(b.found.String()); found != m.cached() {
			t.Errorf("process %d found %q, want %q", i, found, m.cached())
		}
	}
	if counted := mustRead(t, runs); counted != "run\n" {
		t.Errorf("cargo ran %d times, want once", strings.Count(counted, "run"))
	}
	mustOnlyHold(t, m.cache, "build.lock", "dynoxide")
}

func TestFailedBuildIsAnErrorAndCanBeRepeated(t *testing.T) {
	m := mustMachine(t, t.Setenv)
	mustWriteProgram(t, m.onPath("cargo"), "#!/bin/sh\necho 'error: no linker' >&2\nexit 101\n")
	_, err := engine.Binary(context.Background(), newLog())
	mustNameAll(t, err, []string{"exit status 101", "error: no linker", "DYNAMODB_ENDPOINT"})
	if _, err := os.Stat(m.cached()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a failed build left a program in the cache (%v)", err)
	}

	runs := filepath.Join(t.TempDir(), "runs")
	mustWriteProgram(t, m.onPath("cargo"), countedCargo(runs, os.DevNull))
	if got, err := engine.Binary(context.Background(), newLog()); err != nil || got != m.cached() {
		t.Errorf("the next build: %q and %v, want %q", got, err, m.cached())
	}
}

func TestBuiltProgramIsCheckedToo(t *testing.T) {
	m := mustMachine(t, t.Setenv)
	mustWriteProgram(t, m.onPath("cargo"), findRoot+`mkdir -p "$root/bin"
printf '%s\n' '#!/bin/sh' 'exit 1' >"$root/bin/dynoxide"
chmod +x "$root/bin/dynoxide"
`)
	_, err := engine.Binary(context.Background(), newLog())
	mustNameAll(t, err, []string{m.cached(), "does not run"})
}

// Whoever gives up a build ends what cargo has started as well. The reader of the gate
// is a process of the made-up cargo: once nobody reads, the kernel refuses a writer.
func TestGivenUpBuildEndsCargoAndItsProcesses(t *testing.T) {
	m := mustMachine(t, t.Setenv)
	gate := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	mustWriteProgram(t, m.onPath("cargo"), countedCargo(filepath.Join(t.TempDir(), "runs"), gate))
	ctx, cancel := context.WithCancel(context.Background())
	told, ended := newLog(), make(chan error, 1)
	go func() {
		_, err := engine.Binary(ctx, told)
		ended <- err
	}()
	told.MustWaitFor(t, "cargo is at work")
	// Opening the gate for writing returns once the made-up cargo reads from it.
	writer, err := os.OpenFile(gate, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if _, err := writer.WriteString("go on"); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("write to the gate: %v; a process of cargo still reads it", err)
	}
	if _, err := os.Stat(m.cached()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a given-up build left a program in the cache (%v)", err)
	}
}

func mustRead(tb testing.TB, path string) string {
	tb.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(content)
}

func mustOnlyHold(tb testing.TB, directory string, names ...string) {
	tb.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		tb.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if fmt.Sprint(got) != fmt.Sprint(names) {
		tb.Errorf("%s holds %v, want %v", directory, got, names)
	}
}
