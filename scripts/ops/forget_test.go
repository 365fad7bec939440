package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"

	"holdfast/shared/archive"
	"holdfast/shared/commands"
	"holdfast/shared/explain"
	"holdfast/shared/lease"
	"holdfast/shared/ledger"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/saga"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
)

// bought is what an owner of the world has, in all the places where it can be.
type bought struct {
	purged, archived, sold, canceled ledger.HoldID
	reservation                      ledger.ReservationID
	other                            ledger.HoldID // of somebody else, in the same batch
}

// buy gives U-17 a sale that has left the table, one that is archived and has not, one and a
// given up hold that are in use, a paid reservation, an ended cool-down, counts, and records of
// idempotency; and U-18 a sale in the same batch.
func (w *world) buy() bought {
	w.t.Helper()
	_, err := w.cloud.Objects().PutBucketVersioning(w.t.Context(), &s3.PutBucketVersioningInput{
		Bucket: aws.String(bucketName), VersioningConfiguration: &s3types.VersioningConfiguration{Status: s3types.BucketVersioningStatusEnabled},
	})
	w.check(err)
	policy := ledger.DefaultPolicy()
	policy.QuantityPerOwnerMax, policy.HoldsPerOwnerMax, policy.ExpiriesMax, policy.CooldownFor = 9, 9, 5, time.Hour
	w.define(policy)
	var b bought
	b.purged = w.sell(w.owner())
	b.other = w.sell(commands.Request{Actor: "owner:U-18", Owner: "U-18", RequestID: "request_test"})
	w.ops("redrive")
	if archived := w.archive(); archived != 2 {
		w.t.Fatalf("%d are archived", archived)
	}
	w.purge()
	b.archived = w.sell(w.owner())
	w.ops("redrive")
	if archived := w.archive(); archived != 1 {
		w.t.Fatalf("%d are archived", archived)
	}
	// What follows is of today.
	w.clock.Advance(time.Since(w.clock.Now()).Truncate(time.Millisecond) - 3*time.Hour)
	expired := w.hold()
	w.clock.Advance(time.Hour)
	_, err = w.shop.ExpireHold(w.t.Context(), expired.ID, "request_test")
	w.check(err)
	w.ops("unblock", "U-17", "-who", "olga", "-why", "U-17 called, the app made them")
	b.sold, b.canceled = w.sell(w.owner()), w.hold().ID
	_, err = w.shop.CancelHold(w.t.Context(), w.owner(), b.canceled, func(ledger.Hold, time.Time) (ledger.Response, error) {
		return ledger.Response{Status: 200}, nil
	})
	w.check(err)
	b.reservation = w.pay()
	w.ops("redrive")
	return b
}

// sell holds one unit and confirms it.
func (w *world) sell(request commands.Request) ledger.HoldID {
	w.t.Helper()
	request.Key, request.Fingerprint = ledger.IdempotencyKey(fmt.Sprint("key-", rand.Int64())), "fingerprint"
	var made ledger.HoldID
	_, err := w.shop.CreateHold(w.t.Context(), request, commands.HoldWish{Quotes: []ledger.Quote{{Slot: slotID, Quantity: 1, UnitAmount: 1000}}},
		func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
			made = h.ID
			return ledger.Response{Status: 201, Body: []byte(h.ID)}, nil
		})
	w.check(err)
	_, err = w.shop.ConfirmHold(w.t.Context(), request, made, "", nil, func(ledger.Hold, time.Time) (ledger.Response, error) { return ledger.Response{Status: 200}, nil })
	w.check(err)
	return made
}

// pay buys one unit through a payment.
func (w *world) pay() ledger.ReservationID {
	w.t.Helper()
	bank := paymenttest.NewBank(w.clock.Now)
	provider := paymenttest.NewProvider(bank)
	hold := w.hold()
	request := w.owner()
	request.Key, request.Fingerprint = "pay", "fingerprint"
	_, secret, err := commands.NewPayments(w.shop, provider).Start(w.t.Context(), request, hold.ID, func(ledger.Reservation, ledger.Hold, time.Time) (ledger.Response, error) {
		return ledger.Response{Status: 202}, nil
	})
	w.check(err)
	_, err = bank.Pay(secret.Reveal())
	w.check(err)
	stored, err := w.store.Hold(w.t.Context(), hold.ID)
	w.check(err)
	driver := saga.NewDriver(saga.Ports{
		Store: w.store, Provider: provider, Clock: w.clock, Random: system.RealRandom{}, Metrics: unmeasured{}, Dwells: &telemetry.Spread{}, Logger: slog.New(slog.DiscardHandler),
	})
	for range 10 {
		w.check(driver.Drive(w.t.Context(), stored.Reservation, nil, "request_test"))
		r, err := w.store.Reservation(w.t.Context(), stored.Reservation)
		w.check(err)
		if r.AtRest() {
			return r.ID
		}
		w.clock.Advance(time.Minute)
	}
	w.t.Fatal("the reservation does not come to rest")
	return ""
}

// everything is all that is stored anywhere, as one text: the items of the table, and every
// version of every object, unpacked.
func (w *world) everything() string {
	w.t.Helper()
	var out strings.Builder
	for _, i := range w.items() {
		text, err := json.Marshal(i)
		w.check(err)
		out.Write(append(text, '\n'))
	}
	page, err := w.cloud.Objects().ListObjectVersions(w.t.Context(), &s3.ListObjectVersionsInput{Bucket: aws.String(bucketName)})
	w.check(err)
	for _, version := range page.Versions {
		object, err := w.cloud.Objects().GetObject(w.t.Context(), &s3.GetObjectInput{Bucket: aws.String(bucketName), Key: version.Key, VersionId: version.VersionId})
		w.check(err)
		body, err := io.ReadAll(object.Body)
		w.check(errors.Join(err, object.Body.Close()))
		if unpacked, err := gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(unpacked)
			w.check(err)
		}
		out.WriteString(*version.Key + "\n" + string(body) + "\n")
	}
	return out.String()
}

// mortal lets the calls of one run through until it is killed by the nth: either before it is
// sent, or before its answer comes.
type mortal struct {
	mutex  sync.Mutex
	left   int
	sent   bool
	kill   context.CancelFunc
	beyond http.RoundTripper
}

// RoundTrip carries a call out while the run lives.
func (m *mortal) RoundTrip(request *http.Request) (*http.Response, error) {
	m.mutex.Lock()
	m.left--
	left := m.left
	m.mutex.Unlock()
	if left > 0 {
		return m.beyond.RoundTrip(request)
	}
	if left == 0 && m.sent {
		if response, err := m.beyond.RoundTrip(request); err == nil {
			_ = response.Body.Close()
		}
	}
	m.kill()
	return nil, context.Canceled
}

// forgetUntilKilled runs one forgetting that is killed at its nth call, and returns what it
// prints and its error.
func (w *world) forgetUntilKilled(n int, sent bool, key string) (string, error) {
	w.t.Helper()
	ctx, kill := context.WithCancel(w.t.Context())
	defer kill()
	var out bytes.Buffer
	o := &operator{out: &out, yes: true, forgetting: forgetChoice{keyFile: key}}
	w.check(o.connect(ctx, "archive", w.environment))
	o.aws.HTTPClient = &http.Client{Transport: &mortal{left: n, sent: sent, kill: kill, beyond: http.DefaultTransport}}
	o.aws.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
	o.rewire()
	err := forgetOwner(ctx, o, []string{"U-17"})
	return out.String(), err
}

// rewire makes the client and the store anew.
func (o *operator) rewire() {
	client := dynamodb.New(o.client.Options(), func(options *dynamodb.Options) {
		options.HTTPClient, options.Retryer = o.aws.HTTPClient, aws.NopRetryer{}
	})
	o.use(client)
}

// A forgetting that is killed at any moment is run again, until nothing of the owner is left in
// the table and in the archive, all still adds up, and nobody else is touched. Case L5: what it
// prints and its errors have neither the owner nor the key.
func TestCaseL5_AnOwnerIsForgottenEverywhere(t *testing.T) {
	w := newWorld(t, 60*day)
	b := w.buy()
	key := w.key(strings.Repeat("k", ledger.ForgetKeyBytesMin))
	if all := w.everything(); strings.Count(all, "U-17") < 20 || strings.Contains(all, "forgotten_") {
		t.Fatalf("the world is not what the test needs")
	}
	random := rand.New(rand.NewPCG(1, 2))
	said := ""
	runs := 0
	for n := 2; ; n += 1 + random.IntN(3) {
		out, err := w.forgetUntilKilled(n, random.IntN(2) == 0, key)
		runs++
		said += out + fmt.Sprintln(err)
		if err == nil {
			break
		}
		var story explain.Story
		if runs%5 == 0 {
			if w.opsJSON(&story, "explain", "slot", "seat"); !story.Matches {
				t.Errorf("after %d calls: %s", n, story.Verdict)
			}
		}
		if n > 1000 {
			t.Fatal(err)
		}
	}
	t.Logf("%d runs", runs)
	name, err := ledger.ForgottenOwner([]byte(strings.Repeat("k", ledger.ForgetKeyBytesMin)), "U-17")
	w.check(err)
	all := w.everything()
	for _, line := range strings.Split(all, "\n") {
		if strings.Contains(line, "U-17") {
			t.Errorf("the owner is left in %s", line)
		}
	}
	if !strings.Contains(all, string(name)) || !strings.Contains(all, "U-18") {
		t.Errorf("the name %s, or another owner, is nowhere", name)
	}
	for _, secret := range []string{"U-17", strings.Repeat("k", 8)} {
		if strings.Contains(said, secret) {
			t.Errorf("what it says has %q:\n%s", secret, said)
		}
	}
	for _, id := range []ledger.HoldID{b.purged, b.archived, b.sold, b.canceled, b.other} {
		var story explain.Story
		if w.opsJSON(&story, "explain", "hold", string(id)); !story.Matches {
			t.Errorf("hold %s: %s", id, story.Verdict)
		}
	}
	quota, err := w.store.Quota(t.Context(), name)
	w.check(err)
	if units := quota.Counts[ledger.SlotQuota(slotID)]; units != 4 {
		t.Errorf("%d units are counted of %s, want 4", units, name)
	}

	var audit audited
	if w.opsJSON(&audit, "audit"); len(audit.Findings) != 0 || audit.Holds == 0 {
		t.Errorf("the audit finds %+v", audit.Findings)
	}

	before := w.everything()
	var again forgotten
	w.opsJSON(&again, "forget", "U-17", "-key", key, "-yes")
	if again.Holds+again.Reservations+again.Events+again.Counts+again.Others+again.Batches+again.Versions != 0 || w.everything() != before {
		t.Errorf("once more it does %+v", again)
	}
}

// key writes a key, and returns its file.
func (w *world) key(text string) string {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "forget.key")
	w.check(os.WriteFile(file, []byte(text), 0o600))
	return file
}

// An owner of whom something is under way is not forgotten, and what it is, is named. Without
// -yes, and without a key, nothing is written either.
func TestForgettingIsRefused(t *testing.T) {
	w := newWorld(t, time.Minute)
	sold := w.sell(w.owner())
	held := w.hold().ID
	key := w.key(strings.Repeat("k", ledger.ForgetKeyBytesMin))
	before := w.everything()
	if err := w.fails("forget", "U-17", "-key", key, "-yes"); !strings.Contains(err.Error(), "1 holds or reservations under way. End them first: hold "+string(held)+" is HELD") || strings.Contains(err.Error(), string(sold)) {
		t.Errorf("with a HELD hold: %v", err)
	}
	_, err := w.shop.CancelHold(t.Context(), w.owner(), held, func(ledger.Hold, time.Time) (ledger.Response, error) { return ledger.Response{}, nil })
	w.check(err)
	if after := w.everything(); strings.Count(after, "forgotten_")+strings.Count(before, "forgotten_") != 0 {
		t.Errorf("a refused forgetting has written")
	}
	before = w.everything()
	for _, test := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"U-17", "-key", key}, "nothing was changed; the same with -yes does it"},
		{[]string{"U-17", "-yes"}, "say -key FILE"},
		{[]string{"U-17", "-yes", "-key", w.key("short")}, "the key has 5 bytes, and needs 32"},
		{[]string{"forgotten_0123", "-yes", "-key", key}, "no owner who could be forgotten"},
	} {
		if err := w.fails("forget", test.arguments...); !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v, want %q", test.arguments, err, test.want)
		}
	}
	if w.everything() != before {
		t.Errorf("something was written")
	}
	var out bytes.Buffer
	err = run(t.Context(), []string{"forget", "-environment", w.environment, "U-17"}, &out)
	if !errors.Is(err, errNotSaidYes) || !strings.Contains(out.String(), "It can't be undone") || !strings.Contains(out.String(), "-     2 ") {
		t.Errorf("without -yes: %v\n%s", err, out.String())
	}
}

// A slot that the catalogue has called after the owner keeps its id, which is told: nobody may
// believe that all is gone.
func TestForgettingTellsWhatIsLeft(t *testing.T) {
	w := newWorld(t, time.Minute)
	w.sell(w.owner())
	_, err := w.shop.PutSlot(t.Context(), commands.Request{Actor: "service:catalog"}, "coins:U-17", ledger.SlotDefinition{
		ResourceType: "coins", ResourceID: "coins", Policy: ledger.DefaultPolicy(), Terms: ledger.Terms{Price: ledger.Money{Currency: "KRW"}, Shards: 1},
	}, func(ledger.Slot, ledger.Policy, ledger.Counters, bool) (ledger.Response, error) {
		return ledger.Response{}, nil
	})
	w.check(err)
	var out bytes.Buffer
	err = run(t.Context(), []string{"forget", "-environment", w.environment, "-key", w.key(strings.Repeat("k", 40)), "-yes", "U-17"}, &out)
	if err == nil || !strings.Contains(err.Error(), "3 items still name the owner") || strings.Count(out.String(), "#coins:U-17") != 3 || strings.Contains(out.String(), "HOLD#") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// A batch that is being written is left to a later run, which is told. An object of a batch that
// never came to be is deleted.
func TestForgettingBesideTheArchive(t *testing.T) {
	w := newWorld(t, 60*day)
	sold := w.sell(w.owner())
	w.ops("redrive")
	if archived := w.archive(); archived != 1 {
		t.Fatalf("%d are archived", archived)
	}
	var batches []listed
	w.opsJSON(&batches, "archive", "list", "hold")
	b := archive.Batch{Kind: ledger.ArchiveHolds, ID: batches[0].Batch, Begun: batches[0].Begun}
	dead := archive.Batch{Kind: ledger.ArchiveHolds, ID: "batch_dead", Begun: b.Begun}
	_, err := w.cloud.Objects().CopyObject(t.Context(), &s3.CopyObjectInput{
		Bucket: aws.String(bucketName), Key: aws.String(dead.DataKey()), CopySource: aws.String(bucketName + "/" + b.DataKey()),
	})
	w.check(err)
	now := time.Now()
	taken, got, err := w.store.TakeLease(t.Context(), lease.KindArchive, 0, "worker_test", now, now.Add(time.Minute))
	w.check(err)
	plan := ledger.ArchivePlan{Kind: b.Kind, Shard: 3, Batch: b.ID, Begun: b.Begun.UTC(), Sealed: true, Subjects: []ledger.PlannedSubject{{Subject: ledger.ArchiveSubject{Hold: sold}, Version: 2}}}
	saved, err := w.store.SavePlan(t.Context(), plan, taken.Fence)
	w.check(err)
	if !got || !saved {
		t.Fatalf("the lease is ours: %t; the plan is saved: %t", got, saved)
	}
	arguments := []string{"U-17", "-yes", "-key", w.key(strings.Repeat("k", 40))}
	if err := w.fails("forget", arguments...); !strings.Contains(err.Error(), "1 batches are being archived now, the first is "+string(b.ID)) {
		t.Errorf("beside a batch that is being written: %v", err)
	}
	if all := w.everything(); !strings.Contains(all, "U-17") || strings.Contains(all, "batch_dead") {
		t.Errorf("the batch that is being written was touched, or the dead one was not")
	}
	cleared, err := w.store.ClearPlan(t.Context(), plan, taken.Fence)
	w.check(err)
	var done forgotten
	if w.opsJSON(&done, "forget", arguments...); !cleared || done.Batches != 1 || strings.Contains(w.everything(), "U-17") {
		t.Errorf("cleared %t, and afterwards: %+v", cleared, done)
	}
	w.ops("archive", "verify", "hold", string(b.ID))
}

// The key of a local run is made once.
func TestTheKeyOfALocalRun(t *testing.T) {
	o := &operator{folder: t.TempDir()}
	first, err := o.forgetKey()
	if err != nil || len(first) != ledger.ForgetKeyBytesMin {
		t.Fatalf("%d bytes, %v", len(first), err)
	}
	second, err := o.forgetKey()
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("another key: %v", err)
	}
	if info, err := os.Stat(filepath.Join(o.folder, forgetKeyName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of the key: %v, %v", info, err)
	}
}
