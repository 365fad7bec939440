package shared_test

import (
	"bytes"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	promiseName = regexp.MustCompile(`\bP[0-9]+\b`)
	promiseTest = regexp.MustCompile(`(?m)^func Test(P[0-9]+)_`)
)

// TestEveryPromiseHasATest holds the README to its word: each promise that it lists is
// in the name of a test, and no test names one that is not listed.
func TestEveryPromiseHasATest(t *testing.T) {
	root := os.DirFS("..")
	readme, err := fs.ReadFile(root, "README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := bytes.Cut(readme, []byte("## What it promises\n"))
	section, _, ended := bytes.Cut(section, []byte("\n## "))
	if !found || !ended {
		t.Fatal("the README has no section of promises")
	}
	promised := map[string]bool{}
	for _, name := range promiseName.FindAllString(string(section), -1) {
		promised[name] = true
	}
	tested := map[string]bool{}
	err = fs.WalkDir(root, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := fs.ReadFile(root, path)
		for _, match := range promiseTest.FindAllSubmatch(source, -1) {
			tested[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range promised {
		if !tested[name] {
			t.Errorf("no test names the promise %s", name)
		}
	}
	for name := range tested {
		if !promised[name] {
			t.Errorf("a test names %s, which the README does not promise", name)
		}
	}
	if len(promised) < 10 {
		t.Errorf("only %d promises are found", len(promised))
	}
}
