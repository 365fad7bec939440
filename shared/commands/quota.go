package commands

import (
	"time"

	"holdfast/shared/ledger"
)

// beyondLimits is the answer where what is counted of the owner, or of a device or a means
// of payment, refused the tried change. It is nil where nothing of that did, and where
// other transactions were running: the counts may be others by now, so it is decided anew.
//
// What refuses is shown by the refused record itself. A cool-down is told by coolDown.
func beyondLimits(r *ledger.Refused, tried ledger.Change, now time.Time) error {
	if r.Contended {
		return nil
	}
	for _, leg := range r.LegsOf(ledger.LegQuota) {
		if leg.Quota == nil {
			continue
		}
		for _, w := range tried.Quotas {
			if w.Owner != leg.Quota.Owner {
				continue
			}
			if reached := limitsReached(w, *leg.Quota); len(reached) > 0 {
				return ledger.LimitReached(reached)
			}
		}
	}
	for _, leg := range r.LegsOf(ledger.LegSignal) {
		if leg.Signal != nil {
			// The number is not told. It is not the owner's own, and who makes holds by the
			// thousand would only learn how many to make.
			return &ledger.Error{Code: ledger.CodeLimitReached, RetryAfter: leg.Signal.Window.Add(ledger.SignalWindow).Sub(now),
				Message: "too many holds were made from this device, or with this means of payment; try again later"}
		}
	}
	return nil
}

// limitsReached are the limits that the write would have led beyond.
func limitsReached(w ledger.QuotaWrite, q ledger.Quota) []ledger.Limit {
	var out []ledger.Limit
	for _, d := range w.Deltas {
		if d.Max > 0 && q.Counts[d.Key]+d.Units > d.Max {
			out = append(out, ledger.Limit{Key: d.Key, Max: d.Max})
		}
	}
	return out
}

// coolDown is what is known of an owner's cool-down, over all tries of one command. It is
// first assumed that there is none.
type coolDown struct {
	// over says that the owner's expired holds are longer ago than the cool-down.
	over bool
}

// learn looks at the expired holds of the owner whose tried change was refused. It is the
// answer while the cool-down lasts. If it is over the next try says so, and the write makes
// sure. plan is the change of somebody who has cooled down: how long that takes is the core's
// to say, and such a plan requires that no hold has expired after a time.
func (c *coolDown) learn(r *ledger.Refused, tried ledger.Change, plan func() (ledger.Change, error)) error {
	if r.Contended {
		return nil
	}
	for _, leg := range r.LegsOf(ledger.LegQuota) {
		for _, w := range tried.Quotas {
			if leg.Quota == nil || w.Owner != leg.Quota.Owner {
				continue
			}
			if w.ExpiredBelow == 0 || leg.Quota.Expired < w.ExpiredBelow {
				// Nothing expired too often. One that was said to have cooled down, and of
				// whom a hold has expired since, is counted anew.
				c.over = false
				continue
			}
			cooled, err := plan()
			if err != nil {
				return err
			}
			if wait := coolsFor(*leg.Quota, cooled); wait > 0 {
				return &ledger.Error{Code: ledger.CodeCoolingDown, RetryAfter: wait,
					Message: "too many of your holds ended unused, one after the other; wait, or ask the seller to let you go on"}
			}
			c.over = true
		}
	}
	return nil
}

// coolsFor is how long after the moment of the cooled change the cool-down is over that
// follows from the counts; zero or less if it is.
func coolsFor(q ledger.Quota, cooled ledger.Change) time.Duration {
	var wait time.Duration
	for _, w := range cooled.Quotas {
		if w.Owner == q.Owner {
			wait = q.LastExpiredAt.Sub(w.LastExpiredBy)
		}
	}
	return wait
}
