package commands_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
)

// limited is a definition whose policy is changed.
func limited(change func(p *ledger.Policy)) ledger.SlotDefinition {
	d := definition(100, 2)
	change(&d.Policy)
	return d
}

// by is a request of that owner.
func by(owner ledger.OwnerID, key string) commands.Request {
	r := request(key)
	r.Owner = owner
	return r
}

// Every limit of an owner is told by its name and number, costs one write and no read, and
// leaves other owners alone.
func TestALimitIsTold(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(p *ledger.Policy)
		limit  ledger.Limit
	}{
		{"units of the slot", func(p *ledger.Policy) { p.QuantityPerOwnerMax = 3 }, ledger.Limit{Key: "slot/S", Max: 3}},
		{"units of the resource", func(p *ledger.Policy) { p.QuantityPerOwnerOfResourceMax = 3 }, ledger.Limit{Key: "resource/flight/KE0901", Max: 3}},
		{"holds", func(p *ledger.Policy) { p.HoldsPerOwnerMax = 1 }, ledger.Limit{Key: "holds", Max: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.define("S", limited(c.change))
			if _, err := b.create(b.commands, request("K"), quote("S", 2)); err != nil {
				t.Fatal(err)
			}
			b.store.calls()
			_, err := b.create(b.commands, request("L"), quote("S", 2))
			if e := b.refusal(err, ledger.CodeLimitReached); !slices.Equal(e.Limits, []ledger.Limit{c.limit}) {
				t.Errorf("limits %+v, want %+v", e.Limits, c.limit)
			}
			if calls := b.store.calls(); calls != [5]int{1, 0, 0, 0, 1} {
				t.Errorf("%v commits, hints, proofs, definitions and keys", calls)
			}
			if _, err := b.create(b.commands, by("V", "L"), quote("S", 2)); err != nil {
				t.Errorf("another owner: %v", err)
			}
			again, err := b.create(b.commands, request("K"), quote("S", 2))
			if err != nil || !again.Replayed {
				t.Errorf("the one that succeeded, asked again: %+v, %v", again, err)
			}
			b.cancel(b.holds[0])
			if _, err := b.create(b.commands, request("M"), quote("S", 2)); err != nil {
				t.Errorf("after a cancel: %v", err)
			}
			b.balanced()
		})
	}
}

// A refusal beside a running transaction may be out of date, so nobody is told of it.
func TestAContendedLimitIsDecidedAgain(t *testing.T) {
	b := newBench(t)
	b.define("S", limited(func(p *ledger.Policy) { p.QuantityPerOwnerMax = 3 }))
	b.store.beforeCommit = func(try int, _ ledger.Change) error {
		if try > 1 {
			return nil
		}
		quota := ledger.Quota{Owner: "U", Counts: map[ledger.QuotaKey]ledger.Units{"slot/S": 3}}
		return &ledger.Refused{Contended: true, Legs: []ledger.RefusedLeg{{Kind: ledger.LegQuota, Quota: &quota}}}
	}
	if _, err := b.create(b.commands, request("K"), quote("S", 1)); err != nil {
		t.Fatal(err)
	}
	b.balanced()
}

// However many requests of one owner meet, the owner never has more than the limit, and has
// exactly that at the end.
func TestRequestsThatMeetKeepTheLimit(t *testing.T) {
	b := newBench(t)
	b.define("S", limited(func(p *ledger.Policy) { p.QuantityPerOwnerMax = 7 }))
	var made, refused atomic.Int64
	var done sync.WaitGroup
	for i := range 30 {
		done.Go(func() {
			switch _, err := b.create(b.commands, request(fmt.Sprint(i)), quote("S", 2)); ledger.CodeOf(err) {
			case "":
				made.Add(1)
			case ledger.CodeLimitReached:
				refused.Add(1)
			default:
				t.Errorf("request %d: %v", i, err)
			}
		})
	}
	done.Wait()
	if made.Load() != 3 || refused.Load() != 27 {
		t.Errorf("%d made and %d refused, want 3 and 27", made.Load(), refused.Load())
	}
	b.wantCounters("S", 94, 6, 0)
	b.wantQuota("U", map[ledger.QuotaKey]ledger.Units{"slot/S": 6})
	b.balanced()
}

func (b *bench) wantQuota(owner ledger.OwnerID, want map[ledger.QuotaKey]ledger.Units) {
	b.t.Helper()
	quota, err := b.store.Quota(b.t.Context(), owner)
	if err != nil {
		b.t.Fatal(err)
	}
	for key, units := range want {
		if quota.Counts[key] != units {
			b.t.Errorf("%s of %s is counted as %d, want %d", key, owner, quota.Counts[key], units)
		}
	}
}

// letExpire makes a hold and ends it when its time is over.
func (b *bench) letExpire() {
	b.t.Helper()
	hold := b.mustHold("S", 1)
	b.clock.Set(hold.ReleaseAt)
	if released, err := b.others.ExpireHold(b.t.Context(), hold.ID, "sweep"); !released || err != nil {
		b.t.Fatalf("released %t, %v", released, err)
	}
}

func coolsDown(p *ledger.Policy) { p.ExpiriesMax, p.CooldownFor = 2, time.Hour }

// An owner whose holds expired too often is told how long to wait, by one write, and goes on
// after that; then the count begins anew.
func TestACoolDownPasses(t *testing.T) {
	b := newBench(t)
	b.define("S", limited(coolsDown))
	b.letExpire()
	b.letExpire()
	b.clock.Advance(20 * time.Minute)
	_, err := b.create(b.commands, request("warm"), quote("S", 1))
	b.wantCode(err, ledger.CodeCoolingDown)
	b.store.calls()
	_, err = b.create(b.commands, request("K"), quote("S", 1))
	if e := b.refusal(err, ledger.CodeCoolingDown); e.RetryAfter != 40*time.Minute {
		t.Errorf("retry after %s, want 40m", e.RetryAfter)
	}
	if calls := b.store.calls(); calls != [5]int{1, 0, 0, 0, 1} {
		t.Errorf("%v commits, hints, proofs, definitions and keys", calls)
	}
	b.clock.Advance(40*time.Minute - time.Millisecond)
	_, err = b.create(b.commands, request("K"), quote("S", 1))
	if e := b.refusal(err, ledger.CodeCoolingDown); e.RetryAfter != time.Millisecond {
		t.Errorf("retry after %s, want 1ms", e.RetryAfter)
	}
	b.clock.Advance(time.Millisecond)
	if _, err := b.create(b.commands, request("K"), quote("S", 1)); err != nil {
		t.Fatalf("after the cool-down: %v", err)
	}
	b.cancel(b.last().ID)
	b.letExpire()
	if _, err := b.create(b.commands, request("L"), quote("S", 1)); err != nil {
		t.Errorf("the count did not begin anew: %v", err)
	}
	b.balanced()
}

// A cool-down has passed as the refusal says, and another hold expires before the next try.
// That is decided by what is counted then.
func TestACoolDownThatBeginsAgain(t *testing.T) {
	b := newBench(t)
	d := limited(coolsDown)
	d.Policy.HoldFor, d.Policy.HoldForMax = 2*time.Hour, 2*time.Hour
	b.define("S", d)
	late := b.mustHold("S", 1)
	b.clock.Advance(time.Second)
	early := []ledger.Hold{b.mustHold("S", 1), b.mustHold("S", 1)}
	expire := func(h ledger.Hold) {
		t.Helper()
		if released, err := b.others.ExpireHold(t.Context(), h.ID, "sweep"); !released || err != nil {
			t.Fatalf("released %t, %v", released, err)
		}
	}
	b.clock.Set(early[0].ReleaseAt)
	expire(early[0])
	expire(early[1])
	b.clock.Advance(time.Hour)
	b.store.beforeCommit = func(try int, _ ledger.Change) error {
		if try == 2 {
			expire(late)
		}
		return nil
	}
	_, err := b.create(b.commands, request("K"), quote("S", 1))
	if e := b.refusal(err, ledger.CodeCoolingDown); e.RetryAfter <= 59*time.Minute {
		t.Errorf("retry after %s; want an hour from the last one", e.RetryAfter)
	}
	b.balanced()
}

// An operator's unblock, and a sale, end the count.
func TestWhatEndsACoolDown(t *testing.T) {
	t.Run("unblock", func(t *testing.T) {
		b := newBench(t)
		b.define("S", limited(coolsDown))
		b.letExpire()
		b.letExpire()
		if err := b.store.Commit(t.Context(), ledger.ForgetExpiries("U", b.clock.Now())); err != nil {
			t.Fatal(err)
		}
		if _, err := b.create(b.commands, request("K"), quote("S", 1)); err != nil {
			t.Error(err)
		}
	})
	t.Run("sale", func(t *testing.T) {
		b := newBench(t)
		b.define("S", limited(coolsDown))
		b.letExpire()
		hold := b.mustHold("S", 1)
		if _, err := b.commands.ConfirmHold(t.Context(), request("K"), hold.ID, "", nil, b.render); err != nil {
			t.Fatal(err)
		}
		b.letExpire()
		if _, err := b.create(b.commands, request("K"), quote("S", 1)); err != nil {
			t.Error(err)
		}
	})
}

// createWith makes a hold of an owner whose device is known.
func (b *bench) createWith(owner ledger.OwnerID, signals ...ledger.Signal) error {
	_, err := b.commands.CreateHold(context.Background(), by(owner, ""), commands.HoldWish{Quotes: quote("S", 1), Signals: signals}, b.render)
	return err
}

// One device makes no more holds in an hour than its limit, whoever asks. The number is not
// told, and the next hour begins anew.
func TestADeviceHasALimit(t *testing.T) {
	b := newBench(t)
	b.clock.Set(noon.Add(15 * time.Minute))
	b.define("S", limited(func(p *ledger.Policy) { p.HoldsPerSignalMax = 2 }))
	device := ledger.Signal{Kind: ledger.SignalDevice, Hash: strings.Repeat("d1", ledger.SignalHashCharacters/2)}
	card := ledger.Signal{Kind: ledger.SignalPaymentMeans, Hash: strings.Repeat("d1", ledger.SignalHashCharacters/2)}
	for _, owner := range []ledger.OwnerID{"V", "U"} {
		if err := b.createWith(owner, device); err != nil {
			t.Fatal(err)
		}
	}
	b.cancel(b.last().ID) // which takes nothing back: tries are counted
	e := b.refusal(b.createWith("W", device, card), ledger.CodeLimitReached)
	if e.RetryAfter != 45*time.Minute || len(e.Limits) > 0 {
		t.Errorf("retry after %s, limits %+v; want 45m and none", e.RetryAfter, e.Limits)
	}
	if err := b.createWith("W", card); err != nil {
		t.Errorf("a means of payment of the same hash: %v", err)
	}
	if err := b.createWith("W"); err != nil {
		t.Errorf("no signal: %v", err)
	}
	b.clock.Advance(45 * time.Minute)
	if err := b.createWith("W", device); err != nil {
		t.Errorf("the next hour: %v", err)
	}
	b.balanced()
}
