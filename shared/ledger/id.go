package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"regexp"
)

// SlotID names a slot. The catalogue chooses it; see [ValidName] for its form.
type SlotID string

// ResourceType says what kind of thing a resource is: "flight", "hotel", "coupon".
type ResourceType string

// ResourceID names what slots belong to: one hall, one hotel, one product.
type ResourceID string

// HoldID names a hold. It is drawn at random before the first write, so a repeated
// write of the same hold can recognise itself.
type HoldID string

// ReservationID names a reservation. It is drawn at random before the first write.
type ReservationID string

// AttemptNumber numbers the payment attempts of one reservation, from 1. Zero stands
// for "none".
type AttemptNumber int

// PaymentID is the payment provider's name of one payment.
type PaymentID string

// ProviderEventID is the payment provider's name of one event that it sent.
type ProviderEventID string

// OwnerID names who a hold belongs to: the subject of the caller's token.
type OwnerID string

// EventID names a ledger event for ever. Consumers drop duplicates by it.
type EventID string

// RequestID names one request to the API, for correlation in logs and events.
type RequestID string

// PaymentReference is a shop's own name of the payment that a confirm rests on. One
// reference confirms one hold.
type PaymentReference string

// Shard numbers one part of a slot's stock, from 0.
type Shard int

// Units counts what is sold: seats, nights, coupons, points.
type Units int64

// Version counts the changes of one item, from 1. Zero stands for "does not exist".
type Version int64

const (
	// DueShards is the number of partitions of the due index. An index keyed by time
	// alone would be one hot partition, and its back-pressure would slow the table.
	DueShards = 16
	// UnpublishedShards is the number of partitions of the unpublished index.
	UnpublishedShards = 16
	// NameCharactersMax bounds slot, resource and other chosen names.
	NameCharactersMax = 128
	// PaymentReferenceCharactersMax bounds a payment reference.
	PaymentReferenceCharactersMax = 128
)

var (
	namePattern          = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)
	holdIDPattern        = regexp.MustCompile(`^hold_[0-9a-z]{26}$`)
	reservationIDPattern = regexp.MustCompile(`^rsv_[0-9a-z]{26}$`)
	reviewIDPattern      = regexp.MustCompile(`^review_[0-9a-z]{26}$`)
	eventIDPattern       = regexp.MustCompile(`^event_[0-9a-z]{26}$`)
	batchIDPattern       = regexp.MustCompile(`^batch_[0-9a-z]{26}$`)
)

// ValidName reports whether s may name a slot, a resource or a resource type:
// 1 to 128 characters of A-Z, a-z, 0-9, dot, underscore, colon and hyphen.
func ValidName(s string) bool { return namePattern.MatchString(s) }

// ValidHoldID reports whether s has the form of a hold id. A text of another form
// can be answered as unknown without a read.
func ValidHoldID(s string) bool { return holdIDPattern.MatchString(s) }

// ValidReservationID reports whether s has the form of a reservation id.
func ValidReservationID(s string) bool { return reservationIDPattern.MatchString(s) }

// ValidReviewID reports whether s has the form of a case's id.
func ValidReviewID(s string) bool { return reviewIDPattern.MatchString(s) }

// ValidEventID reports whether s has the form of an event id.
func ValidEventID(s string) bool { return eventIDPattern.MatchString(s) }

// ValidBatchID reports whether s has the form of a batch id.
func ValidBatchID(s string) bool { return batchIDPattern.MatchString(s) }

// DueShard is the partition of the due index that a hold waits in.
func DueShard(id HoldID) int { return int(hash(string(id)) % DueShards) }

// ReservationDueShard is the partition of the due index that a reservation waits in.
func ReservationDueShard(id ReservationID) int { return int(hash(string(id)) % DueShards) }

// UnpublishedShard is the partition of the unpublished index that an event waits in.
func UnpublishedShard(id EventID) int { return int(hash(string(id)) % UnpublishedShards) }

// hash spreads ids evenly. It must never change: index keys are stored from it.
func hash(s string) uint64 {
	sum := sha256.Sum256([]byte(s))
	return binary.BigEndian.Uint64(sum[:8])
}

// NewHoldID gives 128 random bits the form of a hold id.
func NewHoldID(random [16]byte) HoldID { return HoldID("hold_" + encodeID(random)) }

// NewReservationID gives 128 random bits the form of a reservation id.
func NewReservationID(random [16]byte) ReservationID {
	return ReservationID("rsv_" + encodeID(random))
}

// NewBatchID gives 128 random bits the form of a batch id.
func NewBatchID(random [16]byte) BatchID { return BatchID("batch_" + encodeID(random)) }

// NewEventID gives 128 random bits the form of an event id.
func NewEventID(random [16]byte) EventID { return EventID("event_" + encodeID(random)) }

// NewRequestID gives 128 random bits the form of a request id, for a request that
// came without one.
func NewRequestID(random [16]byte) RequestID { return RequestID("request_" + encodeID(random)) }

// idAlphabet has no i, l, o and u, so that an id read aloud stays an id.
const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// encodeID writes 128 bits as 26 characters of five bits each, the last two bits padded.
func encodeID(random [16]byte) string {
	const characters = 26
	out := make([]byte, characters)
	for i := range out {
		var value byte
		for bit := i * 5; bit < i*5+5; bit++ {
			value <<= 1
			if bit < len(random)*8 {
				value |= random[bit/8] >> (7 - bit%8) & 1
			}
		}
		out[i] = idAlphabet[value]
	}
	return string(out)
}

// derivedBits are 128 bits that follow from parts and look random. What is made twice
// from the same parts, by two workers or after a crash, is the same thing.
func derivedBits(parts ...string) [16]byte {
	return [16]byte(hashParts(parts)[:16])
}

// hashParts hashes parts, each with its length, so that no two lists are spelled alike.
func hashParts(parts []string) []byte {
	h := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part) // a hash takes every write
	}
	return h.Sum(nil)
}

func (s Shard) String() string { return fmt.Sprintf("%d", int(s)) }
