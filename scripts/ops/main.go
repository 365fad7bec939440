// Command ops is the operator's tool: it answers why a number is what it is, shows what waits,
// and does what the functions do not do by themselves.
//
//	go run ./scripts/ops status                       what waits, and since when
//	go run ./scripts/ops audit [-repair [-yes]]       add the whole table up, and put right what is certain
//	go run ./scripts/ops explain slot ID              why a number is what it is: the whole story, added up;
//	                                                  so for a hold and a reservation
//	go run ./scripts/ops redrive [-older-than 10m]    publish what the outbox missed
//	go run ./scripts/ops redrive -quarantined         … and first let the quarantined try again
//	go run ./scripts/ops retry [HOLD_ID …]            let parked holds be tried by the next sweep
//	go run ./scripts/ops reviews                      what waits for a person; show ID tells all of a case
//	go run ./scripts/ops reviews claim ID             take a case, so that nobody else decides it
//	go run ./scripts/ops reviews decide ID refund -why … [-yes]
//	go run ./scripts/ops adjust SLOT -delta -2 -why … change how many units there are, under load
//	go run ./scripts/ops reshard SLOT 8 -why …        spread a slot's stock over more items, or fewer
//	go run ./scripts/ops close SLOT … -why …          stop selling; open sells again
//	go run ./scripts/ops unblock OWNER … -why …       end the cool-down of owners whose holds expired too often
//	go run ./scripts/ops archive list KIND            the batches of the archive, hold or reservation
//	go run ./scripts/ops archive find KIND ID         the batch that has a hold or a reservation
//	go run ./scripts/ops archive verify KIND BATCH    read a batch and compare it with its manifest
//	go run ./scripts/ops restore KIND BATCH [ID …]    put what was archived back into the table
//	go run ./scripts/ops forget OWNER [-yes]          erase what identifies a person, also in the archive
//	go run ./scripts/ops import [flags] FILE          define or change the slots of a file, however many
//
// Every command prints a table, or JSON with -json, and tells its flags with -h. What can't be
// undone says what it would do, and fails, until it is given -yes. What a person changes is kept
// with who did it (-who) and why (-why).
//
// It works on a local run, or on a stage with -environment FILE: a JSON object with the
// environment of the function that does the same work, as
// `aws lambda get-function-configuration --function-name NAME --query Environment.Variables`
// prints it. `ops -h` names that function for each command. It uses the AWS credentials of
// whoever runs it.
package main

import (
	"cmp"
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
	"text/tabwriter"

	"holdfast/shared/topology"
)

// command is one thing that an operator can do.
type command struct {
	name string
	// arguments, help and more are for people: help is one line, and more tells what -h tells
	// beside it.
	arguments, help, more string
	// as is the function whose environment it needs.
	as topology.FunctionName
	// run does it. flags are its own, already registered by flags.
	run func(ctx context.Context, o *operator, arguments []string) error
	// flags registers what the command can be told; nil for nothing.
	flags func(set *flag.FlagSet, o *operator)
}

func commandList() []command {
	why := func(set *flag.FlagSet, o *operator) { o.whyFlags(set) }
	return []command{
		{name: "status", help: "what waits, and since when", as: topology.FunctionReconcile, run: status},
		{
			name: "audit", help: "add the whole table up, say what is wrong, and put right what is certain", as: topology.FunctionReconcile, run: auditTable, flags: auditFlags,
			more: "It reads the table once, in eight parts, beside the traffic; what does not agree is looked at again until it is\nsure, so nothing that is under way is reported. It fails while something is wrong. -repair says of each finding\nwhat would be written, and -repair -yes writes it: only what is certain and can be undone, each with its event.\nWhat is about money or in doubt becomes a case for a person; see reviews. A second run writes nothing.",
		},
		{
			name: "explain", arguments: "slot ID | hold ID | reservation ID", help: "why a number is what it is: the whole story, and whether it adds up", as: topology.FunctionArchive, run: explainOne,
			more: "It tells every event in order, with who, by which command, and why; what moved in the stock, with running\ncounters; the payments, with running sums; and whether consumers were told. At its end the sums are compared\nwith what is stored. It changes nothing. What has left the table is read from the archive, which takes\nlonger. The story of a slot reads the whole table once.",
		},
		{name: "redrive", help: "publish what the outbox missed", as: topology.FunctionReconcile, run: redrive, flags: redriveFlags},
		{name: "retry", arguments: "[HOLD_ID …]", help: "let parked holds be tried by the next sweep", as: topology.FunctionExpiry, run: retry},
		{
			name: "reviews", arguments: "[list] | show ID | claim ID | decide ID DECISION", help: "what waits for a person, and what is decided", as: topology.FunctionAPI, run: reviews, flags: reviewsFlags,
			more: "ID is that of a reservation, a hold or an event, or a case's own, as the list tells it. show tells what can be\ndecided and what that does. Every decision but retry says what it would do until it is given -yes. What the\npayment provider has to do is done afterwards; if that fails, the case comes back.",
		},
		{
			name: "adjust", arguments: "SLOT", help: "change how many units of a slot there are", as: topology.FunctionAPI, run: adjustSlot, flags: adjustFlags,
			more: "It is the same command as PATCH /v1/slots/SLOT, and safe while the slot is being sold. Less than is held and\nsold is refused. Give -delta where others may change the capacity too: it counts from what there is then.",
		},
		{
			name: "reshard", arguments: "SLOT N", help: "spread a slot's stock over N items, under load", as: topology.FunctionAPI, run: reshard, flags: why,
			more: "More items take more buyers at once. With fewer, what is on those that are not used any more is sold last.",
		},
		{name: "close", arguments: "SLOT …", help: "stop selling slots; what is held can still be paid", as: topology.FunctionAPI, run: closeSlots, flags: why},
		{name: "open", arguments: "SLOT …", help: "sell slots again", as: topology.FunctionAPI, run: openSlots, flags: why},
		{
			name: "unblock", arguments: "OWNER …", help: "end the cool-down of owners whose holds expired too often", as: topology.FunctionAPI, run: unblock, flags: why,
			more: "An owner has no events, so a case that is decided at once keeps who did it and why.",
		},
		{name: "archive", arguments: "list KIND | find KIND ID | verify KIND BATCH", help: "look into the archive; KIND is hold or reservation", as: topology.FunctionArchive, run: lookIntoArchive},
		{name: "restore", arguments: "KIND BATCH [ID …]", help: "put what was archived back into the table, for a month", as: topology.FunctionArchive, run: restore},
		{
			name: "forget", arguments: "OWNER", help: "erase what identifies a person, from the table and from the archive", as: topology.FunctionArchive, run: forgetOwner, flags: forgetFlags,
			more: "Everywhere the owner's name is written over by forgotten_…, a hash of it with a secret key: all that was one\nperson's stays together, so sums, limits and the audit still hold. It is refused while the owner has a HELD hold\nor a reservation that is not at rest. It may be repeated, and killed and run again.\n\nClose the person's account first: who comes back under the same name is a stranger. What it can't reach: backups\nof the table and its stream (35 days and a day), events that consumers have received, the payment provider, logs\nof requests, reports of audits that found an owner's counts wrong (190 days), and slots that the catalogue has\ncalled after the owner; those it names as left. Idempotency records have no name, and are gone after two days;\ncounters of devices have none either. A case keeps its id.",
		},
		{name: "import", arguments: "FILE", help: "define or change the slots of a file, and go on where it was stopped", as: topology.FunctionAPI, run: importSlots, flags: importFlags},
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
		return cmp.Or(printCommands(out), flag.ErrHelp)
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
	words, err := parseFlags(flags, arguments[1:])
	if errors.Is(err, flag.ErrHelp) {
		chosen.printHelp(out, flags)
		return err
	}
	if err != nil {
		return fmt.Errorf("%s: %w; -h lists the flags", chosen.name, err)
	}
	if err := o.connect(ctx, chosen.as, *file); err != nil {
		return err
	}
	return chosen.run(ctx, o, words)
}

// parseFlags reads the flags, which may stand before, between and after the other arguments,
// and returns those. After "--" nothing is a flag.
func parseFlags(flags *flag.FlagSet, arguments []string) ([]string, error) {
	var words, after []string
	if i := slices.Index(arguments, "--"); i >= 0 {
		arguments, after = arguments[:i], arguments[i+1:]
	}
	for len(arguments) > 0 {
		if !strings.HasPrefix(arguments[0], "-") {
			words, arguments = append(words, arguments[0]), arguments[1:]
			continue
		}
		if err := flags.Parse(arguments); err != nil {
			return nil, err
		}
		if len(flags.Args()) == len(arguments) {
			return nil, fmt.Errorf("%q is neither a flag nor an argument", arguments[0])
		}
		arguments = flags.Args()
	}
	return append(words, after...), nil
}

// printHelp tells what -h tells of one command.
func (c command) printHelp(out io.Writer, flags *flag.FlagSet) {
	fmt.Fprintf(out, "%s\n%s\n", strings.TrimSpace("ops "+c.name+" [flags] "+c.arguments), c.help)
	if c.more != "" {
		fmt.Fprintf(out, "\n%s\n", c.more)
	}
	fmt.Fprintln(out, "\nflags:")
	flags.SetOutput(out)
	flags.PrintDefaults()
}

// printCommands tells what "ops -h" tells.
func printCommands(out io.Writer) error {
	var text strings.Builder
	text.WriteString("ops COMMAND [flags] [arguments]; COMMAND -h tells more. For a stage, -environment FILE has the\nenvironment of the function that is named beside the command.\n")
	for _, c := range commandList() {
		text.WriteString("  " + strings.TrimSpace(c.name+" "+c.arguments) + "\t" + string(c.as) + "\t" + c.help + "\n")
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(w, text.String()); err != nil {
		return err
	}
	return w.Flush()
}
