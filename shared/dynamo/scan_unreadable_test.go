package dynamo_test

import (
	"context"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
)

// onePage is a scan that has these items.
type onePage []map[string]types.AttributeValue

func (p onePage) Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return &dynamodb.ScanOutput{Items: p}, nil
}

// What can't be read is named, and is in no list; what stands beside it is read.
func TestAnItemThatCanNotBeReadIsNamed(t *testing.T) {
	of := func(partition, sort, version string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{
			dynamo.AttributePartitionKey: &types.AttributeValueMemberS{Value: partition},
			dynamo.AttributeSortKey:      &types.AttributeValueMemberS{Value: sort},
			"version":                    &types.AttributeValueMemberS{Value: version},
		}
	}
	review := of("REVIEW#review_x", "REVIEW", "")
	review["version"] = &types.AttributeValueMemberN{Value: "3"}
	items := onePage{of("HOLD#hold_x", "HOLD", "many"), of("HOLD#hold_x", "EVENT#0000000001", "first"), review}
	page, err := dynamo.NewScan(items, "table").ScanSegment(t.Context(), 0, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	want := []ledger.EventItem{{PartitionKey: "HOLD#hold_x", SortKey: "HOLD"}, {PartitionKey: "HOLD#hold_x", SortKey: "EVENT#0000000001"}}
	r := page.Records
	if !slices.Equal(r.Unreadable, want) || len(r.Holds)+len(r.Events)+len(r.ArchivedEvents) > 0 || len(r.Reviews) != 1 || r.Reviews[0].Version != 3 {
		t.Errorf("read %+v", r)
	}
	if _, err := dynamo.DecodeRecords(items); err == nil {
		t.Error("who must have all is told of no error")
	}
}
