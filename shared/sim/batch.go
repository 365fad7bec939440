package sim

import (
	"fmt"
	"slices"
	"time"

	"holdfast/shared/ledger"
)

// batchRow is a row of a batch of slots: so many more units of one.
type batchRow struct {
	slot  ledger.SlotID
	delta int64
}

// drawBatch plans that the capacity of several slots is changed in one request.
func (w *workload) drawBatch(d *dice, p *plan) {
	p.kind, p.client = askBatch, "catalog"
	for _, s := range w.slots {
		if d.chance(2) || len(p.rows) == 0 {
			p.rows = append(p.rows, batchRow{s.id, pick(d, []int64{-2, -1, 1, 2})})
		}
	}
}

func batchBody(p plan) string {
	var rows []map[string]any
	for _, row := range p.rows {
		rows = append(rows, map[string]any{"slot_id": row.slot, "patch": map[string]int64{"capacity_delta": row.delta}})
	}
	return mustJSON(map[string]any{"slots": rows})
}

func (p plan) batchText() string { return fmt.Sprintf(" %v", p.rows) }

// row is what the plan asks of a slot in its batch, if anything.
func (p plan) row(id ledger.SlotID) (batchRow, bool) {
	i := slices.IndexFunc(p.rows, func(row batchRow) bool { return row.slot == id })
	if i < 0 {
		return batchRow{}, false
	}
	return p.rows[i], true
}

// rowResult is what an answer says of one row.
type rowResult struct {
	Slot    ledger.SlotID `json:"slot_id"`
	Result  string        `json:"result"`
	Problem struct {
		Code ledger.Code `json:"code"`
	} `json:"problem"`
}

// judgeBatch checks each row of a batch: what is said to be changed was changed by this
// request, and what was refused could not be done at some moment of it.
func (w *world) judgeBatch(r *request, t *try, a answer) {
	if len(a.Rows) != len(r.rows) {
		w.violated("answers", "%s was answered with %d rows", r.name, len(a.Rows))
		return
	}
	for i, result := range a.Rows {
		if result.Slot != r.rows[i].slot || !w.rowIsTrue(r, t, r.rows[i], result) {
			w.violated("answers", "%s was answered %+v of its row %d, which was not so", r.name, result, i)
		}
	}
}

func (w *world) rowIsTrue(r *request, t *try, row batchRow, result rowResult) bool {
	done := func(before time.Time) bool {
		return slices.ContainsFunc(w.books.slots[row.slot].edits, func(e edit) bool {
			return e.by != nil && e.by.idempotency() == r.idempotency() && e.at.Before(before)
		})
	}
	switch {
	case result.Result == "changed":
		return done(w.kernel.now.Add(1))
	case result.Result != "refused":
		return false
	case result.Problem.Code == ledger.CodeCapacityInUse:
		return !done(t.begin) && w.books.ever(row.slot, t.begin, t.end, func(m moment) bool { return m.available-m.missing < ledger.Units(-row.delta) })
	case result.Problem.Code == ledger.CodeUnavailable, result.Problem.Code == ledger.CodeBusy, result.Problem.Code == ledger.CodeOutcomeUnknown:
		return !w.calm()
	default:
		return false
	}
}
