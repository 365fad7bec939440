package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// reviewsChoice is which cases the operator wants to see.
type reviewsChoice struct{ kind string }

func reviewsFlags(flags *flag.FlagSet, o *operator) {
	o.whyFlags(flags)
	o.yesFlag(flags)
	flags.StringVar(&o.kind, "kind", "", "list only cases of this kind: "+strings.Join(reviewKindNames(), ", "))
}

// reviewKindNames are the kinds of cases, as they are told.
func reviewKindNames() []string {
	return []string{
		string(ledger.ReviewReservation), string(ledger.ReviewRefund), string(ledger.ReviewExpiry), string(ledger.ReviewEvent), string(ledger.ReviewFinding),
	}
}

// waitingCase is a case as the tool tells it.
type waitingCase struct {
	Case         string                `json:"case_id"`
	Review       ledger.ReviewID       `json:"review_id"`
	Kind         ledger.ReviewKind     `json:"kind"`
	Status       ledger.ReviewStatus   `json:"status"`
	Waits        bool                  `json:"waits"`
	WaitingSince time.Time             `json:"waiting_since,omitzero"`
	Summary      string                `json:"summary"`
	ClaimedBy    ledger.Actor          `json:"claimed_by,omitempty"`
	ClaimedUntil time.Time             `json:"claimed_until,omitzero"`
	LastDecision ledger.ReviewDecision `json:"last_decision,omitempty"`
	DecidedBy    ledger.Actor          `json:"decided_by,omitempty"`
	DecidedAt    time.Time             `json:"decided_at,omitzero"`
	Why          string                `json:"why,omitempty"`
	Facts        []toldFact            `json:"facts,omitempty"`
	Decisions    []toldOption          `json:"decisions,omitempty"`
}

type toldFact struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

type toldOption struct {
	Decision    ledger.ReviewDecision `json:"decision"`
	Effect      string                `json:"effect"`
	NotPossible string                `json:"not_possible,omitempty"`
}

func newWaitingCase(c commands.Case, now time.Time) waitingCase {
	r := c.Review
	out := waitingCase{
		Case: c.Name, Review: r.ID, Kind: r.Kind, Status: r.Status, Waits: c.Waits, WaitingSince: c.Since, Summary: c.Summary(),
		LastDecision: r.Decision, DecidedBy: r.DecidedBy, DecidedAt: r.DecidedAt, Why: r.Why,
	}
	if until := r.ClaimedAt.Add(ledger.ReviewClaimFor); r.Status == ledger.ReviewClaimed {
		if now.Before(until) {
			out.ClaimedBy, out.ClaimedUntil = r.ClaimedBy, until
		} else {
			out.Status = ledger.ReviewOpen // whoever claimed it has gone home
		}
	}
	return out
}

// reviews shows and decides what waits for a person.
func reviews(ctx context.Context, o *operator, arguments []string) error {
	verb, rest := "list", arguments
	if len(arguments) > 0 {
		verb, rest = arguments[0], arguments[1:]
	}
	queue := commands.NewReviews(o.commands(), o.store)
	switch {
	case verb == "list" && len(rest) == 0:
		return listReviews(ctx, o, queue)
	case verb == "show" && len(rest) == 1:
		return showReview(ctx, o, queue, rest[0])
	case verb == "claim" && len(rest) == 1:
		return claimReview(ctx, o, queue, rest[0])
	case verb == "decide" && len(rest) == 2:
		return decideReview(ctx, o, queue, rest[0], ledger.ReviewDecision(rest[1]))
	}
	return errors.New("reviews: say `list`, `show ID`, `claim ID` or `decide ID DECISION`")
}

// listReviews prints all cases that wait, or all of one kind.
func listReviews(ctx context.Context, o *operator, queue *commands.Reviews) error {
	if o.kind != "" && !slices.Contains(reviewKindNames(), o.kind) {
		return fmt.Errorf("reviews: there is no kind %q; it is one of %s", o.kind, strings.Join(reviewKindNames(), ", "))
	}
	all := []waitingCase{}
	now := system.Millisecond(o.clock)
	failure := eachPage(func(after ledger.Cursor) (ledger.Cursor, error) {
		cases, next, err := queue.List(ctx, ledger.ReviewKind(o.kind), ledger.Page{Limit: commands.CasesMax, After: after})
		for _, c := range cases {
			all = append(all, newWaitingCase(c, now))
		}
		return next, err
	})
	printed := o.table(all, "CASE\tKIND\tWAITING SINCE\tCLAIMED BY\tBECAUSE", func(print func(...any)) {
		for _, c := range all {
			print(c.Case, c.Kind, c.WaitingSince.UTC().Format(time.RFC3339), orDash(string(c.ClaimedBy)), c.Summary)
		}
	})
	return errors.Join(failure, printed)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// showReview prints one case with what is needed to decide it.
func showReview(ctx context.Context, o *operator, queue *commands.Reviews, name string) error {
	found, err := queue.Case(ctx, name)
	if err != nil {
		return fmt.Errorf("reviews: %w", err)
	}
	now := system.Millisecond(o.clock)
	told := newWaitingCase(found, now)
	for _, fact := range found.Facts() {
		told.Facts = append(told.Facts, toldFact(fact))
	}
	for _, option := range found.Options(now) {
		told.Decisions = append(told.Decisions, toldOption(option))
	}
	if o.json {
		return o.table(told, "", nil)
	}
	waits := "nothing is left to decide"
	if told.Waits {
		waits = string(told.Status) + ", waits since " + told.WaitingSince.UTC().Format(time.RFC3339)
	}
	if told.ClaimedBy != "" {
		waits += ", claimed by " + string(told.ClaimedBy) + " until " + told.ClaimedUntil.UTC().Format(time.RFC3339)
	}
	printed := o.table(told, "CASE\t"+told.Case, func(print func(...any)) {
		print("kind", told.Kind)
		print("status", waits)
		print("because", told.Summary)
		for _, fact := range told.Facts {
			print(fact.Name, fact.Text)
		}
	})
	if len(told.Decisions) == 0 || printed != nil {
		return printed
	}
	return o.table(told, "\nDECISION\tWHAT IT DOES", func(print func(...any)) {
		for _, option := range told.Decisions {
			if option.NotPossible != "" {
				print(option.Decision, "not now: "+option.NotPossible)
				continue
			}
			print(option.Decision, option.Effect)
		}
	})
}

// claimReview takes a case, so that nobody else decides it for a while.
func claimReview(ctx context.Context, o *operator, queue *commands.Reviews, name string) error {
	actor, err := o.actor()
	if err != nil {
		return fmt.Errorf("reviews: %w", err)
	}
	var claimed waitingCase
	request := commands.Request{Actor: actor, RequestID: ledger.NewRequestID(o.random.Bits128()), Why: o.why}
	_, err = queue.Claim(ctx, request, name, func(c commands.Case, now time.Time) (ledger.Response, error) {
		claimed = newWaitingCase(c, now)
		return ledger.Response{}, nil
	})
	if err != nil {
		return fmt.Errorf("reviews: %w", err)
	}
	return o.table(claimed, "CASE\tCLAIMED BY\tUNTIL", func(print func(...any)) {
		print(claimed.Case, claimed.ClaimedBy, claimed.ClaimedUntil.UTC().Format(time.RFC3339))
	})
}

// decidedCase is what the tool tells of a decision.
type decidedCase struct {
	Case     string                `json:"case_id"`
	Decision ledger.ReviewDecision `json:"decision"`
	Effect   string                `json:"effect"`
	Decided  bool                  `json:"decided"`
}

// decideReview carries a decision out. One that can't be taken back only says what it would do
// unless it is given -yes; a retry changes nothing that a later decision could not.
func decideReview(ctx context.Context, o *operator, queue *commands.Reviews, name string, d ledger.ReviewDecision) error {
	found, err := queue.Case(ctx, name)
	if err != nil {
		return fmt.Errorf("reviews: %w", err)
	}
	option, err := optionOf(found, d, system.Millisecond(o.clock))
	if err != nil {
		return fmt.Errorf("reviews: %w", err)
	}
	told := decidedCase{Case: found.Name, Decision: d, Effect: option.Effect}
	if d == ledger.DecisionRetry || o.yes {
		request, err := o.request("reviews")
		if err != nil {
			return err
		}
		_, err = queue.Decide(ctx, request, name, d, func(commands.Case, time.Time) (ledger.Response, error) { return ledger.Response{}, nil })
		if err != nil {
			return fmt.Errorf("reviews: %w", err)
		}
		told.Decided = true
	}
	printed := o.table(told, "CASE\tDECISION\tDECIDED\tWHAT IT DOES", func(print func(...any)) {
		print(told.Case, told.Decision, told.Decided, told.Effect)
	})
	if !told.Decided {
		return errors.Join(printed, errNotSaidYes)
	}
	return printed
}

// optionOf is the decision as the case has it now. The error says which ones it has.
func optionOf(c commands.Case, d ledger.ReviewDecision, now time.Time) (commands.Option, error) {
	options := c.Options(now)
	names := make([]string, len(options))
	for i, option := range options {
		names[i] = string(option.Decision)
		switch {
		case option.Decision != d:
		case option.NotPossible != "":
			return option, fmt.Errorf("%s can't be decided as %s now: %s", c.Name, d, option.NotPossible)
		default:
			return option, nil
		}
	}
	if len(options) == 0 {
		return commands.Option{}, fmt.Errorf("nothing is left to decide about %s; `reviews show %s` tells what was", c.Name, c.Name)
	}
	return commands.Option{}, fmt.Errorf("a case of the kind %s can't be decided as %q; it has %s", c.Review.Kind, d, strings.Join(names, ", "))
}
