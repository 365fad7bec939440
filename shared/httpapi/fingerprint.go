package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"holdfast/shared/ledger"
)

// keepEmpty writes an optional member that is there and empty: an empty text or object is
// said, and is not the same as nothing.
var keepEmpty = jsonv1.OmitEmptyWithLegacySemantics(true)

// meaning is what makes two requests the same one. Body is the decoded body, and where
// one thing can be said in several ways, the normal one of them.
type meaning struct {
	Method string `json:"method"`
	Route  string `json:"route"`
	ID     string `json:"id,omitempty"` // the id in the path
	Body   any    `json:"body"`
}

// fingerprint hashes the canonical JSON (RFC 8785) of what a request means, so that the
// order of members, white space and escapes make no difference (case E4).
func fingerprint(m meaning) (ledger.Fingerprint, error) {
	text, err := json.Marshal(m, keepEmpty)
	if err != nil {
		return "", fmt.Errorf("fingerprint of the request: %w", err)
	}
	canonical := jsontext.Value(text)
	if err := canonical.Canonicalize(); err != nil {
		return "", fmt.Errorf("fingerprint of the request: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return ledger.Fingerprint(hex.EncodeToString(sum[:])), nil
}
