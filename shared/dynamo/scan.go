package dynamo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

// ScanClient is the part of the DynamoDB client that an audit needs. It is apart from
// Client, because no function that serves users may scan the table.
type ScanClient interface {
	Scan(ctx context.Context, in *dynamodb.ScanInput, options ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

var _ ScanClient = (*dynamodb.Client)(nil)

// Scan reads the whole table for an audit.
type Scan struct {
	client ScanClient
	table  string
}

// NewScan returns a scan of the named table.
func NewScan(client ScanClient, table string) *Scan { return &Scan{client: client, table: table} }

// ScanSegment reads one page of one of total segments of the table, and hands on what the
// ledger keeps. Records of idempotency, of uniqueness and of signals are passed over. A page
// may be empty and not be the last. An item that can't be read is named in it. The read is not
// consistent, at half the price: whoever finds something wrong looks again.
func (s *Scan) ScanSegment(ctx context.Context, segment, total int, after ledger.Cursor) (ledger.RecordsPage, error) {
	start, err := scanStart(after)
	if err != nil {
		return ledger.RecordsPage{}, err
	}
	out, err := s.client.Scan(ctx, &dynamodb.ScanInput{
		TableName: aws.String(s.table), Segment: aws.Int32(int32(segment)), TotalSegments: aws.Int32(int32(total)),
		ExclusiveStartKey: start, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err != nil {
		return ledger.RecordsPage{}, readFailed(fmt.Sprintf("scanning segment %d of %d", segment, total), err)
	}
	page := ledger.RecordsPage{Records: readRecords(out.Items), Next: scanNext(out.LastEvaluatedKey)}
	if out.ConsumedCapacity != nil {
		page.ReadUnits = aws.ToFloat64(out.ConsumedCapacity.CapacityUnits)
	}
	return page, nil
}

// ScanRecords reads every item at once, strongly consistent, as ScanSegment does page by page.
func (s *Scan) ScanRecords(ctx context.Context, visit func(ledger.Records) error) error {
	in := &dynamodb.ScanInput{TableName: aws.String(s.table), ConsistentRead: aws.Bool(true)}
	for {
		out, err := s.client.Scan(ctx, in)
		if err != nil {
			return readFailed("scanning the table", err)
		}
		page, err := DecodeRecords(out.Items)
		if err != nil {
			return err
		}
		if err := visit(page); err != nil {
			return err
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return nil
		}
	}
}

// scanStart is the key at which a page of a scan begins.
func scanStart(after ledger.Cursor) (item, error) {
	if after == "" {
		return nil, nil
	}
	last, err := decodeCursor(after)
	partition, sort, found := strings.Cut(last, itemCursorSeparator)
	if err != nil || !found {
		return nil, badCursor()
	}
	return itemKey{partition, sort}.attributes(), nil
}

// scanNext is the cursor of the page after the last key.
func scanNext(last item) ledger.Cursor {
	if len(last) == 0 {
		return ""
	}
	return encodeCursor(stringOf(last, AttributePartitionKey) + itemCursorSeparator + stringOf(last, AttributeSortKey))
}

// DecodeRecords reads items of the table as the store wrote them. Records of idempotency,
// of uniqueness and of signals are passed over.
func DecodeRecords(items []map[string]types.AttributeValue) (ledger.Records, error) {
	var records ledger.Records
	for _, i := range items {
		if err := addRecord(&records, i); err != nil {
			return records, internal("decoding "+stringOf(i, AttributePartitionKey), err)
		}
	}
	return records, nil
}

// readRecords is DecodeRecords for who must go on: an item that can't be read is named among
// the records, and keeps none of the others from being told.
func readRecords(items []map[string]types.AttributeValue) ledger.Records {
	var records ledger.Records
	for _, i := range items {
		before := records
		if err := addRecord(&records, i); err != nil {
			records = before
			records.Unreadable = append(records.Unreadable, eventItem(i))
		}
	}
	return records
}

func addRecord(page *ledger.Records, i item) error {
	addMortal(page, i)
	sort := stringOf(i, AttributeSortKey)
	switch {
	case sort == sortHold:
		hold, err := decodeHold(i)
		page.Holds = append(page.Holds, storedHold(i, hold))
		return err
	case sort == sortReservation:
		reservation, err := decodeReservation(i)
		page.Reservations = append(page.Reservations, storedReservation(i, reservation))
		return err
	case sort == sortSlot:
		slot, err := decodeSlot(i)
		page.Slots = append(page.Slots, slot)
		return err
	case sort == sortStock:
		stock, err := decodeStock(i)
		page.Stock = append(page.Stock, stock)
		return err
	case sort == sortPolicy:
		policy, err := decodePolicy(i)
		page.Policies = append(page.Policies, policy)
		return err
	case sort == sortQuota:
		owner := strings.TrimPrefix(stringOf(i, AttributePartitionKey), prefixOwner)
		quota, err := decodeQuota(ledger.OwnerID(owner), i)
		page.Quotas = append(page.Quotas, quota)
		return err
	case sort == sortReview:
		review, err := decodeReview(i)
		page.Reviews = append(page.Reviews, review)
		return err
	case strings.HasPrefix(sort, sortEventPrefix):
		event, err := decodeEvent(i)
		if err == nil && !event.OfOne() {
			return errors.New("the event is not of one thing")
		}
		if stringOf(i, AttributeArchivedIn) != "" {
			page.ArchivedEvents = append(page.ArchivedEvents, event)
		} else {
			page.Events = append(page.Events, event)
		}
		if stringOf(i, AttributeUnpublishedShard) != "" && stringOf(i, attributeQuarantinedReason) == "" {
			page.Unpublished = append(page.Unpublished, ledger.UnpublishedEvent{
				Item: ledger.EventItem{PartitionKey: stringOf(i, AttributePartitionKey), SortKey: sort}, ID: event.ID, OccurredAt: event.OccurredAt,
			})
		}
		return err
	}
	return nil
}

// addMortal notes an item that is in use and has a time to live. Records of idempotency and of
// signals are made to end, as is whatever lies in the archive.
func addMortal(page *ledger.Records, i item) {
	at := numberOf(i, AttributeTimeToLive)
	partition, sort := stringOf(i, AttributePartitionKey), stringOf(i, AttributeSortKey)
	if at == 0 || sort == sortIdempotency || sort == sortSignal || stringOf(i, AttributeArchivedIn) != "" {
		return
	}
	mortal := ledger.MortalItem{Item: ledger.EventItem{PartitionKey: partition, SortKey: sort}, At: time.Unix(at, 0).UTC()}
	switch sort {
	case sortHold:
		mortal.Hold = ledger.HoldID(strings.TrimPrefix(partition, prefixHold))
	case sortReservation:
		mortal.Reservation = ledger.ReservationID(strings.TrimPrefix(partition, prefixReservation))
	case sortSlot:
		mortal.Slot = ledger.SlotID(strings.TrimPrefix(partition, prefixSlot))
	case sortStock:
		mortal.Slot, mortal.Shard = ledger.SlotID(stringOf(i, "slot_id")), ledger.Shard(numberOf(i, "shard"))
	}
	page.Mortal = append(page.Mortal, mortal)
}

// storedHold says in which lists of the due index the hold is.
func storedHold(i item, hold ledger.Hold) ledger.StoredHold {
	shard := ledger.DueShard(hold.ID)
	dueAt, waits := hold.DueAt()
	if !waits {
		dueAt = time.Time{}
	}
	from, archivable := hold.ArchiveFrom(hold.EndedAt)
	listed := isArchivable(i, dueShardKey(kindArchiveHold, shard), from, archivable)
	return ledger.StoredHold{
		Hold: hold, Archivable: listed,
		Due: !listed && (isDue(i, dueShardKey(kindHold, shard), dueAt) || isParked(i, hold.ID, dueAt)),
	}
}

// storedReservation says in which lists of the due index the reservation is.
func storedReservation(i item, r ledger.Reservation) ledger.StoredReservation {
	shard := ledger.ReservationDueShard(r.ID)
	from, archivable := r.ArchiveFrom()
	listed := isArchivable(i, dueShardKey(kindArchiveReservation, shard), from, archivable)
	return ledger.StoredReservation{
		Reservation: r, Archivable: listed,
		Due: !listed && isDue(i, dueShardKey(kindReservation, shard), r.LookAt),
	}
}

// isArchivable reports whether the item is in the archive's list. An entry from before its
// retention begins is none: the archive would take it too early. For an item that is not
// to be there, each entry counts that the archive finds.
func isArchivable(i item, shard string, from time.Time, archivable bool) bool {
	listed := stringOf(i, AttributeDueShard) == shard
	return listed && (!archivable || numberOf(i, AttributeDueAtMs) >= milliseconds(from))
}

// isDue reports whether the item is in the due index. An entry in another shard, or at
// another time than dueAt, leads nobody to the item when it is due, so it does not count.
// An item that is not to be there, with a zero dueAt, counts with any entry.
func isDue(i item, shard string, dueAt time.Time) bool {
	if dueAt.IsZero() {
		return stringOf(i, AttributeDueShard) != ""
	}
	return stringOf(i, AttributeDueShard) == shard && numberOf(i, AttributeDueAtMs) == milliseconds(dueAt)
}
