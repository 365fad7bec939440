package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"holdfast/shared/dynamo/engine"
	"holdfast/shared/topology"
)

// lintVersion pins the linter. It is run by its module path and not kept in go.mod,
// because its own dependencies would be most of that file.
const lintVersion = "v2.15.0"

// racePackages are those whose code is run by several callers at once.
var racePackages = []string{
	"./shared/ledger/...", "./shared/commands/...", "./shared/dynamo", "./shared/httpapi/...",
	"./shared/expiry/...", "./shared/outbox/...", "./shared/payment/...", "./shared/saga", "./shared/webhook/...",
	"./shared/system/...", "./shared/skew", "./shared/lease/...", "./events/consumer/...", "./scripts/internal/...",
}

// stages are the stages of the CDK stack.
var stages = []string{"dev", "staging", "prod"}

func steps() []step {
	return []step{
		{"engine", "the DynamoDB engine is there, or is built once, where its progress can be seen", func(ctx context.Context, out io.Writer) error {
			binary, err := engine.Binary(ctx, out)
			if err == nil {
				fmt.Fprintln(out, "engine:", binary)
			}
			return err
		}},
		{"format", "every file is as gofmt writes it", format},
		{"vet", "go vet", func(ctx context.Context, out io.Writer) error {
			return command(ctx, out, "go", "vet", "./...")
		}},
		{"tidy", "go.mod and go.sum are what the code needs", func(ctx context.Context, out io.Writer) error {
			return command(ctx, out, "go", "mod", "tidy", "-diff")
		}},
		{"generated", "generated code is up to date", generated},
		{"lint", "golangci-lint " + lintVersion, func(ctx context.Context, out io.Writer) error {
			return command(ctx, out, "go", "run", "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@"+lintVersion, "run")
		}},
		{"test", "the README's test command", func(ctx context.Context, out io.Writer) error {
			return command(ctx, out, "go", "test", "./...")
		}},
		{"race", "the concurrent packages under the race detector", func(ctx context.Context, out io.Writer) error {
			return command(ctx, out, "go", append([]string{"test", "-race"}, racePackages...)...)
		}},
		{"simulation", "2,000 fresh histories, and the seeds that once failed", func(ctx context.Context, out io.Writer) error {
			return command(ctx, out, "go", "run", "./scripts/sim", "-histories", "2000")
		}},
		{"synth", "the CDK stack of every stage", synth},
	}
}

// format lists the files that gofmt would change. gofmt itself exits 0 then.
func format(ctx context.Context, out io.Writer) error {
	files, err := output(ctx, "git", "ls-files", "*.go")
	if err != nil {
		return err
	}
	changed, err := output(ctx, "gofmt", append([]string{"-l"}, strings.Fields(files)...)...)
	if err != nil {
		return err
	}
	if changed != "" {
		fmt.Fprint(out, changed)
		return errors.New("gofmt would change these files")
	}
	return nil
}

// generated runs the generators and compares the result with what is committed.
func generated(ctx context.Context, out io.Writer) error {
	before, err := generatedFiles(ctx)
	if err != nil {
		return err
	}
	if err := command(ctx, out, "go", "generate", "./shared/..."); err != nil {
		return err
	}
	after, err := generatedFiles(ctx)
	if err != nil {
		return err
	}
	for name, text := range after {
		if !bytes.Equal(before[name], text) {
			return fmt.Errorf("%s was not up to date; it is now, commit it", name)
		}
	}
	return nil
}

func generatedFiles(ctx context.Context) (map[string][]byte, error) {
	names, err := output(ctx, "git", "ls-files", "*.gen.go")
	if err != nil {
		return nil, err
	}
	if names == "" {
		return nil, errors.New("there is no generated file to compare")
	}
	files := make(map[string][]byte)
	for _, name := range strings.Fields(names) {
		if files[name], err = os.ReadFile(name); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// synth synthesises each stage with its real function binaries, without credentials.
func synth(ctx context.Context, out io.Writer) error {
	for _, stage := range stages {
		directory, err := os.MkdirTemp("", "holdfast-synth-")
		if err != nil {
			return err
		}
		err = synthStage(ctx, out, stage, directory)
		if removed := os.RemoveAll(directory); err == nil {
			err = removed
		}
		if err != nil {
			return fmt.Errorf("stage %s: %w", stage, err)
		}
	}
	return nil
}

func synthStage(ctx context.Context, out io.Writer, stage, directory string) error {
	cmd := exec.CommandContext(ctx, "go", "run", "./infra")
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(),
		"CDK_OUTDIR="+directory, `CDK_CONTEXT_JSON={"stage":"`+stage+`"}`,
		"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_PROFILE=",
		"JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=20")
	if err := cmd.Run(); err != nil {
		return err
	}
	templates, err := filepath.Glob(filepath.Join(directory, "*.template.json"))
	if err != nil {
		return err
	}
	binaries, err := filepath.Glob(filepath.Join(directory, "*", "bootstrap"))
	if err != nil {
		return err
	}
	if len(templates) == 0 {
		return errors.New("no template was written")
	}
	if want := len(topology.Functions()); len(binaries) != want {
		return fmt.Errorf("%d function binaries were built, want %d", len(binaries), want)
	}
	fmt.Fprintf(out, "stage %s: %d templates, %d functions\n", stage, len(templates), len(binaries))
	return nil
}
