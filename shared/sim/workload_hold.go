package sim

import (
	"fmt"
	"time"

	"holdfast/shared/ledger"
)

const (
	// editedWithin is how soon after its creation most holds are changed.
	editedWithin = 15 * time.Second
	// partReturnedWithin is how soon after its creation a shop gives parts of a sale back.
	partReturnedWithin = 60 * time.Second
)

// devices are what clients buy with. Several of them share one.
var devices = []string{"", "", "device-1", "device-2"}

// drawHoldEdit plans that a hold is changed: its lines, its time, or parts of what was sold.
func (w *workload) drawHoldEdit(d *dice, p *plan, create plan) {
	p.hold, p.client = create.number, create.client
	if d.chance(12) {
		p.client = "U-2" // who may be another owner
	}
	p.at = create.at + d.between(5*time.Millisecond, editedWithin)
	switch d.IntN(8) {
	case 0, 1, 2, 3:
		w.drawLines(d, p, create)
	case 4, 5:
		p.kind = askExtend
	default:
		p.kind, p.client, p.at = askReturn, "shop", create.at+d.between(time.Second, partReturnedWithin)
		p.restock = pick(d, []string{"", "", "true", "false"})
		if d.chance(2) {
			line := pick(d, create.lines)
			p.lines = []wish{{line.slot, ledger.Units(1 + d.IntN(int(line.quantity)))}}
		}
		return
	}
	if d.chance(5) {
		p.border, p.fromBorder = borderExpiry, d.between(-40*time.Millisecond, 10*time.Millisecond)
	}
	if edits := w.of(askEdit); p.kind == askEdit && len(edits) > 0 && d.chance(6) {
		other := pick(d, edits)
		p.key, p.repeats, p.hold, p.client, p.lines, p.extend = other.key, other.number, other.hold, other.client, other.lines, other.extend
		p.at, p.border = other.at+d.between(0, 2*time.Second), ""
	}
}

// drawLines plans other lines for a hold: more or fewer of what it has, other slots in the
// place of some, and at times more time as well.
func (w *workload) drawLines(d *dice, p *plan, create plan) {
	p.kind = askEdit
	for _, line := range create.lines {
		switch d.IntN(4) {
		case 0:
			line.quantity = ledger.Units(1 + d.IntN(3))
		case 1:
			line.slot = pick(d, w.slots).id
		case 2:
			if len(p.lines) > 0 {
				continue
			}
		default:
		}
		p.lines = append(p.lines, line)
	}
	if len(p.lines) == 0 || d.chance(5) {
		p.lines = append(p.lines, wish{pick(d, w.slots).id, 1})
	}
	p.stalePrice = d.chance(10)
	if d.chance(4) {
		p.extend = 5 * time.Second
	}
}

// drawPart lets a shop confirm a part of a hold only.
func (w *workload) drawPart(d *dice, p *plan, create plan) {
	if p.kind != askConfirm || !d.chance(4) {
		return
	}
	line := pick(d, create.lines)
	p.lines = []wish{{line.slot, ledger.Units(1 + d.IntN(int(line.quantity)))}}
}

// drawLimits draws what a slot allows one owner, and one device.
func drawLimits(d *dice, s *slotPlan) {
	if d.chance(4) {
		s.policy.QuantityPerOwnerMax = ledger.Units(1 + d.IntN(3))
	}
	if d.chance(6) {
		s.policy.QuantityPerOwnerOfResourceMax = ledger.Units(1 + d.IntN(4))
	}
	if d.chance(6) {
		s.policy.HoldsPerOwnerMax = ledger.Units(1 + d.IntN(3))
	}
	if d.chance(5) {
		s.policy.ExpiriesMax = ledger.Units(1 + d.IntN(2))
		s.policy.CooldownFor = d.between(time.Second, 30*time.Second).Truncate(time.Second)
	}
	if d.chance(6) {
		s.policy.HoldsPerSignalMax = ledger.Units(2 + d.IntN(4))
	}
	if d.chance(3) {
		s.inherits = ledger.PartHold
	}
}

// holdText says what a plan about a hold asks for, beside its kind.
func (p plan) holdText() string {
	text := fmt.Sprintf(" of #%d", p.hold)
	if len(p.lines) > 0 {
		text += fmt.Sprintf(", lines %v", p.lines)
	}
	if p.extend > 0 {
		text += fmt.Sprintf(", %s more", p.extend)
	}
	if p.restock != "" {
		text += ", restock " + p.restock
	}
	return text
}
