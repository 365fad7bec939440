package dynamo_test

import (
	"context"

	"testing"
	"time"

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

// mustScanSegments is what all segments of the table have, page by page.
func (l *parkingLot) mustScanSegments(segments int) map[ledger.HoldID]ledger.IndexedHold {
	l.Helper()
	scan := dynamo.NewScan(smallPages{l.client, 3}, l.table)
	found := map[ledger.HoldID]ledger.IndexedHold{}
	for segment := range segments {
		var after ledger.Cursor
		for {
			holds, next, err := scan.ScanHoldsSegment(l.Context(), segment, segments, after)
			if err != nil {
				l.Fatal(err)
			}
			for _, h := range holds {
				if _, twice := found[h.Hold]; twice {
					l.Errorf("%s is in two segments, or pages", h.Hold)
				}
				found[h.Hold] = h
			}
			if after = next; after == "" {
				break
			}
		}
	}
	return found
}

// All segments together have every hold once, whatever else is in the table, and each says
// where it stands in the index.
func TestSegmentsHaveEveryHoldOnce(t *testing.T) {
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
	key := func(n int) ledger.EventItem {
		return ledger.EventItem{PartitionKey: "HOLD#" + string(ids[n]), SortKey: "HOLD"}
	}
	lot.damage(key(1), "REMOVE #a", "due_shard", nil)
	lot.damage(key(2), "REMOVE #a", "due_at_ms", nil)
	lot.damage(key(3), "SET #a = :v", "due_shard", &types.AttributeValueMemberS{Value: "hold#99"})
	lot.damage(key(4), "SET #a = :v", "due_at_ms", &types.AttributeValueMemberN{Value: "4102444800000"})
	lot.spoil(ids[5])
	lot.damage(key(6), "SET #a = :v", "due_shard", &types.AttributeValueMemberS{Value: "parked#" + lot.shardOf(ids[6])})
	lot.damage(key(7), "SET #a = :v", "attempt_open", &types.AttributeValueMemberN{Value: "1"})
	for _, segments := range []int{1, 4} {
		found := lot.mustScanSegments(segments)
		if len(found) != len(ids) {
			t.Fatalf("%d segments have %d holds, want %d", segments, len(found), len(ids))
		}
		for n, id := range ids {
			want := ledger.IndexedHold{Hold: id, Status: ledger.StatusHeld, DueAt: hold.ReleaseAt, InDue: true, ListedAt: hold.ReleaseAt}
			switch n {
			case 0:
				want.Status, want.InDue, want.ListedAt = ledger.StatusExpired, false, time.Time{}
			case 1, 2:
				want.InDue, want.ListedAt = false, time.Time{}
			case 3:
				want.InDue, want.Misplaced = false, true
			case 4:
				want.ListedAt = time.UnixMilli(4102444800000).UTC()
			case 6:
				want.InDue, want.Parked = false, true
			case 7:
				want.DueAt = hold.ReleaseAt.Add(hold.Terms.UnknownFor)
			}
			if got := found[id]; got != want {
				t.Errorf("hold %d: %+v, want %+v", n, got, want)
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
		if holds, _, err := dynamo.NewScan(lot.client, lot.table).ScanHoldsSegment(t.Context(), 0, 1, cursor); ledger.CodeOf(err) != ledger.CodeInvalid || len(holds) > 0 {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
}
