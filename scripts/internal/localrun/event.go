package localrun

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"

	"holdfast/scripts/internal/cloud"
	"holdfast/shared/ledger"
)

const (
	// eventsMax bounds the events that a System remembers. One that comes again after so
	// many others is counted again.
	eventsMax  = 100_000
	eventQueue = "events"
)

// Event is what a System remembers of an event that came out of the bus.
type Event struct {
	ID      ledger.EventID
	Type    ledger.EventType
	Version ledger.Version
	Hold    ledger.HoldID // or
	Slot    ledger.SlotID
}

// eventLog is a consumer as each subscriber of the bus should be one: it drops what it has
// seen by the event's own id, because events come at least once (case I4).
type eventLog struct {
	file io.Writer

	mu     sync.Mutex
	known  map[ledger.EventID]struct{}
	events []Event // in the order of their first arrival
	again  int
}

func newEventLog(file io.Writer) *eventLog {
	return &eventLog{file: file, known: make(map[ledger.EventID]struct{})}
}

func (s *System) startCloud(ctx context.Context) error {
	log, err := s.openLog("cloud")
	if err != nil {
		return err
	}
	if s.cloud, err = cloud.Start(ctx, s.emulator, log); err != nil {
		return err
	}
	s.onClose(func() error { s.cloud.Close(); return nil })
	s.start(func(ctx context.Context) {
		select {
		case <-s.cloud.Ended():
			s.fail(fmt.Errorf("the emulator of the event bus has ended; its log in %s may say why", s.LogFolder()))
		case <-ctx.Done():
		}
	})
	s.tell("the event bus and its queues are running on %s", s.cloud.Endpoint)
	return s.cloud.CreateBus(ctx, eventBusName)
}

// startConsumer subscribes to the bus, before any function can publish.
func (s *System) startConsumer(ctx context.Context) error {
	queue, _, err := s.cloud.CreateQueueWithDeadLetters(ctx, eventQueue)
	if err != nil {
		return err
	}
	if err := s.cloud.Subscribe(ctx, eventBusName, queue); err != nil {
		return err
	}
	file, err := s.openLog("events")
	if err != nil {
		return err
	}
	s.events = newEventLog(file)
	s.start(func(ctx context.Context) { s.cloud.Consume(ctx, queue, s.log, s.events.receive) })
	return nil
}

// Events returns the events that came out of the bus, each once, in the order of their
// arrival, and how many came again. The caller owns the result.
func (s *System) Events() (events []Event, again int) { return s.events.all() }

func (l *eventLog) all() (events []Event, again int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events), l.again
}

// receive remembers the event in a message's body, and writes it into the log.
func (l *eventLog) receive(_ context.Context, body string) error {
	envelope, err := cloud.ReadEvent(body)
	if err != nil {
		return err
	}
	var detail struct {
		EventID ledger.EventID   `json:"event_id"`
		Type    ledger.EventType `json:"type"`
		Version ledger.Version   `json:"version"`
		Hold    struct {
			ID ledger.HoldID `json:"hold_id"`
		} `json:"hold"`
		Slot struct {
			ID ledger.SlotID `json:"slot_id"`
		} `json:"slot"`
	}
	if err := json.Unmarshal(envelope.Detail, &detail); err != nil {
		return fmt.Errorf("detail of event %s: %w", envelope.ID, err)
	}
	if detail.EventID == "" {
		return fmt.Errorf("event %s has no event_id", envelope.ID)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, isKnown := l.known[detail.EventID]; isKnown {
		l.again++
		return nil
	}
	if _, err := fmt.Fprintf(l.file, "%s\n", envelope.Detail); err != nil {
		return fmt.Errorf("log event %s: %w", detail.EventID, err)
	}
	if len(l.events) == eventsMax {
		delete(l.known, l.events[0].ID)
		l.events = l.events[1:]
	}
	l.known[detail.EventID] = struct{}{}
	l.events = append(l.events, Event{detail.EventID, detail.Type, detail.Version, detail.Hold.ID, detail.Slot.ID})
	return nil
}
