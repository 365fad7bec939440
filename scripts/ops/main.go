// Command ops is the operator's tool for what the functions do not do by themselves:
//
//	go run ./scripts/ops status                       what waits, and since when
//	go run ./scripts/ops redrive [-older-than 10m]    publish what the outbox missed
//	go run ./scripts/ops redrive -quarantined         … and first let the quarantined try again
//	go run ./scripts/ops retry [HOLD_ID …]            let parked holds be tried by the next sweep
//	go run ./scripts/ops archive list KIND            the batches of the archive, hold or reservation
//	go run ./scripts/ops archive find KIND ID         the batch that has a hold or a reservation
//	go run ./scripts/ops archive verify KIND BATCH    read a batch and compare it with its manifest
//	go run ./scripts/ops restore KIND BATCH [ID …]    put what was archived back into the table
//	go run ./scripts/ops import [flags] FILE          define or change the slots of a file, however many
//	go run ./scripts/ops unblock OWNER …              end the cool-down of owners whose holds expired too often
//
// It works on a local run, or on a stage with -environment FILE: a JSON object with the
// environment of the function that does the same work, as
// `aws lambda get-function-configuration --function-name NAME --query Environment.Variables`
// prints it. That is reconcile for status and redrive, expiry for retry, archive for archive
// and restore, and api for import and unblock. It uses the AWS credentials of whoever runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"holdfast/shared/topology"
)

// command is one thing that an operator can do.
type command struct {
	name string
	// arguments and help are for people.
	arguments, help string
	// as is the function whose environment it needs.
	as topology.FunctionName
	// run does it. flags are its own, already registered by flags.
	run func(ctx context.Context, o *operator, arguments []string) error
	// flags registers what the command can be told; nil for nothing.
	flags func(set *flag.FlagSet, o *operator)
}

func commandList() []command {
	return []command{
		{name: "status", help: "what waits, and since when", as: topology.FunctionReconcile, run: status},
		{name: "redrive", help: "publish what the outbox missed", as: topology.FunctionReconcile, run: redrive, flags: redriveFlags},
		{name: "retry", arguments: "[HOLD_ID …]", help: "let parked holds be tried by the next sweep", as: topology.FunctionExpiry, run: retry},
		{name: "archive", arguments: "list KIND | find KIND ID | verify KIND BATCH", help: "look into the archive; KIND is hold or reservation", as: topology.FunctionArchive, run: lookIntoArchive},
		{name: "restore", arguments: "KIND BATCH [ID …]", help: "put what was archived back into the table, for a month", as: topology.FunctionArchive, run: restore},
		{name: "import", arguments: "FILE", help: "define or change the slots of a file, and go on where it was stopped", as: topology.FunctionAPI, run: importSlots, flags: importFlags},
		{name: "unblock", arguments: "OWNER …", help: "end the cool-down of owners whose holds expired too often", as: topology.FunctionAPI, run: unblock},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "ops:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, out io.Writer) error {
	if len(arguments) == 0 || slices.Contains([]string{"help", "-h", "-help", "--help"}, arguments[0]) {
		printCommands(out)
		return flag.ErrHelp
	}
	all := commandList()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == arguments[0] })
	if i < 0 {
		return fmt.Errorf("there is no command %q; -h lists them", arguments[0])
	}
	chosen := all[i]
	o := &operator{out: out}
	flags := flag.NewFlagSet("ops "+chosen.name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	file := flags.String("environment", "", "JSON file with the environment of the function "+string(chosen.as)+" (default: that of the local run)")
	flags.BoolVar(&o.json, "json", false, "print JSON in place of tables")
	if chosen.flags != nil {
		chosen.flags(flags, o)
	}
	if err := flags.Parse(arguments[1:]); errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(out, "%s\n%s\n", strings.TrimSpace("ops "+chosen.name+" [flags] "+chosen.arguments), chosen.help)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return err
	} else if err != nil {
		return fmt.Errorf("%s: %w; -h lists the flags", chosen.name, err)
	}
	if i := slices.IndexFunc(flags.Args(), func(argument string) bool { return strings.HasPrefix(argument, "-") }); i >= 0 {
		return fmt.Errorf("%s: flags stand before the other arguments, and %s does not", chosen.name, flags.Arg(i))
	}
	if err := o.connect(ctx, chosen.as, *file); err != nil {
		return err
	}
	return chosen.run(ctx, o, flags.Args())
}

func printCommands(out io.Writer) {
	fmt.Fprintln(out, "ops COMMAND [flags] [arguments]; COMMAND -h tells more")
	for _, c := range commandList() {
		fmt.Fprintf(out, "  %-52s %s\n", strings.TrimSpace(c.name+" "+c.arguments), c.help)
	}
}
