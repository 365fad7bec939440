package sim

import (
	"fmt"
	"time"

	"holdfast/shared/ledger"
)

// kind says what a request asks for.
type kind string

// The kinds of requests.
const (
	askCreate   kind = "create"
	askConfirm  kind = "confirm"
	askCancel   kind = "cancel"
	askRead     kind = "read"
	askList     kind = "list"
	askCapacity kind = "capacity"
	askPrice    kind = "price"
	askOpen     kind = "open"
	// Of slots and their policies: over how many shards, fewer units than were promised.
	askShards   kind = "shards"
	askOversold kind = "oversold"
	askPolicy   kind = "policy"
	askBatch    kind = "batch" // capacities of several slots
	// Of a hold: other lines, more time; and parts of a sale given back by the shop.
	askEdit   kind = "edit"
	askExtend kind = "extend"
	askReturn kind = "return"
	// Of payments: begin one, act as its buyer, ask for its secret, read it, take it back,
	// tell of its delivery.
	askPay        kind = "pay"
	askBuyer      kind = "buyer"
	askSession    kind = "session"
	askReadPaid   kind = "read reservation"
	askCancelPaid kind = "cancel reservation"
	askDelivery   kind = "delivery"
)

// wish is a line of a hold as a client asks for it.
type wish struct {
	slot     ledger.SlotID
	quantity ledger.Units
}

// plan is one request of the workload, decided before the history begins.
type plan struct {
	number int
	kind   kind
	at     time.Duration // since the start
	client string        // whose token
	key    string
	// lines are what a create asks for, what an edit wants, and which part a confirm or a
	// return is of. stalePrice quotes a price that may be old.
	lines      []wish
	stalePrice bool
	device     string        // what a create is made with, "" for nothing known
	extend     time.Duration // how much longer an edit wants the hold
	restock    string        // whether a return is sold again; "" leaves it to the policy
	// hold is the number of the create whose hold this is about. border, if set, replaces
	// at: the request comes that long after what the hold or its reservation comes to.
	hold       int
	border     border
	fromBorder time.Duration
	// act is what a buyer does, and delivered what a delivery came to.
	act       buyerAct
	delivered bool
	// repeats is the number of the request whose key this one uses again.
	repeats int
	// slot and the values of an edit.
	slot     ledger.SlotID
	delta    int64
	amount   int64
	open     bool
	shards   int
	capacity int64
	holdFor  time.Duration // of a policy
	wide     bool          // the policy is of the whole resource type
	rows     []batchRow    // of a batch
}

func (p plan) String() string {
	text := fmt.Sprintf("#%d %s by %s", p.number, p.kind, p.client)
	switch p.kind {
	case askCreate:
		text += fmt.Sprintf(" %v", p.lines)
		if p.repeats >= 0 {
			text += fmt.Sprintf(" with the key of #%d", p.repeats)
		}
	case askBuyer:
		text += fmt.Sprintf(" of #%d: %s", p.hold, p.act)
	case askPay:
		text += fmt.Sprintf(" #%d", p.hold)
		if p.repeats >= 0 {
			text += fmt.Sprintf(" with the key of #%d", p.repeats)
		}
	case askCancelPaid:
		text += fmt.Sprintf(" of #%d, lines %v", p.hold, p.lines)
	case askDelivery:
		text += fmt.Sprintf(" of #%d, delivered %t", p.hold, p.delivered)
	case askConfirm, askCancel, askRead, askSession, askReadPaid, askEdit, askExtend, askReturn:
		text += p.holdText()
	case askCapacity, askPrice, askOpen, askShards, askOversold, askPolicy:
		text += p.slotText()
	case askBatch:
		text += p.batchText()
	case askList:
	}
	if p.border != "" {
		return text + fmt.Sprintf(", %s from its %s", p.fromBorder, p.border)
	}
	return text + fmt.Sprintf(", at %s", p.at)
}

const (
	// PlansOfOneHistory is how many requests the clients of a history plan. Repeated
	// tries come on top.
	PlansOfOneHistory = 72
	// workloadFor is the time in which they plan them.
	workloadFor = 4 * time.Minute
	// rushFor is how long those take to come who all want the same at once. It is about
	// the time of two calls of the database, so that their transactions meet.
	rushFor = 20 * time.Millisecond
	// lateRepeatAfter is when some clients come back after their key is forgotten.
	lateRepeatAfter = ledger.IdempotencyRetainFor + time.Hour
)

// slotPlan is a slot that exists when the history begins.
type slotPlan struct {
	id       ledger.SlotID
	capacity ledger.Units
	shards   int
	amount   int64
	holdFor  time.Duration
	startsAt time.Time
	policy   ledger.Policy
	inherits ledger.PolicyParts
}

// workload is everything that the clients of a history mean to do.
type workload struct {
	slots    []slotPlan
	plans    []plan
	late     bool  // clients come back after days
	archived bool  // the archive takes what has ended
	begun    *plan // the payment that was planned last, and that nobody has paid yet
}

// drawWorkload plans a history: few units, few owners, and many who want the same.
func drawWorkload(d *dice) workload {
	var w workload
	for i := range 1 + d.IntN(3) {
		s := slotPlan{id: ledger.SlotID(fmt.Sprintf("S%d", i)), shards: 1, capacity: ledger.Units(1 + d.IntN(8)), amount: 500, holdFor: time.Duration(10+d.IntN(60)) * time.Second}
		if d.chance(2) {
			s.shards = 2 + d.IntN(3)
			s.capacity = ledger.Units(2 + d.IntN(12))
		}
		drawTerms(d, &s)
		drawLimits(d, &s)
		w.slots = append(w.slots, s)
	}
	w.drawGrants(d)
	w.late = d.chance(20)
	owners := []string{"U-1", "U-2", "U-3", "U-4"}[:2+d.IntN(3)]
	for number := range PlansOfOneHistory {
		w.plans = append(w.plans, w.draw(d, number, owners))
	}
	w.archived = d.chance(4)
	return w
}

// draw plans one request. Most creates come early in a history, and what follows them
// aims at the moments that matter: right away, about the end of the hold, or any time.
func (w *workload) draw(d *dice, number int, owners []string) plan {
	p := plan{number: number, at: d.between(0, workloadFor).Truncate(time.Millisecond), client: pick(d, owners), key: fmt.Sprintf("key-%d", number), hold: -1, repeats: -1}
	creates := w.creates()
	choice := d.IntN(100)
	switch {
	case choice < 28 || len(creates) == 0:
		w.drawCreate(d, &p, creates)
	case choice < 42:
		p.kind = pick(d, []kind{askConfirm, askConfirm, askCancel, askCancel, askCancel, askRead})
		create := pick(d, creates)
		w.drawFollowUp(d, &p, create)
		w.drawPart(d, &p, create)
	case choice < 44:
		p.kind = askList
	case choice < 52:
		w.drawEdit(d, &p)
	case choice < 62:
		w.drawHoldEdit(d, &p, pick(d, creates))
	default:
		w.drawPayment(d, &p, creates)
	}
	return p
}

func (w *workload) creates() []plan { return w.of(askCreate) }

func (w *workload) of(k kind) []plan {
	var out []plan
	for _, p := range w.plans {
		if p.kind == k {
			out = append(out, p)
		}
	}
	return out
}

func (w *workload) drawCreate(d *dice, p *plan, creates []plan) {
	p.kind = askCreate
	p.stalePrice, p.device = d.chance(10), pick(d, devices)
	for range 1 + d.IntN(len(w.slots)) {
		p.lines = append(p.lines, wish{pick(d, w.slots).id, ledger.Units(1 + d.IntN(2))})
	}
	if len(creates) > 0 && d.chance(3) {
		p.at = pick(d, creates).at + d.between(0, rushFor)
	}
	if len(creates) > 0 && d.chance(5) {
		// The same key again: by the same client with the same or another request, or by
		// another client, whose key is another.
		other := pick(d, creates)
		p.key, p.repeats, p.at = other.key, other.number, other.at+d.between(0, time.Second)
		if d.chance(2) {
			p.at = other.at + d.between(0, 40*time.Millisecond) // while the first is under way
		}
		if !d.chance(4) {
			p.client = other.client
		}
		if !d.chance(3) {
			p.lines = other.lines
		}
		if w.late && d.chance(2) {
			p.at = lateRepeatAfter + d.between(0, time.Minute)
		}
	}
}

func (w *workload) drawFollowUp(d *dice, p *plan, create plan) {
	p.hold = create.number
	switch d.IntN(3) {
	case 0:
		p.at = create.at + d.between(0, 3*time.Second)
	case 1:
		// The decision is made some milliseconds after the request has come.
		p.border, p.fromBorder = borderRelease, d.between(-25*time.Millisecond, 10*time.Millisecond)
	default:
		p.at = create.at + d.between(0, 90*time.Second)
	}
	switch {
	case p.kind == askConfirm:
		p.client = "shop"
	case !d.chance(6):
		p.client = create.client
	}
	if d.chance(8) {
		p.key = create.key // one key for two operations is two keys (case E1)
	}
}
