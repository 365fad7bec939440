package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/shared/topology"
)

// -h lists every command, and -h of a command tells its arguments and its flags.
func TestHelp(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-h"}, &out); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("error %v", err)
	}
	for _, c := range commandList() {
		if !strings.Contains(out.String(), "  "+strings.TrimSpace(c.name+" "+c.arguments)) || !strings.Contains(out.String(), c.help) {
			t.Errorf("the list lacks %s:\n%s", c.name, out.String())
		}
		var help bytes.Buffer
		if err := run(t.Context(), []string{c.name, "-h"}, &help); !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%s: error %v", c.name, err)
		}
		for _, want := range []string{"ops " + c.name + " [flags]", c.arguments, c.help, "-environment", string(c.as), "-json"} {
			if !strings.Contains(help.String(), want) {
				t.Errorf("the help of %s lacks %q:\n%s", c.name, want, help.String())
			}
		}
	}
	if err := run(t.Context(), nil, &out); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("without a command: %v", err)
	}
}

// A command that is written twice, or lacks a part, would hide in the list; and one whose
// function is not deployed could never be given an environment.
func TestCommandsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range commandList() {
		if _, found := topology.FunctionNamed(c.as); !found || c.name == "" || c.help == "" || c.run == nil || seen[c.name] {
			t.Errorf("command %q lacks a part or is listed twice", c.name)
		}
		seen[c.name] = true
	}
}

// unreachable is an environment of all functions, of a local run that has ended.
var unreachable = map[string]string{
	"HOLDFAST_STAGE": "local", "HOLDFAST_TABLE_NAME": "table", "HOLDFAST_EVENT_BUS_NAME": "bus",
	"HOLDFAST_SAGA_QUEUE_URL": "http://127.0.0.1:1/saga", "HOLDFAST_DUE_QUEUE_URL": "http://127.0.0.1:1/due",
	"HOLDFAST_EXPIRY_FAILED_QUEUE_URL": "http://127.0.0.1:1/failed", "HOLDFAST_SWEEP_PAGE_ITEMS": "100",
	"HOLDFAST_ARCHIVE_BUCKET_NAME": "bucket", "HOLDFAST_ARCHIVE_HOLDS_AFTER_DAYS": "30",
	"HOLDFAST_ARCHIVE_RESERVATIONS_AFTER_DAYS": "400", "HOLDFAST_OPERATOR_GROUP": "ops", "HOLDFAST_PAYMENT_SECRET_ID": "payment",
	"HOLDFAST_LOCAL_DYNAMODB_ENDPOINT": "http://127.0.0.1:1", "HOLDFAST_LOCAL_EVENTBRIDGE_ENDPOINT": "http://127.0.0.1:1",
	"HOLDFAST_LOCAL_SQS_ENDPOINT": "http://127.0.0.1:1", "HOLDFAST_LOCAL_S3_ENDPOINT": "http://127.0.0.1:1",
}

func TestWrongCommandLines(t *testing.T) {
	file := mustWriteEnvironment(t, unreachable)
	for _, test := range []struct{ line, want string }{
		{"what", `no command "what"; -h lists them`},
		{"status -what", "status: flag provided but not defined: -what"},
		{"status now", `status takes no argument, and was given "now"`},
		{"redrive now", `redrive takes no argument, and was given "now"`},
		{"redrive -older-than -1s", "-older-than can't be negative"},
		{"redrive -older-than 1", `invalid value "1"`},
		{"retry U-17", `"U-17" is not the id of a hold`},
		{"archive", "say `list KIND`, `find KIND ID` or `verify KIND BATCH`"},
		{"archive list", "say `list KIND`"},
		{"archive list hold more", "say `list KIND`"},
		{"archive verify hold", "say `list KIND`"},
		{"archive find hold", "say `list KIND`"},
		{"archive delete hold batch", "say `list KIND`"},
		{"archive list holds", `no kind "holds"; it is hold or reservation`},
		{"archive list hold -jsonl", "flag provided but not defined: -jsonl"},
		{"archive list -", `"-" is neither a flag nor an argument`},
		{"archive list -- hold -json", "say `list KIND`"},
		{"explain", "explain: say `slot ID`, `hold ID` or `reservation ID`"},
		{"explain event 1", "explain: say `slot ID`"},
		{"adjust seat -why x -who olga", "adjust: say one SLOT, and either -capacity N or -delta N"},
		{"adjust seat -capacity 5 -delta 1", "either -capacity N or -delta N"},
		{"adjust seat -delta many -why x -who olga", `-delta "many" is not a whole number`},
		{"adjust seat -delta -1 -who olga", "adjust: say -why"},
		{"reshard seat -why x", "reshard: say SLOT and the number of shards"},
		{"reshard seat two -why x", `"two" is not a whole number`},
		{"close -why x", "close: say the SLOT"},
		{"open seat -who olga", "open: say -why"},
		{"unblock U-17 -who olga", "unblock: say -why"},
		{"restore hold", "restore: say KIND BATCH"},
		{"restore slot batch", `no kind "slot"`},
		{"import", "import: say the FILE"},
		{"import a.csv b.csv", "import: say the FILE"},
		{"import none.csv", "open the file"},
		{"import main.go", "say -format csv or -format jsonl"},
		{"import -format csv -type post main.go", "-type must be put or patch"},
		{"import -format jsonl -attributes a;b main.go", "-attributes is for csv only"},
		{"import -rows-per-second -1 main.go", "-rows-per-second can't be negative"},
	} {
		name, rest, _ := strings.Cut(test.line, " ")
		arguments := append([]string{name, "-environment", file}, strings.Fields(rest)...)
		var out bytes.Buffer
		err := run(t.Context(), arguments, &out)
		if err == nil || !strings.Contains(err.Error(), test.want) || out.Len() > 0 {
			t.Errorf("%s: %v and %q, want %q", test.line, err, out.String(), test.want)
		}
	}
}

func TestWrongEnvironments(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, []byte(`{"HOLDFAST_STAGE":`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, file, want string }{
		{"a file that is not there", broken + ".not", "read the environment"},
		{"no JSON", broken, "no JSON object of texts"},
		{"that of another function", mustWriteEnvironment(t, map[string]string{"HOLDFAST_STAGE": "prod"}), "It must be the environment of the function archive"},
	} {
		var out bytes.Buffer
		err := run(t.Context(), []string{"archive", "-environment", test.file, "list", "hold"}, &out)
		if err == nil || !strings.Contains(err.Error(), test.want) || out.Len() > 0 {
			t.Errorf("%s: %v and %q, want %q", test.name, err, out.String(), test.want)
		}
	}
}

// Without -environment and outside the module there is no local run to find.
func TestWithoutALocalRun(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "go.mod"), []byte("module holdfast\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	if err := run(t.Context(), []string{"status"}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "go run ./scripts/local") {
		t.Errorf("error %v", err)
	}
}

// What can't be read is an error, never an empty table.
func TestAnUnreachableStageIsAnError(t *testing.T) {
	file := mustWriteEnvironment(t, unreachable)
	for _, line := range []string{"status", "redrive", "redrive -quarantined", "retry", "archive list hold", "archive find hold hold_1", "archive verify hold b", "restore hold b"} {
		words := strings.Fields(line)
		if err := run(t.Context(), slices.Insert(words, 1, "-environment", file), &bytes.Buffer{}); err == nil {
			t.Errorf("%s succeeds", line)
		}
	}
}
