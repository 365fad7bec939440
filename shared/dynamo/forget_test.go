package dynamo_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// forgetting is a table with one slot of which owners may have a few, and who forgets one.
type forgetting struct {
	*testing.T
	store     *dynamo.Store
	shop      *commands.Commands
	forgetter *dynamo.Forgetter
}

func newForgetting(t *testing.T, owner ledger.OwnerID) *forgetting {
	t.Helper()
	client, table := dynamotest.NewTable(t)
	f := &forgetting{T: t, store: dynamo.NewStore(client, table, system.RealClock{}, system.RealRandom{})}
	f.shop = commands.New(f.store, system.RealClock{}, system.RealRandom{})
	f.forgetter = dynamo.NewForgetter(client, f.store, owner, "forgotten_1")
	policy := ledger.DefaultPolicy()
	policy.QuantityPerOwnerMax, policy.HoldsPerOwnerMax = 20, 20
	_, err := f.shop.PutSlot(t.Context(), commands.Request{Actor: "catalog:kim"}, "seat:v1.2", ledger.SlotDefinition{
		ResourceType: "show", ResourceID: "hamlet", Capacity: 50, Policy: policy,
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 1000, Currency: "KRW"}, Shards: 1},
	}, func(ledger.Slot, ledger.Policy, ledger.Counters, bool) (ledger.Response, error) {
		return ledger.Response{}, nil
	})
	f.check(err)
	return f
}

func (f *forgetting) check(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// sell sells some units to the owner.
func (f *forgetting) sell(owner ledger.OwnerID, quantity ledger.Units) ledger.HoldID {
	f.Helper()
	var made ledger.HoldID
	by := commands.Request{Actor: ledger.Actor("owner:" + owner), Owner: owner}
	_, err := f.shop.CreateHold(f.Context(), by, commands.HoldWish{Quotes: []ledger.Quote{{Slot: "seat:v1.2", Quantity: quantity, UnitAmount: 1000}}},
		func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
			made = h.ID
			return ledger.Response{}, nil
		})
	f.check(err)
	_, err = f.shop.ConfirmHold(f.Context(), by, made, "", nil, func(ledger.Hold, time.Time) (ledger.Response, error) { return ledger.Response{}, nil })
	f.check(err)
	return made
}

// counted is what is counted of an owner.
func (f *forgetting) counted(owner ledger.OwnerID) ledger.Units {
	f.Helper()
	quota, err := f.store.Quota(f.Context(), owner)
	f.check(err)
	return quota.Counts[ledger.SlotQuota("seat:v1.2")]
}

// What is counted of an owner is at every step what that owner's holds say, under one name and
// under the other. An owner may be called like a status, a bucket or an actor.
func TestCountsGoWithTheirHolds(t *testing.T) {
	for _, owner := range []ledger.OwnerID{"U-17", "HELD", "owner", "auth0|Zoë Ångström/17#x"} {
		f := newForgetting(t, owner)
		f.sell(owner, 2)
		f.sell(owner, 3)
		f.sell("U-18", 1)
		owned, next, err := f.forgetter.OwnedHolds(t.Context(), ledger.Page{Limit: 10})
		f.check(err)
		if len(owned) != 2 || next != "" {
			t.Fatalf("%s: %d holds, cursor %q", owner, len(owned), next)
		}
		for i, one := range owned {
			events, err := f.forgetter.Events(t.Context(), one.Item)
			f.check(err)
			if len(events) != 2 {
				t.Errorf("%s: %d events name the owner", owner, len(events))
			}
			for _, at := range append(events, one.Item) {
				if changed, err := f.forgetter.Forget(t.Context(), at); err != nil || !changed {
					t.Errorf("%s: %v: %t, %v", owner, at, changed, err)
				}
			}
			var ofOwner, ofName ledger.Units
			for at, other := range owned {
				if at <= i {
					ofName += other.Hold.Lines[0].Quantity
				} else {
					ofOwner += other.Hold.Lines[0].Quantity
				}
			}
			if f.counted(owner) != ofOwner || f.counted("forgotten_1") != ofName {
				t.Errorf("%s: %d and %d are counted after %d holds, want %d and %d", owner, f.counted(owner), f.counted("forgotten_1"), i+1, ofOwner, ofName)
			}
		}
		if left := f.named(); len(left) != 1 || left[0].SortKey != "QUOTA" {
			t.Errorf("%s is left in %v", owner, left)
		}
		for _, want := range []bool{true, false} {
			if changed, err := f.forgetter.Forget(t.Context(), ledger.EventItem{PartitionKey: "OWNER#" + string(owner), SortKey: "QUOTA"}); err != nil || changed != want {
				t.Errorf("%s: the counts: %t, %v, want %t", owner, changed, err, want)
			}
		}
		if left := f.named(); len(left) != 0 {
			t.Errorf("%s is left in %v", owner, left)
		}
		if f.counted("forgotten_1") != 5 || f.counted("U-18") != 1 {
			t.Errorf("%s: %d and %d are counted", owner, f.counted("forgotten_1"), f.counted("U-18"))
		}
	}
}

// named is where the owner is named, by a read of the whole table.
func (f *forgetting) named() []ledger.EventItem {
	f.Helper()
	var all []ledger.EventItem
	for segment := range 2 {
		for after := ledger.Cursor(""); ; {
			page, next, err := f.forgetter.ScanNamed(f.Context(), segment, 2, after)
			f.check(err)
			all = append(all, page...)
			if after = next; after == "" {
				break
			}
		}
	}
	return all
}

// What is still counted, of sales whose holds have left the table, is moved whole, however many
// counts there are.
func TestManyCountsAreMoved(t *testing.T) {
	f := newForgetting(t, "U-17")
	for i := range 37 {
		f.check(f.store.Commit(t.Context(), ledger.Change{At: time.Now().UTC().Truncate(time.Millisecond), Quotas: []ledger.QuotaWrite{{
			Owner: "U-17", Deltas: []ledger.QuotaDelta{{Key: ledger.SlotQuota(ledger.SlotID(strings.Repeat("s", 120) + string(rune('a'+i%26)) + string(rune('a'+i/26)))), Units: 1}},
		}}}))
	}
	if changed, err := f.forgetter.Forget(t.Context(), ledger.EventItem{PartitionKey: "OWNER#U-17", SortKey: "QUOTA"}); err != nil || !changed {
		t.Fatalf("%t, %v", changed, err)
	}
	quota, err := f.store.Quota(t.Context(), "forgotten_1")
	f.check(err)
	if len(quota.Counts) != 37 || len(f.named()) != 0 {
		t.Errorf("%d counts were moved, and the owner is left in %v", len(quota.Counts), f.named())
	}
}

// The text of an archived item keeps its bytes if it does not name the owner, and all but the
// name if it does.
func TestAnArchivedItemKeepsAllButTheName(t *testing.T) {
	f := newForgetting(t, "U-17")
	for owner, names := range map[ledger.OwnerID]bool{"U-17": true, "U-177": false} {
		id := f.sell(owner, 1)
		items, err := f.store.ArchiveItems(context.Background(), ledger.ArchiveSubject{Hold: id})
		f.check(err)
		for _, one := range items {
			text, had, err := f.forgetter.ForgetText(one.Text)
			f.check(err)
			if had != names || bytes.Contains(text, []byte(`"U-17"`)) {
				t.Errorf("%s: %t, and %s", owner, had, text)
			}
			back := bytes.ReplaceAll(text, []byte("forgotten_1"), []byte("U-17"))
			if !bytes.Equal(back, one.Text) {
				t.Errorf("%s: the text became %s", owner, text)
			}
		}
	}
}

// A name may be the beginning or the end of another one, which stays.
func TestOnlyTheWholeNameIsForgotten(t *testing.T) {
	const to = "forgotten_1"
	forgetter := dynamo.NewForgetter(nil, nil, "U-1", to)
	for why, want := range map[string]string{
		"U-1 asked for it": to + " asked for it", "asked by U-1": "asked by " + to, "(U-1)": "(" + to + ")",
		"U-17 asked for it": "U-17 asked for it", "asked by SU-1": "asked by SU-1", "SU-17": "SU-17", "U-1 for U-17": to + " for U-17",
	} {
		text := `{"pk":{"S":"HOLD#h"},"sk":{"S":"HOLD"},"why":{"S":"` + why + `"}}`
		got, had, err := forgetter.ForgetText([]byte(text))
		if err != nil || had != (why != want) || !strings.Contains(string(got), `"`+want+`"`) {
			t.Errorf("%q becomes %s, %t, %v", why, got, had, err)
		}
	}
}
