package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
)

// adjustChoice is what the operator wants the capacity to be; "" for what is not named.
type adjustChoice struct {
	capacity, delta string
	oversold        bool
}

// changed is a slot as it is after an operator's command.
type changed struct {
	Slot      ledger.SlotID  `json:"slot_id"`
	Open      bool           `json:"open"`
	Shards    int            `json:"shards"`
	Retired   int            `json:"retired_shards"`
	Capacity  ledger.Units   `json:"capacity"`
	Available ledger.Units   `json:"available"`
	Held      ledger.Units   `json:"held"`
	Confirmed ledger.Units   `json:"confirmed"`
	Oversold  ledger.Units   `json:"oversold"`
	Version   ledger.Version `json:"version"`
}

func adjustFlags(flags *flag.FlagSet, o *operator) {
	flags.StringVar(&o.adjust.capacity, "capacity", "", "the units that there are from now on")
	flags.StringVar(&o.adjust.delta, "delta", "", "how many more or fewer units there are: +5 or -5")
	flags.BoolVar(&o.adjust.oversold, "accept-oversold", false, "let -capacity be less than is held and sold: the slot closes, and the audit names it")
	o.whyFlags(flags)
}

// adjustSlot changes how many units of a slot there are, while it is being sold.
func adjustSlot(ctx context.Context, o *operator, arguments []string) error {
	if len(arguments) != 1 || (o.adjust.capacity == "") == (o.adjust.delta == "") {
		return errors.New("adjust: say one SLOT, and either -capacity N or -delta N")
	}
	patch := ledger.SlotPatch{AcceptOversold: o.adjust.oversold}
	named, text, target := "capacity", o.adjust.capacity, &patch.Capacity
	if o.adjust.delta != "" {
		named, text, target = "delta", o.adjust.delta, &patch.CapacityDelta
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("adjust: -%s %q is not a whole number", named, text)
	}
	units := ledger.Units(number)
	*target = &units
	return o.patchSlots(ctx, "adjust", arguments, patch)
}

// reshard spreads a slot's stock over another number of items. It is safe under load: what is
// on an item that is not used any more is sold last.
func reshard(ctx context.Context, o *operator, arguments []string) error {
	if len(arguments) != 2 {
		return errors.New("reshard: say SLOT and the number of shards")
	}
	shards, err := strconv.Atoi(arguments[1])
	if err != nil {
		return fmt.Errorf("reshard: %q is not a whole number", arguments[1])
	}
	return o.patchSlots(ctx, "reshard", arguments[:1], ledger.SlotPatch{Shards: &shards})
}

// openSlots and closeSlots let slots be sold, and stop that. What is held stays held and can
// be paid.
func openSlots(ctx context.Context, o *operator, arguments []string) error {
	return o.setOpen(ctx, "open", arguments, true)
}

func closeSlots(ctx context.Context, o *operator, arguments []string) error {
	return o.setOpen(ctx, "close", arguments, false)
}

func (o *operator) setOpen(ctx context.Context, command string, slots []string, open bool) error {
	if len(slots) == 0 {
		return fmt.Errorf("%s: say the SLOT", command)
	}
	return o.patchSlots(ctx, command, slots, ledger.SlotPatch{Open: &open})
}

// patchSlots changes the slots one by one, through the same command as the API. It stops at
// the first that is refused, and prints those that it has done.
func (o *operator) patchSlots(ctx context.Context, command string, slots []string, patch ledger.SlotPatch) error {
	request, err := o.request(command)
	if err != nil {
		return err
	}
	done := []changed{}
	failure := func() error {
		for _, id := range slots {
			after, err := patchSlot(ctx, o.commands(), request, ledger.SlotID(id), patch)
			if ledger.CodeOf(err) == ledger.CodeOutcomeUnknown {
				return fmt.Errorf("%s %s: %w; ops explain slot %s tells whether it was", command, id, err, id)
			}
			if err != nil {
				return fmt.Errorf("%s %s: %w", command, id, err)
			}
			done = append(done, after)
		}
		return nil
	}()
	printed := o.table(done, "SLOT\tOPEN\tSHARDS\tCAPACITY\tAVAILABLE\tHELD\tCONFIRMED\tOVERSOLD\tVERSION", func(print func(...any)) {
		for _, c := range done {
			print(c.Slot, c.Open, c.Shards, c.Capacity, c.Available, c.Held, c.Confirmed, c.Oversold, c.Version)
		}
	})
	return errors.Join(failure, printed)
}

func patchSlot(ctx context.Context, shop *commands.Commands, request commands.Request, id ledger.SlotID, patch ledger.SlotPatch) (changed, error) {
	var after changed
	_, err := shop.PatchSlot(ctx, request, id, patch, func(slot ledger.Slot, _ ledger.Policy, sum ledger.Counters, _ bool) (ledger.Response, error) {
		after = changed{
			Slot: slot.ID, Open: slot.Terms.Open, Shards: slot.Terms.Shards, Retired: slot.Terms.Retired, Capacity: sum.Capacity,
			Available: sum.Available, Held: sum.Held, Confirmed: sum.Confirmed, Oversold: slot.Oversold, Version: slot.Version,
		}
		return ledger.Response{}, nil
	})
	return after, err
}
