package ledger

import "time"

// EventItem says where an event is stored. It is opaque to all but the store.
type EventItem struct {
	PartitionKey string
	SortKey      string
}

// String names the item for people, in a log line.
func (i EventItem) String() string { return i.PartitionKey + " " + i.SortKey }

// UnpublishedEvent is an entry of the index of unpublished events, or of the quarantine: a
// hint that this event waits there. The stored event decides.
type UnpublishedEvent struct {
	Item       EventItem
	ID         EventID
	OccurredAt time.Time
}

// StoredEvent is an event that is not published, as it is stored.
type StoredEvent struct {
	Item EventItem
	// Event is the event, unless Unreadable says why the item can't be read as one.
	Event      Event
	Unreadable error
	// Before is where the event of the version before is stored; zero for the first
	// version, and for an item that can't be read.
	Before EventItem
	// Quarantine is why the event is in quarantine; nil if it is not.
	Quarantine *Quarantine
}

// Quarantine says why no retry can publish an event as it is, and since when that is
// known.
type Quarantine struct {
	Reason string
	At     time.Time
}
