package ledger_test

import (
	"maps"
	"slices"
)

// model is a second, deliberately dumb ledger to compare the first one with. It keeps
// one record for each hold and no counters: what is left, and what an owner has, is counted
// anew each time by walking over all holds. It knows nothing of shards, conditions or
// layers of a policy, uses none of the ledger's arithmetic, and its times are plain
// milliseconds.
type model struct {
	now    int64
	slots  map[string]*modelSlot
	says   map[string]modelPolicy // by "show" and "show/RESOURCE"
	holds  []*modelHold
	owners map[string]*modelOwner
	keys   map[string]*modelKey
	paid   map[string]bool
}

type modelSlot struct {
	resource        string
	stock, oversold int64 // the units that are promised from, and how many of them are missing
	price, most     int64
	open, lost      bool        // lost: what is given back is not sold again
	own             modelPolicy // what it says itself
	longest         int64
}

// modelPolicy is what one place says, by name; what it does not say is not there.
type modelPolicy map[string]int64

// The names of what a place says. A limit of nothing is no limit.
const (
	saysLife       = "life"
	saysPerSlot    = "units of the slot"
	saysPerOwner   = "units of the resource"
	saysHolds      = "holds"
	saysExpiries   = "expiries"
	saysCooldownMs = "cooldown"
)

type modelHold struct {
	id, owner, status, reference string
	lines                        map[string]*modelPromise
	created, over, life, longest int64
	countsHold, countsExpiry     bool
	ends                         int // how often it left HELD
	version                      int64
}

// modelPromise is one slot of a hold.
type modelPromise struct {
	units, back, price int64
	lost               bool
	counts             []string
}

type modelOwner struct{ expired, lastExpired int64 }

// modelKey is a request that was carried out.
type modelKey struct {
	body, hold string
	until      int64
}

func newModel(now int64) *model {
	return &model{
		now: now, slots: make(map[string]*modelSlot), says: make(map[string]modelPolicy), keys: make(map[string]*modelKey),
		owners: map[string]*modelOwner{"U-1": {}, "U-2": {}}, paid: make(map[string]bool),
	}
}

// whole is what is said for the slot: by itself, else by its resource, else by its type.
func (m *model) whole(slot, name string) int64 {
	s := m.slots[slot]
	for _, place := range []modelPolicy{s.own, m.says["show/"+s.resource], m.says["show"]} {
		if value, said := place[name]; said {
			return value
		}
	}
	if name == saysLife {
		return 10 * 60 * 1000
	}
	return 0
}

// sum counts the units of a slot in holds of a status, without those that were given back.
func (m *model) sum(slot string, statuses ...string) int64 {
	var n int64
	for _, h := range m.holds {
		if line := h.lines[slot]; line != nil && slices.Contains(statuses, h.status) {
			n += line.units - line.back
		}
	}
	return n
}

func (m *model) inUse(slot string) int64 {
	return m.sum(slot, "HELD") + m.sum(slot, "CONFIRMED", "RETURNED")
}

func (m *model) free(slot string) int64 { return m.slots[slot].stock - m.inUse(slot) }

// count counts what an owner has of a count.
func (m *model) count(owner, key string) int64 {
	var n int64
	for _, h := range m.holds {
		if h.owner == owner {
			n += h.count(key)
		}
	}
	return n
}

func (h *modelHold) count(key string) int64 {
	var n int64
	if h.status == "HELD" && h.countsHold && key == "holds" {
		n++
	}
	for _, line := range h.lines {
		if slices.Contains(line.counts, key) && slices.Contains([]string{"HELD", "CONFIRMED", "RETURNED"}, h.status) {
			n += line.units - line.back
		}
	}
	return n
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

// modelWish is lines, added up.
type modelWish struct{ units, amounts map[string]int64 }

// wish adds lines up, and reports false for lines that can't be meant.
func wish(lines []modelLine) (modelWish, bool) {
	w := modelWish{make(map[string]int64), make(map[string]int64)}
	for _, l := range lines {
		if amount, seen := w.amounts[l.slot]; l.units < 1 || l.units > 10_000 || (seen && amount != l.amount) {
			return w, false
		}
		w.units[l.slot] += l.units
		w.amounts[l.slot] = l.amount
		if w.units[l.slot] > 10_000 {
			return w, false
		}
	}
	return w, len(lines) > 0
}

// create returns the code of the refusal, or the id of the hold that the request made.
func (m *model) create(id, owner, key, body string, lines []modelLine) (code, hold string, short []string) {
	w, possible := wish(lines)
	if !possible {
		return "invalid_request", "", nil
	}
	if hold, counts, other := m.replayed(key, body); key != "" && counts {
		if other {
			return "idempotency_key_reused", "", nil
		}
		return "", hold, nil
	}
	h := &modelHold{id: id, owner: owner, status: "HELD", created: m.now, lines: make(map[string]*modelPromise), version: 1}
	if code := m.offered(w); code != "" {
		return code, "", nil
	}
	h.life, h.longest = m.lives(w)
	h.over = m.now + h.life
	for slot := range w.units {
		h.lines[slot] = m.promise(slot, w)
		h.take(m, slot)
	}
	if code, short = m.refused(&modelHold{}, h, w); code != "" {
		return code, "", short
	}
	cooling, forget := m.coolDown(owner, w)
	if cooling {
		return "cooling_down", "", nil
	}
	if code, short = m.unsold(w, w.units); code != "" {
		return code, "", short
	}
	forget()
	m.holds = append(m.holds, h)
	m.remember(key, body, id)
	return "", id, nil
}

// coolDown says whether too many holds of the owner have expired, the last of them not long
// enough ago, for slots that look at that. What it returns beside is to be done if the owner
// gets the slots: who has cooled down begins anew.
func (m *model) coolDown(owner string, w modelWish) (cooling bool, forget func()) {
	most := m.strictest(w, saysExpiries)
	if most == 0 || m.owners[owner].expired < most {
		return false, func() {}
	}
	return m.now < m.owners[owner].lastExpired+m.longestCooldown(w), func() { m.owners[owner].expired = 0 }
}

// offered is the code for the first slot that can't be asked for at all.
func (m *model) offered(w modelWish) string {
	for _, slot := range slices.Sorted(maps.Keys(w.units)) {
		switch s := m.slots[slot]; {
		case s == nil:
			return "slot_not_found"
		case w.units[slot] > s.most:
			return "quantity_over_limit"
		}
	}
	return ""
}

// lives are the shortest life and the shortest longest life of the slots.
func (m *model) lives(w modelWish) (life, longest int64) {
	life, longest = 1<<60, 1<<60
	for slot := range w.units {
		// The slot itself says the longest life, so a life that nobody says gives way to it.
		life = min(life, m.whole(slot, saysLife), m.slots[slot].longest)
		longest = min(longest, m.slots[slot].longest)
	}
	return life, longest
}

// promise is the slot as a line of a hold that is made, or grows, now.
func (m *model) promise(slot string, w modelWish) *modelPromise {
	p := &modelPromise{units: w.units[slot], price: w.amounts[slot], lost: m.slots[slot].lost}
	if m.whole(slot, saysPerSlot) > 0 {
		p.counts = append(p.counts, "slot/"+slot)
	}
	if m.whole(slot, saysPerOwner) > 0 {
		p.counts = append(p.counts, "resource/show/"+m.slots[slot].resource)
	}
	return p
}

// take writes down in the hold what it is counted as because of the slot.
func (h *modelHold) take(m *model, slot string) {
	h.countsHold = h.countsHold || m.whole(slot, saysHolds) > 0
	h.countsExpiry = h.countsExpiry || m.whole(slot, saysExpiries) > 0
}

// strictest is the smallest limit of that name that one of the slots has, zero for none.
func (m *model) strictest(w modelWish, name string) int64 {
	var out int64
	for slot := range w.units {
		if limit := m.whole(slot, name); limit > 0 && (out == 0 || limit < out) {
			out = limit
		}
	}
	return out
}

func (m *model) longestCooldown(w modelWish) int64 {
	var out int64
	for slot := range w.units {
		if m.whole(slot, saysExpiries) > 0 {
			out = max(out, m.whole(slot, saysCooldownMs))
		}
	}
	return out
}

// refused says whether a limit of the slots in w, of which it takes more, refuses the step of
// a hold from before to after.
func (m *model) refused(before, after *modelHold, w modelWish) (code string, short []string) {
	limits := map[string]int64{"holds": m.strictest(w, saysHolds)}
	for slot := range w.units {
		limits["slot/"+slot] = m.whole(slot, saysPerSlot)
		resource := "resource/show/" + m.slots[slot].resource
		if limit := m.whole(slot, saysPerOwner); limit > 0 && (limits[resource] == 0 || limit < limits[resource]) {
			limits[resource] = limit
		}
	}
	for key, limit := range limits {
		more := after.count(key) - before.count(key)
		if limit > 0 && m.count(after.owner, key)+more > limit {
			return "limit_reached", nil
		}
	}
	return "", nil
}

// unsold says why units of the slots can't be sold now.
func (m *model) unsold(w modelWish, units map[string]int64) (code string, short []string) {
	var closed, price bool
	for _, slot := range slices.Sorted(maps.Keys(w.units)) {
		s := m.slots[slot]
		closed = closed || !s.open
		price = price || s.price != w.amounts[slot]
		if units[slot] > m.free(slot) {
			short = append(short, slot)
		}
	}
	switch {
	case closed:
		return "slot_closed", nil
	case price:
		return "price_changed", nil
	case len(short) > 0:
		return "insufficient_stock", short
	}
	return "", nil
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
	m.end(h, "CONFIRMED")
	return ""
}

func (m *model) cancel(id string) string {
	h := m.find(id)
	if h.status != "HELD" {
		return "hold_not_active"
	}
	m.end(h, "CANCELED")
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
	m.end(h, "EXPIRED")
	return ""
}

// end ends a HELD hold, and remembers of its owner that it expired, or forgets that others
// did.
func (m *model) end(h *modelHold, status string) {
	h.status = status
	h.ends++
	h.version++
	owner := m.owners[h.owner]
	if h.countsExpiry && status == "EXPIRED" {
		owner.expired++
		owner.lastExpired = m.now
	}
	if h.countsExpiry && status == "CONFIRMED" {
		owner.expired = 0
	}
}

// put is what a slot shall be. Kept leaves the number of its units.
type modelPut struct {
	resource                 string
	units, price, most       int64
	kept, accept, open, lost bool
	own                      modelPolicy
	longest                  int64
}

// edit returns the code of the refusal, or "".
func (m *model) edit(slot string, put modelPut) string {
	next := &modelSlot{
		resource: put.resource, stock: put.units, price: put.price, most: put.most, open: put.open, lost: put.lost,
		own: put.own, longest: put.longest,
	}
	if s := m.slots[slot]; s != nil {
		inUse := m.inUse(slot)
		real := max(0, s.stock-s.oversold)
		switch {
		case put.kept && (s.oversold == 0 || !put.open):
			next.stock, next.oversold = s.stock, s.oversold
		case put.kept && real >= inUse:
			next.stock = real
		case put.kept:
			return "slot_oversold"
		case put.units >= inUse:
		case !put.accept:
			return "capacity_in_use"
		default:
			next.stock, next.oversold, next.open = inUse, inUse-put.units, false
		}
	}
	m.slots[slot] = next
	return ""
}
