package commands

import (
	"context"
	"errors"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

const (
	// TriesMax bounds how often one command decides anew after losing a race. Every
	// lost race means that another caller's change was applied.
	TriesMax = 100
	// pauseAfterLostRace is the unit of the random pause before deciding anew: it grows
	// with each attempt up to pauseAfterLostRaceMax.
	pauseAfterLostRace    = 2 * time.Millisecond
	pauseAfterLostRaceMax = 50 * time.Millisecond
)

// Commands carries out commands. It is safe for concurrent use.
type Commands struct {
	store   ledger.Store
	clock   system.Clock
	random  system.Random
	counter Counter
	slots   *slotCache
	stock   *stockCache
}

// New returns Commands on these ports, which nobody counts.
func New(store ledger.Store, clock system.Clock, random system.Random) *Commands {
	return NewCounted(store, clock, random, Uncounted{})
}

// NewCounted returns Commands on these ports that tell the counter how they fare.
func NewCounted(store ledger.Store, clock system.Clock, random system.Random, counter Counter) *Commands {
	return &Commands{store: store, clock: clock, random: random, counter: counter, slots: newSlotCache(), stock: newStockCache()}
}

// Request says who asks, and makes the command repeatable.
type Request struct {
	Actor     ledger.Actor
	RequestID ledger.RequestID
	// Owner is whose Key it is: the subject of the caller's token.
	Owner ledger.OwnerID
	// Key may be empty for commands that are repeatable by nature.
	Key         ledger.IdempotencyKey
	Fingerprint ledger.Fingerprint
	// Why is the reason that a person gives; "" for none. It is kept with the event.
	Why string
}

// Answer is what the caller is told. Replayed says that the command had been carried
// out before, and this is its first answer again.
type Answer struct {
	Response ledger.Response
	Replayed bool
	// Reservation is what the replayed request has begun, where it has.
	Reservation ledger.ReservationID
	// Unasked is why the payment provider gave no secret, where it should have: for the log.
	// The request is carried out all the same.
	Unasked error
}

// decision is one attempt's outcome: what to write and what to say when it is written.
// An empty Change says that there is nothing to do.
type decision struct {
	change   ledger.Change
	response ledger.Response
	// begins, if set, says that the request is not completed by this change: it has begun
	// the reservation, and its claim stands until it is.
	begins ledger.ReservationID
}

// job is one command being carried out.
type job struct {
	command ledger.Command
	request Request
	// claim names this caller where a decision begins something.
	claim ledger.ClaimID
	// decide reads what it needs and decides, at one moment. It returns errTwoMoments to
	// be asked again.
	decide func(ctx context.Context, origin ledger.Origin, now time.Time) (decision, error)
	// refused looks at a refusal by conditions. It returns nil to decide anew, or the
	// error to answer with. Nil stands for "always decide anew".
	refused func(ctx context.Context, r *ledger.Refused, now time.Time) error
	// metNobody reports whether the last refusal only taught the command what was so all the
	// time, such as that the first stock item has too little. Nil stands for "never".
	metNobody func() bool
}

// errTwoMoments says that what was read was never true together.
var errTwoMoments = errors.New("the reads are of two moments")

// carryOut runs j until it is written, refused, or out of attempts. The event id is
// drawn once: whatever is tried again is recognised as the same step.
func (c *Commands) carryOut(ctx context.Context, j job) (Answer, error) {
	origin := ledger.Origin{
		Actor: j.request.Actor, Command: j.command, RequestID: j.request.RequestID,
		EventID: ledger.NewEventID(c.random.Bits128()), Why: j.request.Why,
	}
	for attempt := range TriesMax {
		if err := c.pause(ctx, attempt); err != nil {
			return Answer{}, unavailable(err)
		}
		now := system.Millisecond(c.clock)
		d, err := j.decide(ctx, origin, now)
		if errors.Is(err, errTwoMoments) {
			c.counter.DecidedAnew()
			continue
		}
		if err != nil {
			return c.replayOr(ctx, j, now, err)
		}
		err = c.commit(ctx, j, d, now)
		if err == nil {
			return Answer{Response: d.response}, nil
		}
		var r *ledger.Refused
		if !errors.As(err, &r) {
			return Answer{}, err
		}
		if record, found := r.IdempotencyRecord(); found {
			return replay(record, j.request.Fingerprint, now)
		}
		if j.refused != nil {
			if err := j.refused(ctx, r, now); err != nil {
				return c.replayOr(ctx, j, now, err)
			}
		}
		if j.metNobody == nil || !j.metNobody() {
			c.counter.DecidedAnew()
		}
	}
	return Answer{}, &ledger.Error{Code: ledger.CodeBusy, Message: "too many others change the same thing; try again"}
}

// commit writes the decision together with the record that makes it repeatable.
func (c *Commands) commit(ctx context.Context, j job, d decision, now time.Time) error {
	if j.request.Key != "" {
		d.change.At = now
		d.change.Idempotency = j.record(d, now)
	}
	if d.change.Empty() {
		return nil
	}
	return c.write(ctx, d.change)
}

// record is what makes the decision's request repeatable.
func (j job) record(d decision, now time.Time) *ledger.IdempotencyRecord {
	record := &ledger.IdempotencyRecord{
		ID:          j.idempotencyID(),
		Fingerprint: j.request.Fingerprint,
		Response:    d.response,
		CompletedAt: now,
		RetainUntil: now.Add(ledger.IdempotencyRetainFor),
	}
	if d.begins != "" {
		record.Claim, record.ClaimUntil, record.Reservation = j.claim, now.Add(ClaimFor), d.begins
	}
	return record
}

func (j job) idempotencyID() ledger.IdempotencyID {
	return ledger.NewIdempotencyID(j.request.Owner, j.command, j.request.Key)
}

// replayOr answers a command that was decided against. If the same request was carried
// out before, or by another call in the meantime, what it did may be the very reason for
// the refusal, so its first answer is given (case E9); else the refusal stands.
func (c *Commands) replayOr(ctx context.Context, j job, now time.Time, refusal error) (Answer, error) {
	if j.request.Key == "" || ledger.CodeOf(refusal) == ledger.CodeUnavailable {
		return Answer{}, refusal
	}
	record, found, err := c.store.IdempotencyRecord(ctx, j.idempotencyID())
	if err != nil {
		return Answer{}, err
	}
	if !found || !record.Live(now) {
		return Answer{}, refusal
	}
	return replay(record, j.request.Fingerprint, now)
}

func replay(record ledger.IdempotencyRecord, f ledger.Fingerprint, now time.Time) (Answer, error) {
	response, err := record.Replay(f, now)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Response: response, Replayed: true, Reservation: record.Reservation}, nil
}

// pause waits a random moment before every attempt but the first, longer each time, so
// that callers who lost to each other do not meet again at once.
func (c *Commands) pause(ctx context.Context, attempt int) error {
	if attempt == 0 {
		return nil
	}
	bound := min(time.Duration(attempt)*pauseAfterLostRace, pauseAfterLostRaceMax)
	return c.clock.Sleep(ctx, time.Duration(c.random.Below(int64(bound))))
}

func unavailable(cause error) error {
	return &ledger.Error{Code: ledger.CodeUnavailable, Message: "the request took too long; try again with the same key", Cause: cause}
}
