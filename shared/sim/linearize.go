package sim

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"holdfast/shared/ledger"
)

// linearizeFor bounds porcupine's work on one history. Its slots share it.
const linearizeFor = time.Second

// slotState is the model of a slot: what is left, and how it is sold.
type slotState struct {
	available ledger.Units
	missing   ledger.Units // what is promised and is not there
	amount    int64
	open      bool
}

// slotStep is one operation on one slot, with its outcome.
type slotStep struct {
	kind     string
	quantity ledger.Units
	missing  ledger.Units
	amount   int64
	open     bool
}

// The kinds of steps. A step that did not come true is not in a history: what nobody was
// told and nothing shows has not happened.
const (
	stepDefine   = "define"
	stepTake     = "take"
	stepRetake   = "take for a late payment"
	stepShort    = "refused as short"
	stepDear     = "refused for its price"
	stepClosed   = "refused as closed"
	stepGive     = "give back"
	stepCapacity = "change capacity"
	stepInUse    = "refused as in use"
	stepPrice    = "change price"
	stepOpen     = "open or close"
	stepShards   = "spread over other shards"
	stepOversold = "take what is left of fewer units than were promised"
)

// slotModel says which steps are possible in which state: the ledger's rules for one
// slot, in as few words as they can be said.
var slotModel = porcupine.Model{
	Init: func() any { return slotState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, in := state.(slotState), input.(slotStep)
		return in.from(&s), s
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
}

// from takes the step from s, and reports whether it is possible there.
func (in slotStep) from(s *slotState) bool {
	switch in.kind {
	case stepDefine:
		*s = slotState{available: in.quantity, amount: in.amount, open: true}
	case stepTake:
		s.available -= in.quantity
		return s.open && s.amount == in.amount && s.available >= 0
	case stepRetake:
		s.available -= in.quantity
		return s.open && s.available >= 0
	case stepShort:
		return s.available < in.quantity
	case stepDear:
		return s.amount == in.amount
	case stepClosed:
		return !s.open
	case stepGive:
		s.available += in.quantity
	case stepCapacity:
		s.available += in.quantity
		s.missing = 0
		return s.available >= 0
	case stepInUse:
		return s.available-s.missing+in.quantity < 0
	case stepPrice:
		s.amount = in.amount
	case stepOpen:
		s.open = in.open
		s.available += in.quantity
		if in.open {
			s.missing = 0
		}
		return s.available >= 0
	case stepShards:
		return in.quantity == 0
	case stepOversold:
		s.available += in.quantity
		s.open, s.missing = in.open, in.missing
		return s.available >= 0 && (s.missing == 0 || !s.open)
	default:
		return false
	}
	return true
}

// linearize checks that every slot's history could have happened one step after the
// other. It returns how many slots could not be decided in time.
func (w *world) linearize() int {
	undecided, slotFor := 0, linearizeFor/time.Duration(max(1, len(w.books.slots)))
	for _, id := range slices.Sorted(maps.Keys(w.books.slots)) {
		switch porcupine.CheckOperationsTimeout(slotModel, w.stepsOf(id), slotFor) {
		case porcupine.Illegal:
			w.violated("linearizable", "no order of its steps explains the history of %s", id)
		case porcupine.Unknown:
			undecided++
		case porcupine.Ok:
		}
	}
	return undecided
}

// stepsOf collects what happened to a slot: what was committed, between the first time
// that its client asked and the moment it was told, and every refusal.
func (w *world) stepsOf(id ledger.SlotID) []porcupine.Operation {
	var steps []porcupine.Operation
	add := func(from, to time.Time, step slotStep) {
		steps = append(steps, porcupine.Operation{Call: from.UnixNano(), Return: to.UnixNano(), Input: step, Output: true})
	}
	for _, e := range w.books.slots[id].edits {
		from, to := e.by.interval(e.at)
		add(from, to, e.step)
	}
	for _, made := range w.books.slots[id].steps {
		from, to := made.by.interval(made.at)
		add(from, to, made.step)
	}
	for _, r := range w.requests {
		for _, t := range r.tries {
			for _, step := range refusedSteps(r, t, id) {
				add(t.begin, t.end, step)
			}
		}
	}
	return steps
}

// interval is the time in which the request's effect, committed at a moment, may be seen
// to have happened: from its first try to its first success. What no client asked for
// happened at its moment.
func (r *request) interval(committed time.Time) (from, to time.Time) {
	if r == nil || len(r.tries) == 0 {
		return committed, committed
	}
	for _, t := range r.tries {
		if t.answered && t.status < http.StatusBadRequest && !t.end.Before(committed) {
			return r.tries[0].begin, t.end
		}
	}
	return r.tries[0].begin, committed
}

// refusedSteps are the steps of a slot that an answer tells of.
func refusedSteps(r *request, t *try, id ledger.SlotID) []slotStep {
	var steps []slotStep
	switch t.answer.Code {
	case ledger.CodeInsufficientStock:
		for _, named := range t.answer.Slots {
			if named.Slot == id && (r.kind != askEdit || t.had != nil) {
				// An edit is short of what it wants beyond what the hold has.
				steps = append(steps, slotStep{kind: stepShort, quantity: r.quantity(id) - t.had[id]})
			}
		}
	case ledger.CodePriceChanged:
		for _, named := range t.answer.Prices {
			if named.Slot == id {
				steps = append(steps, slotStep{kind: stepDear, amount: named.UnitAmount})
			}
		}
	case ledger.CodeSlotClosed:
		for _, named := range t.answer.Slots {
			if named.Slot == id {
				steps = append(steps, slotStep{kind: stepClosed})
			}
		}
	case ledger.CodeCapacityInUse:
		if r.slot == id {
			steps = append(steps, slotStep{kind: stepInUse, quantity: ledger.Units(r.delta)})
		}
	default:
	}
	return steps
}
