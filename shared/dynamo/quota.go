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

func quotaLeg(w ledger.QuotaWrite, atMs int64) (leg, error) {
	var update expression.UpdateBuilder
	var conditions []expression.ConditionBuilder
	for _, d := range w.Deltas {
		count := expression.Name(quotaCountPrefix + string(d.Key))
		update = update.Add(count, expression.Value(d.Units))
		if d.Max > 0 {
			conditions = append(conditions, expression.AttributeNotExists(count).Or(count.LessThanEqual(expression.Value(d.Max-d.Units))))
		}
	}
	expired, last := expression.Name(attributeExpired), expression.Name(attributeLastExpiredAtMs)
	if w.ExpiredBelow > 0 {
		conditions = append(conditions, expression.AttributeNotExists(expired).Or(expired.LessThan(expression.Value(w.ExpiredBelow))))
	}
	if !w.LastExpiredBy.IsZero() {
		conditions = append(conditions, expression.AttributeNotExists(last).Or(last.LessThanEqual(expression.Value(milliseconds(w.LastExpiredBy)))))
	}
	switch {
	case w.Expired:
		update = update.Set(last, expression.Value(atMs))
		if w.Forget {
			update = update.Set(expired, expression.Value(1))
		} else {
			update = update.Add(expired, expression.Value(1))
		}
	case w.Forget, len(w.Deltas) == 0:
		// A write that only requires something still needs something to do.
		update = forgetExpired(update, w.Forget)
	}
	return countLeg(quotaKey(w.Owner), conditions, update, func(found item) (ledger.RefusedLeg, error) {
		quota, err := decodeQuota(w.Owner, found)
		return ledger.RefusedLeg{Kind: ledger.LegQuota, Quota: &quota}, err
	})
}

// forgetExpired sets the count of expired holds to zero, or leaves it as it is.
func forgetExpired(update expression.UpdateBuilder, forget bool) expression.UpdateBuilder {
	name := expression.Name(attributeExpired)
	if forget {
		return update.Set(name, expression.Value(0))
	}
	return update.Set(name, name.IfNotExists(expression.Value(0)))
}

// countLeg changes counts that need not be there yet, under all of the conditions.
func countLeg(key itemKey, conditions []expression.ConditionBuilder, update expression.UpdateBuilder, refused decodeRefused) (leg, error) {
	if len(conditions) == 0 {
		return unconditionalLeg(key, update)
	}
	condition := conditions[0]
	for _, more := range conditions[1:] {
		condition = condition.And(more)
	}
	return updateLeg(key, condition, update, refused)
}

// signalLeg counts one more hold of a signal in its window. The item is made when it is
// first needed, and expires by itself: its key says which window it is of, so a counter of
// another window is never looked at, deleted or not.
func signalLeg(w ledger.SignalWrite) (leg, error) {
	holds := expression.Name(attributeSignalHolds)
	update := expression.Add(holds, expression.Value(1)).
		Set(expression.Name(AttributeTimeToLive), expression.Value(w.Window.Add(ledger.SignalWindow+ledger.SignalKeptFor).Unix()))
	condition := expression.AttributeNotExists(holds).Or(holds.LessThan(expression.Value(w.Max)))
	return updateLeg(signalKey(w), condition, update, func(found item) (ledger.RefusedLeg, error) {
		var fields struct {
			Holds ledger.Units `dynamodbav:"holds"`
		}
		err := attributevalue.UnmarshalMap(found, &fields)
		stored := w
		stored.Max = fields.Holds
		return ledger.RefusedLeg{Kind: ledger.LegSignal, Signal: &stored}, err
	})
}
