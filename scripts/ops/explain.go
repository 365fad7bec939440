package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"holdfast/shared/archive"
	"holdfast/shared/dynamo"
	"holdfast/shared/explain"
	"holdfast/shared/ledger"
)

const (
	// storySegments is in how many parts the table is read at once for the story of a slot.
	storySegments = 8
	// storyEventsMax bounds the events of one story: more than that nobody reads.
	storyEventsMax = 200_000
)

var errExplainUse = errors.New("explain: say `slot ID`, `hold ID` or `reservation ID`")

// explainOne tells the story of a slot, a hold or a reservation, and says whether it adds up.
func explainOne(ctx context.Context, o *operator, arguments []string) error {
	if len(arguments) != 2 {
		return errExplainUse
	}
	reader := &storyReader{operator: o, records: explain.Records{FromArchive: map[string]ledger.BatchID{}}}
	var err error
	switch arguments[0] {
	case "slot":
		err = reader.slot(ctx, ledger.SlotID(arguments[1]))
	case "hold":
		reader.records.Hold = ledger.HoldID(arguments[1])
		err = reader.hold(ctx, reader.records.Hold)
	case "reservation":
		reader.records.Reservation = ledger.ReservationID(arguments[1])
		err = reader.reservation(ctx, reader.records.Reservation)
	default:
		return errExplainUse
	}
	if err != nil {
		return err
	}
	return o.printStory(explain.Tell(reader.records))
}

// storyReader collects the records of a story.
type storyReader struct {
	*operator
	records explain.Records
}

// hold reads a hold, and the reservation and the other hold that belong to it.
func (s *storyReader) hold(ctx context.Context, id ledger.HoldID) error {
	h, err := s.oneHold(ctx, id)
	if err != nil || h.Reservation == "" {
		return err
	}
	return s.reservation(ctx, h.Reservation)
}

// reservation reads a reservation and its holds.
func (s *storyReader) reservation(ctx context.Context, id ledger.ReservationID) error {
	r, err := s.store.Reservation(ctx, id)
	switch {
	case ledger.CodeOf(err) == ledger.CodeReservationNotFound:
		if err := s.fromArchive(ctx, ledger.ArchiveSubject{Reservation: id}, err); err != nil {
			return err
		}
		r = s.records.Reservations[len(s.records.Reservations)-1]
	case err != nil:
		return err
	default:
		s.records.Reservations = append(s.records.Reservations, r)
		if err := s.take(s.store.TracedReservationEvents(ctx, id)); err != nil {
			return err
		}
	}
	for _, hold := range []ledger.HoldID{r.Hold, r.SoldHold} {
		if hold == "" {
			continue
		}
		if _, err := s.oneHold(ctx, hold); err != nil {
			return err
		}
	}
	return nil
}

// oneHold reads a hold with its events, once.
func (s *storyReader) oneHold(ctx context.Context, id ledger.HoldID) (ledger.Hold, error) {
	for _, h := range s.records.Holds {
		if h.ID == id {
			return h, nil
		}
	}
	h, err := s.store.Hold(ctx, id)
	if ledger.CodeOf(err) == ledger.CodeHoldNotFound {
		if err := s.fromArchive(ctx, ledger.ArchiveSubject{Hold: id}, err); err != nil {
			return h, err
		}
		return s.records.Holds[len(s.records.Holds)-1], nil
	}
	if err != nil {
		return h, err
	}
	s.records.Holds = append(s.records.Holds, h)
	return h, s.take(s.store.TracedHoldEvents(ctx, id))
}

func (s *storyReader) take(events []ledger.TracedEvent, err error) error {
	if len(s.records.Events)+len(events) > storyEventsMax {
		err = errors.Join(err, fmt.Errorf("the story has more than %d events", storyEventsMax))
	}
	s.records.Events = append(s.records.Events, events...)
	return err
}

// fromArchive reads what has left the table. absent is the error for what is not there either.
func (s *storyReader) fromArchive(ctx context.Context, subject ledger.ArchiveSubject, absent error) error {
	batch, items, err := s.archive().Items(ctx, subject)
	if errors.Is(err, archive.ErrNoBatch) {
		return fmt.Errorf("%w, neither in the table nor in the archive", absent)
	}
	if err != nil {
		return err
	}
	whole := false
	for _, one := range items {
		read, err := dynamo.DecodeArchiveItem(one.Text)
		if err != nil {
			return fmt.Errorf("read %v from batch %s: %w", subject, batch.ID, err)
		}
		switch {
		case read.Hold != nil:
			read.Hold.ArchivedIn, whole = batch.ID, true
			s.records.Holds = append(s.records.Holds, *read.Hold)
			s.records.FromArchive["hold/"+string(read.Hold.ID)] = batch.ID
		case read.Reservation != nil:
			read.Reservation.ArchivedIn, whole = batch.ID, true
			s.records.Reservations = append(s.records.Reservations, *read.Reservation)
			s.records.FromArchive["reservation/"+string(read.Reservation.ID)] = batch.ID
		case read.Event != nil:
			if err := s.take([]ledger.TracedEvent{{Event: *read.Event, Publication: read.Publication, ArchivedIn: batch.ID}}, nil); err != nil {
				return err
			}
		}
	}
	if !whole {
		return fmt.Errorf("batch %s has events of %v, and not the thing itself", batch.ID, subject)
	}
	return nil
}

// slot reads a slot and its stock, and looks through the table for all that moved units of it.
// The stock is read before and after: if it is the same, nothing moved in between.
func (s *storyReader) slot(ctx context.Context, id ledger.SlotID) error {
	s.records.Slot = id
	slots, err := s.store.Slots(ctx, []ledger.SlotID{id})
	if err != nil {
		return err
	}
	if len(slots) == 0 {
		return ledger.SlotNotFound(id)
	}
	before, err := s.store.StockAtOneMoment(ctx, slots[0])
	if err != nil {
		return err
	}
	if err := s.scan(ctx, id); err != nil {
		return err
	}
	if err := s.take(s.store.TracedSlotEvents(ctx, id)); err != nil {
		return err
	}
	if s.records.Slots, err = s.store.Slots(ctx, []ledger.SlotID{id}); err != nil {
		return err
	}
	if len(s.records.Slots) == 0 {
		return ledger.SlotNotFound(id)
	}
	s.records.Stock, err = s.store.StockAtOneMoment(ctx, s.records.Slots[0])
	s.records.Moved = !slices.EqualFunc(before, s.records.Stock, func(a, b ledger.Stock) bool { return a.Version == b.Version })
	return err
}

// scan reads the segments of the table at once.
func (s *storyReader) scan(ctx context.Context, id ledger.SlotID) error {
	scan := dynamo.NewScan(s.client, s.config.TableName)
	var mutex sync.Mutex
	failures := make([]error, storySegments)
	var group sync.WaitGroup
	for segment := range storySegments {
		group.Go(func() {
			failures[segment] = eachPage(func(after ledger.Cursor) (ledger.Cursor, error) {
				page, next, err := scan.ScanSlotStory(ctx, id, segment, storySegments, after)
				mutex.Lock()
				defer mutex.Unlock()
				s.records.Holds = append(s.records.Holds, page.Holds...)
				s.records.Reservations = append(s.records.Reservations, page.Reservations...)
				return next, s.take(page.Events, err)
			})
		})
	}
	group.Wait()
	return errors.Join(failures...)
}

// printStory prints a row for each step, with what it moved and what it did to the money below
// it, then the sums, and the verdict.
func (o *operator) printStory(story explain.Story) error {
	err := o.table(story, "AT\tOF\tV\tEVENT\tBY\tSTORY", func(print func(...any)) {
		for _, step := range story.Steps {
			kind, _, _ := strings.Cut(step.Subject, "/")
			print(step.At.UTC().Format("2006-01-02 15:04:05.000"), kind, step.Version, step.Type, step.Actor, step.What)
			for _, line := range below(step) {
				print("", "", "", "", "", "  "+line)
			}
		}
	})
	if err != nil || o.json {
		return err
	}
	if len(story.Stock) > 0 {
		fmt.Fprintln(o.out)
		err = o.table(nil, "SLOT\tSHARD\tARCHIVED BEFORE\tEVENTS ADD UP TO\tSTORED", func(print func(...any)) {
			for _, sum := range story.Stock {
				stored := "- (others add to it)"
				if sum.Stored != nil {
					stored = sum.Stored.String()
				}
				print(sum.Slot, sum.Shard, sum.Unseen, sum.Told, stored)
			}
		})
	}
	if story.Money != nil {
		fmt.Fprintf(o.out, "\nMoney: %s\n", story.Money)
	}
	fmt.Fprintf(o.out, "\n%d events wait to be published, %d are quarantined, %d lie in the archive.\n%s\n", story.Waiting, story.Quarantined, story.Archived, story.Verdict)
	return err
}

// below is what stands under a step.
func below(step explain.Step) []string {
	by := "by " + string(step.Command)
	if step.RequestID != "" {
		by += ", " + string(step.RequestID)
	}
	lines := []string{by}
	if step.Why != "" {
		lines = append(lines, "because: "+step.Why)
	}
	for _, m := range step.Moves {
		lines = append(lines, fmt.Sprintf("stock: %d of %s, shard %s, %s → %s; then %s", m.Quantity, m.Slot, m.Shard, m.From, m.To, m.After))
	}
	for _, m := range step.Money {
		lines = append(lines, fmt.Sprintf("money: %s; then %s", m.What, m.After))
	}
	lines = append(lines, step.Publication)
	if step.ArchivedIn != "" {
		lines = append(lines, "archived in "+string(step.ArchivedIn))
	}
	return lines
}
