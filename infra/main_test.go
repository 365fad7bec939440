package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
)

// The tests are inside the package because a command has no other callers. They
// share one synth for each stage, which is most of their time.
var synthesized map[stageName]synthesis

// synthesis is one stage as a deployment would see it.
type synthesis struct {
	stage     stage
	stack     awscdk.Stack
	resources map[string]resource
	outputs   map[string]any
}

// resource is one resource of a template.
type resource struct {
	ID             string
	Type           string
	Properties     map[string]any
	DependsOn      []string
	DeletionPolicy string
	Metadata       map[string]any
}

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	defer jsii.Close()
	outDir, err := os.MkdirTemp("", "holdfast-infra-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(outDir)
	synthesized = map[stageName]synthesis{}
	for _, s := range stages() {
		one, err := synthesize(s, outDir+"/"+string(s.Name))
		if err != nil {
			fmt.Fprintf(os.Stderr, "synth of stage %s: %v\n", s.Name, err)
			return 1
		}
		synthesized[s.Name] = one
	}
	return m.Run()
}

func synthesize(s stage, outDir string) (synthesis, error) {
	app := newTestApp(outDir, map[string]any{contextStage: string(s.Name)})
	stack, err := compose(app, "", "..")
	if err != nil {
		return synthesis{}, err
	}
	made, err := parse(stack)
	made.stage = s
	return made, err
}

// parse reads the template of a stack.
func parse(stack awscdk.Stack) (synthesis, error) {
	document, err := json.Marshal(assertions.Template_FromStack(stack, nil).ToJSON())
	if err != nil {
		return synthesis{}, err
	}
	var parsed struct {
		Resources map[string]resource
		Outputs   map[string]any
	}
	if err := json.Unmarshal(document, &parsed); err != nil {
		return synthesis{}, err
	}
	for id, r := range parsed.Resources {
		r.ID = id
		parsed.Resources[id] = r
	}
	return synthesis{stack: stack, resources: parsed.Resources, outputs: parsed.Outputs}, nil
}

func mustParse(tb testing.TB, stack awscdk.Stack) synthesis {
	tb.Helper()
	made, err := parse(stack)
	if err != nil {
		tb.Fatal(err)
	}
	return made
}

// newTestApp skips bundling: what the functions do is not under test here.
func newTestApp(outDir string, context map[string]any) awscdk.App {
	context["aws:cdk:bundling-stacks"] = []string{}
	return newApp(jsii.String(outDir), &context)
}

// eachStage runs a test on the templates of all stages.
func eachStage(t *testing.T, test func(t *testing.T, s synthesis)) {
	t.Helper()
	for _, s := range stages() {
		t.Run(string(s.Name), func(t *testing.T) { test(t, synthesized[s.Name]) })
	}
}

// mustResources returns the resources of a type in the order of their ids. No
// resource at all is a failure, so that no test passes by looking at nothing.
func (s synthesis) mustResources(tb testing.TB, kind string) []resource {
	tb.Helper()
	var found []resource
	for _, r := range s.resources {
		if r.Type == kind {
			found = append(found, r)
		}
	}
	if len(found) == 0 {
		tb.Fatalf("the template has no %s", kind)
	}
	slices.SortFunc(found, func(a, b resource) int { return strings.Compare(a.ID, b.ID) })
	return found
}

// mustResource returns the one resource of a type whose name is that.
func (s synthesis) mustResource(tb testing.TB, kind, name string) resource {
	tb.Helper()
	for _, r := range s.mustResources(tb, kind) {
		if nameOf(r.ID) == name {
			return r
		}
	}
	tb.Fatalf("the template has no %s named %s", kind, name)
	return resource{}
}

// at follows keys and list positions into a property. What is absent is nil.
func (r resource) at(path ...any) any { return at(r.Properties, path...) }

func at(value any, path ...any) any {
	for _, step := range path {
		switch key := step.(type) {
		case string:
			object, _ := value.(map[string]any)
			value = object[key]
		case int:
			list, _ := value.([]any)
			if key >= len(list) {
				return nil
			}
			value = list[key]
		}
	}
	return value
}

// listed returns a value that CloudFormation writes as one item or as a list.
func listed(value any) []any {
	if list, ok := value.([]any); ok {
		return list
	}
	return []any{value}
}

var hashSuffix = regexp.MustCompile(`[0-9A-F]{8}$`)

// nameOf is a logical id without the hash that CDK appends.
func nameOf(logicalID string) string { return hashSuffix.ReplaceAllString(logicalID, "") }

// readable writes a value with references as text: the ARN of an index of the table
// becomes "Table.Arn/index/due".
func readable(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case map[string]any:
		if id, ok := v["Ref"].(string); ok {
			return nameOf(id)
		}
		if attribute, ok := v["Fn::GetAtt"].([]any); ok {
			return nameOf(attribute[0].(string)) + "." + attribute[1].(string)
		}
		if join, ok := v["Fn::Join"].([]any); ok {
			var parts []string
			for _, part := range join[1].([]any) {
				parts = append(parts, readable(part))
			}
			return strings.Join(parts, join[0].(string))
		}
	}
	document, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%v", value)
	}
	return string(document)
}

// mustBe compares one property as JSON.
func mustBe(tb testing.TB, what string, got, want any) {
	tb.Helper()
	g, err := json.Marshal(got)
	if err != nil {
		tb.Fatal(err)
	}
	w, err := json.Marshal(want)
	if err != nil {
		tb.Fatal(err)
	}
	if string(g) != string(w) {
		tb.Errorf("%s is %s, want %s", what, g, w)
	}
}

// mustBeRef compares a property that refers to another resource.
func mustBeRef(tb testing.TB, what string, got any, want string) {
	tb.Helper()
	if text := readable(got); text != want {
		tb.Errorf("%s is %s, want %s", what, text, want)
	}
}
