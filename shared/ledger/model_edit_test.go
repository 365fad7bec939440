package ledger_test

import (
	"maps"
	"slices"
)

// change gives a hold these lines, if there are any, and lets it live for extend more
// milliseconds, if that is not zero. It returns the code of the refusal, or "".
func (m *model) change(id string, lines []modelLine, extend int64) (code string, short []string) {
	h := m.find(id)
	w := modelWish{}
	if lines != nil {
		possible := false
		if w, possible = wish(lines); !possible {
			return "invalid_request", nil
		}
	}
	if h.status != "HELD" || m.now >= h.over {
		return "hold_not_active", nil
	}
	next := *h
	grown, more := m.growth(h, w)
	if code := m.offered(grown); code != "" {
		return code, nil
	}
	if lines != nil {
		if !m.reline(h, &next, w, grown) {
			return "price_changed", nil
		}
	}
	if code := m.prolong(&next, extend); code != "" {
		return code, nil
	}
	if maps.EqualFunc(next.lines, h.lines, samePromise) && next.over == h.over {
		return "", nil
	}
	if code, short := m.refused(h, &next, grown); code != "" {
		return code, short
	}
	forget := func() {}
	if !h.countsExpiry { // the first time that this hold has such a slot
		var cooling bool
		if cooling, forget = m.coolDown(h.owner, grown); cooling {
			return "cooling_down", nil
		}
	}
	if code, short := m.unsold(grown, more); code != "" {
		return code, short
	}
	forget()
	next.version++
	*h = next
	return "", nil
}

func samePromise(a, b *modelPromise) bool { return a.units == b.units && a.price == b.price }

// growth is what of the wish the hold does not have: the slots as they shall be, and how
// many more of each.
func (m *model) growth(h *modelHold, w modelWish) (modelWish, map[string]int64) {
	grown, more := modelWish{make(map[string]int64), make(map[string]int64)}, make(map[string]int64)
	for slot, units := range w.units {
		has := int64(0)
		if line := h.lines[slot]; line != nil {
			has = line.units
		}
		if units > has {
			grown.units[slot], grown.amounts[slot], more[slot] = units, w.amounts[slot], units-has
		}
	}
	return grown, more
}

// reline gives next the lines of the wish. It reports false where a line that is kept is
// wished at another price.
func (m *model) reline(h, next *modelHold, w, grown modelWish) bool {
	next.lines = make(map[string]*modelPromise)
	for slot, units := range w.units {
		if _, grows := grown.units[slot]; grows {
			next.lines[slot] = m.promise(slot, w)
			next.take(m, slot)
			continue
		}
		kept := *h.lines[slot]
		if kept.price != w.amounts[slot] {
			return false
		}
		kept.units = units
		next.lines[slot] = &kept
	}
	if len(grown.units) > 0 {
		life, longest := m.lives(grown)
		next.life, next.longest = min(h.life, life), min(h.longest, longest)
		next.over = min(h.over, m.now+next.life)
	}
	return true
}

// prolong lets the hold live for so many more milliseconds, as far as it may.
func (m *model) prolong(next *modelHold, extend int64) string {
	end := min(m.now+extend, next.created+next.longest)
	switch {
	case extend == 0:
	case extend < 1_000 || extend > next.life:
		return "invalid_request"
	case end > next.over:
		next.over = end
	case next.over >= next.created+next.longest:
		return "hold_at_maximum"
	}
	return ""
}

// modelBack is a part of a hold that is sold, or given back after the sale.
type modelBack struct {
	slot    string
	units   int64
	restock string // "", "always" or "never"
}

// confirmPart sells a part of a hold and gives back the rest.
func (m *model) confirmPart(id, reference string, parts []modelBack) string {
	h := m.find(id)
	sold := make(map[string]int64)
	for _, part := range parts {
		if sold[part.slot] > 0 || part.units < 1 {
			return "invalid_request"
		}
		sold[part.slot] = part.units
	}
	if len(parts) == 0 {
		return "invalid_request"
	}
	has := make(map[string]int64)
	for slot, line := range h.lines {
		has[slot] = line.units
	}
	switch {
	case h.status == "CONFIRMED" && h.reference == reference && maps.Equal(sold, has):
		return ""
	case h.status != "HELD" || m.now >= h.over:
		return "hold_not_active"
	}
	for slot, units := range sold {
		if units > has[slot] {
			return "invalid_request"
		}
	}
	before := maps.Clone(h.lines)
	for slot := range has {
		line := *h.lines[slot]
		line.units = sold[slot]
		h.lines[slot] = &line
		if line.units == 0 {
			delete(h.lines, slot)
		}
	}
	code := m.confirm(id, reference)
	if code != "" {
		h.lines = before
	}
	return code
}

// giveBack returns parts of a sale, or all of it for none.
func (m *model) giveBack(id string, parts []modelBack) string {
	h := m.find(id)
	if h.status != "CONFIRMED" {
		return "hold_not_active"
	}
	if len(parts) == 0 {
		for slot, line := range h.lines {
			if left := line.units - line.back; left > 0 {
				parts = append(parts, modelBack{slot: slot, units: left})
			}
		}
	}
	named := make(map[string]bool)
	for _, part := range parts {
		line := h.lines[part.slot]
		switch {
		case line == nil || named[part.slot] || part.units < 1:
			return "invalid_request"
		case part.units > line.units-line.back:
			return "return_over_sale"
		}
		named[part.slot] = true
	}
	for _, part := range parts {
		line := h.lines[part.slot]
		line.back += part.units
		if part.restock == "never" || part.restock == "" && line.lost {
			m.slots[part.slot].stock -= part.units
		}
	}
	h.version++
	if !slices.ContainsFunc(slices.Collect(maps.Values(h.lines)), func(l *modelPromise) bool { return l.units > l.back }) {
		h.status = "RETURNED"
	}
	return ""
}
