package ledger_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"time"

	"holdfast/shared/ledger"
)

// noon is when every test begins.
var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// desk carries out one command at a time on a store: it reads, decides with the pure
// functions, and commits. It has no cache and nobody beside it, so what it answers is
// what the ledger's rules alone say.
type desk struct {
	store ledger.Store
	now   time.Time
	drawn int
	// last is the change that the last command committed, if it did.
	last ledger.Change
}

func newDesk(store ledger.Store) *desk { return &desk{store: store, now: noon} }

func random(seed string) [16]byte {
	sum := sha256.Sum256([]byte(seed))
	return [16]byte(sum[:16])
}

func (d *desk) origin(command ledger.Command, actor ledger.Actor) ledger.Origin {
	d.drawn++
	return ledger.Origin{
		Actor: actor, Command: command,
		RequestID: ledger.NewRequestID(random(fmt.Sprintf("request %d", d.drawn))),
		EventID:   ledger.NewEventID(random(fmt.Sprintf("event %d", d.drawn))),
	}
}

// request is what makes a command repeatable. Without a key it is not.
type request struct {
	owner ledger.OwnerID
	key   ledger.IdempotencyKey
	body  string
}

// once carries out a decision under the request's key, and gives the first answer again
// if the same request was carried out before.
func (d *desk) once(command ledger.Command, r request, change ledger.Change, answer string, err error) (string, error) {
	id := ledger.NewIdempotencyID(r.owner, command, r.key)
	if err != nil {
		record, found, readErr := d.store.IdempotencyRecord(context.Background(), id)
		if readErr != nil {
			return "", readErr
		}
		if r.key != "" && found && record.Live(d.now) {
			return replay(record, r)
		}
		return "", err
	}
	if r.key != "" {
		change.At = d.now
		change.Idempotency = &ledger.IdempotencyRecord{
			ID: id, Fingerprint: ledger.Fingerprint(r.body),
			Response:    ledger.Response{Status: 200, Body: []byte(answer)},
			CompletedAt: d.now, RetainUntil: d.now.Add(ledger.IdempotencyRetainFor),
		}
	}
	if change.Empty() {
		return answer, nil
	}
	err = d.store.Commit(context.Background(), change)
	var refused *ledger.Refused
	if errors.As(err, &refused) {
		if record, found := refused.IdempotencyRecord(); found {
			return replay(record, r)
		}
		if len(refused.LegsOf(ledger.LegUniqueness)) > 0 {
			return "", &ledger.Error{Code: ledger.CodeReferenceUsed, Message: "the payment has confirmed another hold"}
		}
	}
	if err == nil {
		d.last = change
	}
	return answer, err
}

func replay(record ledger.IdempotencyRecord, r request) (string, error) {
	response, err := record.Replay(ledger.Fingerprint(r.body), time.Time{})
	return string(response.Body), err
}

// createHold tries the shards that the hold's id picks. The lines that were refused are
// tried once more on shards that were read, or are proven short by that read.
func (d *desk) createHold(id ledger.HoldID, r request, quotes []ledger.Quote) (string, error) {
	quotes, err := ledger.NormalizeQuotes(quotes)
	if err != nil {
		return "", err
	}
	plan := ledger.HoldPlan{ID: id, Owner: r.owner, Quotes: quotes, Allocations: make(map[ledger.SlotID][]ledger.Allocation)}
	if plan.Slots, err = d.slots(quotes); err != nil {
		return "", err
	}
	for _, q := range quotes {
		if slot, known := plan.Slots[q.Slot]; known {
			pick := ledger.PickShard(id, q.Slot, slot.Terms.Shards)
			plan.Allocations[q.Slot] = []ledger.Allocation{{Shard: pick, Quantity: q.Quantity}}
		}
	}
	origin := d.origin(ledger.CommandCreateHold, ledger.Actor(r.owner))
	const tries = 2
	for range tries {
		change, planErr := ledger.NewHold(plan, origin, d.now)
		answer, onceErr := d.once(ledger.CommandCreateHold, r, change, string(id), planErr)
		var refused *ledger.Refused
		if !errors.As(onceErr, &refused) {
			return answer, onceErr
		}
		if err := d.reallocate(plan, refused); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("hold %s was refused %d times with nobody else there", id, tries)
}

func (d *desk) slots(quotes []ledger.Quote) (map[ledger.SlotID]ledger.Slot, error) {
	out := make(map[ledger.SlotID]ledger.Slot)
	for _, q := range quotes {
		slots, err := d.store.Slots(context.Background(), []ledger.SlotID{q.Slot})
		if err != nil {
			return nil, err
		}
		for _, slot := range slots {
			out[slot.ID] = slot
		}
	}
	return out, nil
}

func (d *desk) reallocate(plan ledger.HoldPlan, refused *ledger.Refused) error {
	var closed []ledger.SlotID
	var prices []ledger.SlotPrice
	var shortages []ledger.Shortage
	for _, leg := range refused.LegsOf(ledger.LegStock) {
		var quote ledger.Quote
		for _, q := range plan.Quotes {
			if q.Slot == leg.Slot {
				quote = q
			}
		}
		switch {
		case !leg.Stock.Terms.Open:
			closed = append(closed, leg.Slot)
		case leg.Stock.Terms.Price.AmountMinor != quote.UnitAmount:
			prices = append(prices, ledger.SlotPrice{Slot: leg.Slot, Price: leg.Stock.Terms.Price})
		default:
			stock, err := d.store.StockAtOneMoment(context.Background(), plan.Slots[leg.Slot])
			if err != nil {
				return err
			}
			allocations, fits := ledger.Allocate(stock, quote.Quantity, leg.Shard)
			if !fits {
				shortages = append(shortages, ledger.Shortage{Slot: leg.Slot, Requested: quote.Quantity})
			}
			plan.Allocations[leg.Slot] = allocations
		}
	}
	switch {
	case len(closed) > 0:
		return &ledger.Error{Code: ledger.CodeSlotClosed, Slots: closed, Message: "closed"}
	case len(prices) > 0:
		return &ledger.Error{Code: ledger.CodePriceChanged, Prices: prices, Message: "the price has changed"}
	case len(shortages) > 0:
		return &ledger.Error{Code: ledger.CodeInsufficientStock, Shortages: shortages, Message: "too little is available"}
	}
	return nil
}

// end carries out a command that ends a hold.
func (d *desk) end(command ledger.Command, id ledger.HoldID, r request, transition func(ledger.Hold, ledger.Origin) (ledger.Change, error)) (string, error) {
	hold, err := d.store.Hold(context.Background(), id)
	if err != nil {
		return "", err
	}
	actor := ledger.Actor(cmp.Or(r.owner, "shop"))
	if command == ledger.CommandExpireHold {
		actor = ledger.ActorSystem
	}
	change, err := transition(hold, d.origin(command, actor))
	return d.once(command, r, change, string(id), err)
}

func (d *desk) confirm(id ledger.HoldID, reference ledger.PaymentReference, r request) (string, error) {
	return d.end(ledger.CommandConfirmHold, id, r, func(h ledger.Hold, o ledger.Origin) (ledger.Change, error) {
		return ledger.Confirm(h, reference, o, d.now)
	})
}

func (d *desk) cancel(id ledger.HoldID, r request) (string, error) {
	return d.end(ledger.CommandCancelHold, id, r, func(h ledger.Hold, o ledger.Origin) (ledger.Change, error) {
		return ledger.Cancel(h, o, d.now)
	})
}

func (d *desk) expire(id ledger.HoldID) (string, error) {
	return d.end(ledger.CommandExpireHold, id, request{}, func(h ledger.Hold, o ledger.Origin) (ledger.Change, error) {
		return ledger.Expire(h, o, d.now)
	})
}

// paid carries out a step of a hold's payment, for one reservation of its own.
func (d *desk) paid(verb string, id ledger.HoldID, attempt string, lines []ledger.Quote) (string, error) {
	return d.end(ledger.CommandDriveReservation, id, request{owner: "saga"}, func(h ledger.Hold, o ledger.Origin) (ledger.Change, error) {
		switch verb {
		case "pay":
			n, err := strconv.Atoi(cmp.Or(attempt, "1"))
			if err != nil {
				return ledger.Change{}, err
			}
			return ledger.StartAttempt(h, ledger.NewReservationID(random("reservation of "+string(id))), ledger.AttemptNumber(n), o, d.now)
		case "close":
			return ledger.CloseAttempt(h, o, d.now), nil
		case "sell":
			return ledger.ConfirmPaid(h, o, d.now)
		case "release":
			return ledger.ReleaseUnpaid(h, o, d.now)
		case "give-up":
			return ledger.ExpireUnknown(h, o, d.now)
		default:
			var back []ledger.ReturnLine
			for _, line := range lines {
				back = append(back, ledger.ReturnLine{Slot: line.Slot, Quantity: line.Quantity})
			}
			return ledger.Return(h, back, o, d.now)
		}
	})
}

// reacquire sells a hold that is over, from its own units or from what is left.
func (d *desk) reacquire(id ledger.HoldID) (ledger.HoldID, error) {
	hold, err := d.store.Hold(context.Background(), id)
	if err != nil {
		return "", err
	}
	allocations := make(map[ledger.SlotID][]ledger.Allocation)
	for _, line := range hold.Lines {
		slots, err := d.store.Slots(context.Background(), []ledger.SlotID{line.Slot})
		if err != nil {
			return "", err
		}
		stock, err := d.store.StockAtOneMoment(context.Background(), slots[0])
		if err != nil {
			return "", err
		}
		found, fits := ledger.Allocate(stock, line.Quantity, ledger.PickShard(id, line.Slot, len(stock)))
		if !fits && hold.Status != ledger.StatusHeld {
			return "", &ledger.Error{Code: ledger.CodeInsufficientStock, Slots: []ledger.SlotID{line.Slot}, Message: "the units are gone"}
		}
		allocations[line.Slot] = found
	}
	change, err := ledger.Reacquire(hold, allocations, d.origin(ledger.CommandDriveReservation, "saga"), d.now)
	_, err = d.once(ledger.CommandDriveReservation, request{}, change, "", err)
	return ledger.ReacquiredID(hold), err
}

// putSlot defines the slot, or edits it if there is one. alter turns the definition
// that the slot has, or an empty one with the default policy, into the wanted one.
func (d *desk) putSlot(id ledger.SlotID, alter func(*ledger.SlotDefinition)) error {
	slots, err := d.store.Slots(context.Background(), []ledger.SlotID{id})
	if err != nil {
		return err
	}
	origin := d.origin(ledger.CommandPutSlot, "catalog")
	if len(slots) == 0 {
		definition := ledger.SlotDefinition{
			ResourceType: "show", ResourceID: "hamlet", Policy: ledger.DefaultPolicy(),
			Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "USD"}, Shards: 1},
		}
		alter(&definition)
		change, err := ledger.NewSlot(id, definition, origin, d.now)
		_, err = d.once(ledger.CommandPutSlot, request{}, change, "", err)
		return err
	}
	stock, err := d.store.StockAtOneMoment(context.Background(), slots[0])
	if err != nil {
		return err
	}
	var capacity ledger.Units
	for _, s := range stock {
		capacity += s.Counters.Capacity
	}
	definition := slots[0].Definition(capacity)
	alter(&definition)
	change, err := ledger.EditSlot(slots[0], stock, definition, origin, d.now)
	_, err = d.once(ledger.CommandPutSlot, request{}, change, "", err)
	return err
}
