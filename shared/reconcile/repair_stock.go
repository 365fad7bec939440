package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast/shared/ledger"
)

// repairStock takes from stock items of one slot what they have too much.
//
// The proof says by how much a counter was wrong, at the slot's version. Holds that came and
// went since have changed the counter and what it should be alike, so the difference is still
// true, and is taken from what the item has now. Only an edit of the slot or another repair
// could have ended that, and both change the slot's version: then nothing is written.
//
// Where units were sold that there never were, what is left would break P1. That shard is for
// a person, and the others are put right.
func (r *repairRun) repairStock(ctx context.Context, job repairJob) error {
	asked := map[int]bool{}
	return r.decideAnew(ctx, job, RepairDone, func(now time.Time) (repairStep, error) {
		slot, stock, err := r.slotAndStock(ctx, ledger.SlotID(job.of))
		if err != nil {
			return repairStep{}, err
		}
		plan := newStockPlan(slot, stock)
		var agreed []int
		for _, at := range job.at {
			if reason := plan.add(r.results[at].Action.Finding); reason != "" {
				r.say(repairJob{at: []int{at}}, RepairSkipped, reason)
				continue
			}
			agreed = append(agreed, at)
		}
		taken := repairJob{do: job.do, of: job.of}
		for _, at := range agreed {
			doubt := plan.doubt(r.results[at].Action.Finding.Shard)
			if doubt == "" {
				taken.at = append(taken.at, at)
				continue
			}
			if asked[at] {
				continue
			}
			asked[at] = true
			if err := r.ask(ctx, repairJob{do: job.do, of: job.of, at: []int{at}}, doubt); err != nil {
				return repairStep{}, err
			}
		}
		repairs, notes := plan.repairs()
		if len(repairs) == 0 {
			r.say(taken, RepairSkipped, "it is right by now")
			return repairStep{}, nil
		}
		origin := r.origin(r.finding(taken).Action.Finding, ledger.CommandRepair)
		return repairStep{taken, ledger.RepairStock(slot, repairs, origin, now), strings.Join(notes, "; ")}, nil
	})
}

// slotAndStock reads the slot and its stock at one moment. A slot that is not there is the
// zero slot.
func (r *repairRun) slotAndStock(ctx context.Context, id ledger.SlotID) (ledger.Slot, []ledger.Stock, error) {
	slots, err := r.Store.Slots(ctx, []ledger.SlotID{id})
	if err != nil || len(slots) == 0 {
		return ledger.Slot{}, nil, err
	}
	stock, err := r.Store.StockAtOneMoment(ctx, slots[0])
	return slots[0], stock, err
}

// stockPlan is what is to be put right about the stock of one slot.
type stockPlan struct {
	slot  ledger.Slot
	stock []ledger.Stock
	// excess is what each stock item that is put right has too much.
	excess map[ledger.Shard]ledger.Counters
	// rewrite are those that are written even if their numbers are right: a time to live is
	// nothing that could be read here.
	rewrite map[ledger.Shard]bool
}

func newStockPlan(slot ledger.Slot, stock []ledger.Stock) *stockPlan {
	return &stockPlan{slot: slot, stock: stock, excess: map[ledger.Shard]ledger.Counters{}, rewrite: map[ledger.Shard]bool{}}
}

// add takes a finding into the plan, or says why it is over.
func (p *stockPlan) add(f Finding) string {
	switch known, none := p.excess[f.Shard], (ledger.Counters{}); {
	case p.slot.Version == 0:
		return "there is no such slot"
	case f.Proof.Version != p.slot.Version:
		return fmt.Sprintf("the slot has taken a step since: it was at version %d, and is at %d", f.Proof.Version, p.slot.Version)
	case known != none && f.Proof.Excess != none && known != f.Proof.Excess:
		return "another finding about the same stock item has other numbers"
	case known == none:
		p.excess[f.Shard] = f.Proof.Excess
	}
	p.rewrite[f.Shard] = p.rewrite[f.Shard] || f.Kind == FindingTimeToLive
	return ""
}

// doubt says why a stock item can't be put right by all that was found about it, or "". It has
// no numbers, which change while the slot is sold, so that the case that is opened stays as it
// is.
func (p *stockPlan) doubt(shard ledger.Shard) string {
	found, exists := p.item(shard)
	switch {
	case !exists:
		return "the shard has no stock item"
	case found.Counters.Plus(negative(p.excess[shard])).Check() != nil:
		return "without what is too much, the numbers would be impossible: more was promised than there is"
	}
	return ""
}

func (p *stockPlan) item(shard ledger.Shard) (ledger.Stock, bool) {
	i := slices.IndexFunc(p.stock, func(s ledger.Stock) bool { return s.Shard == shard })
	if i < 0 {
		return ledger.Stock{}, false
	}
	return p.stock[i], true
}

// repairs are the repairs, in the order of the shards, and each in words.
func (p *stockPlan) repairs() (repairs []ledger.StockRepair, notes []string) {
	for _, shard := range slices.Sorted(maps.Keys(p.excess)) {
		if p.doubt(shard) != "" {
			continue
		}
		found, _ := p.item(shard)
		want := found.Counters.Plus(negative(p.excess[shard]))
		if want == found.Counters && found.Terms == p.slot.Terms && !p.rewrite[shard] {
			continue
		}
		repairs = append(repairs, ledger.StockRepair{Slot: p.slot.ID, Shard: shard, Replaces: found.Version, Counters: want, Terms: p.slot.Terms})
		notes = append(notes, fmt.Sprintf("shard %d: %s instead of %s, at version %d", shard, inWords(want), inWords(found.Counters), found.Version))
	}
	return repairs, notes
}

func negative(c ledger.Counters) ledger.Counters {
	return ledger.Counters{Available: -c.Available, Held: -c.Held, Confirmed: -c.Confirmed, Capacity: -c.Capacity}
}

// inWords are counters as operators write them: available/held/confirmed/capacity.
func inWords(c ledger.Counters) string {
	return fmt.Sprintf("%d/%d/%d/%d", c.Available, c.Held, c.Confirmed, c.Capacity)
}
