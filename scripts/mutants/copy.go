package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// workspace is a copy of the module in which one mutant after the other lives.
type workspace struct {
	root string // of the copy
	sim  string // where the simulation's binary is built
}

// newWorkspace copies the module's tracked files, as they are in the working tree, below
// folder.
func newWorkspace(ctx context.Context, module, folder string) (*workspace, error) {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z")
	list.Dir = module
	names, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tracked files of %s: %w", module, err)
	}
	w := &workspace{root: filepath.Join(folder, "module"), sim: filepath.Join(folder, "sim")}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if err := copyFile(filepath.Join(module, name), filepath.Join(w.root, name)); err != nil {
			return nil, fmt.Errorf("copy the module: %w", err)
		}
	}
	return w, nil
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644) //nolint:gosec // sources are no secret
}

// with changes the copy to the mutant, calls do, and changes it back.
func (w *workspace) with(m mutant, do func() error) (err error) {
	changed, err := m.apply(w.root)
	if err != nil {
		return err
	}
	for name, text := range changed {
		path := filepath.Join(w.root, name)
		before, readErr := os.ReadFile(path)
		if readErr != nil {
			return readErr
		}
		defer func() {
			if restored := os.WriteFile(path, before, 0o644); err == nil { //nolint:gosec // as above
				err = restored
			}
		}()
		if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // as above
			return err
		}
	}
	return do()
}
