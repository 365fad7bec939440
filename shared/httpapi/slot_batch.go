package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
)

const (
	// slotBatchRoute is part of the fingerprint of each row: it never changes.
	slotBatchRoute = "/v1/slots/batch"
	// slotBatchRowSchema is the name of a row in the document.
	slotBatchRowSchema = "SlotBatchRow"
	oneOfPutAndPatch   = "must have one of put and patch"
	slotNamedTwice     = "must be another slot than in the rows before; send it in another batch"
)

// PutSlots carries out the rows of many slots, each on its own.
func (a *API) PutSlots(_ http.ResponseWriter, r *http.Request, params PutSlotsParams) {
	x := exchangeOf(r)
	var body SlotBatch
	if err := decode(x.body, &body); err != nil {
		x.fail(err)
		return
	}
	if err := checkSlotRows(body.Slots); err != nil {
		x.fail(err)
		return
	}
	results := make([]SlotBatchResult, len(body.Slots))
	var rows []commands.SlotRow
	var positions []int // of rows in the body
	for i, each := range body.Slots {
		row, err := slotRowOf(each)
		if err != nil {
			results[i] = x.slotResult(commands.SlotOutcome{ID: ledger.SlotID(each.SlotID), Did: commands.SlotRefused, Err: under("/slots/"+strconv.Itoa(i), err)})
			continue
		}
		rows, positions = append(rows, row), append(positions, i)
	}
	if len(rows) > 0 {
		// Each patch has a fingerprint of its own, and a put is repeatable by nature.
		outcomes, err := a.commands.PutSlots(r.Context(), commands.Request{
			Actor: x.actor("catalog"), RequestID: x.caller.RequestID, Owner: x.caller.Principal.Subject,
			Key: ledger.IdempotencyKey(params.IdempotencyKey),
		}, rows)
		if err != nil {
			x.fail(err)
			return
		}
		for i, outcome := range outcomes {
			results[positions[i]] = x.slotResult(outcome)
		}
	}
	x.answerJSON(http.StatusOK, SlotBatchResults{Results: results})
}

// checkSlotRows refuses a body that is as described and still no batch.
func checkSlotRows(rows []SlotBatchRow) error {
	r := &refusal{code: ledger.CodeInvalid, detail: "the request is not as described; see errors"}
	seen := make(map[Name]bool, len(rows))
	for i, row := range rows {
		at := "/slots/" + strconv.Itoa(i)
		if (row.Put == nil) == (row.Patch == nil) {
			r.add("body", at, oneOfPutAndPatch)
		}
		if seen[row.SlotID] {
			r.add("body", at+"/slot_id", slotNamedTwice)
		}
		seen[row.SlotID] = true
	}
	if len(r.errors) > 0 {
		return r
	}
	return nil
}

// slotRowOf reads one row. What is wrong with it is named by its place in the row.
func slotRowOf(body SlotBatchRow) (commands.SlotRow, error) {
	row := commands.SlotRow{ID: ledger.SlotID(body.SlotID)}
	if body.Put != nil {
		definition, err := definitionOf(*body.Put)
		if err == nil {
			err = checkCurrency(body.Put.Currency)
		}
		row.Put = &definition
		return row, under("/put", err)
	}
	patch, err := patchOf(*body.Patch)
	if err == nil && body.Patch.Currency != nil {
		err = checkCurrency(*body.Patch.Currency)
	}
	if err != nil {
		return row, under("/patch", err)
	}
	row.Patch = &patch
	row.Fingerprint, err = fingerprint(meaning{Method: http.MethodPost, Route: slotBatchRoute, ID: body.SlotID, Body: body.Patch})
	return row, err
}

// under puts the place of a part in front of what is wrong in it.
func under(pointer string, err error) error {
	r := (*refusal)(nil)
	if !errors.As(err, &r) {
		return err
	}
	out := *r
	out.errors = slices.Clone(r.errors)
	for i := range out.errors {
		out.errors[i].Name = pointer + out.errors[i].Name
	}
	return &out
}

// slotResult tells what came of one row. A fault of ours is told as one of the request too:
// it is counted and logged as if it were the only row.
func (x *exchange) slotResult(o commands.SlotOutcome) SlotBatchResult {
	result := SlotBatchResult{SlotID: string(o.ID), Result: SlotBatchResultResult(o.Did)}
	if o.Err == nil {
		return result
	}
	p := problemOf(o.Err, x.caller.RequestID)
	if p.Status >= http.StatusInternalServerError {
		if x.code != ledger.Code(p.Code) { // a store that does not answer fails many rows alike
			x.causes = append(x.causes, fmt.Errorf("slot %s: %w", o.ID, o.Err))
		}
		if x.code != ledger.CodeInternal {
			x.code = ledger.Code(p.Code)
		}
	}
	result.Problem = &p
	return result
}

// SlotRow reads one row of a batch from its JSON, as PutSlots does, for whoever carries out
// rows without the API. An error says what ProblemOf tells.
func (c *Contract) SlotRow(text []byte) (commands.SlotRow, error) {
	if err := checkJSON(text, http.Header{"Content-Type": {mediaJSON}}); err != nil {
		return commands.SlotRow{}, err
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return commands.SlotRow{}, invalid("body", "", "the row is not JSON in UTF-8")
	}
	schema := c.validations[http.MethodPost+" "+slotBatchRoute].route.Spec.Components.Schemas[slotBatchRowSchema].Value
	if err := schema.VisitJSON(value, openapi3.MultiErrors(), openapi3.VisitAsRequest()); err != nil {
		return commands.SlotRow{}, refusalOf(err)
	}
	var body SlotBatchRow
	if err := decode(text, &body); err != nil {
		return commands.SlotRow{}, err
	}
	if (body.Put == nil) == (body.Patch == nil) {
		return commands.SlotRow{}, invalid("body", "", oneOfPutAndPatch)
	}
	return slotRowOf(body)
}

// ProblemOf is what a caller of the API would be told of err.
func ProblemOf(err error) Problem { return problemOf(err, "") }
