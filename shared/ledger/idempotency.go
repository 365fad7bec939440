package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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

// NewIdempotencyID hashes the three parts, each with its length, so that no two
// triples are spelled alike.
func NewIdempotencyID(owner OwnerID, command Command, key IdempotencyKey) IdempotencyID {
	h := sha256.New()
	for _, part := range []string{string(owner), string(command), string(key)} {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part) // a hash takes every write
	}
	return IdempotencyID(hex.EncodeToString(h.Sum(nil)))
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
type IdempotencyRecord struct {
	ID          IdempotencyID
	Fingerprint Fingerprint
	Response    Response
	CompletedAt time.Time
	RetainUntil time.Time
}

// Live reports whether the record still counts at now. Time-to-live deletion may be
// days late, so code decides.
func (r IdempotencyRecord) Live(now time.Time) bool { return now.Before(r.RetainUntil) }

// Replay gives the stored answer to the same request, or a CodeKeyReused error.
func (r IdempotencyRecord) Replay(f Fingerprint) (Response, error) {
	if r.Fingerprint != f {
		return Response{}, errorf(CodeKeyReused, "this Idempotency-Key was used for another request; use a new key for a new request")
	}
	return r.Response, nil
}
