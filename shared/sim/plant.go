package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/outbox"
	"holdfast/shared/reconcile"
	"holdfast/shared/sim/table"
)

// plantsMax is how many corruptions one history is given at its end.
const plantsMax = 4

// corruption is one way to damage the table behind the ledger's back.
type corruption struct {
	name string
	// fits says which items it can damage.
	fits func(key table.Key, item table.Item) bool
	// damage changes the item, or returns nil to take it out of the table.
	damage func(d *dice, item table.Item) table.Item
	// found are the kinds of findings of which at least one must name the item's thing.
	found []reconcile.FindingKind
	// repaired says that the repair must bring the item's attributes back.
	repaired []string
}

func isLive(item table.Item) bool { return textOf(item, "archived_in") == "" }

func ofSort(sort string) func(table.Key, table.Item) bool {
	return func(key table.Key, item table.Item) bool { return key.Sort == sort && isLive(item) }
}

func numeral(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
}

// more adds to a number of the item.
func more(attribute string, n int64) func(*dice, table.Item) table.Item {
	return func(_ *dice, item table.Item) table.Item {
		item[attribute] = numeral(numberOf(item, attribute) + n)
		return item
	}
}

// corruptions are the ways, in a fixed order.
var corruptions = []corruption{
	{
		name: "units from nowhere", fits: ofSort("STOCK"), found: []reconcile.FindingKind{reconcile.FindingStockMismatch}, repaired: []string{"available", "capacity"},
		damage: func(d *dice, item table.Item) table.Item {
			return more("available", 2)(d, more("capacity", 2)(d, item))
		},
	},
	{
		name: "units held by nobody", fits: func(key table.Key, item table.Item) bool {
			return key.Sort == "STOCK" && numberOf(item, "available") > 0
		},
		found: []reconcile.FindingKind{reconcile.FindingStockMismatch, reconcile.FindingTerminalStock}, repaired: []string{"available", "held"},
		damage: func(d *dice, item table.Item) table.Item {
			return more("available", -1)(d, more("held", 1)(d, item))
		},
	},
	{
		name: "numbers that do not add up", fits: ofSort("STOCK"), found: []reconcile.FindingKind{reconcile.FindingStockImpossible, reconcile.FindingStockMismatch},
		repaired: []string{"capacity"}, damage: more("capacity", 1),
	},
	{
		name: "a price of its own", fits: ofSort("STOCK"), found: []reconcile.FindingKind{reconcile.FindingStockTerms}, repaired: []string{"unit_amount"},
		damage: more("unit_amount", 1),
	},
	{
		name: "out of its list", found: []reconcile.FindingKind{reconcile.FindingDueIndexHole}, repaired: []string{"due_shard"},
		fits: func(key table.Key, item table.Item) bool {
			return (key.Sort == "HOLD" || key.Sort == "RES") && isLive(item) && textOf(item, "due_shard") != ""
		},
		damage: func(_ *dice, item table.Item) table.Item {
			delete(item, "due_shard")
			delete(item, "due_at_ms")
			return item
		},
	},
	{
		name: "will be deleted by itself", found: []reconcile.FindingKind{reconcile.FindingTimeToLive}, repaired: []string{"ttl_at_seconds"},
		fits: func(key table.Key, item table.Item) bool {
			return (key.Sort == "HOLD" || key.Sort == "RES" || key.Sort == "STOCK") && isLive(item)
		},
		damage: func(_ *dice, item table.Item) table.Item {
			item["ttl_at_seconds"] = numeral(historyStart.Unix() + 1_000_000)
			return item
		},
	},
	{
		name: "an event that is gone", found: []reconcile.FindingKind{reconcile.FindingEventMissing},
		fits: func(key table.Key, item table.Item) bool {
			return strings.HasPrefix(key.Sort, "EVENT#") && isLive(item)
		},
		damage: func(*dice, table.Item) table.Item { return nil },
	},
	{
		name: "a count that nobody made", found: []reconcile.FindingKind{reconcile.FindingQuotaMismatch}, repaired: []string{"count:holds"},
		fits:   func(key table.Key, _ table.Item) bool { return key.Sort == "QUOTA" },
		damage: more("count:holds", 3),
	},
	{
		name: "money that came back twice", found: []reconcile.FindingKind{reconcile.FindingMoneyMismatch},
		fits: func(key table.Key, item table.Item) bool {
			return key.Sort == "RES" && isLive(item) && slices.Contains([]string{"COMPLETED", "CAPTURED"}, textOf(item, "status"))
		},
		damage: more("amount_minor", 7),
	},
	{
		name: "a hold that sold and does not say so", found: []reconcile.FindingKind{reconcile.FindingEventMismatch},
		fits: func(key table.Key, item table.Item) bool {
			return key.Sort == "HOLD" && isLive(item) && textOf(item, "status") == "CONFIRMED"
		},
		damage: func(_ *dice, item table.Item) table.Item {
			item["status"] = &types.AttributeValueMemberS{Value: "CANCELED"}
			return item
		},
	},
}

// planted is a corruption of one item.
type planted struct {
	corruption
	key table.Key
	was table.Item
}

// names are what a finding about the item says: the id of its thing.
func (p planted) names(f reconcile.Finding) bool {
	id := strings.SplitN(p.key.Partition, "#", 2)[1]
	id, _, _ = strings.Cut(id, "#")
	return slices.Contains([]string{string(f.Hold), string(f.Reservation), string(f.Slot), string(f.Owner)}, id) || strings.Contains(f.Subject, id)
}

// plant damages the table of a history at rest in a few ways at once. The audit must name
// every one of them, and beside them nothing but what they touch. Its repair must bring back
// what is certain, and a second one must find nothing more to write.
func (w *world) plant() {
	if len(w.violations) > 0 {
		return // what is found then would say nothing
	}
	d := w.dice("corruptions")
	w.database.commit = func(commit) { w.writesAfterPlanting++ } // the books know of no damage
	known := w.known()
	all := w.damage(d)
	report, err := w.auditAtRest("audit of the damage")
	if err != nil {
		w.violated("audit", "of the damage it failed: %v", err)
		return
	}
	w.checkDamageFound(all, report.Findings, known)
	w.repair("the repair", report.Findings)
	for _, p := range all {
		if w.isDoubtful(p, all, report.Findings) {
			continue // a person must decide first about what else is wrong there
		}
		for _, attribute := range p.repaired {
			if is, was := textOrNumber(w.database.table.Item(p.key), attribute), textOrNumber(p.was, attribute); is != was {
				w.violated("audit", "%s of %v was damaged (%s) and has %s %q after the repair, not %q", p.key.Sort, p.key.Partition, p.name, attribute, is, was)
			}
		}
	}
	after, err := w.auditAtRest("audit after the repair")
	if err != nil {
		w.violated("audit", "after the repair it failed: %v", err)
		return
	}
	for _, f := range after.Findings {
		if do := reconcile.Plan(f).Do; do != reconcile.ActionReview && !known[f.String()] {
			w.violated("audit", "after the repair it still finds what can be repaired: %s", f)
		}
	}
	w.writesAfterPlanting = 0
	w.repair("the second repair", after.Findings)
	if w.writesAfterPlanting > 0 {
		w.violated("audit", "the second repair wrote %d times", w.writesAfterPlanting)
	}
}

// known are the findings that a history has at rest without any damage.
func (w *world) known() map[string]bool {
	known := map[string]bool{}
	report, err := w.auditAtRest("audit before the damage")
	if err != nil {
		w.violated("audit", "before the damage it failed: %v", err)
	}
	for _, f := range report.Findings {
		known[f.String()] = true
	}
	return known
}

// damage damages a few items, each once and of different things.
func (w *world) damage(d *dice) []planted {
	var all []planted
	taken := map[string]bool{}
	for range 1 + d.IntN(plantsMax) {
		how := pick(d, corruptions)
		var fitting []table.Key
		for key, item := range w.database.table.Items() {
			if how.fits(key, item) && !taken[key.Partition] && !w.database.busy[key] {
				fitting = append(fitting, key)
			}
		}
		if len(fitting) == 0 {
			continue
		}
		key := pick(d, fitting)
		taken[key.Partition] = true
		p := planted{corruption: how, key: key, was: w.database.table.Item(key)}
		after := how.damage(d, maps.Clone(p.was))
		w.trace.add("DAMAGE %s: %v", how.name, key)
		w.database.overwrite(key, after)
		all = append(all, p)
	}
	w.planted = len(all)
	return all
}

// overwrite puts an item in place of another one, or takes it out, without a word to the books.
func (d *database) overwrite(key table.Key, item table.Item) {
	var mutations []table.Mutation
	if item == nil {
		mutation, _ := d.table.Delete(key)
		mutations = append(mutations, mutation)
	} else {
		var err error
		if mutations, err = d.table.Put(&dynamodb.PutItemInput{TableName: aws.String(tableName), Item: item}); err != nil {
			panic("sim: " + err.Error())
		}
	}
	for _, view := range d.views {
		for _, m := range mutations {
			view.add(m, d.kernel.now)
		}
	}
}

// checkDamageFound requires that each damage is found, and that no finding is about anything
// else. A finding about a slot may follow from the damage of one of its holds.
func (w *world) checkDamageFound(all []planted, findings []reconcile.Finding, known map[string]bool) {
	for _, p := range all {
		// Two damages of one slot may make up for each other: a lost event, and the units of it.
		named := slices.ContainsFunc(findings, func(f reconcile.Finding) bool { return p.names(f) && slices.Contains(p.found, f.Kind) })
		if !named && !w.isDoubtful(p, all, findings) {
			w.violated("audit", "%s of %v was damaged (%s), and the audit found only %v", p.key.Sort, p.key.Partition, p.name, findings)
		}
	}
	for _, f := range findings {
		if known[f.String()] || slices.ContainsFunc(all, func(p planted) bool { return p.names(f) || w.touches(p, f) }) {
			continue
		}
		w.violated("audit", "it found what nobody damaged: %s (%s)", f, f.Cause)
	}
}

// touches reports whether the finding is about something that the damaged thing is a part of:
// the slots, the reservation and the owner of a hold, the holds and the owner of a reservation.
func (w *world) touches(p planted, f reconcile.Finding) bool {
	id := strings.SplitN(p.key.Partition, "#", 2)[1]
	if hold := w.books.holds[ledger.HoldID(id)]; hold != nil {
		return f.Owner == hold.now.Owner || f.Reservation != "" && f.Reservation == hold.now.Reservation ||
			slices.ContainsFunc(hold.now.Lines, func(l ledger.Line) bool {
				return f.Slot == l.Slot || f.Slot != "" && f.Slot == l.GrantTo || slices.Contains(l.CountsIn, f.Count)
			}) ||
			f.Hold != "" && f.Hold == hold.now.Reacquires
	}
	if r := w.books.reservations[ledger.ReservationID(id)]; r != nil {
		return f.Hold != "" && (f.Hold == r.now.Hold || f.Hold == r.now.SoldHold) || slices.ContainsFunc(r.now.Grants, func(g ledger.Grant) bool { return g.Slot == f.Slot })
	}
	return false
}

// isDoubtful reports whether another damage is about the same thing, so that what is right
// does not follow from the rest of the ledger any more.
func (w *world) isDoubtful(p planted, all []planted, findings []reconcile.Finding) bool {
	for _, f := range findings {
		if p.names(f) && slices.ContainsFunc(all, func(q planted) bool { return q.key != p.key && (q.names(f) || w.touches(q, f)) }) {
			return true
		}
	}
	return false
}

// repair lets the repairer deal with findings, until its dry run writes nothing.
func (w *world) repair(name string, findings []reconcile.Finding) {
	w.atRest(name, func(a *auditor, ctx context.Context) {
		i := a.instance
		relay, err := i.newRelay(a.store)
		if err != nil {
			panic("sim: " + err.Error())
		}
		random := taskRandom{w.kernel}
		repairer := &reconcile.Repairer{
			Store: a.store, Expire: commands.New(a.store, i.clock, random), Redrive: outbox.NewRedrive(relay, a.store),
			Clock: i.clock, Random: random, Actor: ledger.ActorAudit, RequestID: "request_repair",
		}
		before := w.writesAfterPlanting
		if _, err := repairer.Run(ctx, findings, false); err != nil || w.writesAfterPlanting != before {
			w.violated("audit", "the dry run of %s wrote %d times: %v", name, w.writesAfterPlanting-before, err)
		}
		repaired, err := repairer.Run(ctx, findings, true)
		w.trace.add("%s: %+v, %v", name, repaired, err)
		if err != nil {
			w.violated("audit", "%s failed: %v", name, err)
		}
	})
}

// textOrNumber is an attribute as text. A count that is not there is zero.
func textOrNumber(item table.Item, attribute string) string {
	if strings.HasPrefix(attribute, "count:") {
		return fmt.Sprint(numberOf(item, attribute))
	}
	switch value := item[attribute].(type) {
	case *types.AttributeValueMemberS:
		return value.Value
	case *types.AttributeValueMemberN:
		return value.Value
	}
	return ""
}
