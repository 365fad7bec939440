package ledger

import "time"

// EventType says what happened. The names are part of the contract with consumers.
type EventType string

// The event types.
const (
	EventHoldCreated   EventType = "hold.created"
	EventHoldConfirmed EventType = "hold.confirmed"
	EventHoldCanceled  EventType = "hold.canceled"
	EventHoldExpired   EventType = "hold.expired"
	EventHoldReturned  EventType = "hold.returned" // a part of a sale, or all of it, was given back
	// EventHoldChanged: its lines or its times are others; it is still HELD.
	EventHoldChanged EventType = "hold.changed"
	// EventHoldPaymentStarted and EventHoldPaymentClosed: a payment attempt was opened, and
	// can't succeed any more.
	EventHoldPaymentStarted EventType = "hold.payment_started"
	EventHoldPaymentClosed  EventType = "hold.payment_closed"
	// EventHoldReacquired: a hold was born CONFIRMED in the place of one that was over when
	// its payment came.
	EventHoldReacquired EventType = "hold.reacquired"
	EventSlotCreated    EventType = "slot.created"
	EventSlotChanged    EventType = "slot.changed"
	// EventPolicyChanged: what is said for all slots of a resource, or of a resource type.
	EventPolicyChanged EventType = "policy.changed"
	// EventReviewOpened, EventReviewClaimed and EventReviewDecided: a case that a person must
	// decide.
	EventReviewOpened  EventType = "review.opened"
	EventReviewClaimed EventType = "review.claimed"
	EventReviewDecided EventType = "review.decided"
	// EventAuditRepaired: the audit put right what it found wrong about a slot's stock, a hold,
	// a reservation, or an owner's counts, which are told as a case.
	EventAuditRepaired EventType = "audit.repaired"

	// EventReservationPaymentStarted: an attempt was opened; the buyer may pay.
	EventReservationPaymentStarted EventType = "reservation.payment_started"
	// EventReservationPaymentCreated: the provider has begun the attempt's payment.
	EventReservationPaymentCreated EventType = "reservation.payment_created"
	// EventReservationPaymentClosed: an attempt can't succeed any more.
	EventReservationPaymentClosed EventType = "reservation.payment_closed"
	// EventReservationPaymentNoticed: the provider told of something that changes nothing.
	EventReservationPaymentNoticed EventType = "reservation.payment_noticed"
	EventReservationAuthorized     EventType = "reservation.authorized"
	EventReservationConfirmed      EventType = "reservation.confirmed"
	EventReservationCaptured       EventType = "reservation.captured"
	// EventReservationDelivered: an external system has delivered.
	EventReservationDelivered      EventType = "reservation.delivered"
	EventReservationCompleted      EventType = "reservation.completed"
	EventReservationCompensating   EventType = "reservation.compensating"
	EventReservationCanceled       EventType = "reservation.canceled"
	EventReservationRefundOwed     EventType = "reservation.refund_owed"
	EventReservationRefundEnded    EventType = "reservation.refund_ended"
	EventReservationRefunded       EventType = "reservation.refunded"
	EventReservationRefundRequired EventType = "reservation.refund_required"
	EventReservationReview         EventType = "reservation.review"
)

// EventTypes returns every event type, in a fixed order. The caller owns the result.
func EventTypes() []EventType {
	return []EventType{
		EventHoldCreated, EventHoldConfirmed, EventHoldCanceled, EventHoldExpired, EventHoldReturned, EventHoldChanged,
		EventHoldPaymentStarted, EventHoldPaymentClosed, EventHoldReacquired,
		EventSlotCreated, EventSlotChanged, EventPolicyChanged,
		EventReviewOpened, EventReviewClaimed, EventReviewDecided, EventAuditRepaired,
		EventReservationPaymentStarted, EventReservationPaymentCreated, EventReservationPaymentClosed,
		EventReservationPaymentNoticed, EventReservationAuthorized, EventReservationConfirmed,
		EventReservationCaptured, EventReservationDelivered, EventReservationCompleted,
		EventReservationCompensating, EventReservationCanceled, EventReservationRefundOwed,
		EventReservationRefundEnded, EventReservationRefunded, EventReservationRefundRequired,
		EventReservationReview,
	}
}

// Actor says who caused a transition: an owner, a service, an operator, or the system.
type Actor string

// ActorSystem is the actor of what Holdfast does by itself, such as an expiry.
const ActorSystem Actor = "system"

// Command names what was asked for. It is also the operation part of an idempotency
// key, so one key used for two commands is two keys.
type Command string

// The commands.
const (
	CommandCreateHold  Command = "hold.create"
	CommandConfirmHold Command = "hold.confirm"
	CommandCancelHold  Command = "hold.cancel"
	CommandExpireHold  Command = "hold.expire"
	CommandPutSlot     Command = "slot.put"
	CommandPatchSlot   Command = "slot.patch"
	CommandEditHold    Command = "hold.edit"
	CommandExtendHold  Command = "hold.extend"
	CommandReturnHold  Command = "hold.return"
	CommandPutPolicy   Command = "policy.put"

	CommandStartPayment       Command = "reservation.start_payment"
	CommandCancelReservation  Command = "reservation.cancel"
	CommandDeliverReservation Command = "reservation.deliver"
	CommandDriveReservation   Command = "reservation.drive"

	CommandOpenReview   Command = "review.open"
	CommandClaimReview  Command = "review.claim"
	CommandDecideReview Command = "review.decide"
	CommandRepair       Command = "audit.repair"
	CommandEndCooldown  Command = "owner.end_cooldown"
)

// Origin is where a change comes from. EventID is drawn once per command, before the
// first write: a write that is repeated after a lost answer finds its own event by it.
type Origin struct {
	Actor     Actor
	Command   Command
	RequestID RequestID
	EventID   EventID
	// Why is the reason that a person gives, or the audit for a repair. It is kept with the
	// event and not published: who writes it thinks of colleagues.
	Why string
}

// Beside is the origin of another event of the same change. Its event id follows from
// o's, so that it is the same when the change is written again.
func (o Origin) Beside(name string) Origin {
	o.EventID = NewEventID(derivedBits(string(o.EventID), name))
	return o
}

// Event is the immutable record of one transition, and at the same time the outbox
// record of it. It has one of Hold, Reservation, Slot, Policy and Review: the thing as it was
// right after.
type Event struct {
	ID          EventID
	Type        EventType
	Version     Version // the version of the thing that this transition made
	OccurredAt  time.Time
	Origin      Origin
	Hold        *Hold
	Reservation *Reservation
	Slot        *Slot
	Policy      *ScopePolicy
	Review      *Review
	Movements   []Movement
}

// OfOne reports whether e is of exactly one thing.
func (e Event) OfOne() bool {
	things := 0
	for _, present := range []bool{e.Hold != nil, e.Reservation != nil, e.Slot != nil, e.Policy != nil, e.Review != nil} {
		if present {
			things++
		}
	}
	return things == 1
}

// Subject names the thing that e is of: its events are in order by their version.
func (e Event) Subject() string {
	switch {
	case e.Hold != nil:
		return "hold/" + string(e.Hold.ID)
	case e.Reservation != nil:
		return "reservation/" + string(e.Reservation.ID)
	case e.Slot != nil:
		return "slot/" + string(e.Slot.ID)
	case e.Policy != nil:
		return e.Policy.Scope.subject()
	case e.Review != nil:
		return "review/" + string(e.Review.ID)
	}
	return ""
}

// subject names the policy of the scope as the subject of events.
func (s PolicyScope) subject() string {
	return "policy/" + string(s.ResourceType) + "/" + string(s.ResourceID)
}

func holdEvent(t EventType, hold Hold, origin Origin, movements []Movement, now time.Time) Event {
	return Event{
		ID: origin.EventID, Type: t, Version: hold.Version, OccurredAt: now,
		Origin: origin, Hold: &hold, Movements: movements,
	}
}

func slotEvent(t EventType, slot Slot, origin Origin, now time.Time) Event {
	return Event{
		ID: origin.EventID, Type: t, Version: slot.Version, OccurredAt: now,
		Origin: origin, Slot: &slot,
	}
}
