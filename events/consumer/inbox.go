package consumer

import (
	"context"
	"fmt"
)

// Outcome says what became of an envelope.
type Outcome string

// The outcomes. All but OutcomeFailed mean that the envelope is done with.
const (
	// OutcomeHandled: the handler has handled it, and that is remembered.
	OutcomeHandled Outcome = "handled"
	// OutcomeDuplicate: this event was handled before. The handler was not called.
	OutcomeDuplicate Outcome = "duplicate"
	// OutcomeOutdated: a newer event of its subject was handled before. The handler was not
	// called.
	OutcomeOutdated Outcome = "outdated"
	// OutcomeFailed: there is an error, and nothing is remembered.
	OutcomeFailed Outcome = "failed"
)

// Handler does what the consumer does with an event. It may be called again for an event
// whose handling failed, and must not be called by anybody but the Inbox.
type Handler func(ctx context.Context, e Event) error

// Seen is what a Memory knows about an event before it is handled.
type Seen struct {
	// Event reports whether the event itself was handled.
	Event bool
	// Version is the highest version that was handled of its subject; 0 for none.
	Version Version
}

// Decide says whether the event was handled now and is to be remembered.
type Decide func(ctx context.Context, seen Seen) (handled bool, err error)

// Memory remembers what was handled. Bounded is one in the process; the package's
// documentation says how to make one in your own database.
type Memory interface {
	// Once calls decide with what is remembered about e. If decide returns true and no error,
	// e is remembered: its id, and its version unless a higher one is. Otherwise nothing is,
	// and an error of decide is returned as it is.
	//
	// Between reading and remembering no other call for the same subject may read: of two
	// deliveries of one event at the same moment one is handled. A Memory that finds out only
	// at the end that it was overtaken takes back what decide did, and calls it again.
	Once(ctx context.Context, e Event, decide Decide) error
}

// Inbox hands each event to a handler once. It is safe for concurrent use.
type Inbox struct {
	// Memory remembers what was handled.
	Memory Memory
	// Older hands over versions that are lower than the highest that was handled, too. It is
	// for who adds up what happened, instead of showing how things are; the order of such
	// events is not the order in which they happened.
	Older bool
}

// Handle decodes an envelope and calls handle, if the event was not handled before and is
// not outdated. An error is of Decode (see there: it never goes away), of the handler or of
// the Memory; then the outcome is OutcomeFailed, nothing is remembered, and the envelope
// may be handed in again.
func (i *Inbox) Handle(ctx context.Context, envelope []byte, handle Handler) (Outcome, error) {
	e, err := Decode(envelope)
	if err != nil {
		return OutcomeFailed, err
	}
	outcome := OutcomeFailed
	err = i.Memory.Once(ctx, e, func(ctx context.Context, seen Seen) (bool, error) {
		if outcome = i.outcome(e, seen); outcome != OutcomeHandled {
			return false, nil
		}
		if err := handle(ctx, e); err != nil {
			return false, fmt.Errorf("handle %s %s: %w", e.Type, e.ID, err)
		}
		return true, nil
	})
	if err != nil {
		return OutcomeFailed, err
	}
	return outcome, nil
}

// outcome is the rule. Each version of a subject has exactly one event, so the highest
// version tells a duplicate also where the id was forgotten.
func (i *Inbox) outcome(e Event, seen Seen) Outcome {
	switch {
	case seen.Event, e.Version == seen.Version:
		return OutcomeDuplicate
	case e.Version < seen.Version && !i.Older:
		return OutcomeOutdated
	default:
		return OutcomeHandled
	}
}
