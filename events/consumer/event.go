package consumer

import (
	"encoding/json"
	"time"
)

// EventID names an event for ever, however often it is sent.
type EventID string

// Type says what has happened, such as "hold.confirmed". The schemas in the folder events
// are the list of all.
type Type string

// Version counts the events of one subject, from 1 and without a gap.
type Version int64

// Kind is what kind of thing an event is of.
type Kind string

// The kinds. The type of an event begins with its kind, unless it is of the audit: that puts
// right things of all kinds.
const (
	KindHold        Kind = "hold"
	KindReservation Kind = "reservation"
	KindSlot        Kind = "slot"
	KindPolicy      Kind = "policy"
	// KindReview is a case that a person must decide.
	KindReview Kind = "review"
)

// Subject is the one thing that an event is of. Its events are in the order of their
// versions; those of two subjects are in no order.
type Subject struct {
	Kind Kind
	// ID is the id of the thing. A policy has none: it is of a resource type, "flight/", or
	// of a resource, "flight/KE0901".
	ID string
}

// String is the subject as the envelope's resources name it.
func (s Subject) String() string { return string(s.Kind) + "/" + s.ID }

// Event is one event that fits its schema.
type Event struct {
	ID         EventID
	Type       Type
	Version    Version
	Subject    Subject
	OccurredAt time.Time // UTC, in whole milliseconds
	// Detail is the whole event as it came, with the members above and all others. Decode
	// it with encoding/json into a struct of what you need.
	Detail json.RawMessage
}
