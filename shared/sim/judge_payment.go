package sim

import (
	"encoding/json"
	"slices"
	"strings"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
)

// secretMember is how a secret follows the rest of an answer.
const secretMember = `,"client_secret":`

// withoutSecret is the answer without the secret, which is fetched anew every time.
func withoutSecret(body string) string {
	before, _, has := strings.Cut(body, secretMember)
	if !has {
		return body
	}
	return before + "}"
}

func secretOf(body string) string { return decodeAnswer(body).ClientSecret }

func reservationOf(body string) ledger.ReservationID { return decodeAnswer(body).ReservationID }

// decodeAnswer reads a body as far as it is judged. A body that can't be read is judged
// elsewhere.
func decodeAnswer(body string) answer {
	var a answer
	if json.Unmarshal([]byte(body), &a) != nil {
		return answer{}
	}
	return a
}

// judgePaid checks a success that is about a reservation.
func (w *world) judgePaid(r *request, t *try, a answer) {
	book := w.books.reservations[a.ReservationID]
	if book == nil || book.now.Hold != r.about || r.kind != askPay && a.ReservationID != r.paid {
		w.violated("P5", "%s was answered %d with %q, which does not exist or is of another hold", r.name, t.status, a.ReservationID)
		return
	}
	if string(book.now.Owner) != r.subject && r.kind != askDelivery && r.subject != operatorSubject {
		w.violated("P11", "%s was answered with %s of %s", r.name, a.ReservationID, book.now.Owner)
	}
	switch r.kind {
	case askPay:
		w.judgeOneAnswer(r, t)
		if started, did := w.books.begun[r.idempotency()]; !did || started.reservation != a.ReservationID {
			w.violated("P5", "%s was answered %d, and no attempt was begun for it", r.name, t.status)
		}
	case askCancelPaid:
		w.judgeOneAnswer(r, t)
		if !w.takenBack(r, book) {
			w.violated("P5", "%s was answered %d, and %s is %s", r.name, t.status, a.ReservationID, book.now.Status)
		}
	case askDelivery:
		w.judgeOneAnswer(r, t)
		if book.now.DeliveredAt.IsZero() && r.delivered || !r.delivered && book.now.Reason != ledger.ReasonDeliveryFailed {
			w.violated("P5", "%s was answered %d, and %s is %s (%s)", r.name, t.status, a.ReservationID, book.now.Status, book.now.Reason)
		}
	default:
		var before ledger.Version
		for _, m := range book.history {
			if !m.at.After(t.begin) {
				before = m.was.Version
			}
		}
		if a.Version < before || a.Version > book.now.Version {
			w.violated("reads", "%s was shown version %d of %s, which was at %d before and is at %d", r.name, a.Version, a.ReservationID, before, book.now.Version)
		}
	}
}

// takenBack reports whether what a cancellation asked for has been done.
func (w *world) takenBack(r *request, book *reservationBook) bool {
	if len(r.lines) == 0 {
		return !slices.ContainsFunc(book.history[len(book.history)-1:], func(m reservationMoment) bool {
			return keepsMoney(m.was) || m.was.Status == ledger.ReservationPaymentPending || m.was.Status == ledger.ReservationAuthorized
		})
	}
	sold := w.books.holds[book.now.SoldHold]
	for _, wanted := range r.lines {
		if sold == nil || returnedOf(sold.now, wanted.slot) < wanted.quantity {
			return false
		}
	}
	return true
}

func returnedOf(h ledger.Hold, id ledger.SlotID) ledger.Units {
	var total ledger.Units
	for _, line := range h.Lines {
		if line.Slot == id {
			total += quantityOf(line.Returned)
		}
	}
	return total
}

// judgeUnavailable: only a provider that has a fault may be said to be away.
func (w *world) judgeUnavailable(r *request) {
	book := w.books.reservations[w.books.holds[r.about].now.Reservation]
	if !w.calm() || book == nil {
		return
	}
	current, _ := book.now.Current()
	if w.bank.refusesToBegin(book.now.ID, current.Number) && r.kind == askSession {
		return
	}
	w.violated("liveness", "%s was told that the provider does not answer, and it does", r.name)
}

// over reports whether the hold's time for this request was over by the clock that judged
// it.
func (w *world) over(r *request, t *try, h ledger.Hold) bool {
	latest := t.end.Add(t.clock.skewMax)
	switch r.kind {
	case askConfirm:
		return !latest.Before(h.ReleaseAt)
	case askPay, askEdit, askExtend:
		return !latest.Before(h.ExpiresAt)
	case askReturn:
		return h.Status != ledger.StatusConfirmed
	default:
		return false
	}
}

// judgePaidRefusal reports whether a refusal that payments brought was true at some moment
// of the request.
func (w *world) judgePaidRefusal(r *request, t *try, a answer) bool {
	hold := w.books.holds[r.about]
	if hold == nil {
		return false
	}
	book := w.books.reservations[hold.now.Reservation]
	ever := func(so func(ledger.Reservation) bool) bool { return book != nil && book.ever(t.begin, t.end, so) }
	switch a.Code {
	case ledger.CodeReservationNotFound:
		w.judgeNotFound(r, t)
		return book != nil && string(book.now.Owner) != r.subject
	case ledger.CodePaymentInProgress:
		return w.inProgress(r, t, hold, ever)
	case ledger.CodeReservationNotActive:
		return ever(func(v ledger.Reservation) bool { return w.takesNot(r, v) })
	case ledger.CodeKeyInProgress:
		return w.keyInProgress(r, t)
	case ledger.CodeInvalid:
		return r.kind == askCancelPaid && len(r.lines) > 0 && ever(func(v ledger.Reservation) bool {
			return v.Status == ledger.ReservationPaymentPending || v.Status == ledger.ReservationAuthorized || v.Status == ledger.ReservationReview
		}) || w.judgeReturnRefusal(r, t, a, book)
	default:
		return w.judgeReturnRefusal(r, t, a, book)
	}
}

// judgeReturnRefusal reports whether it was true that a sale could not be taken back.
func (w *world) judgeReturnRefusal(r *request, t *try, a answer, book *reservationBook) bool {
	if book == nil {
		return false
	}
	sold := w.books.holds[book.now.SoldHold]
	if sold == nil || r.kind != askCancelPaid {
		return false
	}
	switch a.Code {
	case ledger.CodeInvalid: // an edit has exchanged what the request wants to give back
		return slices.ContainsFunc(r.lines, func(back wish) bool { return lineOf(sold.now, back.slot).Quantity == 0 })
	case ledger.CodeReturnOverSale:
		return sold.ever(t.begin, t.end, func(h ledger.Hold) bool {
			return slices.ContainsFunc(h.Lines, func(line ledger.Line) bool {
				return line.Quantity-quantityOf(line.Returned) < r.quantity(line.Slot)
			})
		})
	case ledger.CodeTooLateToCancel:
		return slices.ContainsFunc(sold.now.Lines, func(line ledger.Line) bool {
			asked := len(r.lines) == 0 || r.quantity(line.Slot) > 0
			return asked && !line.CancelUntil.IsZero() && !t.end.Add(t.clock.skewMax).Before(line.CancelUntil)
		})
	case ledger.CodeAlreadyUsed:
		return slices.ContainsFunc(sold.now.Lines, func(line ledger.Line) bool {
			return line.GrantTo != "" && w.books.ever(line.GrantTo, t.begin, t.end, func(m moment) bool { return m.available < w.granted(sold.now, line.GrantTo) })
		})
	default:
		return false
	}
}

// granted is what a sale credits to a slot at the most.
func (w *world) granted(h ledger.Hold, id ledger.SlotID) ledger.Units {
	var total ledger.Units
	for _, line := range h.Lines {
		if line.GrantTo == id {
			total += line.Quantity
		}
	}
	return total
}

func (w *world) inProgress(r *request, t *try, hold *holdBook, ever func(func(ledger.Reservation) bool) bool) bool {
	switch r.kind {
	case askConfirm, askEdit, askExtend:
		return hold.ever(t.begin, t.end, func(h ledger.Hold) bool { return h.Reservation != "" })
	case askCancel:
		return hold.ever(t.begin, t.end, func(h ledger.Hold) bool { return h.AttemptOpen != 0 })
	case askPay:
		return ever(func(v ledger.Reservation) bool {
			current, begun := v.Current()
			return begun && current.State != ledger.AttemptVoided || hold.ever(t.begin, t.end, func(h ledger.Hold) bool { return h.AttemptOpen != 0 })
		})
	case askCancelPaid:
		return len(r.lines) > 0 && ever(func(v ledger.Reservation) bool { return v.Status == ledger.ReservationConfirmed })
	default:
		return false
	}
}

// takesNot reports whether a reservation that is so does not take the request.
func (w *world) takesNot(r *request, v ledger.Reservation) bool {
	current, _ := v.Current()
	switch r.kind {
	case askPay:
		return v.Status != ledger.ReservationPaymentPending
	case askSession:
		return v.Status != ledger.ReservationPaymentPending || current.State != ledger.AttemptOpen
	case askCancelPaid:
		return v.Status == ledger.ReservationCompensating || v.Status == ledger.ReservationCanceled ||
			v.Status == ledger.ReservationRefunded || v.Status == ledger.ReservationRefundRequired
	case askDelivery:
		sold := w.books.holds[v.SoldHold]
		return v.Status != ledger.ReservationCaptured || !v.DeliveredAt.IsZero() || sold == nil || sold.now.Terms.Delivery != ledger.DeliveryEvent
	default:
		return false
	}
}

// keyInProgress reports whether the same request was being carried out: it had begun, and
// nobody has been told that it was done.
func (w *world) keyInProgress(r *request, t *try) bool {
	started, did := w.books.begun[r.idempotency()]
	first := w.answers[r.idempotency()]
	return did && !started.at.After(t.end) && (first == nil || first.try.end.After(t.begin)) &&
		t.begin.Sub(started.at) < 2*commands.ClaimFor+2*clockJumpMax+keyInProgressFor*triesMax
}
