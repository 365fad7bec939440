package main

import (
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mustModule writes a small module with one function, so that the build is tested
// without the weight of a real one.
func mustModule(tb testing.TB, source string) string {
	tb.Helper()
	root := tb.TempDir()
	folder := filepath.Join(root, "functions", "sample")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		tb.Fatal(err)
	}
	for path, content := range map[string]string{
		filepath.Join(root, "go.mod"):    "module sample\n\ngo 1.26\n",
		filepath.Join(folder, "main.go"): source,
	} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return root
}

func TestABinaryIsWhatLambdaStarts(t *testing.T) {
	// The build must win over what the machine has set.
	t.Setenv("GOARCH", "amd64")
	t.Setenv("CGO_ENABLED", "1")
	root := mustModule(t, "package main\n\nfunc main() {}\n")
	out := t.TempDir()
	if done := (&goBuild{root, "sample"}).TryBundle(&out, nil); done == nil || !*done {
		t.Fatal("TryBundle did not say that it is done; CDK would try Docker")
	}
	binary, err := elf.Open(filepath.Join(out, "bootstrap"))
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	if binary.Machine != elf.EM_AARCH64 {
		t.Errorf("the binary is for %s, want arm64", binary.Machine)
	}
	if section := binary.Section(".interp"); section != nil {
		t.Error("the binary is linked dynamically")
	}
}

func TestTheSameSourceGivesTheSameBinary(t *testing.T) {
	var built [][]byte
	for range 2 {
		out := t.TempDir()
		if err := (&goBuild{mustModule(t, "package main\n\nfunc main() { println(\"x\") }\n"), "sample"}).build(out); err != nil {
			t.Fatal(err)
		}
		binary, err := os.ReadFile(filepath.Join(out, "bootstrap"))
		if err != nil {
			t.Fatal(err)
		}
		built = append(built, binary)
	}
	if string(built[0]) != string(built[1]) {
		t.Error("two folders with the same source give different binaries, so every synth would deploy")
	}
}

func TestAFailedBuildFailsTheSynthAndShowsTheCompilersWords(t *testing.T) {
	root := mustModule(t, "package main\n\nfunc main() { undefinedName() }\n")
	out := t.TempDir()
	defer func() {
		err, ok := recover().(error)
		if !ok || !strings.Contains(err.Error(), "undefinedName") || !strings.Contains(err.Error(), "sample") {
			t.Errorf("TryBundle ended with %v; want a failure that names the function and the compiler's error", err)
		}
	}()
	(&goBuild{root, "sample"}).TryBundle(&out, nil)
	t.Error("TryBundle returned although the build failed")
}
