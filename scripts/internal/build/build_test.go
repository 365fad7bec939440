package build_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/scripts/internal/build"
)

func mustWriteModule(t *testing.T, source string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":           "module example\n\ngo 1.26\n",
		"program/main.go":  source,
		"program/extra.go": "//go:build special\n\npackage main\n\nfunc init() { greeting = \"tagged\" }\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestProgramIsBuiltWithItsTags(t *testing.T) {
	root := mustWriteModule(t, "package main\n\nvar greeting = \"plain\"\n\nfunc main() { print(greeting) }\n")
	output := filepath.Join(t.TempDir(), "folder", "program")
	if err := build.Program(t.Context(), root, "./program", "special", output); err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(output).CombinedOutput()
	if err != nil || string(said) != "tagged" {
		t.Errorf("the program said %q (%v), want %q", said, err, "tagged")
	}
}

func TestErrorCarriesTheCompilersWords(t *testing.T) {
	root := mustWriteModule(t, "package main\n\nfunc main() { undefinedName() }\n")
	err := build.Program(t.Context(), root, "./program", "", filepath.Join(t.TempDir(), "program"))
	if err == nil || !strings.Contains(err.Error(), "undefinedName") {
		t.Errorf("error = %v, want the compiler's message", err)
	}
}

func TestModuleRoot(t *testing.T) {
	root := mustWriteModule(t, "package main")
	for _, folder := range []string{root, filepath.Join(root, "program")} {
		if got, err := build.ModuleRoot(folder); err != nil || got != root {
			t.Errorf("%s: %q, %v; want %q", folder, got, err, root)
		}
	}
	if got, err := build.ModuleRoot(t.TempDir()); err == nil {
		t.Errorf("a folder in no module has the root %q", got)
	}
}
