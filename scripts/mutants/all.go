package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
)

// tryAll tries every mutant, several at once, each worker in a copy of its own. The
// outcomes are in the order of the mutants.
func tryAll(ctx context.Context, out io.Writer, root string, all []mutant, o options) (outcomes []outcome, err error) {
	folder, err := os.MkdirTemp("", "holdfast-mutants-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	var copies []*workspace
	for n := range o.workers {
		one, err := newWorkspace(ctx, root, filepath.Join(folder, strconv.Itoa(n)))
		if err != nil {
			return nil, err
		}
		copies = append(copies, one)
	}
	if err := unchanged(ctx, out, copies[0], all, o); err != nil {
		return nil, err
	}
	outcomes = make([]outcome, len(all))
	failures := make([]error, len(all))
	numbers := make(chan int)
	var printing sync.Mutex
	var workers sync.WaitGroup
	for _, one := range copies {
		workers.Go(func() {
			for i := range numbers {
				outcomes[i], failures[i] = one.try(ctx, all[i], o)
				printing.Lock()
				if failures[i] != nil {
					fmt.Fprintf(out, "%-50s ERROR\n", all[i].name)
				} else {
					fmt.Fprintln(out, outcomes[i])
				}
				printing.Unlock()
			}
		})
	}
	for i := range all {
		numbers <- i
	}
	close(numbers)
	workers.Wait()
	return outcomes, errors.Join(failures...)
}

// unchanged tries the code as it is, which nothing may find fault with.
func unchanged(ctx context.Context, out io.Writer, w *workspace, all []mutant, o options) error {
	var packages []string
	for _, m := range all {
		packages = append(packages, m.tests...)
	}
	slices.Sort(packages)
	nothing := mutant{name: "nothing changed"}
	clean, err := w.try(ctx, nothing, o)
	if err != nil {
		return err
	}
	if clean.tests, err = w.test(ctx, slices.Compact(packages)); err != nil {
		return err
	}
	fmt.Fprintln(out, clean)
	if clean.killed() {
		return errors.New("the checks fail on the unchanged code, so they show nothing")
	}
	return nil
}
