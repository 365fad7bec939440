package localrun

import "context"

// What the tests of the consumer need beside the System.

// EventsMax is how many events are remembered.
const EventsMax = eventsMax

// NewEventLog returns a consumer that writes into file.
var NewEventLog = newEventLog

// Receive hands a message to the consumer.
func (l *eventLog) Receive(ctx context.Context, body string) error { return l.receive(ctx, body) }

// All returns what Events returns of a System.
func (l *eventLog) All() ([]Event, int) { return l.all() }
