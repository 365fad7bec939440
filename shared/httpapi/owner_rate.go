package httpapi

import (
	"maps"
	"slices"
	"sync"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/topology"
)

const (
	// ownerRequestsPerSecond and ownerBurst are far more than a person with several devices
	// sends, and far less than a program can.
	ownerRequestsPerSecond, ownerBurst = 20, 40
	// ownerRateEntriesMax bounds the memory of the limit.
	ownerRateEntriesMax = 10_000
)

// OwnerRate is how many requests of one owner a process takes. It is a brake on programs
// that ask without a pause and no promise to anybody: each process counts for itself. What
// one owner may have is limited exactly by policies, in the ledger's own writes. The zero
// value limits nobody.
type OwnerRate struct {
	PerSecond int // how many a second for ever
	Burst     int // how many at once after a pause
}

// DefaultOwnerRate is the rate of a deployed API.
func DefaultOwnerRate() OwnerRate { return OwnerRate{ownerRequestsPerSecond, ownerBurst} }

// ownerRates counts the requests of owners. It is safe for concurrent use.
type ownerRates struct {
	rate  OwnerRate
	mutex sync.Mutex
	// fullAt is when an owner has all of the burst again. An owner whose time has passed
	// counts like one who never asked.
	fullAt map[ledger.OwnerID]time.Time
}

func newOwnerRates(rate OwnerRate) *ownerRates {
	return &ownerRates{rate: rate, fullAt: make(map[ledger.OwnerID]time.Time)}
}

// admit returns codeRateLimited for the request of an owner who sends too many. Only who
// comes as an owner is counted: all buyers of a shop come through the one subject of its
// service.
func (o *ownerRates) admit(route topology.Route, p Principal, now time.Time) error {
	if o.rate.PerSecond <= 0 || !slices.Contains(route.Scopes, topology.ScopeHolds) || !p.has(topology.ScopeHolds) {
		return nil
	}
	if wait := o.take(p.Subject, now); wait > 0 {
		return &ledger.Error{Code: codeRateLimited, RetryAfter: wait, Message: "you ask too often; ask again after Retry-After, and more slowly"}
	}
	return nil
}

// take counts one request of the owner at now. If that is too many it counts nothing, and
// says after which time it would not be.
func (o *ownerRates) take(owner ledger.OwnerID, now time.Time) time.Duration {
	each := time.Second / time.Duration(o.rate.PerSecond)
	burst := each * time.Duration(max(1, o.rate.Burst))
	o.mutex.Lock()
	defer o.mutex.Unlock()
	full := now
	if known := o.fullAt[owner]; known.After(now) {
		full = known
	}
	if latest := now.Add(burst); full.After(latest) {
		full, o.fullAt[owner] = latest, latest // the clock was set back
	}
	if full = full.Add(each); full.Sub(now) > burst {
		return full.Sub(now) - burst
	}
	o.makeRoom(now)
	o.fullAt[owner] = full
	return 0
}

// makeRoom forgets whoever has all of the burst again, once there are many entries. If that
// is too few it forgets all, which lets some ask more often and costs nobody anything.
func (o *ownerRates) makeRoom(now time.Time) {
	if len(o.fullAt) < ownerRateEntriesMax {
		return
	}
	maps.DeleteFunc(o.fullAt, func(_ ledger.OwnerID, full time.Time) bool { return !full.After(now) })
	if len(o.fullAt) > ownerRateEntriesMax/2 {
		clear(o.fullAt)
	}
}
