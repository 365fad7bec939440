package explain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"holdfast/shared/ledger"
)

// Story is what has happened to one thing, in order, and what it adds up to.
type Story struct {
	// Of names the thing: "hold/…", "reservation/…" or "slot/…".
	Of    string `json:"of"`
	Steps []Step `json:"steps"`
	// Stock are the sums of the movements, one for each stock item that the story is about.
	Stock []StockSum `json:"stock"`
	// Money are the sums of the reservation; nil where there is none.
	Money *MoneySum `json:"money,omitempty"`
	// Waiting, Quarantined and Archived count the events of the story that have not reached
	// their consumers, that no retry can publish, and that are in the archive.
	Waiting     int `json:"events_waiting"`
	Quarantined int `json:"events_quarantined"`
	Archived    int `json:"events_archived"`
	// Matches says that everything adds up to what is stored; Differences are what does not,
	// and Verdict says it in a sentence.
	Matches     bool     `json:"matches"`
	Differences []string `json:"differences,omitempty"`
	Verdict     string   `json:"verdict"`
}

// Step is one event of the story.
type Step struct {
	At        time.Time        `json:"at"`
	Subject   string           `json:"subject"`
	Event     ledger.EventID   `json:"event_id"`
	Type      ledger.EventType `json:"type"`
	Version   ledger.Version   `json:"version"`
	Actor     ledger.Actor     `json:"actor"`
	Command   ledger.Command   `json:"command"`
	RequestID ledger.RequestID `json:"request_id,omitempty"`
	Why       string           `json:"why,omitempty"`
	// What is the step in words.
	What string `json:"what"`
	// Moves are what it moved, and Money what it did to the money.
	Moves []Move      `json:"moves,omitempty"`
	Money []MoneyStep `json:"money,omitempty"`
	// Publication says whether consumers have been told.
	Publication string         `json:"publication"`
	ArchivedIn  ledger.BatchID `json:"archived_in,omitempty"`
}

// Tell tells the story of what the records are of.
func Tell(r Records) Story {
	r.Events = inOrder(r.Events)
	t := &teller{records: r, stock: newStockBook(r), money: moneyBook{}, before: map[string]ledger.TracedEvent{}}
	s := Story{Of: r.of(), Steps: make([]Step, 0, len(r.Events))}
	for _, e := range r.Events {
		s.Steps = append(s.Steps, t.step(e))
		switch {
		case e.Publication.Quarantine != nil:
			s.Quarantined++
		case e.Publication.At.IsZero() && !r.archivedEvent(e):
			s.Waiting++
		}
		if r.archivedEvent(e) {
			s.Archived++
		}
	}
	s.Stock = t.stock.sums()
	s.Money = t.money.sum()
	s.Differences = t.differences(s)
	s.Matches = len(s.Differences) == 0
	s.Verdict = verdict(s, r)
	return s
}

// of names what the records are of.
func (r Records) of() string {
	switch {
	case r.Slot != "":
		return "slot/" + string(r.Slot)
	case r.Hold != "":
		return "hold/" + string(r.Hold)
	}
	return "reservation/" + string(r.Reservation)
}

// teller tells the events one after the other.
type teller struct {
	records Records
	stock   *stockBook
	money   moneyBook
	// before is the event before of each subject.
	before map[string]ledger.TracedEvent
}

func (t *teller) step(e ledger.TracedEvent) Step {
	s := Step{
		At: e.OccurredAt, Subject: e.Subject(), Event: e.ID, Type: e.Type, Version: e.Version,
		Actor: e.Origin.Actor, Command: e.Origin.Command, RequestID: e.Origin.RequestID, Why: e.Origin.Why,
		What: what(e, t.before[e.Subject()]), Publication: publication(e, t.records.archivedEvent(e)), ArchivedIn: e.ArchivedIn,
	}
	if batch := t.records.FromArchive[e.Subject()]; batch != "" {
		s.ArchivedIn = batch
	}
	for _, m := range e.Movements {
		if move, told := t.stock.take(m); told {
			s.Moves = append(s.Moves, move)
		}
	}
	if e.Reservation != nil {
		s.Money = t.money.take(*e.Reservation)
	}
	t.before[e.Subject()] = e
	return s
}

// publication says in words how far the event is.
func publication(e ledger.TracedEvent, archived bool) string {
	switch q := e.Publication.Quarantine; {
	case q != nil:
		return "quarantined since " + clock(q.At) + ": " + q.Reason
	case !e.Publication.At.IsZero():
		return "published " + clock(e.Publication.At)
	case archived:
		return "published before it was archived"
	}
	return "waits to be published"
}

// clock writes a time as every story does.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000Z") }

// compareSubjects orders subjects whose events are of the same moment.
func compareSubjects(a, b string) int {
	order := []string{"policy", "slot", "reservation", "hold"}
	rank := func(subject string) int {
		kind, _, _ := strings.Cut(subject, "/")
		if i := slices.Index(order, kind); i >= 0 {
			return i
		}
		return len(order)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}
