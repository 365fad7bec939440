package commands

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"holdfast/shared/ledger"
)

const (
	// SlotRowsMax bounds the rows of one batch: their slots are read in one call of the
	// store, and all that they write fits into the time of one request.
	SlotRowsMax = 100
	// slotRowStatus is the status of an answer that is kept for a patch of a batch. It is never
	// sent: the row's outcome is read from the body.
	slotRowStatus = 200
)

// SlotRow is one row of a batch. It has one of Put and Patch.
type SlotRow struct {
	ID ledger.SlotID
	// Put makes the slot what it says, whether it exists or not.
	Put *ledger.SlotDefinition
	// Patch changes the named parts of a slot that exists.
	Patch *ledger.SlotPatch
	// Key makes a patch repeatable, as in Request. "" has one made of the request's key and
	// the slot, so that the row is the same one wherever it stands in the batch.
	Key ledger.IdempotencyKey
	// Fingerprint is of what the patch says. Another patch under one key is refused.
	Fingerprint ledger.Fingerprint
}

// SlotDid says what came of a row.
type SlotDid string

// What can come of a row.
const (
	SlotCreated   SlotDid = "created"
	SlotChanged   SlotDid = "changed"
	SlotUnchanged SlotDid = "unchanged" // the slot said so already; nothing was written
	SlotRefused   SlotDid = "refused"   // see the outcome's Err
)

// SlotOutcome is what came of the row of this slot.
type SlotOutcome struct {
	ID  ledger.SlotID
	Did SlotDid
	Err error // nil unless Did is SlotRefused
}

// checkSlotRows refuses rows that no order of carrying them out makes a batch.
func checkSlotRows(r Request, rows []SlotRow) error {
	invalid := func(format string, args ...any) error {
		return &ledger.Error{Code: ledger.CodeInvalid, Message: fmt.Sprintf(format, args...)}
	}
	if len(rows) == 0 || len(rows) > SlotRowsMax {
		return invalid("a batch has 1 to %d rows, and this one has %d", SlotRowsMax, len(rows))
	}
	position := make(map[ledger.SlotID]int, len(rows))
	for i, row := range rows {
		first, twice := position[row.ID]
		switch {
		case twice:
			return invalid("rows %d and %d, counted from 0, are of the same slot; send them in two batches", first, i)
		case (row.Put == nil) == (row.Patch == nil):
			return invalid("row %d, counted from 0, must have one of put and patch", i)
		case row.Patch != nil && row.Key == "" && r.Key == "":
			return invalid("row %d, counted from 0, is a patch, which needs an Idempotency-Key to be repeatable", i)
		}
		position[row.ID] = i
	}
	return nil
}

// definition is what the row makes of a slot that exists.
func (row SlotRow) definition(of foundSlot) (ledger.SlotDefinition, error) {
	if row.Put != nil {
		return *row.Put, nil
	}
	return row.Patch.Apply(of.slot.Definition(sum(of.stock).Capacity))
}

// keyIn is the key of a patch in the batch of r.
func (row SlotRow) keyIn(r Request) ledger.IdempotencyKey {
	if row.Key != "" {
		return row.Key
	}
	// A slot's name has no space, so no other key and slot make the same text.
	hash := sha256.Sum256([]byte(string(row.ID) + " " + string(r.Key)))
	return ledger.IdempotencyKey("batch-" + hex.EncodeToString(hash[:]))
}
