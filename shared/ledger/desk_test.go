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
// tried once more on shards that were read, or are proven short by that read. An owner who
// is refused for expired holds is let in once the cool-down is over.
func (d *desk) createHold(id ledger.HoldID, r request, quotes []ledger.Quote) (string, error) {
	quotes, err := ledger.NormalizeQuotes(quotes)
	if err != nil {
		return "", err
	}
	plan := ledger.HoldPlan{ID: id, Owner: r.owner, Quotes: quotes}
	if err := d.pick(&plan); err != nil {
		return "", err
	}
	origin := d.origin(ledger.CommandCreateHold, ledger.Actor(r.owner))
	return d.try(&plan, func() (string, ledger.Change, error) {
		change, planErr := ledger.NewHold(plan, origin, d.now)
		answer, err := d.once(ledger.CommandCreateHold, r, change, string(id), planErr)
		return answer, change, err
	})
}

// deskTries are enough with nobody else there: one is refused for a cool-down that has
// passed, one for shards that have too little.
const deskTries = 3

// try carries out a write that takes what plan says, and plans it anew where it is refused.
func (d *desk) try(plan *ledger.HoldPlan, write func() (string, ledger.Change, error)) (string, error) {
	for range deskTries {
		answer, change, err := write()
		var refused *ledger.Refused
		if !errors.As(err, &refused) {
			return answer, err
		}
		if err := d.limited(plan, change, refused); err != nil {
			return "", err
		}
		if err := d.reallocate(*plan, refused); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("hold %s was refused %d times with nobody else there", plan.ID, deskTries)
}

// pick reads the slots of the plan and picks a shard for each.
func (d *desk) pick(plan *ledger.HoldPlan) (err error) {
	if plan.Slots, err = d.slots(plan.Quotes); err != nil {
		return err
	}
	plan.Allocations = make(map[ledger.SlotID][]ledger.Allocation)
	for _, q := range plan.Quotes {
		if slot, known := plan.Slots[q.Slot]; known {
			shard := ledger.PickShard(plan.ID, q.Slot, slot.Terms.Shards)
			plan.Allocations[q.Slot] = []ledger.Allocation{{Shard: shard, Quantity: q.Quantity}}
		}
	}
	return nil
}

// slots are the slots of the quotes that exist, with the whole of their policies.
func (d *desk) slots(quotes []ledger.Quote) (map[ledger.SlotID]ledger.Slot, error) {
	out := make(map[ledger.SlotID]ledger.Slot)
	for _, q := range quotes {
		slots, err := d.store.Slots(context.Background(), []ledger.SlotID{q.Slot})
		if err != nil {
			return nil, err
		}
		for _, slot := range slots {
			policies, err := d.store.Policies(context.Background(), ledger.Scopes(slot.ResourceType, slot.ResourceID))
			if err != nil {
				return nil, err
			}
			out[slot.ID] = slot.Resolve(policies)
		}
	}
	return out, nil
}

// limited says which limit refused the change, if one did. A cool-down that has passed
// refuses nothing: the plan then says so.
func (d *desk) limited(plan *ledger.HoldPlan, change ledger.Change, refused *ledger.Refused) error {
	for _, leg := range refused.LegsOf(ledger.LegQuota) {
		var over []ledger.Limit
		for _, delta := range change.Quotas[0].Deltas {
			if delta.Max > 0 && leg.Quota.Counts[delta.Key]+delta.Units > delta.Max {
				over = append(over, ledger.Limit{Key: delta.Key, Max: delta.Max})
			}
		}
		if len(over) > 0 {
			return ledger.LimitReached(over)
		}
		cooldown := time.Duration(0)
		for _, slot := range plan.Slots {
			if slot.Policy.ExpiriesMax > 0 {
				cooldown = max(cooldown, slot.Policy.CooldownFor)
			}
		}
		if d.now.Before(leg.Quota.LastExpiredAt.Add(cooldown)) {
			return &ledger.Error{Code: ledger.CodeCoolingDown, Message: "too many holds expired"}
		}
		plan.CooledDown = true
	}
	return nil
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

// editHold gives the hold these lines, if there are any, and as long from now on, if that is
// not zero.
func (d *desk) editHold(id ledger.HoldID, quotes []ledger.Quote, extendFor time.Duration) error {
	if quotes != nil {
		normal, err := ledger.NormalizeQuotes(quotes)
		if err != nil {
			return err
		}
		quotes = normal
	}
	hold, err := d.store.Hold(context.Background(), id)
	if err != nil {
		return err
	}
	more := hold.Growth(quotes)
	for i := range more {
		more[i].Quantity -= quantityOf(hold, more[i].Slot)
	}
	plan := ledger.HoldPlan{ID: id, Owner: hold.Owner, Quotes: more}
	if err := d.pick(&plan); err != nil {
		return err
	}
	origin := d.origin(ledger.CommandEditHold, ledger.Actor(hold.Owner))
	_, err = d.try(&plan, func() (string, ledger.Change, error) {
		edit := ledger.HoldEdit{Quotes: quotes, Slots: plan.Slots, Allocations: plan.Allocations, ExtendFor: extendFor}
		change, planErr := ledger.EditHold(hold, edit, origin, d.now)
		answer, err := d.once(ledger.CommandEditHold, request{}, change, "", planErr)
		return answer, change, err
	})
	return err
}

func quantityOf(h ledger.Hold, slot ledger.SlotID) ledger.Units {
	for _, line := range h.Lines {
		if line.Slot == slot {
			return line.Quantity
		}
	}
	return 0
}

func (d *desk) confirmPart(id ledger.HoldID, reference ledger.PaymentReference, lines []ledger.ReturnLine) error {
	_, err := d.end(ledger.CommandConfirmHold, id, request{}, func(h ledger.Hold, o ledger.Origin) (ledger.Change, error) {
		return ledger.ConfirmPart(h, lines, reference, o, d.now)
	})
	return err
}

func (d *desk) giveBack(id ledger.HoldID, lines []ledger.ReturnLine) error {
	_, err := d.end(ledger.CommandReturnHold, id, request{}, func(h ledger.Hold, o ledger.Origin) (ledger.Change, error) {
		return ledger.ReturnUnpaid(h, lines, o, d.now)
	})
	return err
}

// setPolicy says layer for all slots of the scope.
func (d *desk) setPolicy(scope ledger.PolicyScope, layer ledger.PolicyLayer) error {
	stored := ledger.ScopePolicy{}
	policies, err := d.store.Policies(context.Background(), []ledger.PolicyScope{scope})
	if err != nil {
		return err
	}
	if len(policies) > 0 {
		stored = policies[0]
	}
	change, err := ledger.SetPolicy(scope, stored, layer, d.origin(ledger.CommandPutPolicy, "catalog"), d.now)
	_, err = d.once(ledger.CommandPutPolicy, request{}, change, "", err)
	return err
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
