package memory

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"holdfast/shared/ledger"
)

// entry is one item of a list, with the text that it is ordered by.
type entry[T any] struct {
	position string
	item     T
}

// cursorPrefix tells a cursor of this package from any other text.
const cursorPrefix = "memory:"

// HoldsOfOwner implements ledger.Store.
func (s *Store) HoldsOfOwner(ctx context.Context, owner ledger.OwnerID, page ledger.Page) ([]ledger.Hold, ledger.Cursor, error) {
	if err := s.begin(ctx); err != nil {
		return nil, "", err
	}
	defer s.mutex.Unlock()
	var entries []entry[ledger.Hold]
	for _, hold := range s.holds {
		if hold.Owner == owner {
			newestFirst := fmt.Sprintf("%019d/%s", math.MaxInt64-hold.CreatedAt.UnixMilli(), hold.ID)
			entries = append(entries, entry[ledger.Hold]{newestFirst, hold})
		}
	}
	holds, next, err := pageOf(entries, page)
	for i := range holds { // of many holds few are on a page
		holds[i] = cloneHold(holds[i])
	}
	return holds, next, err
}

// SlotsOfResource implements ledger.Store.
func (s *Store) SlotsOfResource(ctx context.Context, t ledger.ResourceType, id ledger.ResourceID, from, to time.Time, page ledger.Page) ([]ledger.Slot, ledger.Cursor, error) {
	if err := s.begin(ctx); err != nil {
		return nil, "", err
	}
	defer s.mutex.Unlock()
	bounded := !from.IsZero() || !to.IsZero()
	var entries []entry[ledger.Slot]
	for _, slot := range s.slots {
		switch {
		case slot.ResourceType != t || slot.ResourceID != id:
		case bounded && slot.StartsAt.IsZero():
		case !from.IsZero() && slot.StartsAt.Before(from):
		case !to.IsZero() && slot.StartsAt.After(to):
		default:
			entries = append(entries, entry[ledger.Slot]{startPosition(slot), cloneSlot(slot)})
		}
	}
	return pageOf(entries, page)
}

// startPosition orders by start and then by id. A slot without a start has the zero
// time, which is before every other.
func startPosition(slot ledger.Slot) string {
	return slot.StartsAt.UTC().Format("2006-01-02T15:04:05.000Z") + "/" + string(slot.ID)
}

// Due implements ledger.Store.
func (s *Store) Due(ctx context.Context, shard int, now time.Time, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
	if err := s.begin(ctx); err != nil {
		return nil, "", err
	}
	defer s.mutex.Unlock()
	var entries []entry[ledger.DueHold]
	for id := range s.waiting[shard] {
		dueAt, waits := s.holds[id].DueAt()
		parked := !s.parking[id].tryAt.IsZero()
		if waits && !parked && !dueAt.After(now) {
			oldestFirst := fmt.Sprintf("%019d/%s", dueAt.UnixMilli(), id)
			entries = append(entries, entry[ledger.DueHold]{oldestFirst, ledger.DueHold{ID: id, DueAt: dueAt}})
		}
	}
	return pageOf(entries, page)
}

// pageOf orders entries by position and returns those after the page's cursor, and the
// cursor of the last one if more are left. The cursor is a position and not a number of
// items, so that items which come or go between two pages move nothing else.
func pageOf[T any](entries []entry[T], page ledger.Page) ([]T, ledger.Cursor, error) {
	if page.Limit < 1 || page.Limit > ledger.PageItemsMax {
		return nil, "", invalid(fmt.Sprintf("a page has 1 to %d items", ledger.PageItemsMax))
	}
	after, err := decodeCursor(page.After)
	if err != nil {
		return nil, "", err
	}
	entries = slices.DeleteFunc(entries, func(e entry[T]) bool { return e.position <= after })
	slices.SortFunc(entries, func(a, b entry[T]) int { return cmp.Compare(a.position, b.position) })
	var items []T
	var last string
	for _, e := range entries {
		if len(items) == page.Limit {
			return items, encodeCursor(last), nil
		}
		items, last = append(items, e.item), e.position
	}
	return items, "", nil
}

func encodeCursor(position string) ledger.Cursor {
	return ledger.Cursor(base64.RawURLEncoding.EncodeToString([]byte(cursorPrefix + position)))
}

func decodeCursor(c ledger.Cursor) (string, error) {
	if c == "" {
		return "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(string(c))
	position, ours := strings.CutPrefix(string(text), cursorPrefix)
	if err != nil || !ours {
		return "", invalid("the cursor is not from this list; begin again without one")
	}
	return position, nil
}
