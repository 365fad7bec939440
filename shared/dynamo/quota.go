package dynamo

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"holdfast/shared/ledger"
)

const (
	// quotaCountPrefix stands before the key of each count in the attributes of a quota
	// item. A count is an attribute of its own, because ADD, which needs none to begin
	// with, works on whole attributes only.
	quotaCountPrefix         = "count:"
	attributeExpired         = "expired"
	attributeLastExpiredAtMs = "last_expired_at_ms"
	attributeSignalHolds     = "holds"
)

// countName is the attribute of a count. A dot in it, which an id may have, leads into no map.
func countName(key ledger.QuotaKey) expression.NameBuilder {
	return expression.NameNoDotSplit(quotaCountPrefix + string(key))
}

// decodeQuota reads an owner's counts, each of which is an attribute.
func decodeQuota(owner ledger.OwnerID, found item) (ledger.Quota, error) {
	quota := ledger.Quota{Owner: owner, Counts: make(map[ledger.QuotaKey]ledger.Units)}
	var fields struct {
		Expired         ledger.Units `dynamodbav:"expired"`
		LastExpiredAtMs int64        `dynamodbav:"last_expired_at_ms"`
	}
	if err := attributevalue.UnmarshalMap(found, &fields); err != nil {
		return quota, err
	}
	quota.Expired, quota.LastExpiredAt = fields.Expired, fromMilliseconds(fields.LastExpiredAtMs)
	for name, value := range found {
		key, counts := strings.CutPrefix(name, quotaCountPrefix)
		if !counts {
			continue
		}
		var units ledger.Units
		if err := attributevalue.Unmarshal(value, &units); err != nil {
			return quota, fmt.Errorf("count %s: %w", key, err)
		}
		quota.Counts[ledger.QuotaKey(key)] = units
	}
	return quota, nil
}

// Quota returns what is counted of the owner.
func (s *Store) Quota(ctx context.Context, owner ledger.OwnerID) (ledger.Quota, error) {
	found, err := s.get(ctx, quotaKey(owner))
	if err != nil {
		return ledger.Quota{}, err
	}
	return decoded(decodeQuota(owner, found))
}

// quotaLeg changes an owner's counts, which need not be there yet. What it requires is that
// none of them is over: a count that is not there is over nothing, so one NOT over all of
// them says it. That keeps the condition of a hold with the most lines, each of which may
// be part of two counts, within DynamoDB's 4 KB and 300 operators of an expression.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
func quotaLeg(w ledger.QuotaWrite, atMs int64) (leg, error) {
	var update expression.UpdateBuilder
	var over []expression.ConditionBuilder
	writes := w.Expired || w.Forget
	for _, d := range w.Deltas {
		count := countName(d.Key)
		if d.Units != 0 {
			update, writes = update.Add(count, expression.Value(d.Units)), true
		}
		if d.Max > 0 {
			over = append(over, count.GreaterThan(expression.Value(d.Max-d.Units)))
		}
		if d.Was != nil {
			over = append(over, isNot(count, *d.Was))
		}
	}
	expired, last := expression.Name(attributeExpired), expression.Name(attributeLastExpiredAtMs)
	if w.ExpiredBelow > 0 {
		over = append(over, expired.GreaterThanEqual(expression.Value(w.ExpiredBelow)))
	}
	if !w.LastExpiredBy.IsZero() {
		over = append(over, last.GreaterThan(expression.Value(milliseconds(w.LastExpiredBy))))
	}
	switch {
	case w.Expired && w.Forget:
		update = update.Set(expired, expression.Value(1))
	case w.Expired:
		update = update.Add(expired, expression.Value(1))
	case w.Forget:
		update = update.Set(expired, expression.Value(0))
	}
	if w.Expired {
		update = update.Set(last, expression.Value(atMs))
	}
	refused := func(found item) (ledger.RefusedLeg, error) {
		quota, err := decodeQuota(w.Owner, found)
		return ledger.RefusedLeg{Kind: ledger.LegQuota, Quota: &quota}, err
	}
	switch {
	case len(over) == 0:
		return unconditionalLeg(quotaKey(w.Owner), update)
	case !writes:
		return checkLeg(quotaKey(w.Owner), none(over), refused)
	default:
		return updateLeg(quotaKey(w.Owner), none(over), update, refused)
	}
}

// isNot is the condition that a count has another value. One that is not there is zero.
func isNot(count expression.NameBuilder, units ledger.Units) expression.ConditionBuilder {
	if units == 0 {
		return expression.AttributeExists(count).And(count.NotEqual(expression.Value(0)))
	}
	return expression.Not(count.Equal(expression.Value(units)))
}

// none is the condition that all of the conditions, of which there is at least one, are
// false.
func none(of []expression.ConditionBuilder) expression.ConditionBuilder {
	if len(of) == 1 {
		return expression.Not(of[0])
	}
	return expression.Not(expression.Or(of[0], of[1], of[2:]...))
}

// TidyQuota takes counts that have fallen to zero out of the owner's quota item, which
// would otherwise grow by every slot that the owner ever had. A count that is not zero
// stays: it is looked at in the write. The archive calls it with the counts of each hold
// that it has marked, because nothing can change them for that hold any more. It changes
// no promise, so it is not a Change, and may be repeated.
func (s *Store) TidyQuota(ctx context.Context, owner ledger.OwnerID, keys []ledger.QuotaKey) error {
	for _, key := range keys {
		count := countName(key)
		if _, err := s.updateIf(ctx, quotaKey(owner), count.Equal(expression.Value(0)), expression.Remove(count)); err != nil {
			return readFailed("tidying the count "+string(key)+" of an owner", err)
		}
	}
	return nil
}

// signalLeg counts one more hold of a signal in its window. The item is made when it is
// first needed, and expires by itself: its key says which window it is of, so a counter of
// another window is never looked at, deleted or not.
func signalLeg(w ledger.SignalWrite) (leg, error) {
	holds := expression.Name(attributeSignalHolds)
	update := expression.Add(holds, expression.Value(1)).
		Set(expression.Name(AttributeTimeToLive), expression.Value(w.Window.Add(ledger.SignalWindow+ledger.SignalKeptFor).Unix()))
	return updateLeg(signalKey(w), expression.Not(holds.GreaterThanEqual(expression.Value(w.Max))), update, func(found item) (ledger.RefusedLeg, error) {
		var fields struct {
			Holds ledger.Units `dynamodbav:"holds"`
		}
		err := attributevalue.UnmarshalMap(found, &fields)
		stored := w
		stored.Max = fields.Holds
		return ledger.RefusedLeg{Kind: ledger.LegSignal, Signal: &stored}, err
	})
}
