package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
	"holdfast/shared/reconcile"
)

// fault is something that is made wrong by hand, and what the audit is to call it.
type fault struct {
	kind    reconcile.FindingKind
	subject string // a part of the finding's
	certain bool   // a repair puts it right; else a person is asked
	key     [2]string
	update  string // "" deletes the item
	values  map[string]types.AttributeValue
}

func amount(n int64) types.AttributeValue { return &types.AttributeValueMemberN{Value: fmt.Sprint(n)} }

// faults are twelve faults of twelve kinds, each of another thing. What they are planted in is
// left alone by the traffic.
func (m *market) faults(now time.Time) []fault {
	stock := func(slot int) [2]string { return [2]string{"STOCK#" + string(marketSlotID(slot)) + "#0", "STOCK"} }
	of := func(slot int) string { return "stock of " + string(marketSlotID(slot)) }
	hold := func(id ledger.HoldID) [2]string { return [2]string{"HOLD#" + string(id), "HOLD"} }
	event := func(id ledger.HoldID, n int) [2]string {
		return [2]string{"HOLD#" + string(id), fmt.Sprintf("EVENT#%010d", n)}
	}
	ms := func(ago time.Duration) types.AttributeValue { return amount(now.Add(-ago).UnixMilli()) }
	authorized, completed := m.reservations[ledger.ReservationAuthorized][0].ID, m.reservations[ledger.ReservationCompleted][0].ID
	reservation := func(id ledger.ReservationID) [2]string { return [2]string{"RES#" + string(id), "RES"} }
	late := m.ended[1]
	return []fault{
		{reconcile.FindingStockMismatch, of(0), true, stock(0), "SET available = available + :n, #c = #c + :n", map[string]types.AttributeValue{":n": amount(3)}},
		{reconcile.FindingStockImpossible, of(1), true, stock(1), "SET #c = #c + :n", map[string]types.AttributeValue{":n": amount(1)}},
		{reconcile.FindingTerminalStock, of(2), true, stock(2), "SET available = available - :n, held = held + :n", map[string]types.AttributeValue{":n": amount(2)}},
		{reconcile.FindingStockTerms, of(3), true, stock(3), "SET unit_amount = :n", map[string]types.AttributeValue{":n": amount(1)}},
		{reconcile.FindingGhostHold, string(m.held[0]), true, hold(m.held[0]), "SET expires_at_ms = :at, release_at_ms = :at, due_at_ms = :at", map[string]types.AttributeValue{":at": ms(time.Hour)}},
		{reconcile.FindingDueIndexHole, string(m.held[1]), true, hold(m.held[1]), "REMOVE due_shard, due_at_ms", nil},
		{reconcile.FindingTimeToLive, string(m.held[2]), true, hold(m.held[2]), "SET ttl_at_seconds = :at", map[string]types.AttributeValue{":at": amount(now.Add(24 * time.Hour).Unix())}},
		{reconcile.FindingEventMissing, string(m.ended[0]), false, event(m.ended[0], 1), "", nil},
		{reconcile.FindingEventUnpublished, "event ", true, event(late, 1), "SET occurred_at_ms = :at, unpublished_shard = :shard, unpublished_order = :order", map[string]types.AttributeValue{
			":at": ms(time.Hour), ":shard": &types.AttributeValueMemberS{Value: "00"},
			":order": &types.AttributeValueMemberS{Value: now.Add(-time.Hour).UTC().Format("2006-01-02T15:04:05.000Z") + "#event_planted"},
		}},
		{reconcile.FindingQuotaMismatch, "count holds of owner " + string(m.owner), true, [2]string{"OWNER#" + string(m.owner), "QUOTA"}, "SET #q = #q + :n", map[string]types.AttributeValue{":n": amount(1)}},
		{reconcile.FindingAuthorizedTooLong, string(authorized), false, reservation(authorized), "SET status_since_ms = :at", map[string]types.AttributeValue{":at": ms(2 * time.Hour)}},
		{reconcile.FindingMoneyMismatch, string(completed), false, reservation(completed), "SET attempts[0].captured_minor = attempts[0].captured_minor - :n", map[string]types.AttributeValue{":n": amount(100)}},
	}
}

// plant makes the faults.
func plant(ctx context.Context, client *dynamodb.Client, faults []fault) error {
	for _, f := range faults {
		key := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: f.key[0]}, "sk": &types.AttributeValueMemberS{Value: f.key[1]}}
		if f.update == "" {
			_, err := client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(tableName), Key: key, ConditionExpression: aws.String("attribute_exists(pk)")})
			if err != nil {
				return fmt.Errorf("plant %s: %w", f.kind, err)
			}
			continue
		}
		names := map[string]string{}
		for name, attribute := range map[string]string{"#c": "capacity", "#q": "count:holds"} {
			if strings.Contains(f.update, name) {
				names[name] = attribute
			}
		}
		in := &dynamodb.UpdateItemInput{
			TableName: aws.String(tableName), Key: key, UpdateExpression: aws.String(f.update), ConditionExpression: aws.String("attribute_exists(pk)"),
			ExpressionAttributeValues: f.values,
		}
		if len(names) > 0 {
			in.ExpressionAttributeNames = names
		}
		if _, err := client.UpdateItem(ctx, in); err != nil {
			return fmt.Errorf("plant %s: %w", f.kind, err)
		}
	}
	return nil
}

// judgeFindings requires the findings to be exactly the faults.
func judgeFindings(findings []reconcile.Finding, faults []fault) error {
	for _, f := range faults {
		if !slices.ContainsFunc(findings, f.is) {
			return fmt.Errorf("the audit does not name %s of %s; it names %v", f.kind, f.subject, findings)
		}
	}
	for _, found := range findings {
		if !slices.ContainsFunc(faults, func(f fault) bool { return f.is(found) }) {
			return fmt.Errorf("the audit names what is not so: %s", found)
		}
	}
	if len(findings) != len(faults) {
		return fmt.Errorf("%d findings for %d faults: %v", len(findings), len(faults), findings)
	}
	return nil
}

func (f fault) is(found reconcile.Finding) bool {
	return found.Kind == f.kind && strings.Contains(found.Subject, f.subject) && found.Cause != "" && found.Evidence != ""
}
