package ledger

import "time"

// Publication is how far an event is on its way to consumers. The zero value says that it
// waits to be published.
type Publication struct {
	// At is when it was published; zero while it was not.
	At time.Time
	// Quarantine is why no retry can publish it as it is; nil if it is not in quarantine.
	Quarantine *Quarantine
}

// TracedEvent is an event with what is known of it beside the ledger: what somebody needs who
// explains a number.
type TracedEvent struct {
	Event
	Publication Publication
	// ArchivedIn is the batch of the archive that has the event; "" for none. What it moved is
	// in the archived counters of its stock.
	ArchivedIn BatchID
}
