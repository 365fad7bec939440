package commands

import (
	"context"
	"encoding/base64"
	"strconv"
	"strings"

	"holdfast/shared/ledger"
)

const (
	// CasesMax bounds a page of the queue: each case on it costs a read.
	CasesMax = 100
	// caseReadsMax bounds the pages of lists that one page of the queue is made of. It is
	// enough to pass through all lists once, however few of them have anything.
	caseReadsMax = 2 * (1 + ledger.DueShards + ledger.UnpublishedShards)
	// caseCursorSeparator separates the parts of a cursor, and occurs in the last one only.
	caseCursorSeparator = " "
)

// The lists of the queue, one after the other: that of the table, the parked holds of each
// shard, and the quarantined events of each shard.
const (
	listOfTable       = 0
	firstListOfParked = 1
	firstListOfEvents = firstListOfParked + ledger.DueShards
	lists             = firstListOfEvents + ledger.UnpublishedShards
)

// List returns one page of the cases that wait, those of one kind or with "" of every kind:
// first reservations and findings, the longest waiting first, then parked holds, then
// quarantined events. A page may be short, or even empty, and still have a cursor. No case
// that waits all the time is left out; one that comes or goes between two pages may be.
//
// Errors: CodeInvalid for a limit out of 1 to CasesMax and for a cursor of another list, and
// those of the store.
func (v *Reviews) List(ctx context.Context, kind ledger.ReviewKind, page ledger.Page) ([]Case, ledger.Cursor, error) {
	if page.Limit < 1 || page.Limit > CasesMax {
		return nil, "", &ledger.Error{Code: ledger.CodeInvalid, Message: "a page has 1 to " + strconv.Itoa(CasesMax) + " cases"}
	}
	list, after, err := decodeCaseCursor(page.After)
	if err != nil {
		return nil, "", err
	}
	var cases []Case
	for range caseReadsMax {
		for list < lists && !v.hasKind(list, kind) {
			list++
		}
		if list == lists {
			return cases, "", nil
		}
		if len(cases) == page.Limit {
			break
		}
		found, next, err := v.readList(ctx, list, ledger.Page{Limit: page.Limit - len(cases), After: after})
		if err != nil {
			return nil, "", err
		}
		for _, c := range found {
			if c.Waits && (kind == "" || c.Review.Kind == kind) {
				cases = append(cases, c)
			}
		}
		if after = next; after == "" {
			list++
		}
	}
	return cases, encodeCaseCursor(list, after), nil
}

// hasKind reports whether the list may have cases of that kind.
func (v *Reviews) hasKind(list int, kind ledger.ReviewKind) bool {
	switch {
	case list == listOfTable:
		return kind != ledger.ReviewExpiry && kind != ledger.ReviewEvent
	case v.waiting == nil:
		return false
	case list < firstListOfEvents:
		return kind == "" || kind == ledger.ReviewExpiry
	default:
		return kind == "" || kind == ledger.ReviewEvent
	}
}

func (v *Reviews) readList(ctx context.Context, list int, page ledger.Page) ([]Case, ledger.Cursor, error) {
	switch {
	case list == listOfTable:
		return v.listTable(ctx, page)
	case list < firstListOfEvents:
		return v.listParked(ctx, list-firstListOfParked, page)
	default:
		return v.listEvents(ctx, list-firstListOfEvents, page)
	}
}

// listTable reads what the table itself knows to wait. Indexes lag, so each reservation and
// each record says for itself whether it still does.
func (v *Reviews) listTable(ctx context.Context, page ledger.Page) ([]Case, ledger.Cursor, error) {
	entries, next, err := v.commands.store.InReview(ctx, page)
	if err != nil {
		return nil, "", err
	}
	reservations := make(map[ledger.ReservationID]ledger.Reservation)
	var ids []ledger.ReviewID
	for _, e := range entries {
		if e.Reservation == "" {
			ids = append(ids, e.Review)
			continue
		}
		r, err := v.commands.store.Reservation(ctx, e.Reservation)
		if ledger.CodeOf(err) == ledger.CodeReservationNotFound {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		reservations[r.ID] = r
		kind, _ := r.ReviewKind()
		ids = append(ids, ledger.ReviewIDOf(kind, string(r.ID)))
	}
	records, err := v.records(ctx, ids)
	if err != nil {
		return nil, "", err
	}
	var cases []Case
	for _, e := range entries {
		if record, known := records[e.Review]; known {
			c := Case{Name: string(e.Review)}
			since, waits := record.InReviewSince()
			c.standing(record.Kind, record.Subject, record, since, waits)
			cases = append(cases, c)
		}
		if r, known := reservations[e.Reservation]; known {
			c := Case{Name: string(r.ID), Reservation: r}
			kind, waits := r.ReviewKind()
			since, _ := r.InReviewSince()
			c.standing(kind, string(r.ID), records[ledger.ReviewIDOf(kind, string(r.ID))], since, waits)
			cases = append(cases, c)
		}
	}
	return cases, next, nil
}

func (v *Reviews) listParked(ctx context.Context, shard int, page ledger.Page) ([]Case, ledger.Cursor, error) {
	entries, next, err := v.waiting.Parked(ctx, shard, page)
	if err != nil {
		return nil, "", err
	}
	ids := make([]ledger.ReviewID, len(entries))
	for i, e := range entries {
		ids[i] = ledger.ReviewIDOf(ledger.ReviewExpiry, string(e.ID))
	}
	records, err := v.records(ctx, ids)
	if err != nil {
		return nil, "", err
	}
	var cases []Case
	for i, e := range entries {
		c := Case{Name: string(e.ID)}
		if c.Failures, err = v.waiting.Failures(ctx, e.ID); err != nil {
			return nil, "", err
		}
		c.standing(ledger.ReviewExpiry, string(e.ID), records[ids[i]], c.Failures.DueAt, !c.Failures.DueAt.IsZero())
		cases = append(cases, c)
	}
	return cases, next, nil
}

func (v *Reviews) listEvents(ctx context.Context, shard int, page ledger.Page) ([]Case, ledger.Cursor, error) {
	entries, next, err := v.waiting.Quarantined(ctx, shard, page)
	if err != nil {
		return nil, "", err
	}
	items, ids := make([]ledger.EventItem, len(entries)), make([]ledger.ReviewID, len(entries))
	for i, e := range entries {
		items[i], ids[i] = e.Item, ledger.ReviewIDOf(ledger.ReviewEvent, e.Item.String())
	}
	records, err := v.records(ctx, ids)
	if err != nil {
		return nil, "", err
	}
	stored, err := v.waiting.UnpublishedEvents(ctx, items)
	if err != nil {
		return nil, "", err
	}
	places := make(map[ledger.EventItem]place, len(entries))
	for _, e := range entries {
		places[e.Item] = place{kind: ledger.ReviewEvent, subject: e.Item.String(), item: e.Item, id: e.ID}
	}
	var cases []Case
	for _, e := range stored {
		at := places[e.Item]
		cases = append(cases, eventCaseOf(at, []ledger.StoredEvent{e}, records[ledger.ReviewIDOf(ledger.ReviewEvent, at.subject)]))
	}
	return cases, next, nil
}

// records reads the records of these cases; one without a record is left out.
func (v *Reviews) records(ctx context.Context, ids []ledger.ReviewID) (map[ledger.ReviewID]ledger.Review, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	stored, err := v.commands.store.Reviews(ctx, ids)
	out := make(map[ledger.ReviewID]ledger.Review, len(stored))
	for _, r := range stored {
		out[r.ID] = r
	}
	return out, err
}

// encodeCaseCursor says where the next page begins: a list, and a place in it.
func encodeCaseCursor(list int, after ledger.Cursor) ledger.Cursor {
	text := "reviews" + caseCursorSeparator + strconv.Itoa(list) + caseCursorSeparator + string(after)
	return ledger.Cursor(base64.RawURLEncoding.EncodeToString([]byte(text)))
}

func decodeCaseCursor(c ledger.Cursor) (int, ledger.Cursor, error) {
	if c == "" {
		return 0, "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(string(c))
	parts := strings.SplitN(string(text), caseCursorSeparator, 3)
	if err == nil && len(parts) == 3 && parts[0] == "reviews" {
		if list, err := strconv.Atoi(parts[1]); err == nil && list >= 0 && list < lists {
			return list, ledger.Cursor(parts[2]), nil
		}
	}
	return 0, "", &ledger.Error{Code: ledger.CodeInvalid, Message: "the cursor is not from this list; begin again without one"}
}
