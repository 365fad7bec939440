package dynamo_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
)

// smallPages is a client whose scans give a few items a page.
type smallPages struct {
	dynamo.ScanClient
	items int32
}

func (c smallPages) Scan(ctx context.Context, in *dynamodb.ScanInput, options ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	bounded := *in
	bounded.Limit = aws.Int32(c.items)
	return c.ScanClient.Scan(ctx, &bounded, options...)
}

// mustScanSegments is what all segments of the table have of holds, page by page.
func (l *parkingLot) mustScanSegments(segments int) map[ledger.HoldID]ledger.StoredHold {
	l.Helper()
	scan := dynamo.NewScan(smallPages{l.client, 3}, l.table)
	found := map[ledger.HoldID]ledger.StoredHold{}
	for segment := range segments {
		var after ledger.Cursor
		for {
			page, err := scan.ScanSegment(l.Context(), segment, segments, after)
			if err != nil {
				l.Fatal(err)
			}
			for _, h := range page.Records.Holds {
				if _, twice := found[h.Hold.ID]; twice {
					l.Errorf("%s is in two segments, or pages", h.Hold.ID)
				}
				found[h.Hold.ID] = h
			}
			if after = page.Next; after == "" {
				break
			}
		}
	}
	return found
}

// Case B8: all segments together have every hold once, whatever else is in the table, and each
// says whether a sweep will meet it in time. What is listed in another's shard, or at another
// time, is as good as not listed.
func TestCaseB8_SegmentsHaveEveryHoldOnce(t *testing.T) {
	lot := newParkingLot(t)
	var ids []ledger.HoldID
	for range 20 {
		ids = append(ids, lot.hold().ID)
	}
	hold, err := lot.store.Hold(t.Context(), ids[0])
	if err != nil {
		t.Fatal(err)
	}
	lot.clock.Set(hold.ReleaseAt)
	lot.mustExpire(ids[0])
	lot.mustExpire(ids[8])
	key := func(n int) ledger.EventItem {
		return ledger.EventItem{PartitionKey: "HOLD#" + string(ids[n]), SortKey: "HOLD"}
	}
	lot.damage(key(1), "REMOVE #a", "due_shard", nil)
	lot.damage(key(2), "REMOVE #a", "due_at_ms", nil)
	lot.damage(key(3), "SET #a = :v", "due_shard", &types.AttributeValueMemberS{Value: "hold#99"})
	lot.damage(key(4), "SET #a = :v", "due_at_ms", &types.AttributeValueMemberN{Value: "4102444800000"})
	lot.damage(key(6), "SET #a = :v", "due_shard", &types.AttributeValueMemberS{Value: "parked#" + lot.shardOf(ids[6])})
	lot.damage(key(6), "SET #a = :v", "due_at_ms", &types.AttributeValueMemberN{Value: "4102444800000"})
	lot.damage(key(6), "SET #a = :v", "parked_due_at_ms", &types.AttributeValueMemberN{Value: strconv.FormatInt(hold.ReleaseAt.UnixMilli(), 10)})
	lot.damage(key(7), "SET #a = :v", "attempt_open", &types.AttributeValueMemberN{Value: "1"})
	lot.damage(key(8), "SET #a = :v", "due_shard", &types.AttributeValueMemberS{Value: "hold#" + lot.shardOf(ids[8])})
	for _, segments := range []int{1, 4} {
		found := lot.mustScanSegments(segments)
		if len(found) != len(ids) {
			t.Fatalf("%d segments have %d holds, want %d", segments, len(found), len(ids))
		}
		for n, id := range ids {
			want, status := true, ledger.StatusHeld
			switch n {
			case 0:
				want, status = false, ledger.StatusExpired
			case 1, 2, 3, 4, 7:
				want = false
			case 8:
				status = ledger.StatusExpired
			}
			if got := found[id]; got.Due != want || got.Hold.Status != status {
				t.Errorf("hold %d is %s, and listed: %t; want %s, %t", n, got.Hold.Status, got.Due, status, want)
			}
		}
	}
}

func (l *parkingLot) shardOf(id ledger.HoldID) string {
	digits := []byte{'0', '0'}
	digits[0] += byte(ledger.DueShard(id) / 10)
	digits[1] += byte(ledger.DueShard(id) % 10)
	return string(digits)
}

func TestASegmentRefusesAForeignCursor(t *testing.T) {
	lot := newParkingLot(t)
	for _, cursor := range []ledger.Cursor{"?", "QUJD"} {
		if page, err := dynamo.NewScan(lot.client, lot.table).ScanSegment(t.Context(), 0, 1, cursor); ledger.CodeOf(err) != ledger.CodeInvalid || len(page.Records.Holds) > 0 {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
}
