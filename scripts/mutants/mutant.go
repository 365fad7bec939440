package main

import (
	"errors"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one mistake.
type mutant struct {
	name string
	// edits make the mistake. Where two guards have one purpose, each would hide the
	// removal of the other, so both are removed.
	edits []edit
	// harm says what would go wrong for a user.
	harm string
	// tests are the packages whose tests are asked if the simulation notices nothing.
	tests []string
}

// edit replaces a text that occurs once in a file.
type edit struct {
	file     string // from the module's root
	old, new string
}

// mutants are all of them, by the package that the mistake is in.
func mutants() []mutant {
	return slices.Concat(ledgerMutants(), commandsMutants(), dynamoMutants(), expiryMutants(), dueMutants(), paceMutants(),
		outboxMutants(), redriveMutants(), archiveMutants(), httpapiMutants(), sagaMutants(), editMutants(), slotMutants(), limitMutants(), repairMutants(), auditMutants())
}

// fit returns an error unless every edit of the mutants can be made in the files below
// root, and leaves Go code. Code moves; a mutant that is not moved with it is noticed here.
func fit(root string, all []mutant) error {
	var failures []error
	seen := make(map[string]bool)
	for _, m := range all {
		if m.name == "" || m.harm == "" || len(m.edits) == 0 || seen[m.name] {
			failures = append(failures, fmt.Errorf("mutant %q lacks a part or is listed twice", m.name))
		}
		seen[m.name] = true
		changed, err := m.apply(root)
		if err != nil {
			failures = append(failures, err)
		}
		for file, text := range changed {
			if _, err := format.Source(text); err != nil {
				failures = append(failures, fmt.Errorf("mutant %s leaves no Go code in %s: %w", m.name, file, err))
			}
		}
	}
	return errors.Join(failures...)
}

// apply returns the changed text of each file that the mutant changes. It returns an
// error if a text to replace does not occur exactly once.
func (m mutant) apply(root string) (map[string][]byte, error) {
	changed := make(map[string][]byte)
	for _, e := range m.edits {
		text, read := changed[e.file]
		if !read {
			var err error
			if text, err = os.ReadFile(filepath.Join(root, e.file)); err != nil {
				return nil, fmt.Errorf("mutant %s: %w", m.name, err)
			}
		}
		if n := strings.Count(string(text), e.old); n != 1 || e.old == e.new {
			return nil, fmt.Errorf("mutant %s: %q occurs %d times in %s, want once, and another text in its place", m.name, e.old, n, e.file)
		}
		changed[e.file] = []byte(strings.Replace(string(text), e.old, e.new, 1))
	}
	return changed, nil
}
