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
	EventSlotCreated   EventType = "slot.created"
	EventSlotChanged   EventType = "slot.changed"
)

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
)

// Origin is where a change comes from. EventID is drawn once per command, before the
// first write: a write that is repeated after a lost answer finds its own event by it.
type Origin struct {
	Actor     Actor
	Command   Command
	RequestID RequestID
	EventID   EventID
}

// Event is the immutable record of one transition, and at the same time the outbox
// record of it. It has either Hold or Slot: the thing as it was right after.
type Event struct {
	ID         EventID
	Type       EventType
	Version    Version // the version of the hold or slot that this transition made
	OccurredAt time.Time
	Origin     Origin
	Hold       *Hold
	Slot       *Slot
	Movements  []Movement
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
