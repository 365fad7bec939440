package sim

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"holdfast/shared/ledger"
	"holdfast/shared/outbox"
)

// publisher is the event bus as one outbox process meets it.
type publisher struct {
	world    *world
	instance *instance
}

var _ outbox.Publisher = (*publisher)(nil)

// PutEvents accepts the entries that it does not refuse. A refused entry does not keep
// the others from being delivered, and a lost answer keeps none.
func (p *publisher) PutEvents(_ context.Context, in *eventbridge.PutEventsInput, _ ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error) {
	w, t := p.world, p.world.kernel.running
	t.exitIfKilled()
	if t.dice.chance(w.faults.Crash) {
		if t.dice.chance(2) {
			p.accept(t, in.Entries)
		}
		p.instance.crash()
		t.exitIfKilled()
	}
	t.wait(t.dice.between(callForMin, callForMax))
	if t.dice.chance(w.faults.BusDown) {
		return nil, fmt.Errorf("PutEvents: %w", errNoAnswer)
	}
	out := p.accept(t, in.Entries)
	t.wait(t.dice.between(callForMin, callForMax))
	if t.dice.chance(w.faults.BusAnswerLost) {
		return nil, fmt.Errorf("PutEvents: %w", errNoAnswer)
	}
	return out, nil
}

func (p *publisher) accept(t *task, entries []types.PutEventsRequestEntry) *eventbridge.PutEventsOutput {
	out := &eventbridge.PutEventsOutput{}
	refused := -1
	if t.dice.chance(p.world.faults.EntryRefused) {
		refused = t.dice.IntN(len(entries))
	}
	for i, entry := range entries {
		if i == refused {
			out.FailedEntryCount++
			out.Entries = append(out.Entries, types.PutEventsResultEntry{ErrorCode: aws.String("ThrottlingException"), ErrorMessage: aws.String("simulated")})
			continue
		}
		out.Entries = append(out.Entries, types.PutEventsResultEntry{EventId: aws.String(fmt.Sprintf("envelope-%d", p.world.nextEnvelope()))})
		p.world.deliver(aws.ToString(entry.Detail))
		if t.dice.chance(p.world.faults.EventDoubled) {
			p.world.deliver(aws.ToString(entry.Detail))
		}
	}
	return out
}

// delivered is an event as a consumer reads it.
type delivered struct {
	EventID ledger.EventID   `json:"event_id"`
	Type    ledger.EventType `json:"type"`
	Version ledger.Version   `json:"version"`
	Hold    *struct {
		ID ledger.HoldID `json:"hold_id"`
	} `json:"hold"`
	Slot *struct {
		ID ledger.SlotID `json:"slot_id"`
	} `json:"slot"`
	Reservation *struct {
		ID ledger.ReservationID `json:"reservation_id"`
	} `json:"reservation"`
}

// deliver hands an event to the consumer, who checks it against what has happened.
func (w *world) deliver(detail string) {
	var event delivered
	if err := json.Unmarshal([]byte(detail), &event); err != nil {
		w.violated("P7", "an event that cannot be read: %v", err)
		return
	}
	w.trace.add("event %s %s version %d is delivered", event.EventID, event.Type, event.Version)
	w.books.delivered(event)
}
