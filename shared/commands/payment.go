package commands

import (
	"context"
	"errors"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/system"
)

const (
	// ProviderFor bounds what a buyer's request waits for the payment provider. Case E9 has
	// one that takes 8 seconds. Whatever is not answered by then is the saga's to find out.
	// It fits into topology.ProviderBudget, which a test of package httpapi compares it with.
	ProviderFor = 10 * time.Second
	// ClaimFor is how long a request that waits for the provider keeps others with the same
	// key waiting: longer than any function that carries one out lives.
	ClaimFor = 30 * time.Second
	// providerRetryAfter is when a caller asks again whose provider did not answer: a
	// hiccup is over by then, and an outage is told again soon.
	providerRetryAfter = 2 * time.Second
)

// Payments carries out the commands that ask the payment provider on the buyer's time. It
// is safe for concurrent use.
type Payments struct {
	commands *Commands
	provider payment.Provider
}

// NewPayments returns Payments on these commands and this provider.
func NewPayments(c *Commands, provider payment.Provider) *Payments {
	return &Payments{commands: c, provider: provider}
}

// Start opens a payment attempt for the owner's hold: the first one begins a reservation.
// What is decided is written before the provider is asked, so whatever happens to this
// call, the saga ends what it has begun. The secret is empty when the provider did not
// answer in time; the buyer asks for it with Session. A replay fetches the secret anew.
//
// Errors: CodeHoldNotFound, CodeHoldNotActive, CodePaymentInProgress,
// CodeReservationNotActive, CodeKeyReused, CodeKeyInProgress, and those of the store.
func (p *Payments) Start(ctx context.Context, r Request, hold ledger.HoldID, render RenderReservation) (Answer, payment.Secret, error) {
	start := &start{Payments: p, request: r, hold: hold, render: render, claim: ledger.ClaimID(ledger.NewEventID(p.commands.random.Bits128()))}
	answer, err := p.commands.carryOut(ctx, start.job())
	switch {
	case ledger.CodeOf(err) == ledger.CodeKeyInProgress:
		if start.begun, err = start.takeOver(ctx, err); err != nil {
			return Answer{}, payment.Secret{}, err
		}
	case err != nil:
		return Answer{}, payment.Secret{}, err
	case answer.Replayed:
		secret, unasked := p.freshSecret(ctx, answer.Reservation)
		answer.Unasked = unasked
		return answer, secret, nil
	}
	answer, secret, err := start.finish(ctx)
	return answer, secret, begunAlready(err)
}

// begunAlready is the error of a call that has written its first Change. The attempt that
// it has begun stands, so no error may say that nothing was written.
func begunAlready(err error) error {
	switch ledger.CodeOf(err) {
	case ledger.CodeUnavailable, ledger.CodeBusy:
		return &ledger.Error{
			Code: ledger.CodeOutcomeUnknown, Message: "the payment has begun, and could not be told yet; ask again with the same key", Cause: err,
		}
	default:
		return err
	}
}

// start is one call of Start.
type start struct {
	*Payments
	request Request
	hold    ledger.HoldID
	render  RenderReservation
	claim   ledger.ClaimID
	begun   ledger.ReservationID
	// looked says that the open attempt has been looked at a second time.
	looked bool
}

func (s *start) job() job {
	return job{command: ledger.CommandStartPayment, request: s.request, claim: s.claim, decide: s.begin}
}

// begin decides how the attempt begins.
func (s *start) begin(ctx context.Context, origin ledger.Origin, now time.Time) (decision, error) {
	hold, err := s.commands.store.Hold(ctx, s.hold)
	if err != nil {
		return decision{}, err
	}
	if hold.Owner != s.request.Owner {
		return decision{}, ledger.HoldNotFound()
	}
	if hold.Reservation == "" {
		s.begun = ledger.NewReservationID(s.commands.random.Bits128())
		change, err := ledger.StartReservation(s.begun, hold, origin, now)
		return decision{change: change, begins: s.begun}, err
	}
	s.begun = hold.Reservation
	reservation, err := s.commands.store.Reservation(ctx, hold.Reservation)
	if err != nil {
		return decision{}, err
	}
	voided, err := s.voidCurrent(ctx, reservation, hold, now)
	if err != nil {
		return decision{}, err
	}
	change, err := ledger.StartNextAttempt(reservation, hold, voided, origin, now)
	return decision{change: change, begins: s.begun}, err
}

// voidCurrent makes sure, before another attempt is opened, that the open one can't
// succeed any more. It does so only where the policy keeps a hold after a decline and
// another attempt may follow, and not to a payment that has succeeded.
func (s *start) voidCurrent(ctx context.Context, r ledger.Reservation, h ledger.Hold, now time.Time) (ledger.AttemptNumber, error) {
	current, begun := r.Current()
	retry := r.Status == ledger.ReservationPaymentPending && h.Terms.OnDecline == ledger.OnDeclineKeep && now.Before(h.ExpiresAt)
	if !begun || !retry || h.AttemptOpen != current.Number || current.Payment == "" || len(r.Attempts) >= ledger.AttemptsMax {
		return 0, nil
	}
	if known, err := s.known(ctx, now); known || err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, ProviderFor)
	defer cancel()
	seen, err := s.provider.LookUp(ctx, current.Payment)
	if err == nil && seen.Status != payment.StatusVoided {
		if seen.Status != payment.StatusDeclined && seen.Status != payment.StatusPending {
			return 0, nil
		}
		seen, err = s.provider.Void(ctx, payment.VoidKey(r.ID, current.Number), current.Payment)
	}
	if movedOn(err) && !s.looked {
		s.looked = true
		return 0, errTwoMoments // it has been paid or voided since it was looked at
	}
	if movedOn(err) {
		return 0, nil
	}
	if err != nil {
		return 0, providerUnavailable(err)
	}
	if seen.Status != payment.StatusVoided {
		return 0, nil
	}
	return current.Number, nil
}

// movedOn reports whether the provider answered that the payment is not as it was thought
// to be.
func movedOn(err error) bool {
	var failure *payment.Error
	return errors.As(err, &failure) && failure.Kind == payment.KindConflict
}

// known reports whether the request, or another one with its key, was taken up before.
// Then the open attempt may be the one that it has begun itself, and the buyer is paying
// it: a device that repeats its request must not void it. It is asked after the
// reservation was read, because both were written together.
func (s *start) known(ctx context.Context, now time.Time) (bool, error) {
	if s.request.Key == "" {
		return false, nil
	}
	record, found, err := s.commands.store.IdempotencyRecord(ctx, s.job().idempotencyID())
	return found && record.Live(now), err
}

// takeOver goes on with the same request if its caller was lost, and otherwise gives the
// refusal back.
func (s *start) takeOver(ctx context.Context, refusal error) (ledger.ReservationID, error) {
	now := system.Millisecond(s.commands.clock)
	record, found, err := s.commands.store.IdempotencyRecord(ctx, s.job().idempotencyID())
	if err != nil {
		return "", err
	}
	if !found || !record.Abandoned(s.request.Fingerprint, now) {
		return "", refusal
	}
	taken := record
	taken.Takes, taken.Claim, taken.ClaimUntil = record.Claim, s.claim, now.Add(ClaimFor)
	err = s.commands.store.Commit(ctx, ledger.Change{At: now, Idempotency: &taken})
	var refused *ledger.Refused
	if errors.As(err, &refused) {
		return "", refusal // another caller was faster
	}
	return record.Reservation, err
}

// finish asks the provider for the attempt's payment, and completes the request.
func (s *start) finish(ctx context.Context) (Answer, payment.Secret, error) {
	created, number, unasked := s.create(ctx)
	origin := ledger.Origin{
		Actor: s.request.Actor, Command: ledger.CommandStartPayment, RequestID: s.request.RequestID,
		EventID: ledger.NewEventID(s.commands.random.Bits128()),
	}
	for attempt := range TriesMax {
		if err := s.commands.pause(ctx, attempt); err != nil {
			return Answer{}, payment.Secret{}, unavailable(err)
		}
		now := system.Millisecond(s.commands.clock)
		change, response, err := s.completion(ctx, created, number, origin, now)
		if err != nil {
			return Answer{}, payment.Secret{}, err
		}
		err = s.commands.write(ctx, change)
		var refused *ledger.Refused
		switch {
		case err == nil:
			return Answer{Response: response, Unasked: unasked}, created.Secret, nil
		case !errors.As(err, &refused):
			return Answer{}, payment.Secret{}, err
		}
		if record, found := refused.IdempotencyRecord(); found {
			answer, err := replay(record, s.request.Fingerprint, now)
			return answer, created.Secret, err
		}
		s.commands.counter.DecidedAnew()
	}
	return Answer{}, payment.Secret{}, &ledger.Error{Code: ledger.CodeBusy, Message: "too many others change the same thing; try again"}
}

// create begins the payment of the attempt that is open, within ProviderFor. Without an
// answer the payment is zero and the error says why: the saga asks again, under the same key.
func (s *start) create(ctx context.Context) (payment.Payment, ledger.AttemptNumber, error) {
	reservation, err := s.commands.store.Reservation(ctx, s.begun)
	if err != nil {
		return payment.Payment{}, 0, err
	}
	current, begun := reservation.Current()
	if !begun || current.State != ledger.AttemptOpen || current.Unwanted {
		return payment.Payment{}, 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, ProviderFor)
	defer cancel()
	created, err := s.provider.Create(ctx, payment.NewCreation(reservation.ID, current.Number, reservation.Amount))
	if err != nil {
		return payment.Payment{}, 0, err
	}
	return created, current.Number, nil
}

// completion is the Change that records the payment's id, unless the saga has been faster
// (case D9), and completes the request.
func (s *start) completion(ctx context.Context, created payment.Payment, number ledger.AttemptNumber, origin ledger.Origin, now time.Time) (ledger.Change, ledger.Response, error) {
	reservation, hold, err := s.commands.reservationWithHold(ctx, s.begun, anybody)
	if err != nil {
		return ledger.Change{}, ledger.Response{}, err
	}
	change := ledger.Change{At: now}
	if created.ID != "" {
		if recorded := ledger.PaymentCreated(reservation, number, created.ID, origin, now); !recorded.Empty() {
			change, reservation = recorded, recorded.Reservations[0].Next
		}
	}
	response, err := s.render(reservation, hold, now)
	record := s.job().record(decision{response: response}, now)
	record.Takes, record.Reservation = s.claim, reservation.ID
	change.Idempotency = record
	return change, response, err
}

// Session fetches the secret of the owner's open payment attempt.
//
// Errors: CodeReservationNotFound, CodeReservationNotActive when no attempt is open,
// CodePaymentUnavailable when the provider does not answer, and those of the store.
func (p *Payments) Session(ctx context.Context, owner ledger.OwnerID, id ledger.ReservationID) (ledger.Reservation, ledger.Hold, payment.Secret, error) {
	reservation, hold, err := p.commands.reservationWithHold(ctx, id, onlyOwner(owner))
	if err != nil {
		return ledger.Reservation{}, ledger.Hold{}, payment.Secret{}, err
	}
	seen, err := p.open(ctx, reservation)
	return reservation, hold, seen.Secret, err
}

// open asks the provider for the payment of the open attempt.
func (p *Payments) open(ctx context.Context, r ledger.Reservation) (payment.Payment, error) {
	current, begun := r.Current()
	if !begun || r.Status != ledger.ReservationPaymentPending || current.State != ledger.AttemptOpen {
		return payment.Payment{}, ledger.ReservationNotActive(r)
	}
	ctx, cancel := context.WithTimeout(ctx, ProviderFor)
	defer cancel()
	var seen payment.Payment
	var err error
	if current.Payment == "" {
		seen, err = p.provider.Create(ctx, payment.NewCreation(r.ID, current.Number, r.Amount))
	} else {
		seen, err = p.provider.LookUp(ctx, current.Payment)
	}
	if err != nil {
		return payment.Payment{}, providerUnavailable(err)
	}
	return seen, nil
}

// freshSecret is the secret of the open attempt, or empty when there is none to be had,
// with the reason: a replay is answered all the same.
func (p *Payments) freshSecret(ctx context.Context, id ledger.ReservationID) (payment.Secret, error) {
	reservation, err := p.commands.store.Reservation(ctx, id)
	if err != nil {
		return payment.Secret{}, err
	}
	seen, err := p.open(ctx, reservation)
	if ledger.CodeOf(err) == ledger.CodeReservationNotActive {
		err = nil // it is paid, or over: nobody needs a secret any more
	}
	return seen.Secret, err
}

func providerUnavailable(cause error) error {
	return &ledger.Error{
		Code: ledger.CodePaymentUnavailable, Message: "the payment provider does not answer; try again in a moment",
		RetryAfter: providerRetryAfter, Cause: cause,
	}
}
