package ledger_test

import (
	"maps"
	"slices"
)

// model is a second, deliberately dumb ledger to compare the first one with. It keeps
// one record for each hold and no counters: what is left is counted anew each time by
// walking over all holds. It knows nothing of shards, versions or conditions, uses none
// of the ledger's arithmetic, and its times are plain milliseconds.
type model struct {
	now   int64
	slots map[string]*modelSlot
	holds []*modelHold
	keys  map[string]*modelKey
	paid  map[string]bool
}

type modelSlot struct {
	capacity, price, life, most int64
	open                        bool
}

type modelHold struct {
	id, owner, status, reference string
	units                        map[string]int64
	created, over                int64
	ends                         int // how often it left HELD
}

// modelKey is a request that was carried out.
type modelKey struct {
	body, hold string
	until      int64
}

func newModel(now int64) *model {
	return &model{now: now, slots: make(map[string]*modelSlot), keys: make(map[string]*modelKey), paid: make(map[string]bool)}
}

// sum counts the units of a slot in holds of a status.
func (m *model) sum(slot, status string) int64 {
	var n int64
	for _, h := range m.holds {
		if h.status == status {
			n += h.units[slot]
		}
	}
	return n
}

func (m *model) free(slot string) int64 {
	return m.slots[slot].capacity - m.sum(slot, "HELD") - m.sum(slot, "CONFIRMED")
}

func (m *model) find(id string) *modelHold {
	for _, h := range m.holds {
		if h.id == id {
			return h
		}
	}
	return nil
}

// replayed looks for a request under a key: the hold it is about, whether the key
// counts, and whether it was used for another request.
func (m *model) replayed(key, body string) (hold string, counts, other bool) {
	k := m.keys[key]
	if k == nil || m.now >= k.until {
		return "", false, false
	}
	return k.hold, true, k.body != body
}

const modelRetention = 48 * 60 * 60 * 1000

func (m *model) remember(key, body, hold string) {
	if key != "" {
		m.keys[key] = &modelKey{body: body, hold: hold, until: m.now + modelRetention}
	}
}

type modelLine struct {
	slot          string
	units, amount int64
}

// create returns the code of the refusal, or the id of the hold that the request made.
func (m *model) create(id, owner, key, body string, lines []modelLine) (code, hold string, short []string) {
	units, amounts := make(map[string]int64), make(map[string]int64)
	for _, l := range lines {
		if amount, seen := amounts[l.slot]; l.units < 1 || l.units > 10_000 || (seen && amount != l.amount) {
			return "invalid_request", "", nil
		}
		units[l.slot] += l.units
		amounts[l.slot] = l.amount
		if units[l.slot] > 10_000 {
			return "invalid_request", "", nil
		}
	}
	if hold, counts, other := m.replayed(key, body); key != "" && counts {
		if other {
			return "idempotency_key_reused", "", nil
		}
		return "", hold, nil
	}
	// The first slot that cannot be asked for at all decides; the rest is said of all.
	var closed, price bool
	life := int64(1) << 60
	for _, slot := range slices.Sorted(maps.Keys(units)) {
		s, n := m.slots[slot], units[slot]
		switch {
		case s == nil:
			return "slot_not_found", "", nil
		case n > s.most:
			return "quantity_over_limit", "", nil
		}
		closed = closed || !s.open
		price = price || s.price != amounts[slot]
		if n > m.free(slot) {
			short = append(short, slot)
		}
		life = min(life, s.life)
	}
	switch {
	case closed:
		return "slot_closed", "", nil
	case price:
		return "price_changed", "", nil
	case len(short) > 0:
		return "insufficient_stock", "", short
	}
	m.holds = append(m.holds, &modelHold{id: id, owner: owner, status: "HELD", units: units, created: m.now, over: m.now + life})
	m.remember(key, body, id)
	return "", id, nil
}

// confirm, cancel and expire return the code of the refusal, or "".
func (m *model) confirm(id, reference string) string {
	h := m.find(id)
	switch {
	case h.status == "CONFIRMED" && h.reference == reference:
		return ""
	case h.status != "HELD" || m.now >= h.over:
		return "hold_not_active"
	case reference != "" && m.paid[reference]:
		return "payment_reference_used"
	}
	m.paid[reference] = true
	h.reference = reference
	h.end("CONFIRMED")
	return ""
}

func (m *model) cancel(id string) string {
	h := m.find(id)
	if h.status != "HELD" {
		return "hold_not_active"
	}
	h.end("CANCELED")
	return ""
}

func (m *model) expire(id string) string {
	h := m.find(id)
	switch {
	case h.status != "HELD":
		return ""
	case m.now < h.over:
		return "hold_not_due"
	}
	h.end("EXPIRED")
	return ""
}

func (h *modelHold) end(status string) {
	h.status = status
	h.ends++
}

// edit returns the code of the refusal, or "".
func (m *model) edit(slot string, capacity, price, life, most int64, open bool) string {
	if m.slots[slot] != nil && capacity < m.sum(slot, "HELD")+m.sum(slot, "CONFIRMED") {
		return "capacity_in_use"
	}
	m.slots[slot] = &modelSlot{capacity: capacity, price: price, life: life, most: most, open: open}
	return ""
}
