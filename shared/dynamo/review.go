package dynamo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

// reviewList is the one partition of the review index. What waits for people is little, or
// the people are the bottleneck and not the partition.
const reviewList = "open"

// reviewFields are a case: the body of its item, and the copy of it in an event.
type reviewFields struct {
	ID          ledger.ReviewID       `dynamodbav:"review_id"`
	Kind        ledger.ReviewKind     `dynamodbav:"kind"`
	Subject     string                `dynamodbav:"subject"`
	Finding     string                `dynamodbav:"finding,omitempty"`
	Evidence    string                `dynamodbav:"evidence,omitempty"`
	Status      ledger.ReviewStatus   `dynamodbav:"status"`
	OpenedAtMs  int64                 `dynamodbav:"opened_at_ms"`
	ClaimedBy   ledger.Actor          `dynamodbav:"claimed_by,omitempty"`
	ClaimedAtMs int64                 `dynamodbav:"claimed_at_ms,omitempty"`
	Decision    ledger.ReviewDecision `dynamodbav:"decision,omitempty"`
	DecidedBy   ledger.Actor          `dynamodbav:"decided_by,omitempty"`
	DecidedAtMs int64                 `dynamodbav:"decided_at_ms,omitempty"`
	Why         string                `dynamodbav:"why,omitempty"`
	Version     ledger.Version        `dynamodbav:"version"`
}

type reviewRecord struct {
	itemKey
	reviewFields
	reviewKeys
}

// reviewKeys put an item that waits for a person into the review index; they are absent from
// any other.
type reviewKeys struct {
	List  string `dynamodbav:"review_list,omitempty"`
	Order string `dynamodbav:"review_order,omitempty"`
}

func newReviewKeys(since time.Time, waits bool, id string) reviewKeys {
	if !waits {
		return reviewKeys{}
	}
	return reviewKeys{reviewList, since.UTC().Format(orderTimeLayout) + separator + id}
}

func newReviewFields(r ledger.Review) reviewFields {
	return reviewFields{
		ID: r.ID, Kind: r.Kind, Subject: r.Subject, Finding: r.Finding, Evidence: r.Evidence, Status: r.Status,
		OpenedAtMs: milliseconds(r.OpenedAt), ClaimedBy: r.ClaimedBy, ClaimedAtMs: milliseconds(r.ClaimedAt),
		Decision: r.Decision, DecidedBy: r.DecidedBy, DecidedAtMs: milliseconds(r.DecidedAt), Why: r.Why, Version: r.Version,
	}
}

func (f reviewFields) review() ledger.Review {
	return ledger.Review{
		ID: f.ID, Kind: f.Kind, Subject: f.Subject, Finding: f.Finding, Evidence: f.Evidence, Status: f.Status,
		OpenedAt: fromMilliseconds(f.OpenedAtMs), ClaimedBy: f.ClaimedBy, ClaimedAt: fromMilliseconds(f.ClaimedAtMs),
		Decision: f.Decision, DecidedBy: f.DecidedBy, DecidedAt: fromMilliseconds(f.DecidedAtMs), Why: f.Why, Version: f.Version,
	}
}

func decodeReview(found map[string]types.AttributeValue) (ledger.Review, error) {
	var r reviewRecord
	err := attributevalue.UnmarshalMap(found, &r)
	return r.review(), err
}

func reviewLeg(w ledger.ReviewWrite) (leg, error) {
	condition := notThere()
	if w.Replaces > 0 {
		condition = expression.Name(attributeVersion).Equal(expression.Value(w.Replaces))
	}
	since, waits := w.Next.InReviewSince()
	record := reviewRecord{itemKey: reviewKey(w.Next.ID), reviewFields: newReviewFields(w.Next), reviewKeys: newReviewKeys(since, waits, string(w.Next.ID))}
	return putLeg(record, condition, func(found map[string]types.AttributeValue) (ledger.RefusedLeg, error) {
		refused := ledger.RefusedLeg{Kind: ledger.LegReview}
		if len(found) == 0 {
			return refused, nil
		}
		stored, err := decodeReview(found)
		refused.Review = &stored
		return refused, err
	})
}

// Reviews returns the records of these cases.
func (s *Store) Reviews(ctx context.Context, ids []ledger.ReviewID) ([]ledger.Review, error) {
	if len(ids) > ledger.PageItemsMax {
		return nil, &ledger.Error{Code: ledger.CodeInvalid, Message: fmt.Sprintf("at most %d cases can be read at once", ledger.PageItemsMax)}
	}
	keys := make([]itemKey, 0, len(ids))
	seen := make(map[ledger.ReviewID]bool, len(ids))
	for _, id := range ids {
		if !seen[id] {
			keys = append(keys, reviewKey(id))
		}
		seen[id] = true
	}
	items, err := s.batchGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	return decodeAll(items, decodeReview)
}

// ReviewEvents returns the events of one case.
func (s *Store) ReviewEvents(ctx context.Context, id ledger.ReviewID) ([]ledger.Event, error) {
	return s.events(ctx, reviewKey(id))
}

// InReview lists what waits for a person, the longest waiting first.
func (s *Store) InReview(ctx context.Context, page ledger.Page) ([]ledger.InReview, ledger.Cursor, error) {
	var start item
	if page.After != "" {
		order, err := decodeCursor(page.After)
		if err != nil {
			return nil, "", err
		}
		key, found := inReviewKey(lastPart(order))
		if !found {
			return nil, "", badCursor()
		}
		start = startKey(key, item{AttributeReviewList: text(reviewList), AttributeReviewOrder: text(order)})
	}
	found, err := s.query(ctx, queryOf{
		index: IndexReview, limit: page.Limit, start: start,
		condition: expression.Key(AttributeReviewList).Equal(expression.Value(reviewList)),
	})
	if err != nil {
		return nil, "", err
	}
	entries := make([]ledger.InReview, len(found.items))
	for i, listed := range found.items {
		since, id, _ := strings.Cut(stringOf(listed, AttributeReviewOrder), separator)
		if entries[i].Since, err = time.Parse(orderTimeLayout, since); err != nil {
			return nil, "", internal("reading the review index", err)
		}
		if ledger.ValidReservationID(id) {
			entries[i].Reservation = ledger.ReservationID(id)
		} else {
			entries[i].Review = ledger.ReviewID(id)
		}
	}
	return entries, found.cursor(AttributeReviewOrder), nil
}

// inReviewKey is the item that an entry of the review index is of.
func inReviewKey(id string) (itemKey, bool) {
	switch {
	case ledger.ValidReservationID(id):
		return reservationKey(ledger.ReservationID(id)), true
	case ledger.ValidReviewID(id):
		return reviewKey(ledger.ReviewID(id)), true
	}
	return itemKey{}, false
}
