package ledger

import (
	"encoding/hex"
	"time"
)

// Limits of idempotency keys.
const (
	// IdempotencyKeyCharactersMax bounds a key.
	IdempotencyKeyCharactersMax = 255
	// IdempotencyRetainFor is how long a key is remembered: longer than any client
	// retries. Afterwards the record counts as absent, deleted or not.
	IdempotencyRetainFor = 48 * time.Hour
)

// IdempotencyKey is what a client sends to make its request repeatable.
type IdempotencyKey string

// Valid reports whether k is 1 to 255 printable ASCII characters without space or
// comma. A comma is refused because a gateway joins repeated headers with one, and two
// keys must not pass as a third (case H4).
func (k IdempotencyKey) Valid() bool {
	if k == "" || len(k) > IdempotencyKeyCharactersMax {
		return false
	}
	for _, r := range k {
		if r <= ' ' || r > '~' || r == ',' {
			return false
		}
	}
	return true
}

// IdempotencyID is the storage name of (owner, command, key). It is a hash, so a key
// that holds something personal by mistake is not stored.
type IdempotencyID string

// NewIdempotencyID hashes the three parts.
func NewIdempotencyID(owner OwnerID, command Command, key IdempotencyKey) IdempotencyID {
	return IdempotencyID(hex.EncodeToString(hashParts([]string{string(owner), string(command), string(key)})))
}

// Fingerprint is a hash of what a request means. Two requests under one key are the
// same request if their fingerprints are equal.
type Fingerprint string

// Response is the answer to a request, kept to be given again. It has no secrets.
type Response struct {
	Status int // HTTP status
	Body   []byte
}

// IdempotencyRecord says that the request of this id was carried out, and how it was
// answered. A refusal is never stored.
//
// A request that asks the payment provider is carried out in two Changes. The first one
// writes the record with a Claim: until ClaimUntil another caller with the same request
// is told to wait, and afterwards goes on where the first one was lost.
type IdempotencyRecord struct {
	ID          IdempotencyID
	Fingerprint Fingerprint
	Response    Response
	// Claim names who carries the request out; "" once it is completed.
	Claim      ClaimID
	ClaimUntil time.Time
	// Reservation is what a claimed request has begun.
	Reservation ReservationID
	CompletedAt time.Time
	RetainUntil time.Time
	// Takes is the claim that this write replaces; "" for a record that must not be there.
	// It is a condition of the write and not stored.
	Takes ClaimID
}

// ClaimID names one caller that carries a request out.
type ClaimID string

// Live reports whether the record still counts at now. Time-to-live deletion may be
// days late, so code decides.
func (r IdempotencyRecord) Live(now time.Time) bool { return now.Before(r.RetainUntil) }

// Replay gives the stored answer to the same request. It returns CodeKeyReused for
// another request, and CodeKeyInProgress while the request is being carried out.
func (r IdempotencyRecord) Replay(f Fingerprint, now time.Time) (Response, error) {
	switch {
	case r.Fingerprint != f:
		return Response{}, errorf(CodeKeyReused, "this Idempotency-Key was used for another request; use a new key for a new request")
	case r.Claim != "":
		return Response{}, &Error{
			Code: CodeKeyInProgress, Message: "the same request is being carried out; ask again with the same key",
			RetryAfter: max(r.ClaimUntil.Sub(now), time.Second),
		}
	}
	return r.Response, nil
}

// Abandoned reports whether the record is of a request whose caller was lost: the same
// request may go on with it.
func (r IdempotencyRecord) Abandoned(f Fingerprint, now time.Time) bool {
	return r.Claim != "" && r.Fingerprint == f && !now.Before(r.ClaimUntil)
}
