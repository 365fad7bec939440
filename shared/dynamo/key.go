package dynamo

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

// The parts of the table's keys. A separator never occurs in an id (see
// ledger.ValidName), so no two things share a key.
const (
	separator         = "#"
	prefixHold        = "HOLD" + separator
	prefixReservation = "RES" + separator
	prefixSlot        = "SLOT" + separator
	prefixStock       = "STOCK" + separator
	prefixIdempotency = "IDEM" + separator
	prefixUniqueness  = "UNIQ" + separator
	prefixArchive     = "ARCHIVE" + separator
	prefixPolicy      = "POLICY" + separator
	prefixOwner       = "OWNER" + separator
	prefixSignal      = "SIGNAL" + separator
	prefixReview      = "REVIEW" + separator
	sortHold          = "HOLD"
	sortReservation   = "RES"
	sortSlot          = "SLOT"
	sortStock         = "STOCK"
	sortIdempotency   = "IDEM"
	sortUniqueness    = "UNIQ"
	sortArchivePlan   = "PLAN"
	sortPolicy        = "POLICY"
	sortQuota         = "QUOTA"
	sortSignal        = "SIGNAL"
	sortReview        = "REVIEW"
	sortEventPrefix   = "EVENT" + separator
	// Holds and reservations share the owner index and the due index. The kind in front
	// keeps their lists apart.
	kindHold               = "hold" + separator
	kindReservation        = "reservation" + separator
	kindArchiveHold        = "archive-hold" + separator
	kindArchiveReservation = "archive-reservation" + separator
	// kindParked keeps the holds that could not be ended apart from those that are due, so
	// that they never fill the head of a page.
	kindParked = "parked" + separator
	// noStart stands in the resource index for a slot without a start. It sorts before
	// every digit.
	noStart = "-"
	// afterAllNames sorts after every character that an id may have.
	afterAllNames = "~"
	// orderTimeLayout writes every time in the same number of characters, so that text
	// order is time order. time.RFC3339Nano would drop trailing zeros and break it.
	orderTimeLayout = "2006-01-02T15:04:05.000Z"
)

// itemKey is the key of an item, embedded in each record.
type itemKey struct {
	PartitionKey string `dynamodbav:"pk"`
	SortKey      string `dynamodbav:"sk"`
}

func (k itemKey) attributes() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		AttributePartitionKey: &types.AttributeValueMemberS{Value: k.PartitionKey},
		AttributeSortKey:      &types.AttributeValueMemberS{Value: k.SortKey},
	}
}

func holdKey(id ledger.HoldID) itemKey { return itemKey{prefixHold + string(id), sortHold} }

func reservationKey(id ledger.ReservationID) itemKey {
	return itemKey{prefixReservation + string(id), sortReservation}
}

func slotKey(id ledger.SlotID) itemKey { return itemKey{prefixSlot + string(id), sortSlot} }

func stockKey(id ledger.SlotID, shard ledger.Shard) itemKey {
	return itemKey{prefixStock + string(id) + separator + shard.String(), sortStock}
}

func idempotencyKey(id ledger.IdempotencyID) itemKey {
	return itemKey{prefixIdempotency + string(id), sortIdempotency}
}

func uniquenessKey(kind ledger.UniquenessKind, value string) itemKey {
	return itemKey{prefixUniqueness + string(kind) + separator + value, sortUniqueness}
}

func policyKey(scope ledger.PolicyScope) itemKey {
	return itemKey{prefixPolicy + string(scope.ResourceType) + separator + string(scope.ResourceID), sortPolicy}
}

func quotaKey(owner ledger.OwnerID) itemKey { return itemKey{prefixOwner + string(owner), sortQuota} }

func reviewKey(id ledger.ReviewID) itemKey { return itemKey{prefixReview + string(id), sortReview} }

// signalKey names the counter of one window, so that every window begins at zero.
func signalKey(w ledger.SignalWrite) itemKey {
	return itemKey{
		fmt.Sprintf("%s%s%s%s%s%d", prefixSignal, w.Signal.Kind, separator, w.Signal.Hash, separator, w.Window.Unix()), sortSignal,
	}
}

// eventKey is beside the thing that the event is about. Versions are padded so that
// text order is their order.
func eventKey(e ledger.Event) itemKey {
	partition := ""
	switch {
	case e.Hold != nil:
		partition = holdKey(e.Hold.ID).PartitionKey
	case e.Reservation != nil:
		partition = reservationKey(e.Reservation.ID).PartitionKey
	case e.Slot != nil:
		partition = slotKey(e.Slot.ID).PartitionKey
	case e.Policy != nil:
		partition = policyKey(e.Policy.Scope).PartitionKey
	case e.Review != nil:
		partition = reviewKey(e.Review.ID).PartitionKey
	}
	return itemKey{partition, fmt.Sprintf("%s%010d", sortEventPrefix, e.Version)}
}

func dueShardKey(kind string, shard int) string { return fmt.Sprintf("%s%02d", kind, shard) }

func unpublishedShardKey(shard int) string { return fmt.Sprintf("%02d", shard) }

func ownerOrder(kind string, createdAt time.Time, id string) string {
	return kind + createdAt.UTC().Format(orderTimeLayout) + separator + id
}

func resourceKey(t ledger.ResourceType, id ledger.ResourceID) string {
	return string(t) + separator + string(id)
}

func resourceOrder(startsAt time.Time, id ledger.SlotID) string {
	start := noStart
	if !startsAt.IsZero() {
		start = startsAt.UTC().Format(orderTimeLayout)
	}
	return start + separator + string(id)
}

// lastPart is what stands after the last separator: the id at the end of an order key.
func lastPart(order string) string {
	return order[strings.LastIndex(order, separator)+1:]
}

// milliseconds writes a time as a number; the zero time is zero.
func milliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMilliseconds(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
