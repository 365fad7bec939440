package httpapi

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/shared/ledger"
)

// The codes that only the HTTP face gives. Like those of package ledger they are never
// renamed.
const (
	codeRouteNotFound        ledger.Code = "route_not_found"
	codeUnauthenticated      ledger.Code = "unauthenticated"
	codeForbidden            ledger.Code = "forbidden"
	codeBodyTooLarge         ledger.Code = "body_too_large"
	codeUnsupportedMediaType ledger.Code = "unsupported_media_type"
	codeKeyMissing           ledger.Code = "idempotency_key_missing"
	codeClockUnreliable      ledger.Code = "clock_unreliable"
	codePolicyNotFound       ledger.Code = "policy_not_found"
	codeRateLimited          ledger.Code = "rate_limited"
)

const (
	// problemType, with the code after it, is the problem's type (RFC 9457, 3.1.1).
	problemType = "urn:holdfast:problem:"
	// problemErrorsMax bounds how many mistakes of one request are told.
	problemErrorsMax = 10
	// problemTextCharactersMax bounds what a mistake repeats of the request: a pointer into
	// a body, or the name of a member, may be as long as the body.
	problemTextCharactersMax = 256
	// retryAfterDefault is what a 503 asks a client to wait.
	retryAfterDefault = time.Second
	// saleRetryAfterMax is how soon a sale must begin for a refused buyer to be told to ask
	// again then. Whoever waits longer is better served by opens_at.
	saleRetryAfterMax = time.Hour
	// internalDetail is all that a caller learns of a fault of ours.
	internalDetail = "something went wrong on our side; tell us the request_id"
)

// answerForm is how a code is told over HTTP.
type answerForm struct {
	status int
	title  string
}

// answerForms is the one table from code to HTTP. A code that is not in it is a fault of
// ours.
var answerForms = map[ledger.Code]answerForm{
	ledger.CodeInvalid:              {http.StatusBadRequest, "The request is not valid"},
	codeKeyMissing:                  {http.StatusBadRequest, "An Idempotency-Key is needed"},
	codeUnauthenticated:             {http.StatusUnauthorized, "A token is needed"},
	codeForbidden:                   {http.StatusForbidden, "The token does not allow this"},
	codeRouteNotFound:               {http.StatusNotFound, "There is no such route"},
	ledger.CodeSlotNotFound:         {http.StatusNotFound, "There is no such slot"},
	ledger.CodeHoldNotFound:         {http.StatusNotFound, "There is no such hold"},
	ledger.CodeReservationNotFound:  {http.StatusNotFound, "There is no such reservation"},
	ledger.CodeReviewNotFound:       {http.StatusNotFound, "There is no such case"},
	codePolicyNotFound:              {http.StatusNotFound, "Nothing is said here"},
	ledger.CodeSlotClosed:           {http.StatusConflict, "The slot is closed"},
	ledger.CodeSlotFixed:            {http.StatusConflict, "This part of a slot is fixed"},
	ledger.CodeCapacityInUse:        {http.StatusConflict, "The capacity is in use"},
	ledger.CodeHoldNotActive:        {http.StatusConflict, "The hold is over"},
	ledger.CodeInsufficientStock:    {http.StatusConflict, "Not enough is left"},
	ledger.CodePriceChanged:         {http.StatusConflict, "The price has changed"},
	ledger.CodeQuantityOverLimit:    {http.StatusConflict, "Too many for one hold"},
	ledger.CodeSaleNotOpen:          {http.StatusConflict, "The sale is not open yet"},
	ledger.CodeSaleOver:             {http.StatusConflict, "The sale is over"},
	ledger.CodeHoldAtMaximum:        {http.StatusConflict, "The hold has its longest life"},
	ledger.CodeSlotOversold:         {http.StatusConflict, "The slot is oversold"},
	ledger.CodeHasReservation:       {http.StatusConflict, "It is done through the reservation"},
	ledger.CodeReferenceUsed:        {http.StatusConflict, "The payment has confirmed another hold"},
	ledger.CodePaymentInProgress:    {http.StatusConflict, "A payment is under way"},
	ledger.CodeReservationNotActive: {http.StatusConflict, "The reservation has no payment to go on with"},
	ledger.CodeTooLateToCancel:      {http.StatusConflict, "It is too late to cancel"},
	ledger.CodeReturnOverSale:       {http.StatusConflict, "More is given back than is left"},
	ledger.CodeHoldArchived:         {http.StatusConflict, "The hold lies in the archive"},
	ledger.CodeReservationArchived:  {http.StatusConflict, "The reservation lies in the archive"},
	ledger.CodeAlreadyUsed:          {http.StatusConflict, "What was granted has been used"},
	ledger.CodeReviewClaimed:        {http.StatusConflict, "Somebody else works on the case"},
	ledger.CodeReviewDecided:        {http.StatusConflict, "The case is decided"},
	ledger.CodeDecisionNotPossible:  {http.StatusConflict, "It can't be decided so now"},
	ledger.CodeKeyInProgress:        {http.StatusConflict, "The request is being carried out"},
	codeBodyTooLarge:                {http.StatusRequestEntityTooLarge, "The body is too large"},
	codeUnsupportedMediaType:        {http.StatusUnsupportedMediaType, "The body must be JSON"},
	ledger.CodeKeyReused:            {http.StatusUnprocessableEntity, "The Idempotency-Key was used before"},
	ledger.CodeLimitReached:         {http.StatusTooManyRequests, "The limit of one customer is reached"},
	ledger.CodeCoolingDown:          {http.StatusTooManyRequests, "Too many holds expired"},
	codeRateLimited:                 {http.StatusTooManyRequests, "Too many requests"},
	ledger.CodeInternal:             {http.StatusInternalServerError, "A fault of ours"},
	ledger.CodeBusy:                 {http.StatusServiceUnavailable, "Too busy"},
	ledger.CodeUnavailable:          {http.StatusServiceUnavailable, "Not available now"},
	ledger.CodeOutcomeUnknown:       {http.StatusServiceUnavailable, "The outcome is not known"},
	codeClockUnreliable:             {http.StatusServiceUnavailable, "A clock is wrong"},
	ledger.CodePaymentUnavailable:   {http.StatusServiceUnavailable, "The payment provider does not answer"},
}

// refusal is an error of the HTTP face itself, before any command.
type refusal struct {
	code   ledger.Code
	detail string
	errors []ProblemError
}

func (r *refusal) Error() string { return string(r.code) + ": " + r.detail }

// add tells of one more mistake, once, and of none after problemErrorsMax.
func (r *refusal) add(in, name, detail string) {
	e := ProblemError{In: in, Name: name, Detail: detail}
	if len(r.errors) < problemErrorsMax && !slices.Contains(r.errors, e) {
		r.errors = append(r.errors, e)
	}
}

// invalid refuses one parameter or one place in the body.
func invalid(in, name, detail string) *refusal {
	return &refusal{code: ledger.CodeInvalid, detail: detail, errors: []ProblemError{{In: in, Name: name, Detail: detail}}}
}

// problemOf turns any error into what the caller is told. An error without a code tells
// nothing but that there was one.
func problemOf(err error, id ledger.RequestID) Problem {
	var r *refusal
	var e *ledger.Error
	var p Problem
	code, detail := ledger.CodeInternal, internalDetail
	switch {
	case errors.As(err, &r):
		code, detail = r.code, r.detail
		for _, mistake := range r.errors[:min(len(r.errors), problemErrorsMax)] {
			mistake.Name, mistake.Detail = shortened(mistake.Name), shortened(mistake.Detail)
			p.Errors = append(p.Errors, mistake)
		}
	case errors.As(err, &e):
		if _, known := answerForms[e.Code]; known && e.Code != ledger.CodeInternal {
			code, detail = e.Code, e.Message
			p.Slots, p.Prices, p.Limits = slotsOf(e), pricesOf(e), limitsOf(e)
			p.OpensAt = timeOrNil(e.OpensAt)
		}
	}
	// Whatever the reason, a foreign one and an unknown one have one text (P11).
	if code == ledger.CodeHoldNotFound {
		detail = ledger.HoldNotFound().Message
	}
	if code == ledger.CodeReservationNotFound {
		detail = ledger.ReservationNotFound().Message
	}
	form := answerForms[code]
	p.Type, p.Title, p.Status = problemType+string(code), form.title, int32(form.status)
	p.Code, p.Detail, p.RequestID = ProblemCode(code), detail, string(id)
	return p
}

// retryAfter is when to ask again, in whole seconds and rounded up, or "" for an answer
// that asking again does not change.
func retryAfter(p Problem, err error) string {
	wait := time.Duration(0)
	if e := (*ledger.Error)(nil); errors.As(err, &e) {
		wait = e.RetryAfter
		if e.Code == ledger.CodeSaleNotOpen && wait > saleRetryAfterMax {
			wait = 0
		}
	}
	if wait <= 0 && p.Status == http.StatusServiceUnavailable {
		wait = retryAfterDefault
	}
	if wait <= 0 {
		return ""
	}
	return strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10)
}

// shortened cuts text after problemTextCharactersMax characters, and shows that it did.
func shortened(text string) string {
	characters := 0
	for i := range text {
		if characters == problemTextCharactersMax {
			return text[:i] + "…"
		}
		characters++
	}
	return text
}

func slotsOf(e *ledger.Error) []ProblemSlot {
	var out []ProblemSlot
	for _, s := range e.Shortages {
		requested := Quantity(s.Requested)
		out = append(out, ProblemSlot{SlotID: string(s.Slot), Requested: &requested})
	}
	for _, id := range e.Slots {
		out = append(out, ProblemSlot{SlotID: string(id)})
	}
	return out
}

func pricesOf(e *ledger.Error) []ProblemPrice {
	var out []ProblemPrice
	for _, p := range e.Prices {
		out = append(out, ProblemPrice{SlotID: string(p.Slot), UnitAmount: p.Price.AmountMinor, Currency: string(p.Price.Currency)})
	}
	return out
}

// limitsOf says in the words of the contract which limits are reached.
func limitsOf(e *ledger.Error) []ProblemLimit {
	var out []ProblemLimit
	for _, l := range e.Limits {
		limit := ProblemLimit{Limit: ProblemLimitLimitHolds, Max: int64(l.Max)}
		if slot, ofSlot := l.Key.Slot(); ofSlot {
			limit.Limit, limit.SlotID = ProblemLimitLimitSlot, textOrNil[string](slot)
		}
		if resourceType, id, ofResource := l.Key.Resource(); ofResource {
			limit.Limit = ProblemLimitLimitResource
			limit.ResourceType, limit.ResourceID = textOrNil[string](resourceType), textOrNil[string](id)
		}
		out = append(out, limit)
	}
	return out
}

// jsonPointer writes a path as RFC 6901 does.
func jsonPointer(path []string) string {
	var b strings.Builder
	for _, name := range path {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	return b.String()
}
