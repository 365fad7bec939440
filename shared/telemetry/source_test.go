package telemetry_test

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"holdfast/shared/telemetry"
)

// sources are the Go files under the roots, by path.
func sources(tb testing.TB, module fs.FS, roots ...string) map[string]string {
	tb.Helper()
	out := map[string]string{}
	for _, root := range roots {
		err := fs.WalkDir(module, root, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || path.Ext(name) != ".go" {
				return err
			}
			text, err := fs.ReadFile(module, name)
			out[name] = string(text)
			return err
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	return out
}

// constants are the names of the constants of type MetricName, by the metric that they stand
// for.
func constants(tb testing.TB, files map[string]string) map[telemetry.MetricName]string {
	tb.Helper()
	out := map[telemetry.MetricName]string{}
	for name, text := range files {
		if !strings.HasPrefix(name, "shared/telemetry/metric") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		if err != nil {
			tb.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, is := n.(*ast.ValueSpec)
			if !is {
				return true
			}
			if kind, named := spec.Type.(*ast.Ident); named && kind.Name == "MetricName" {
				value := spec.Values[0].(*ast.BasicLit)
				out[telemetry.MetricName(strings.Trim(value.Value, `"`))] = spec.Names[0].Name
			}
			return true
		})
	}
	return out
}

// words are the identifiers and the texts in a file.
func words(text string) map[string]bool {
	out := map[string]bool{}
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(text)), []byte(text), nil, 0)
	for {
		switch _, kind, literal := s.Scan(); kind {
		case token.EOF:
			return out
		case token.IDENT:
			out[literal] = true
		case token.STRING:
			out[strings.Trim(literal, "`\"")] = true
		default:
		}
	}
}

// used are the identifiers that a file of this package uses in what is no list of metrics.
func used(tb testing.TB, name, text string) map[string]bool {
	tb.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
	if err != nil {
		tb.Fatal(err)
	}
	out := map[string]bool{}
	for _, declaration := range file.Decls {
		function, is := declaration.(*ast.FuncDecl)
		if !is || strings.HasSuffix(function.Name.Name, "Metrics") {
			continue
		}
		ast.Inspect(function, func(n ast.Node) bool {
			if id, is := n.(*ast.Ident); is {
				out[id.Name] = true
			}
			return true
		})
	}
	return out
}

// deadMetrics are the metrics that nothing that is deployed reports, or that no test has seen
// reported.
func deadMetrics(tb testing.TB, files map[string]string) (unreported, untested []telemetry.MetricName) {
	tb.Helper()
	reported, tested := map[string]bool{}, map[string]bool{}
	for name, text := range files {
		switch {
		case path.Base(name) == "source_test.go":
		case strings.HasSuffix(name, "_test.go"):
			maps.Copy(tested, words(text))
		case strings.HasPrefix(name, "shared/telemetry/"):
			maps.Copy(reported, used(tb, name, text))
		default:
			maps.Copy(reported, words(text))
		}
	}
	for metric, constant := range constants(tb, files) {
		if !reported[constant] {
			unreported = append(unreported, metric)
		}
		// Some tests leave out the first word of their own function's metrics.
		_, short, _ := strings.Cut(string(metric), "_")
		if !tested[constant] && !tested[string(metric)] && !tested[short] {
			untested = append(untested, metric)
		}
	}
	slices.Sort(unreported)
	slices.Sort(untested)
	return unreported, untested
}

// A name that nobody reports is an alarm that never rings and a graph that is always empty.
func TestEveryMetricIsReportedAndSeenByATest(t *testing.T) {
	files := sources(t, os.DirFS("../.."), "shared", "functions")
	known := constants(t, files)
	for _, m := range telemetry.Metrics() {
		if known[m.Name] == "" {
			t.Errorf("%s has no constant", m.Name)
		}
	}
	if len(known) != len(telemetry.Metrics()) {
		t.Errorf("%d constants for %d metrics", len(known), len(telemetry.Metrics()))
	}
	unreported, untested := deadMetrics(t, files)
	if len(unreported) > 0 || len(untested) > 0 {
		t.Errorf("nothing reports %v; no test sees %v", unreported, untested)
	}
}

func TestADeadNameIsFound(t *testing.T) {
	files := sources(t, fstest.MapFS{
		"shared/telemetry/metric.go": {Data: []byte(`package telemetry
const (
	MetricA MetricName = "part_a"
	MetricB MetricName = "part_b"
	MetricC MetricName = "part_c"
)
func partMetrics() []any { return []any{MetricA, MetricB, MetricC} }`)},
		"shared/part/a.go":      {Data: []byte("package part\nfunc f() { emit(telemetry.MetricA); emit(telemetry.MetricC) }")},
		"shared/part/a_test.go": {Data: []byte(`package part; func g() { want("part_a"); want(telemetry.MetricB) }`)},
	}, "shared")
	unreported, untested := deadMetrics(t, files)
	if !slices.Equal(unreported, []telemetry.MetricName{"part_b"}) || !slices.Equal(untested, []telemetry.MetricName{"part_c"}) {
		t.Errorf("unreported %v, untested %v", unreported, untested)
	}
}

var (
	// spelled is an id whose name is spelled out where its constant should be.
	spelled = regexp.MustCompile(`slog\.\w+\("(` + strings.Join([]string{
		telemetry.KeyRequestID, telemetry.KeyHoldID, telemetry.KeyReservationID, telemetry.KeyAttempt, telemetry.KeyEventID,
		telemetry.KeyReviewID, telemetry.KeySlotID, telemetry.KeyMessageID, telemetry.KeyProviderEventID, "id",
	}, "|") + `)"`)
	// contextless is a line that cannot have the ids of its context.
	contextless = regexp.MustCompile(`[lL]ogger\.(Debug|Info|Warn|Error)\(|slog\.(Debug|Info|Warn|Error)\(`)
)

// unconnected are the places where a log line loses what connects it with others.
func unconnected(files map[string]string) []string {
	var out []string
	for name, text := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, found := range append(spelled.FindAllString(text, -1), contextless.FindAllString(text, -1)...) {
			out = append(out, name+": "+found)
		}
	}
	slices.Sort(out)
	return out
}

// One query finds a hold's way through all functions only if all of them call it the same, and
// if no line drops the ids of the context that it is written in.
func TestEveryLogLineIsConnected(t *testing.T) {
	if found := unconnected(sources(t, os.DirFS("../.."), "shared", "functions")); len(found) > 0 {
		t.Errorf("%s", strings.Join(found, "\n"))
	}
	found := unconnected(map[string]string{"a.go": `logger.Info("done"); slog.String("hold_id", id); logger.InfoContext(ctx, "done", slog.String(KeyHoldID, id))`})
	if want := []string{`a.go: logger.Info(`, `a.go: slog.String("hold_id"`}; !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}
