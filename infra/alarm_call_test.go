package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"holdfast/shared/telemetry"
)

// descriptionCharactersMax is CloudWatch's limit:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
const descriptionCharactersMax = 1024

// describedPattern is the whole of a description: how urgent, what it means, what to run,
// what to read.
var describedPattern = regexp.MustCompile(`^(PAGE|TICKET)\. ([A-Z].{40,}[.]) Run: go run \./scripts/ops ([a-z]+)( [^.]*)?\. Then read infra/RUNBOOKS\.md#([a-z]+)$`)

// Whoever is called is told how urgent it is, what it means, what to type and where to read
// on, and each of these is there: the command in the operator's tool, with its flags, and
// the section in the runbook. The alarm reaches the topic of its severity.
func TestEveryAlarmSaysWhatItMeansAndReachesSomebody(t *testing.T) {
	commands, flags := mustReadOps(t)
	sections := mustReadSections(t)
	topics := map[string]string{"PAGE": "Pages", "TICKET": "Tickets"}
	eachStage(t, func(t *testing.T, s synthesis) {
		for _, a := range s.mustResources(t, "AWS::CloudWatch::Alarm") {
			description, _ := a.at("AlarmDescription").(string)
			said := describedPattern.FindStringSubmatch(description)
			if said == nil || len(description) > descriptionCharactersMax {
				t.Errorf("%s has the description %q", a.ID, description)
				continue
			}
			mustBeRef(t, a.ID+" action", a.at("AlarmActions", 0), topics[said[1]])
			mustBeRef(t, a.ID+" all-clear", a.at("OKActions", 0), topics[said[1]])
			mustBe(t, a.ID+" disabled", a.at("ActionsEnabled"), nil)
			if !slices.Contains(commands, said[3]) {
				t.Errorf("%s: the operator's tool has no command %q; it has %v", a.ID, said[3], commands)
			}
			for _, word := range strings.Fields(said[4]) {
				if name, isFlag := strings.CutPrefix(word, "-"); isFlag && !slices.Contains(flags, name) {
					t.Errorf("%s: the operator's tool has no flag %q", a.ID, word)
				}
			}
			if !slices.Contains(sections, said[5]) {
				t.Errorf("%s: the runbook has no section %q", a.ID, said[5])
			}
		}
	})
}

// What wakes people is a short list, and each of it is stock or money that is locked or
// wrong, or a shop in which nobody can buy.
func TestOnlyTheseAlarmsWakeSomebody(t *testing.T) {
	want := []string{
		"ApiServerErrors", "AuditFindingsCritical", "AuditGhosts", "AuditMismatch", "ClockUnreliable", "ExpiryGhosts", "ExpiryLagLong", "HoldRequestsFailing", "SagaLagLong",
		// Dead letters.
		"AuditFailuresWaiting", "DueFailuresWaiting", "ExpiryFailedWaiting", "OutboxFailuresWaiting", "SagaFailuresWaiting", "ScheduleFailuresWaiting",
	}
	slices.Sort(want)
	eachStage(t, func(t *testing.T, s synthesis) {
		var got []string
		for _, a := range s.mustResources(t, "AWS::CloudWatch::Alarm") {
			if readable(a.at("AlarmActions", 0)) == "Pages" {
				got = append(got, nameOf(a.ID))
			}
		}
		slices.Sort(got)
		mustBe(t, "alarms that wake somebody", got, want)
	})
}

// Each section of the runbook is about an alarm, and tells what it means, what users feel,
// how to look, how to mend, and how to know that it is over.
func TestEverySectionOfTheRunbookIsWhole(t *testing.T) {
	text, err := os.ReadFile("RUNBOOKS.md")
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]bool{}
	for _, a := range synthesized[stageProd].mustResources(t, "AWS::CloudWatch::Alarm") {
		description, _ := a.at("AlarmDescription").(string)
		_, anchor, _ := strings.Cut(description, "#")
		wanted[anchor] = true
	}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		if !wanted[strings.ToLower(title)] {
			t.Errorf("the section %q is about no alarm", title)
		}
		for _, part := range []string{"**Means.**", "**Users.**", "**Look.**", "**Mend.**", "**Over.**"} {
			if !strings.Contains(body, part) {
				t.Errorf("the section %q lacks the part %s", title, part)
			}
		}
	}
}

func mustReadSections(tb testing.TB) []string {
	tb.Helper()
	text, err := os.ReadFile("RUNBOOKS.md")
	if err != nil {
		tb.Fatal(err)
	}
	var sections []string
	for line := range strings.Lines(string(text)) {
		if title, isSection := strings.CutPrefix(line, "## "); isSection {
			sections = append(sections, strings.ToLower(strings.TrimSpace(title)))
		}
	}
	return sections
}

// flagNameArguments says which argument of a function of package flag is the flag's name.
var flagNameArguments = map[string]int{
	"String": 0, "Bool": 0, "Duration": 0, "Int": 0, "Float64": 0,
	"StringVar": 1, "BoolVar": 1, "DurationVar": 1, "IntVar": 1, "Float64Var": 1, "Var": 1, "TextVar": 1,
}

// mustReadOps reads the names of the operator's commands and flags out of its code: nothing
// may import a command, and running it for each alarm would take longer than all else here.
func mustReadOps(tb testing.TB) (commands, flags []string) {
	tb.Helper()
	files, err := filepath.Glob("../scripts/ops/*.go")
	if err != nil {
		tb.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			tb.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch node := n.(type) {
			case *ast.KeyValueExpr:
				if key, isName := node.Key.(*ast.Ident); isName && key.Name == "name" {
					commands = append(commands, textOf(node.Value))
				}
			case *ast.CallExpr:
				of, isMethod := node.Fun.(*ast.SelectorExpr)
				if at, isFlag := 0, false; isMethod {
					if at, isFlag = flagNameArguments[of.Sel.Name]; isFlag && len(node.Args) > at {
						flags = append(flags, textOf(node.Args[at]))
					}
				}
			}
			return true
		})
	}
	if len(commands) == 0 || len(flags) == 0 {
		tb.Fatal("the operator's tool has no commands, or no flags")
	}
	return commands, flags
}

func textOf(e ast.Expr) string {
	literal, isLiteral := e.(*ast.BasicLit)
	if !isLiteral {
		return ""
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return text
}

// Every number that Holdfast reports is seen by whoever looks at the dashboard, and every
// alarm is on it.
func TestEveryMetricAndAlarmIsOnTheDashboard(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		board := s.mustResource(t, "AWS::CloudWatch::Dashboard", "Dashboard")
		body := readable(board.at("DashboardBody"))
		for _, m := range telemetry.Metrics() {
			if !strings.Contains(body, `"`+string(m.Name)+`"`) && !strings.Contains(body, `\"`+string(m.Name)+`\"`) {
				t.Errorf("the metric %s is not on the dashboard", m.Name)
			}
		}
		for _, a := range s.mustResources(t, "AWS::CloudWatch::Alarm") {
			if !strings.Contains(body, nameOf(a.ID)+".Arn") {
				t.Errorf("the alarm %s is not on the dashboard", nameOf(a.ID))
			}
		}
	})
}
