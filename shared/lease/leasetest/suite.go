package leasetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"holdfast/shared/lease"
)

// The suite's time, kind and shard, and how long its leases last.
var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

const (
	kind  = lease.KindExpiry
	shard = 7
	lasts = 30 * time.Second
)

// Run checks that what open returns keeps the contract of lease.Leases. Each rule opens
// leases of its own, of which nobody has any.
func Run(t *testing.T, open func(t *testing.T) lease.Leases) {
	for _, r := range []struct {
		name string
		keep func(*fixture)
	}{
		{"OnlyOneWorkerHasAShard", onlyOneWorkerHasAShard},
		{"AnEndedLeaseIsTaken", anEndedLeaseIsTaken},
		{"AWorkerTakesItsOwnAgain", aWorkerTakesItsOwnAgain},
		{"KindsAndShardsAreApart", kindsAndShardsAreApart},
		{"ARenewalLastsLonger", aRenewalLastsLonger},
		{"ALostLeaseIsNotRenewed", aLostLeaseIsNotRenewed},
		{"AnEndedLeaseThatNobodyTookIsRenewed", anEndedLeaseThatNobodyTookIsRenewed},
		{"AReturnedLeaseIsFree", aReturnedLeaseIsFree},
		{"ALostLeaseIsNotReturned", aLostLeaseIsNotReturned},
		{"ALateReturnKeepsNobodyOut", aLateReturnKeepsNobodyOut},
		{"OfManyOneWins", ofManyOneWins},
		{"AGivenUpCallIsAnError", aGivenUpCallIsAnError},
	} {
		t.Run(r.name, func(t *testing.T) { r.keep(&fixture{t, open(t)}) })
	}
}

type fixture struct {
	*testing.T
	leases lease.Leases
}

// take asks for the shard at a time and says whether the worker got it.
func (f *fixture) take(worker lease.Worker, at time.Time) (lease.Lease, bool) {
	f.Helper()
	got, taken, err := f.leases.TakeLease(f.Context(), kind, shard, worker, at, at.Add(lasts))
	if err != nil {
		f.Fatalf("take: %v", err)
	}
	return got, taken
}

// mustTake takes the shard, which must be free.
func (f *fixture) mustTake(worker lease.Worker, at time.Time) lease.Lease {
	f.Helper()
	got, taken := f.take(worker, at)
	want := lease.Lease{Kind: kind, Shard: shard, Worker: worker, Fence: got.Fence, Until: at.Add(lasts)}
	if !taken || got != want || got.Fence < 1 {
		f.Fatalf("%s takes the shard at %s: %+v, %t", worker, at, got, taken)
	}
	return got
}

func (f *fixture) wantGrowth(before, after lease.Lease) {
	f.Helper()
	if after.Fence <= before.Fence {
		f.Errorf("the fencing number went from %d to %d", before.Fence, after.Fence)
	}
}

func onlyOneWorkerHasAShard(f *fixture) {
	first := f.mustTake("worker_1", start)
	for _, at := range []time.Time{start, start.Add(lasts - time.Millisecond)} {
		if got, taken := f.take("worker_2", at); taken || got != first {
			f.Errorf("at %s: %+v, %t; want the lease as it stands: %+v", at, got, taken, first)
		}
	}
}

func anEndedLeaseIsTaken(f *fixture) {
	f.wantGrowth(f.mustTake("worker_1", start), f.mustTake("worker_2", start.Add(lasts)))
}

func aWorkerTakesItsOwnAgain(f *fixture) {
	first := f.mustTake("worker_1", start)
	again := f.mustTake("worker_1", start.Add(time.Second))
	f.wantGrowth(first, again)
	if got, renewed, err := f.leases.RenewLease(f.Context(), first, start.Add(time.Hour)); err != nil || renewed {
		f.Errorf("the lease from before is renewed: %+v, %t, %v", got, renewed, err)
	}
}

func kindsAndShardsAreApart(f *fixture) {
	f.mustTake("worker_1", start)
	if _, taken, err := f.leases.TakeLease(f.Context(), lease.KindArchive, shard, "worker_2", start, start.Add(lasts)); err != nil || !taken {
		f.Errorf("another kind: %t, %v", taken, err)
	}
	if _, taken, err := f.leases.TakeLease(f.Context(), kind, shard+1, "worker_2", start, start.Add(lasts)); err != nil || !taken {
		f.Errorf("another shard: %t, %v", taken, err)
	}
}

func aRenewalLastsLonger(f *fixture) {
	want := f.mustTake("worker_1", start)
	want.Until = start.Add(2 * lasts)
	for range 2 { // it may be repeated
		if got, renewed, err := f.leases.RenewLease(f.Context(), want, want.Until); err != nil || !renewed || got != want {
			f.Fatalf("renew: %+v, %t, %v; want %+v", got, renewed, err, want)
		}
	}
	if got, taken := f.take("worker_2", start.Add(2*lasts-time.Millisecond)); taken || got != want {
		f.Errorf("before the renewed lease ends: %+v, %t", got, taken)
	}
	f.wantGrowth(want, f.mustTake("worker_2", start.Add(2*lasts)))
}

func aLostLeaseIsNotRenewed(f *fixture) {
	lost := f.mustTake("worker_1", start)
	other := f.mustTake("worker_2", start.Add(lasts))
	if _, renewed, err := f.leases.RenewLease(f.Context(), lost, start.Add(time.Hour)); err != nil || renewed {
		f.Errorf("renew: %t, %v", renewed, err)
	}
	if got, taken := f.take("worker_3", start.Add(lasts)); taken || got != other {
		f.Errorf("the other's lease is %+v, %t; want %+v", got, taken, other)
	}
}

func anEndedLeaseThatNobodyTookIsRenewed(f *fixture) {
	held := f.mustTake("worker_1", start)
	if _, renewed, err := f.leases.RenewLease(f.Context(), held, start.Add(time.Hour)); err != nil || !renewed {
		f.Errorf("renew: %t, %v", renewed, err)
	}
}

func aReturnedLeaseIsFree(f *fixture) {
	held := f.mustTake("worker_1", start)
	for range 2 { // it may be repeated
		if err := f.leases.ReturnLease(f.Context(), held, start.Add(time.Second)); err != nil {
			f.Fatal(err)
		}
	}
	f.wantGrowth(held, f.mustTake("worker_2", start.Add(time.Second)))
}

func aLostLeaseIsNotReturned(f *fixture) {
	lost := f.mustTake("worker_1", start)
	other := f.mustTake("worker_2", start.Add(lasts))
	if err := f.leases.ReturnLease(f.Context(), lost, start.Add(lasts)); err != nil {
		f.Fatal(err)
	}
	if got, taken := f.take("worker_3", start.Add(lasts)); taken || got != other {
		f.Errorf("the other's lease is %+v, %t; want %+v", got, taken, other)
	}
}

// A lease that had ended must not last until the moment at which it is given back.
func aLateReturnKeepsNobodyOut(f *fixture) {
	held := f.mustTake("worker_1", start)
	if err := f.leases.ReturnLease(f.Context(), held, start.Add(time.Hour)); err != nil {
		f.Fatal(err)
	}
	f.mustTake("worker_2", start.Add(lasts))
}

func ofManyOneWins(f *fixture) {
	workers := []lease.Worker{"worker_1", "worker_2", "worker_3", "worker_4", "worker_5", "worker_6"}
	won, failures := make([]bool, len(workers)), make([]error, len(workers))
	var all sync.WaitGroup
	for i, worker := range workers {
		all.Go(func() {
			_, won[i], failures[i] = f.leases.TakeLease(f.Context(), kind, shard, worker, start, start.Add(lasts))
		})
	}
	all.Wait()
	winners := 0
	for i := range workers {
		if failures[i] != nil {
			f.Errorf("%s: %v", workers[i], failures[i])
		}
		if won[i] {
			winners++
		}
	}
	if winners != 1 {
		f.Errorf("%d workers have the shard", winners)
	}
}

func aGivenUpCallIsAnError(f *fixture) {
	held := f.mustTake("worker_1", start)
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	if _, taken, err := f.leases.TakeLease(ctx, kind, shard, "worker_2", start.Add(lasts), start.Add(2*lasts)); err == nil || taken {
		f.Errorf("take: %t, %v", taken, err)
	}
	if _, renewed, err := f.leases.RenewLease(ctx, held, start.Add(time.Hour)); err == nil || renewed {
		f.Errorf("renew: %t, %v", renewed, err)
	}
	if err := f.leases.ReturnLease(ctx, held, start); err == nil {
		f.Error("return: no error")
	}
	if got, taken := f.take("worker_2", start); taken || got != held {
		f.Errorf("the lease is %+v, %t; want %+v", got, taken, held)
	}
}
