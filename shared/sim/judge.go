package sim

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"holdfast/shared/ledger"
)

// answer is a body as far as it is judged.
type answer struct {
	HoldID        ledger.HoldID        `json:"hold_id"`
	ReservationID ledger.ReservationID `json:"reservation_id"`
	ClientSecret  string               `json:"client_secret"`
	Status        any                  `json:"status"`
	Version       ledger.Version       `json:"version"`
	Code          ledger.Code          `json:"code"`
	Slots         []struct {
		Slot      ledger.SlotID `json:"slot_id"`
		Requested ledger.Units  `json:"requested"`
	} `json:"slots"`
	Rows   []rowResult `json:"results"`
	Prices []struct {
		Slot       ledger.SlotID `json:"slot_id"`
		UnitAmount int64         `json:"unit_amount"`
	} `json:"prices"`
	Holds []struct {
		HoldID  ledger.HoldID  `json:"hold_id"`
		Version ledger.Version `json:"version"`
	} `json:"holds"`
}

// judge holds one answer against what was true between the request and the answer.
func (w *world) judge(r *request, t *try) {
	if !t.answered {
		return
	}
	if err := json.Unmarshal([]byte(t.body), &t.answer); err != nil {
		w.violated("answers", "%s was answered %d with a body that is no JSON: %v", r.name, t.status, err)
		return
	}
	a := t.answer
	switch {
	case t.status == http.StatusServiceUnavailable && (a.Code == ledger.CodeUnavailable || a.Code == ledger.CodeOutcomeUnknown || a.Code == ledger.CodeBusy):
		if w.calm() {
			w.violated("liveness", "%s was answered %s although all is well", r.name, a.Code)
		}
	case t.status == http.StatusServiceUnavailable && a.Code == ledger.CodePaymentUnavailable:
		w.judgeUnavailable(r)
	case t.status >= http.StatusBadRequest:
		w.judgeRefusal(r, t, a)
	default:
		w.judgeSuccess(r, t, a)
	}
}

// judgeSuccess checks that what is said to be done is done, and P6: one answer for one
// request.
func (w *world) judgeSuccess(r *request, t *try, a answer) {
	switch r.kind {
	case askCreate, askConfirm, askCancel:
		hold := w.books.holds[a.HoldID]
		if hold == nil || string(hold.now.Owner) != r.subject && r.kind != askConfirm {
			w.violated("P5", "%s was answered %d with %s, which does not exist, or is another's", r.name, t.status, a.HoldID)
			return
		}
		w.judgeOneAnswer(r, t)
		w.judgeTransition(r, hold.now)
		if r.kind == askCreate && t.begin.Sub(w.books.holds[a.HoldID].createdAt) > ledger.IdempotencyRetainFor+2*clockJumpMax+time.Minute {
			w.violated("P6", "%s was answered with %s, which is older than keys are remembered", r.name, a.HoldID)
		}
	case askEdit, askExtend, askReturn:
		w.judgeEdited(r, t, a)
	case askPolicy:
		w.judgePolicy(r, a.Version)
	case askBatch:
		w.judgeBatch(r, t, a)
	case askRead:
		w.judgeRead(r, t, a.HoldID, a.Version, r.about)
	case askList:
		for _, one := range a.Holds {
			w.judgeRead(r, t, one.HoldID, one.Version, one.HoldID)
		}
	case askPay, askSession, askReadPaid, askCancelPaid, askDelivery:
		w.judgePaid(r, t, a)
	case askBuyer: // acts at the bank and is answered there
	case askCapacity, askPrice, askOpen, askShards, askOversold:
		w.judgeOneAnswer(r, t)
		w.judgeEdit(r, a.Version)
	}
}

// judgeEdit checks that the version that an edit was answered with exists and has what was
// asked for. A change of the capacity must have made it; a price may have been the same.
func (w *world) judgeEdit(r *request, version ledger.Version) {
	edits := w.books.slots[r.slot].edits
	if version < 1 || int(version) > len(edits) {
		w.violated("edits", "%s was answered with version %d, which does not exist", r.name, version)
		return
	}
	one := edits[version-1]
	terms := one.made.Terms
	inForce := r.kind == askPrice && terms.Price.AmountMinor == r.amount || r.kind == askOpen && terms.Open == r.open ||
		r.kind == askShards && terms.Shards == r.shards || r.kind == askOversold ||
		r.kind == askCapacity && one.by != nil && one.by.idempotency() == r.idempotency()
	if !inForce {
		w.violated("edits", "%s was answered with version %d, which has not what it asked for", r.name, version)
	}
}

// doneBefore reports whether the same request, under the same key, had its effect before
// a moment, so long ago at most that the key is remembered by any clock.
func (w *world) doneBefore(r *request, at time.Time) bool {
	did := func(by *request, when time.Time) bool {
		return by != nil && by.idempotency() == r.idempotency() && sameRequest(by, r) &&
			when.Before(at) && at.Sub(when) < ledger.IdempotencyRetainFor/2
	}
	switch r.kind {
	case askCreate:
		made := w.books.holds[w.books.effects[r.idempotency()]]
		return made != nil && did(made.by, made.createdAt)
	case askConfirm, askCancel:
		hold := w.books.holds[r.about]
		return hold != nil && did(hold.endedBy, hold.endedAt)
	case askPay:
		started := w.books.begun[r.idempotency()]
		return did(started.by, started.at)
	case askCancelPaid, askDelivery:
		book := w.books.reservations[r.paid]
		return book != nil && slices.ContainsFunc(book.history, func(m reservationMoment) bool { return did(m.by, m.at) })
	case askEdit, askExtend, askReturn:
		hold := w.books.holds[r.about]
		return hold != nil && slices.ContainsFunc(hold.versions, func(made time.Time) bool { return did(hold.makers[slices.Index(hold.versions, made)], made) })
	case askCapacity, askPrice, askOpen, askShards, askOversold:
		return slices.ContainsFunc(w.books.slots[r.slot].edits, func(e edit) bool { return did(e.by, e.at) })
	default:
		return false
	}
}

func (w *world) judgeTransition(r *request, hold ledger.Hold) {
	switch r.kind {
	case askConfirm:
		sold := hold.Status == ledger.StatusConfirmed || hold.Status == ledger.StatusReturned
		if !sold || hold.PaymentReference != r.reference {
			w.violated("P5", "%s was answered 200, and the hold is %s by %q", r.name, hold.Status, hold.PaymentReference)
		}
	case askCancel:
		if hold.Status != ledger.StatusCanceled {
			w.violated("P5", "%s was answered 200, and the hold is %s", r.name, hold.Status)
		}
	default:
	}
}

// judgeOneAnswer compares successes under one key: the same request has the same answer
// to the byte, and another request has none (P6).
func (w *world) judgeOneAnswer(r *request, t *try) {
	key := r.idempotency()
	first := w.answers[key]
	if first == nil || t.begin.Sub(first.try.begin) > ledger.IdempotencyRetainFor/2 {
		w.answers[key] = &answered{request: r, try: t}
		return
	}
	if first.request != r && !sameRequest(first.request, r) {
		w.violated("P6", "%s and %s have one key, say other things, and both were answered with success", first.request.name, r.name)
		return
	}
	if first.try.status != t.status || withoutSecret(first.try.body) != withoutSecret(t.body) {
		w.violated("P6", "%s was answered %q, and then %q", r.name, first.try.body, t.body)
	}
}

// answered is the first success under a key.
type answered struct {
	request *request
	try     *try
}

// sameRequest reports whether two requests mean the same: the same lines at the same
// price, whatever their order.
func sameRequest(a, b *request) bool {
	if a.kind != b.kind || a.subject != b.subject || a.about != b.about || a.path != b.path {
		return false
	}
	if a.kind == askEdit && a.extend != b.extend {
		return false
	}
	if a.kind != askCreate && a.kind != askEdit {
		return a.body == b.body
	}
	total := map[ledger.SlotID]ledger.Units{}
	for _, line := range a.lines {
		total[line.slot] += line.quantity
	}
	for _, line := range b.lines {
		total[line.slot] -= line.quantity
		if a.quoted[line.slot] != b.quoted[line.slot] {
			return false
		}
	}
	for _, left := range total {
		if left != 0 {
			return false
		}
	}
	return true
}

// judgeRead checks that a read is not older than the request, and only of one's own
// (P11).
func (w *world) judgeRead(r *request, t *try, id ledger.HoldID, version ledger.Version, about ledger.HoldID) {
	hold := w.books.holds[id]
	if hold == nil || id != about {
		w.violated("P11", "%s was shown %s", r.name, id)
		return
	}
	if string(hold.now.Owner) != r.subject {
		w.violated("P11", "%s was shown %s of %s", r.name, id, hold.now.Owner)
	}
	var before ledger.Version
	for i, at := range hold.versions {
		if !at.After(t.begin) {
			before = ledger.Version(i + 1)
		}
	}
	if version < before || version > hold.now.Version {
		w.violated("reads", "%s was shown version %d of %s, which was at %d before and is at %d", r.name, version, id, before, hold.now.Version)
	}
}

// judgeRefusal checks that a refusal was true at some moment between the request and the
// answer.
func (w *world) judgeRefusal(r *request, t *try, a answer) {
	hold := w.books.holds[r.about]
	truly := false
	switch a.Code {
	case ledger.CodeInsufficientStock:
		truly = (r.kind == askCreate || r.kind == askEdit) && len(a.Slots) > 0 && w.allShort(r, t, a)
		w.rememberHad(r, t)
	case ledger.CodePriceChanged:
		truly = (r.kind == askCreate || r.kind == askEdit) && len(a.Prices) > 0 && w.allDearer(r, t, a)
	case ledger.CodeSlotClosed:
		truly = (r.kind == askCreate || r.kind == askEdit) && slices.ContainsFunc(r.lines, func(line wish) bool {
			return w.books.ever(line.slot, t.begin, t.end, func(m moment) bool { return !m.terms.Open })
		})
	case ledger.CodeHoldNotFound:
		truly = hold == nil || string(hold.now.Owner) != r.subject
		w.judgeNotFound(r, t)
	case ledger.CodeHoldNotActive:
		truly = hold != nil && (hold.now.Status != ledger.StatusHeld ||
			hold.ever(t.begin, t.end, func(h ledger.Hold) bool { return w.over(r, t, h) }))
	case ledger.CodeHoldArchived:
		truly = hold != nil && hold.now.ArchivedIn != ""
	case ledger.CodeReservationArchived:
		truly = hold != nil && w.books.reservations[hold.now.Reservation] != nil && w.books.reservations[hold.now.Reservation].now.ArchivedIn != ""
	case ledger.CodeReferenceUsed:
		for id, other := range w.books.holds {
			truly = truly || id != r.about && other.now.PaymentReference == r.reference
		}
	case ledger.CodeKeyReused:
		truly = w.keyUsedFor(r)
	case ledger.CodeCapacityInUse:
		truly = r.kind == askCapacity && w.books.ever(r.slot, t.begin, t.end, func(m moment) bool { return m.available-m.missing < ledger.Units(-r.delta) })
	default:
		truly = w.judgeHoldRefusal(r, t, a) || w.judgePaidRefusal(r, t, a)
	}
	if w.doneBefore(r, t.begin) && a.Code != ledger.CodeKeyInProgress {
		w.violated("P6", "%s was refused with %s, and had been carried out before", r.name, a.Code)
	}
	if !truly {
		w.violated("answers", "%s was answered %d %s, which was not so at any moment of the request: %s", r.name, t.status, a.Code, t.body)
	}
}

// allShort checks P10: every slot that is named as short was short at one moment, and not
// because of what the same request had taken under its key.
func (w *world) allShort(r *request, t *try, a answer) bool {
	for _, named := range a.Slots {
		asked := r.quantity(named.Slot) - w.leastHad(r, t, named.Slot)
		wasShort := func(m moment) bool { return m.available+w.takenBy(r, named.Slot, m.at) < asked }
		if asked == 0 || !w.books.ever(named.Slot, t.begin, t.end, wasShort) {
			w.violated("P10", "%s was told that %s is short of %d, and it never was", r.name, named.Slot, asked)
			return false
		}
	}
	return true
}

// leastHad is the least that the hold of an edit had of a slot while it was sent: it was
// short of the rest.
func (w *world) leastHad(r *request, t *try, id ledger.SlotID) ledger.Units {
	hold := w.books.holds[r.about]
	if r.kind != askEdit || hold == nil {
		return 0
	}
	least := ledger.QuantityPerLineMax
	hold.ever(t.begin, t.end, func(h ledger.Hold) bool {
		least = min(least, lineOf(h, id).Quantity)
		return false
	})
	return least
}

// takenBy is what the same request, carried out by another call, had taken of a slot at
// a time.
func (w *world) takenBy(r *request, id ledger.SlotID, at time.Time) ledger.Units {
	if r.kind != askCreate {
		return 0
	}
	made := w.books.effects[r.idempotency()]
	hold := w.books.holds[made]
	if hold == nil || !sameRequest(hold.by, r) || at.Before(hold.createdAt) || w.books.forgotten(made) {
		return 0
	}
	if s := hold.now.Status; (s == ledger.StatusCanceled || s == ledger.StatusExpired) && !at.Before(hold.endedAt) {
		return 0
	}
	return r.quantity(id)
}

func (w *world) allDearer(r *request, t *try, a answer) bool {
	for _, named := range a.Prices {
		if hold := w.books.holds[r.about]; r.kind == askEdit && hold != nil && hold.ever(t.begin, t.end, func(h ledger.Hold) bool {
			kept := lineOf(h, named.Slot)
			return r.quantity(named.Slot) <= kept.Quantity && kept.UnitPrice.AmountMinor == named.UnitAmount && r.quoted[named.Slot] != named.UnitAmount
		}) {
			continue // what is kept was quoted at another price
		}
		wasSo := w.books.ever(named.Slot, t.begin, t.end, func(m moment) bool {
			return m.terms.Price.AmountMinor == named.UnitAmount && named.UnitAmount != r.quoted[named.Slot]
		})
		if !wasSo {
			return false
		}
	}
	return true
}

func (r *request) quantity(id ledger.SlotID) ledger.Units {
	var total ledger.Units
	for _, line := range r.lines {
		if line.slot == id {
			total += line.quantity
		}
	}
	return total
}

// judgeNotFound checks P11: an unknown hold and another's hold have one answer.
func (w *world) judgeNotFound(r *request, t *try) {
	body := withoutRequestID(t.body)
	code := t.answer.Code
	if w.notFound[code] == "" {
		w.notFound[code] = body
	}
	if body != w.notFound[code] {
		w.violated("P11", "%s was answered %s, and others were answered %s", r.name, body, w.notFound[code])
	}
}

// withoutRequestID takes out the one part that differs for every request.
func withoutRequestID(body string) string {
	var members map[string]any
	if err := json.Unmarshal([]byte(body), &members); err != nil {
		return body
	}
	delete(members, "request_id")
	delete(members, "instance")
	return mustJSON(members)
}

// keyUsedFor reports whether another request was sent under the key, meaning something
// else.
func (w *world) keyUsedFor(r *request) bool {
	return slices.ContainsFunc(w.requests, func(other *request) bool {
		return other != r && other.idempotency() == r.idempotency() && !sameRequest(other, r)
	})
}
