package ledger

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

const (
	// ForgetKeyBytesMin is the least length of the key under which owners are forgotten: with
	// less of it who has the records could try all keys, and then all names.
	ForgetKeyBytesMin = 32
	// forgottenPrefix begins the name of every owner who was forgotten.
	forgottenPrefix = "forgotten_"
	// forgottenBytes of the hash are kept: enough that no two owners ever share a name.
	forgottenBytes = 16
)

// ForgottenOwner is the name that stands for an owner who was forgotten. It follows from the
// owner and a key, so that all that one person had stays together and adds up, and that a run
// that was stopped goes on with the same name; and without the key nobody can tell from it who
// that was, nor try names. It returns CodeInvalid for a key of less than ForgetKeyBytesMin, and
// for a name that stands for a forgotten owner already.
func ForgottenOwner(key []byte, owner OwnerID) (OwnerID, error) {
	if len(key) < ForgetKeyBytesMin {
		return "", errorf(CodeInvalid, "the key has %d bytes, and needs %d", len(key), ForgetKeyBytesMin)
	}
	if owner == "" || strings.HasPrefix(string(owner), forgottenPrefix) {
		return "", errorf(CodeInvalid, "that is no owner who could be forgotten")
	}
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprint(mac, string(owner)) // a hash takes every write
	return OwnerID(forgottenPrefix + hex.EncodeToString(mac.Sum(nil)[:forgottenBytes])), nil
}

// KeepsFromForgetting says why the owner of h can't be forgotten yet, or "": while a hold is
// HELD its owner must still be told of it, and may cancel it.
func (h Hold) KeepsFromForgetting() string {
	if h.Status == StatusHeld {
		return fmt.Sprintf("hold %s is HELD", h.ID)
	}
	return ""
}

// KeepsFromForgetting says why the owner of r can't be forgotten yet, or "": while money may
// still come or is owed, somebody must know whose it is.
func (r Reservation) KeepsFromForgetting() string {
	if !r.AtRest() {
		return fmt.Sprintf("reservation %s is %s and not at rest", r.ID, r.Status)
	}
	return ""
}

// CountsOf is what a hold is counted as now, of its owner.
func CountsOf(h Hold) map[QuotaKey]Units { return countsOf(h) }
