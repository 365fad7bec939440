package dynamo

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

// Commit applies c as one TransactWriteItems. See ledger.Store for its errors, and
// DESIGN.md for the table of what each reason of a cancelled transaction leads to.
func (s *Store) Commit(ctx context.Context, c ledger.Change) error {
	if err := c.Validate(); err != nil {
		return internal("validating a change", err)
	}
	all, err := legs(c)
	if err != nil {
		return internal("encoding a change", err)
	}
	items := make([]types.TransactWriteItem, len(all))
	for i := range all {
		all[i].setTable(&all[i].item, s.table)
		items[i] = all[i].item
	}
	return s.commit(ctx, c, all, items)
}

// commit tries the transaction until it is applied, refused, or out of tries.
func (s *Store) commit(ctx context.Context, c ledger.Change, all []leg, items []types.TransactWriteItem) error {
	ambiguous := false
	pace := s.newRetry()
	for {
		// A new input for each try: the SDK writes its token into the input, and a try of
		// ours is a new call, not a replay of the last one's bytes. The SDK's own retries are
		// off, because a lost answer that it tries again is hidden from this loop.
		_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items}, withoutRetries)
		if err == nil {
			return nil
		}
		f := classify(err)
		switch f.kind {
		case failureRefused:
			err := s.refused(c, all, f)
			if r := (*ledger.Refused)(nil); ambiguous && errors.As(err, &r) && !final(r) {
				return s.settle(ctx, c, errLateTry)
			}
			return err
		case failureFault:
			return internal("committing a change", err)
		case failureAmbiguous:
			ambiguous = true
		case failureConflict, failureThrottle:
		}
		if pace.again(ctx, f.kind == failureThrottle) {
			continue
		}
		if !ambiguous {
			return unavailable("committing a change", err)
		}
		return s.settle(ctx, c, err)
	}
}

// refused turns the reasons of a cancelled transaction into the answer. The change's
// own event in place of the new one, or its own archive mark, says that an earlier try was applied and its answer
// lost: then all of the change is, and the caller is told so (case G6).
func (s *Store) refused(c ledger.Change, all []leg, f failure) error {
	r := &ledger.Refused{Contended: f.contended}
	for i, reason := range f.reasons {
		if i >= len(all) || aws.ToString(reason.Code) != reasonCondition {
			continue
		}
		refusedLeg, err := all[i].refused(reason.Item)
		if err != nil {
			return internal("decoding a refused item", err)
		}
		if refusedLeg.Event != nil && isOwnEvent(c, *refusedLeg.Event) || ownMark(c, refusedLeg) {
			return nil
		}
		r.Legs = append(r.Legs, refusedLeg)
	}
	return r
}

// errLateTry is why a refusal is not told: an earlier try of the same change had no
// answer, and what refused this one may not refuse that one when it arrives.
var errLateTry = errors.New("refused now, but an earlier try is perhaps still on its way")

// final reports whether a change that was refused so can never be applied later. Versions
// only grow, and what exists stays. Stock and what an owner may have come back, and prices
// may.
func final(r *ledger.Refused) bool {
	return slices.ContainsFunc(r.Legs, func(leg ledger.RefusedLeg) bool {
		return leg.Kind != ledger.LegStock && leg.Kind != ledger.LegQuota
	})
}

// withoutRetries turns the SDK's retries off for one call.
func withoutRetries(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

func isOwnEvent(c ledger.Change, stored ledger.Event) bool {
	for _, e := range c.Events {
		if e.ID == stored.ID {
			return true
		}
	}
	return false
}

// settle looks whether a change whose answers were lost was applied. It reads with what
// is left of ctx. Not finding the event does not prove that a late try will not still
// arrive, so the outcome stays unknown: the caller asks again with the same key.
func (s *Store) settle(ctx context.Context, c ledger.Change, cause error) error {
	unknown := &ledger.Error{
		Code:    ledger.CodeOutcomeUnknown,
		Message: "the request may have been carried out; ask again with the same key",
		Cause:   cause,
	}
	if len(c.Archives) > 0 {
		marked, err := s.marked(ctx, c)
		if marked {
			return nil
		}
		unknown.Cause = errors.Join(cause, err)
		return unknown
	}
	if len(c.Events) == 0 {
		return unknown
	}
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(s.table), Key: eventKey(c.Events[0]).attributes(), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		unknown.Cause = errors.Join(cause, err)
		return unknown
	}
	if len(out.Item) == 0 {
		return unknown
	}
	stored, err := decodeEvent(out.Item)
	if err != nil {
		return internal("decoding an event", err)
	}
	if !isOwnEvent(c, stored) {
		return unknown
	}
	return nil
}
