package sim

import (
	"fmt"
	"net/http"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/topology"
)

// prepareHold fills in a request that changes a hold.
func (w *world) prepareHold(r *request) {
	path := "/v1/holds/" + string(r.about)
	switch r.kind {
	case askConfirm:
		r.path, r.scope = path+"/confirm", topology.ScopeConfirm
		// Some payments are named for two holds.
		r.reference = ledger.PaymentReference(fmt.Sprintf("pay-%d", r.number/3))
		r.body = confirmBody(r)
	case askReturn:
		r.path, r.scope, r.body = path+"/return", topology.ScopeConfirm, returnUnpaidBody(r.plan)
	case askExtend:
		r.path, r.body = path+"/extend", "{}"
	default:
		r.method, r.path = http.MethodPatch, path
		r.quoted = w.quoteEdit(r.plan, w.books.holds[r.about].now)
		r.body = editHoldBody(r.plan, r.quoted)
	}
}

// quoteEdit is the price that the client knows of each line of an edit: what was quoted of
// what it keeps, and what it has seen of what it wants more of.
func (w *world) quoteEdit(p plan, hold ledger.Hold) map[ledger.SlotID]int64 {
	quoted := w.quote(p)
	total := map[ledger.SlotID]ledger.Units{}
	for _, line := range p.lines {
		total[line.slot] += line.quantity
	}
	for _, line := range hold.Lines {
		if wanted, kept := total[line.Slot]; kept && wanted <= line.Quantity {
			quoted[line.Slot] = line.UnitPrice.AmountMinor
		}
	}
	return quoted
}

// lineBody is a line of a request.
type lineBody struct {
	Slot       ledger.SlotID `json:"slot_id"`
	Quantity   ledger.Units  `json:"quantity"`
	UnitAmount *int64        `json:"unit_amount,omitempty"`
	Restock    *bool         `json:"restock,omitempty"`
}

func quotedLines(lines []wish, quoted map[ledger.SlotID]int64) []lineBody {
	var out []lineBody
	for _, wanted := range lines {
		amount := quoted[wanted.slot]
		out = append(out, lineBody{Slot: wanted.slot, Quantity: wanted.quantity, UnitAmount: &amount})
	}
	return out
}

func createBody(p plan, quoted map[ledger.SlotID]int64) string {
	body := map[string]any{"lines": quotedLines(p.lines, quoted)}
	if p.device != "" {
		body["signals"] = map[string]string{"device": p.device}
	}
	return mustJSON(body)
}

func editHoldBody(p plan, quoted map[ledger.SlotID]int64) string {
	body := map[string]any{"lines": quotedLines(p.lines, quoted)}
	if p.extend > 0 {
		body["hold_seconds"] = int64(p.extend / time.Second)
	}
	return mustJSON(body)
}

func confirmBody(r *request) string {
	body := map[string]any{"payment_reference": r.reference}
	if len(r.lines) > 0 {
		body["lines"] = soldLines(r.lines)
	}
	return mustJSON(body)
}

func soldLines(lines []wish) []lineBody {
	var out []lineBody
	for _, sold := range lines {
		out = append(out, lineBody{Slot: sold.slot, Quantity: sold.quantity})
	}
	return out
}

// returnUnpaidBody names parts of a sale. A whole sale has no lines, and no wish about its
// stock.
func returnUnpaidBody(p plan) string {
	if len(p.lines) == 0 {
		return "{}"
	}
	lines := soldLines(p.lines)
	for i := range lines {
		if p.restock != "" {
			restock := p.restock == "true"
			lines[i].Restock = &restock
		}
	}
	return mustJSON(map[string]any{"lines": lines})
}
