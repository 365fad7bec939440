package ledger_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/ledger/memory"
)

var rewrite = flag.Bool("rewrite", false, "write what the golden scripts answer now; review the difference like code")

// TestScripts runs each script of testdata. A script is read by people: commands, one a
// line, and under each, indented, what it answered. Every script ends with an audit.
func TestScripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("found %d scripts, error %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := runScript(t, string(want))
			if *rewrite {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("%s: %s", path, firstDifference(got, string(want)))
			}
		})
	}
}

func firstDifference(got, want string) string {
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		var g, w string
		if i < len(gotLines) {
			g = gotLines[i]
		}
		if i < len(wantLines) {
			w = wantLines[i]
		}
		if g != w {
			return fmt.Sprintf("line %d:\n got %s\nwant %s", i+1, g, w)
		}
	}
	return "no difference"
}

// script is one run of a script's commands.
type script struct {
	*desk
	slots []ledger.SlotID
	names []string        // of the holds, in the order of their first use
	late  []ledger.HoldID // the holds that were over when their payment came
}

// answerIndent marks a line of answer.
const answerIndent = "    "

// runScript returns the text with the answers that its commands give now.
func runScript(t *testing.T, text string) string {
	store := memory.New()
	s := &script{desk: newDesk(store)}
	var out strings.Builder
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, answerIndent) {
			continue
		}
		out.WriteString(line + "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		for _, answer := range strings.Split(s.run(strings.Fields(line)), "\n") {
			out.WriteString(answerIndent + answer + "\n")
		}
	}
	holds := make([]ledger.HoldID, len(s.names))
	for i, name := range s.names {
		holds[i] = holdID(name)
	}
	for _, id := range s.late {
		holds = append(holds, ledger.ReacquiredID(ledger.Hold{ID: id}))
	}
	ledgertest.CheckBooks(t, store, s.slots, holds)
	return out.String()
}

// holdID is the same in every run, so that the shards it picks are too.
func holdID(name string) ledger.HoldID { return ledger.NewHoldID(random("hold " + name)) }

func (s *script) run(words []string) string {
	if len(words) < 2 {
		return "error: every command has a subject"
	}
	answer, err := s.answer(words[0], words[1], words[2:])
	if err != nil {
		return describeError(err)
	}
	return answer
}

func (s *script) answer(verb, name string, args []string) (string, error) {
	options, lines, err := parseArguments(args)
	if err != nil {
		return "", err
	}
	r := request{
		owner: ledger.OwnerID(options["owner"]), key: ledger.IdempotencyKey(options["key"]),
		body: strings.Join(append([]string{verb, name}, args...), " "),
	}
	switch verb {
	case "at":
		return s.move(name)
	case "slot":
		if !slices.Contains(s.slots, ledger.SlotID(name)) {
			s.slots = append(s.slots, ledger.SlotID(name))
		}
		return s.put(ledger.SlotID(name), options)
	case "hold":
		r.body = strings.Join(args, " ")
		return s.shown(s.createHold(s.id(name), r, lines))
	case "confirm":
		return s.shown(s.confirm(s.id(name), ledger.PaymentReference(options["reference"]), r))
	case "cancel":
		return s.shown(s.cancel(s.id(name), r))
	case "expire":
		return s.shown(s.expire(s.id(name)))
	case "pay", "close", "sell", "release", "give-up", "return":
		return s.shown(s.paid(verb, s.id(name), options["attempt"], lines))
	case "reacquire":
		id, err := s.reacquire(s.id(name))
		if !slices.Contains(s.late, s.id(name)) {
			s.late = append(s.late, s.id(name))
		}
		return s.shown(string(id), err)
	case "show":
		return s.shown(string(s.id(name)), nil)
	case "stock":
		return s.stock(ledger.SlotID(name))
	case "events":
		return s.events(name)
	case "owner":
		return s.owned(ledger.OwnerID(name))
	case "due":
		return s.due()
	default:
		return "", fmt.Errorf("unknown command %q", verb)
	}
}

// parseArguments reads name=value and slot=quantity@amount, whose amount may be left out.
func parseArguments(args []string) (map[string]string, []ledger.Quote, error) {
	options := make(map[string]string)
	var lines []ledger.Quote
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		quantity, amount, isLine := strings.Cut(value, "@")
		if !isLine {
			options[name] = value
			continue
		}
		q, err := strconv.ParseInt(quantity, 10, 64)
		if err != nil {
			return nil, nil, err
		}
		a, err := strconv.ParseInt(cmp.Or(amount, "0"), 10, 64)
		if err != nil {
			return nil, nil, err
		}
		lines = append(lines, ledger.Quote{Slot: ledger.SlotID(name), Quantity: ledger.Units(q), UnitAmount: a})
	}
	return options, lines, nil
}

func (s *script) id(name string) ledger.HoldID {
	if !slices.Contains(s.names, name) {
		s.names = append(s.names, name)
	}
	return holdID(name)
}

// lateSuffix names the hold in the place of one that was over when its payment came.
const lateSuffix = "-late"

// named is the hold that the script calls so.
func named(name string) ledger.HoldID {
	if over, late := strings.CutSuffix(name, lateSuffix); late {
		return ledger.ReacquiredID(ledger.Hold{ID: holdID(over)})
	}
	return holdID(name)
}

// name is what the script calls the hold.
func (s *script) name(id ledger.HoldID) string {
	for _, name := range s.names {
		if holdID(name) == id {
			return name
		}
		if named(name+lateSuffix) == id {
			return name + lateSuffix
		}
	}
	return string(id)
}

const clockFormat = "15:04:05.000"

func (s *script) move(to string) (string, error) {
	if by, err := time.ParseDuration(to); err == nil {
		s.now = s.now.Add(by)
		return s.now.Format(clockFormat), nil
	}
	clock, err := time.Parse(clockFormat, to)
	if err != nil {
		return "", err
	}
	s.now = noon.Truncate(24 * time.Hour).Add(clock.Sub(clock.Truncate(24 * time.Hour)))
	return s.now.Format(clockFormat), nil
}

func (s *script) put(id ledger.SlotID, options map[string]string) (string, error) {
	var failure error
	number := func(value string) int64 {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			failure = err
		}
		return n
	}
	duration := func(value string) time.Duration {
		d, err := time.ParseDuration(value)
		if err != nil {
			failure = err
		}
		return d
	}
	err := s.putSlot(id, func(d *ledger.SlotDefinition) {
		for name, value := range options {
			switch name {
			case "capacity":
				d.Capacity = ledger.Units(number(value))
			case "price":
				split := len(value) - len("USD")
				d.Terms.Price = ledger.Money{AmountMinor: number(value[:split]), Currency: ledger.Currency(value[split:])}
			case "shards":
				d.Terms.Shards = int(number(value))
			case "open":
				d.Terms.Open = value == "yes"
			case "life":
				d.Policy.HoldFor = duration(value)
			case "restock":
				d.Policy.NoRestock = value == "no"
			case "unknown":
				d.Policy.Payment.UnknownFor = duration(value)
			case "most":
				d.Policy.QuantityPerHoldMax = ledger.Units(number(value))
			case "gate":
				d.Attributes = map[string]string{"gate": value}
			default:
				failure = fmt.Errorf("unknown part %q of a slot", name)
			}
		}
	})
	if failure != nil {
		return "", failure
	}
	if err != nil {
		return "", err
	}
	return s.stock(id)
}

func (s *script) shown(id string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	hold, err := s.store.Hold(context.Background(), ledger.HoldID(id))
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s", s.name(hold.ID), hold.StatusAt(s.now))
	if hold.Status != hold.StatusAt(s.now) {
		out.WriteString(" (not swept)")
	}
	for _, line := range hold.Lines {
		fmt.Fprintf(&out, " %s=%d@%d%s", line.Slot, line.Quantity, line.UnitPrice.AmountMinor, line.UnitPrice.Currency)
		for i, a := range line.Shards {
			fmt.Fprintf(&out, "%c#%d:%d", "(+"[min(i, 1)], a.Shard, a.Quantity)
		}
		out.WriteString(")")
		if back := line.ReturnedQuantity(); back > 0 {
			fmt.Fprintf(&out, "-%d", back)
		}
	}
	if hold.AttemptOpen != 0 {
		fmt.Fprintf(&out, " attempt=%d", hold.AttemptOpen)
	}
	if hold.Reacquires != "" {
		fmt.Fprintf(&out, " for=%s", s.name(hold.Reacquires))
	}
	total := hold.Total()
	fmt.Fprintf(&out, " total=%d%s until=%s version=%d", total.AmountMinor, total.Currency, hold.ReleaseAt.Format(clockFormat), hold.Version)
	return out.String(), nil
}

func (s *script) stock(id ledger.SlotID) (string, error) {
	slots, err := s.store.Slots(context.Background(), []ledger.SlotID{id})
	if err != nil || len(slots) == 0 {
		return "no slot", err
	}
	stock, err := s.store.StockAtOneMoment(context.Background(), slots[0])
	if err != nil {
		return "", err
	}
	open := map[bool]string{true: "open", false: "closed"}[slots[0].Terms.Open]
	answer := fmt.Sprintf("%s %s %d%s version=%d price_version=%d", id, open,
		slots[0].Terms.Price.AmountMinor, slots[0].Terms.Price.Currency, slots[0].Version, slots[0].PriceVersion)
	for _, item := range stock {
		c := item.Counters
		answer += fmt.Sprintf("\n#%d %d/%d/%d/%d", item.Shard, c.Available, c.Held, c.Confirmed, c.Capacity)
	}
	return answer, nil
}

func (s *script) events(name string) (string, error) {
	events, err := s.store.HoldEvents(context.Background(), named(name))
	if slices.Contains(s.slots, ledger.SlotID(name)) {
		events, err = s.store.SlotEvents(context.Background(), ledger.SlotID(name))
	}
	if err != nil {
		return "", err
	}
	if len(events) == 0 {
		return "no events", nil
	}
	lines := make([]string, len(events))
	for i, e := range events {
		lines[i] = fmt.Sprintf("v%d %s at %s by %s", e.Version, e.Type, e.OccurredAt.Format(clockFormat), e.Origin.Actor)
		for _, m := range e.Movements {
			lines[i] += fmt.Sprintf(", %s#%d %d %s to %s", m.Slot, m.Shard, m.Quantity, m.From, m.To)
		}
	}
	return strings.Join(lines, "\n"), nil
}

func (s *script) owned(owner ledger.OwnerID) (string, error) {
	holds, _, err := s.store.HoldsOfOwner(context.Background(), owner, ledger.Page{Limit: ledger.PageItemsMax})
	if err != nil {
		return "", err
	}
	if len(holds) == 0 {
		return "no holds", nil
	}
	lines := make([]string, len(holds))
	for i, hold := range holds {
		lines[i] = fmt.Sprintf("%s %s", s.name(hold.ID), hold.StatusAt(s.now))
	}
	return strings.Join(lines, "\n"), nil
}

func (s *script) due() (string, error) {
	var lines []string
	for shard := range ledger.DueShards {
		due, _, err := s.store.Due(context.Background(), shard, s.now, ledger.Page{Limit: ledger.PageItemsMax})
		if err != nil {
			return "", err
		}
		for _, d := range due {
			lines = append(lines, fmt.Sprintf("%s since %s", s.name(d.ID), d.DueAt.Format(clockFormat)))
		}
	}
	if len(lines) == 0 {
		return "nothing due", nil
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

func describeError(err error) string {
	answer := string(ledger.CodeOf(err))
	var e *ledger.Error
	if !errors.As(err, &e) {
		return "error: " + err.Error()
	}
	for _, shortage := range e.Shortages {
		answer += fmt.Sprintf(" %s=%d", shortage.Slot, shortage.Requested)
	}
	for _, price := range e.Prices {
		answer += fmt.Sprintf(" %s=%d%s", price.Slot, price.Price.AmountMinor, price.Price.Currency)
	}
	for _, slot := range e.Slots {
		answer += " " + string(slot)
	}
	return answer + ": " + e.Message
}
