package main

import (
	"strings"
	"testing"
	"time"

	"holdfast/shared/explain"
	"holdfast/shared/ledger"
)

// The story of a slot has all that moved its units, and its sums are the stock as it is stored;
// that of a hold is read from the archive once it has left the table.
func TestExplain(t *testing.T) {
	w := newWorld(t, 60*day)
	sold, open := w.hold().ID, w.hold().ID
	_, err := w.shop.ConfirmHold(t.Context(), w.owner(), sold, "", nil, func(ledger.Hold, time.Time) (ledger.Response, error) { return ledger.Response{}, nil })
	w.check(err)
	w.ops("adjust", "seat", "-delta", "+1", "-who", "olga", "-why", "one more")

	var story explain.Story
	w.opsJSON(&story, "explain", "slot", "seat")
	if !story.Matches || len(story.Steps) != 5 || len(story.Stock) != 1 || *story.Stock[0].Stored != (explain.Counters{Available: 4, Held: 1, Confirmed: 1, Capacity: 6}) {
		t.Errorf("the story of the slot has %d steps and %+v: %s", len(story.Steps), story.Stock, story.Verdict)
	}
	text := w.ops("explain", "slot", "seat")
	for _, want := range []string{"because: one more", "operator:olga", "available → held", "waits to be published", "match the stock as it is stored"} {
		if !strings.Contains(text, want) {
			t.Errorf("the story of the slot lacks %q:\n%s", want, text)
		}
	}

	// The sold hold is archived, and leaves the table.
	w.ops("redrive")
	if archived := w.archive(); archived != 1 {
		t.Fatalf("%d are archived", archived)
	}
	w.purge()
	for _, id := range []ledger.HoldID{sold, open} {
		var of explain.Story
		w.opsJSON(&of, "explain", "hold", string(id))
		if !of.Matches || len(of.Steps) == 0 || of.Of != "hold/"+string(id) {
			t.Errorf("the story of %s: %+v", id, of)
		}
		if archived := of.Archived == len(of.Steps) && of.Steps[0].ArchivedIn != ""; archived != (id == sold) {
			t.Errorf("of %s %d of %d events are archived, in %q", id, of.Archived, len(of.Steps), of.Steps[0].ArchivedIn)
		}
	}
	w.opsJSON(&story, "explain", "slot", "seat")
	if !story.Matches || story.Stock[0].Unseen.Confirmed != 1 {
		t.Errorf("after the archive: %+v: %s", story.Stock, story.Verdict)
	}
	if err := w.fails("explain", "hold", "hold_00000000000000000000000000"); !strings.Contains(err.Error(), "neither in the table nor in the archive") {
		t.Errorf("a hold that never was: %v", err)
	}
	if err := w.fails("explain", "slot", "none"); ledger.CodeOf(err) != ledger.CodeSlotNotFound {
		t.Errorf("a slot that never was: %v", err)
	}
}

// A stock item that is not what its events say is named.
func TestExplainSaysWhatDoesNotMatch(t *testing.T) {
	w := newWorld(t, time.Minute)
	w.hold()
	w.set("STOCK#seat#0", "STOCK", "held", "2")
	var story explain.Story
	w.opsJSON(&story, "explain", "slot", "seat")
	if story.Matches || !strings.Contains(story.Verdict, "4 available, 1 held, 0 confirmed, capacity 5, and its stock item says 4 available, 2 held") {
		t.Errorf("the verdict is %q", story.Verdict)
	}
}
