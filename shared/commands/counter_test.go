package commands_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/system/systemtest"
)

// counts is a Counter that a test reads.
type counts struct {
	anew, probed, split, late, short int
	left                             string // statuses with their times
}

func (c *counts) DecidedAnew()   { c.anew++ }
func (c *counts) Probed(n int)   { c.probed += n }
func (c *counts) Split()         { c.split++ }
func (c *counts) ConfirmedLate() { c.late++ }
func (c *counts) Short()         { c.short++ }
func (c *counts) Left(status ledger.ReservationStatus, after time.Duration) {
	c.left += fmt.Sprintf("%s %s;", status, after)
}

var (
	_ commands.Counter = (*counts)(nil)
	_ commands.Counter = commands.Uncounted{}
)

// mustCreate makes a hold with the bench's own commands.
func (b *bench) mustCreate(key string, quantity ledger.Units) ledger.HoldID {
	b.t.Helper()
	if _, err := b.create(b.commands, request(key), quote("S", quantity)); err != nil {
		b.t.Fatal(err)
	}
	return b.last().ID
}

// counted lets the bench's commands be counted, and returns how often since the last time it
// was asked.
func (b *bench) counted() func(want counts) {
	c := &counts{}
	b.commands = commands.NewCounted(b.store, b.clock, systemtest.NewRandom(9), c)
	return func(want counts) {
		b.t.Helper()
		if *c != want {
			b.t.Errorf("counted %+v, want %+v", *c, want)
		}
		*c = counts{}
	}
}

// Finding units elsewhere is no race, and a race finds no units elsewhere.
func TestWhatACreateMetIsCounted(t *testing.T) {
	b := newBench(t)
	counted := b.counted()
	b.define("S", definition(4, 2))
	b.mustCreate("fits", 1)
	counted(counts{})
	b.mustCreate("over both", 3)
	counted(counts{probed: 1, split: 1})
	if again, err := b.create(b.commands, request("over both"), quote("S", 3)); err != nil || !again.Replayed {
		t.Fatalf("%+v, %v", again, err)
	}
	counted(counts{}) // its record answers before anything is looked for
	_, err := b.create(b.commands, request("more"), quote("S", 1))
	b.wantCode(err, ledger.CodeInsufficientStock)
	counted(counts{probed: 1, short: 1})
	b.define("S", definition(4, 3)) // a definition that is out of date is somebody else's doing
	_, err = b.create(b.commands, request("again"), quote("S", 1))
	b.wantCode(err, ledger.CodeInsufficientStock)
	counted(counts{anew: 1, probed: 2, short: 1})
}

// What another call with the same key has done is not counted a second time.
func TestAReplayIsNotCounted(t *testing.T) {
	b := newBench(t)
	counted := b.counted()
	b.define("S", definition(8, 2))
	b.store.beforeCommit = func(try int, _ ledger.Change) error {
		if try != 2 {
			return nil
		}
		_, err := b.create(b.others, request("K"), quote("S", 5))
		return err
	}
	answer, err := b.create(b.commands, request("K"), quote("S", 5))
	if err != nil || !answer.Replayed {
		t.Fatalf("%+v, %v", answer, err)
	}
	counted(counts{probed: 1})
}

// That a cool-down is over is learned from the write, and meets nobody.
func TestALearnedCoolDownIsNoRace(t *testing.T) {
	b := newBench(t)
	counted := b.counted()
	d := definition(4, 1)
	d.Policy.ExpiriesMax, d.Policy.CooldownFor = 1, time.Minute
	b.define("S", d)
	id := b.mustCreate("first", 1)
	b.clock.Advance(ledger.HoldForDefault + ledger.GraceForDefault)
	if _, err := b.commands.ExpireHold(t.Context(), id, "sweep"); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(time.Hour)
	b.mustCreate("second", 1)
	counted(counts{})
}

// A lost race is counted once for each decision that it cost, whatever the command.
func TestLostRacesAreCounted(t *testing.T) {
	b := newBench(t)
	counted := b.counted()
	b.define("S", definition(4, 1))
	b.store.beforeCommit = func(try int, _ ledger.Change) error {
		if try <= 2 {
			return &ledger.Refused{Contended: true}
		}
		return nil
	}
	id := b.mustCreate("K", 1)
	counted(counts{anew: 2})
	b.store.commits = 0
	if _, err := b.commands.ConfirmHold(t.Context(), request("C"), id, "pay", nil, b.render); err != nil {
		t.Fatal(err)
	}
	counted(counts{anew: 2})
}

// A confirm is late when the hold is over, swept or not, and not when it was given up.
func TestLateConfirmsAreCounted(t *testing.T) {
	b := newBench(t)
	counted := b.counted()
	b.define("S", definition(4, 1))
	over, swept, canceled := b.mustCreate("over", 1), b.mustCreate("swept", 1), b.mustCreate("canceled", 1)
	if _, err := b.commands.CancelHold(t.Context(), request("cancel"), canceled, b.render); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(ledger.HoldForDefault + time.Second)
	if _, err := b.commands.ExpireHold(t.Context(), swept, "sweep"); err != nil {
		t.Fatal(err)
	}
	for i, id := range []ledger.HoldID{over, swept, canceled} {
		_, err := b.commands.ConfirmHold(t.Context(), request(fmt.Sprint("confirm", i)), id, "pay", nil, b.render)
		b.wantCode(err, ledger.CodeHoldNotActive)
	}
	counted(counts{late: 2})
}

// Whoever moves a reservation tells how long it was where it was.
func TestTheTimeInAStatusIsCounted(t *testing.T) {
	b, _, id := reservationIn(t, ledger.ReservationPaymentPending, nil)
	counted := b.counted()
	b.clock.Advance(time.Minute)
	b.mustCancel(id, commands.CancelByOwner)
	counted(counts{left: "PAYMENT_PENDING 1m0s;"})
}
