package sim

import (
	"fmt"
	"time"

	"holdfast/shared/ledger"
)

// The resource that all slots of a history are of.
const (
	resourceType ledger.ResourceType = "show"
	resourceID   ledger.ResourceID   = "R1"
)

// drawEdit plans a change of a slot, or of the policy of its resource. Many of them come in
// the middle of a rush.
func (w *workload) drawEdit(d *dice, p *plan) {
	p.client, p.slot = "catalog", pick(d, w.slots).id
	if creates := w.creates(); len(creates) > 0 && d.chance(3) {
		p.at = pick(d, creates).at + d.between(0, rushFor)
	}
	switch d.IntN(14) {
	case 0, 1, 2:
		p.kind, p.delta = askCapacity, pick(d, []int64{-2, -1, 1, 2, 3})
	case 3, 4:
		p.kind, p.amount = askPrice, int64(500+100*d.IntN(2))
	case 5, 6:
		p.kind, p.open = askOpen, !d.chance(4)
	case 7, 8, 9:
		p.kind, p.shards = askShards, pick(d, []int{1, 2, 3, 4, 6})
	case 10, 11:
		w.drawBatch(d, p)
	case 12:
		p.kind, p.capacity = askOversold, int64(d.IntN(4))
	default:
		p.kind, p.holdFor = askPolicy, d.between(8*time.Second, time.Minute).Truncate(time.Second)
		p.wide = d.chance(2)
	}
}

func (p plan) slotText() string {
	switch p.kind {
	case askCapacity:
		return fmt.Sprintf(" %s by %d", p.slot, p.delta)
	case askPrice:
		return fmt.Sprintf(" %s to %d", p.slot, p.amount)
	case askShards:
		return fmt.Sprintf(" %s to %d", p.slot, p.shards)
	case askOversold:
		return fmt.Sprintf(" %s to %d, whatever was promised", p.slot, p.capacity)
	case askPolicy:
		return fmt.Sprintf(" of %s, holds for %s", p.policyScope(), p.holdFor)
	default:
		return fmt.Sprintf(" %s %t", p.slot, p.open)
	}
}

// policyScope is what the plan says a policy for.
func (p plan) policyScope() ledger.PolicyScope {
	if p.wide {
		return ledger.PolicyScope{ResourceType: resourceType}
	}
	return ledger.PolicyScope{ResourceType: resourceType, ResourceID: resourceID}
}
