package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"holdfast/scripts/internal/localrun"
	"holdfast/shared/topology"
)

// demo is one example of what can be sold, told on a system of its own.
type demo struct {
	name, about string
	tell        func(s *story, ctx context.Context) error
}

// demos are the examples, in the order in which they are told.
func demos() []demo {
	return []demo{
		{"flights", "a day of real flights: the last seat, a hold that runs out, payments", (*story).flights},
		{"hotel", "a stay of several nights, a longer stay, a night given back", (*story).hotel},
		{"cinema", "seats side by side, two families who want the same, a limit for each customer", (*story).cinema},
		{"basket", "a seat, a shirt, a coupon and points in one hold, all or nothing", (*story).basket},
		{"drop", "a sale that opens, and more buyers than there are units", (*story).drop},
	}
}

// demoFlag is the flag -demo: alone it stands for the flights, and -demo=NAME for another.
type demoFlag struct{ name string }

func (f *demoFlag) String() string { return f.name }

// IsBoolFlag lets the flag stand alone.
func (f *demoFlag) IsBoolFlag() bool { return true }

// Set chooses a demo by its name.
func (f *demoFlag) Set(value string) error {
	switch value {
	case "true":
		f.name = demos()[0].name
	case "false":
		f.name = ""
	default:
		if !slices.ContainsFunc(demos(), func(d demo) bool { return d.name == value }) {
			return fmt.Errorf("there is no demo %q; there is %s", value, strings.Join(demoNames(), ", "))
		}
		f.name = value
	}
	return nil
}

func demoNames() []string {
	var names []string
	for _, d := range demos() {
		names = append(names, d.name)
	}
	return names
}

// demoUsage says what the flag -demo takes.
func demoUsage() string {
	var lines strings.Builder
	lines.WriteString("tell a story on data of its own, check the books, and end; -demo=NAME chooses it:")
	for _, d := range demos() {
		fmt.Fprintf(&lines, "\n%-8s %s", d.name, d.about)
	}
	return lines.String()
}

// runDemos tells the stories of these names on a system of its own, so that it never touches
// the user's data. It returns an error if anything is not as it must be.
func runDemos(ctx context.Context, out io.Writer, names ...string) (err error) {
	system, err := localrun.Start(ctx, localrun.Options{SweepEvery: demoSweepEvery, Progress: out})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, system.Close()) }()
	s := &story{system: system, out: out}
	if s.catalog, err = system.Caller("catalogue", topology.ScopeCatalog); err != nil {
		return err
	}
	if s.shop, err = system.Caller("shop", topology.ScopeConfirm); err != nil {
		return err
	}
	for _, d := range demos() {
		if !slices.Contains(names, d.name) {
			continue
		}
		if err := d.tell(s, ctx); err != nil {
			return fmt.Errorf("the demo %s: %w", d.name, err)
		}
	}
	if err := s.eventsArrive(ctx); err != nil {
		return err
	}
	return s.closeBooks(ctx)
}
