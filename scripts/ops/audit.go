package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/outbox"
	"holdfast/shared/reconcile"
)

// auditChoice is what the operator wants done about what an audit finds.
type auditChoice struct{ repair bool }

func auditFlags(flags *flag.FlagSet, o *operator) {
	flags.BoolVar(&o.audit.repair, "repair", false, "say of each finding what the repair would write, and with -yes write it")
	o.yesFlag(flags)
	o.whoFlag(flags)
}

// audited is what an audit and its repair came to.
type audited struct {
	reconcile.Report
	// Plans are what a repair does about each finding, in the order of the findings.
	Plans []reconcile.Action `json:"plans"`
	// Repair is what became of the findings; nil where no repair was asked for.
	Repair *reconcile.RepairReport `json:"repair,omitempty"`
}

// auditTable adds the whole table up beside the traffic, and tells what is wrong, what must have
// happened, and what a repair does about it. It fails while something is wrong.
func auditTable(ctx context.Context, o *operator, arguments []string) error {
	if len(arguments) > 0 {
		return fmt.Errorf("audit takes no argument, and was given %q", arguments[0])
	}
	if o.yes && !o.audit.repair {
		return errors.New("audit: -yes goes with -repair; an audit alone writes nothing")
	}
	actor, err := o.actor()
	if err != nil && o.yes {
		return fmt.Errorf("audit: %w", err)
	}
	report, err := reconcile.Audit(ctx, reconcile.AuditPorts{
		Segments: dynamo.NewScan(o.client, o.config.TableName), Store: o.store, Clock: o.clock, Wait: o.wait,
	})
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	out := audited{Report: report, Plans: make([]reconcile.Action, len(report.Findings))}
	for i, f := range report.Findings {
		out.Plans[i] = reconcile.Plan(f)
	}
	var failure error
	if o.audit.repair && len(report.Findings) > 0 {
		repaired, err := o.repairFindings(ctx, actor, report.Findings)
		out.Repair, failure = &repaired, err
	}
	return errors.Join(failure, o.printAudit(out), o.auditVerdict(out))
}

// repairFindings does what is certain about the findings, or with no -yes only says so.
func (o *operator) repairFindings(ctx context.Context, actor ledger.Actor, findings []reconcile.Finding) (reconcile.RepairReport, error) {
	relay, err := o.relay()
	if err != nil {
		return reconcile.RepairReport{}, err
	}
	repairer := &reconcile.Repairer{
		Store: o.store, Expire: o.commands(), Redrive: outbox.NewRedrive(relay, o.store), Clock: o.clock, Random: o.random,
		Actor: actor, RequestID: ledger.NewRequestID(o.random.Bits128()),
	}
	return repairer.Run(ctx, findings, o.yes)
}

// auditVerdict is an error while something is wrong that this run has not put right, or put
// before a person.
func (o *operator) auditVerdict(out audited) error {
	found := len(out.Findings)
	switch {
	case found == 0:
		return nil
	case out.Repair == nil:
		return fmt.Errorf("audit: %d findings; ops audit -repair says of each what it would write", found)
	case !out.Repair.Applied:
		return fmt.Errorf("audit: %d findings; %w", found, errNotSaidYes)
	}
	if open := found - out.Repair.Written() - out.Repair.Count(reconcile.RepairKnown); open > 0 {
		return fmt.Errorf("audit: %d of %d findings are as they were; the notes say why", open, found)
	}
	return nil
}

// printAudit prints a row of each finding with what is done about it, and below them what was
// read.
func (o *operator) printAudit(out audited) error {
	err := o.table(out, "FINDING\tBREAKS\tSUBJECT\tREPAIR\tTOLD", func(print func(...any)) {
		for i, f := range out.Findings {
			print(f.Kind, f.Promise, f.Subject, out.Plans[i].Do, "evidence: "+f.Evidence)
			if f.Cause != "" {
				print("", "", "", "", "cause: "+f.Cause)
			}
			print("", "", "", "", "repair: "+out.Plans[i].Why)
			if out.Repair != nil && i < len(out.Repair.Results) {
				result := out.Repair.Results[i]
				print("", "", "", "", fmt.Sprintf("%s: %s", result.Outcome, result.Note))
			}
		}
	})
	if err != nil || o.json {
		return err
	}
	fmt.Fprintf(o.out, "\n%d findings in %d slots, %d holds, %d reservations and %d events; %d records are archived and still in the table.\n",
		len(out.Findings), out.Slots, out.Holds, out.Reservations, out.Events, out.Archived)
	fmt.Fprintf(o.out, "%d things did not agree when they were first read; %d of them did not stand still, and the next audit looks at them.\n", out.Suspects, out.Unsettled)
	for currency, money := range out.Money {
		fmt.Fprintf(o.out, "Money in minor units of %s: %d captured, %d refunded, %d owed.\n", currency, money.Captured, money.Refunded, money.Owed)
	}
	for _, oversold := range out.Oversold {
		fmt.Fprintf(o.out, "Oversold, as an operator has said: %d units of %s.\n", oversold.Units, oversold.Slot)
	}
	_, err = fmt.Fprintf(o.out, "It has read %d pages, %.0f read units. It has not asked the payment provider; the audit of the stage does.\n", out.Pages, out.ReadUnits)
	return err
}
