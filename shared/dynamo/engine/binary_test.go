package engine_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/shared/dynamo/engine"
)

const workingProgram = "#!/bin/sh\necho dynoxide 1.5.0\n"

// machine is a made-up desk: a PATH and a cache of its own.
type machine struct {
	path  string
	cache string
}

// mustMachine makes a desk that has what a shell script needs, and neither dynoxide nor
// cargo.
func mustMachine(tb testing.TB, setenv func(key, value string)) machine {
	tb.Helper()
	m := machine{path: tb.TempDir()}
	for _, tool := range []string{"cat", "chmod", "mkdir"} {
		found, err := exec.LookPath(tool)
		if err != nil {
			tb.Fatal(err)
		}
		if err := os.Symlink(found, filepath.Join(m.path, tool)); err != nil {
			tb.Fatal(err)
		}
	}
	home := tb.TempDir()
	setenv("PATH", m.path)
	setenv("HOME", home)
	setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
	user, err := os.UserCacheDir()
	if err != nil {
		tb.Fatal(err)
	}
	m.cache = filepath.Join(user, "holdfast", "dynoxide-3.2.0")
	return m
}

func (m machine) onPath(name string) string { return filepath.Join(m.path, name) }

func (m machine) cached() string { return filepath.Join(m.cache, "dynoxide") }

func mustWriteProgram(tb testing.TB, path, script string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		tb.Fatal(err)
	}
}

func TestBinaryOnPathComesFirst(t *testing.T) {
	m := mustMachine(t, t.Setenv)
	mustWriteProgram(t, m.cached(), workingProgram)
	mustWriteProgram(t, m.onPath("dynoxide"), workingProgram)
	got, err := engine.Binary(context.Background(), newLog())
	if err != nil || got != m.onPath("dynoxide") {
		t.Errorf("got %q and %v, want the program on PATH", got, err)
	}
}

func TestBinaryFromTheCache(t *testing.T) {
	m := mustMachine(t, t.Setenv)
	mustWriteProgram(t, m.cached(), workingProgram)
	got, err := engine.Binary(context.Background(), newLog())
	if err != nil || got != m.cached() {
		t.Errorf("got %q and %v, want the program in the cache", got, err)
	}
}

// A program that cannot be used is named, and nothing else is used in its place.
func TestBinaryThatCannotBeUsedIsAnError(t *testing.T) {
	for _, test := range []struct {
		name   string
		at     func(machine) string
		script string
		want   []string
	}{
		{"fails on PATH", func(m machine) string { return m.onPath("dynoxide") }, "#!/bin/sh\necho no library >&2\nexit 3\n",
			[]string{"found on PATH", "does not run", "exit status 3", "no library"}},
		{"fails in the cache", machine.cached, "#!/bin/sh\nexit 3\n",
			[]string{"in the cache; remove it", "does not run"}},
		{"no program at all", machine.cached, "\x00\x01",
			[]string{"in the cache; remove it", "does not run"}},
		{"another program", func(m machine) string { return m.onPath("dynoxide") }, "#!/bin/sh\necho paint 2.0\n",
			[]string{"is another program", "paint 2.0"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := mustMachine(t, t.Setenv)
			path := test.at(m)
			mustWriteProgram(t, path, test.script)
			_, err := engine.Binary(context.Background(), newLog())
			mustNameAll(t, err, append(test.want, path))
		})
	}
}

func TestOtherVersionIsToldOnTheLog(t *testing.T) {
	m := mustMachine(t, t.Setenv)
	mustWriteProgram(t, m.onPath("dynoxide"), "#!/bin/sh\necho dynoxide 0.9.0\n")
	told := newLog()
	if _, err := engine.Binary(context.Background(), told); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(told.String(), "dynoxide 0.9.0; Holdfast is tested with dynoxide 1.5.0") {
		t.Errorf("the log says %q", told.String())
	}
}

func TestNoWayToAnEngineNamesEveryWay(t *testing.T) {
	mustMachine(t, t.Setenv)
	_, err := engine.Binary(context.Background(), newLog())
	mustNameAll(t, err, []string{
		"DYNAMODB_ENDPOINT", "dynoxide on PATH",
		"cargo install dynoxide-rs --version 3.2.0 --locked --no-default-features --features native-sqlite,http-server,cli",
	})
}

func mustNameAll(tb testing.TB, err error, texts []string) {
	tb.Helper()
	if err == nil {
		tb.Fatal("no error")
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			tb.Errorf("the error does not name %q: %v", text, err)
		}
	}
}
