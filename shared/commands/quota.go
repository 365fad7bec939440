package commands

import (
	"time"

	"holdfast/shared/ledger"
)

// beyondLimits is the answer where what is counted of the owner, or of a device or a means
// of payment, refused the tried change. It is nil where nothing of that did, and where
// other transactions were running: the counts may be others by now, so it is decided anew.
//
// What refuses is shown by the refused record itself. A cool-down is told by cooling.
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

// cooling looks at the expired holds of the owner of a refused creation. It is the answer
// while the cool-down lasts. If it is over the next try says so, and the write makes sure.
func (h *creation) cooling(r *ledger.Refused, origin ledger.Origin, now time.Time) error {
	if r.Contended {
		return nil
	}
	for _, leg := range r.LegsOf(ledger.LegQuota) {
		for _, w := range h.tried.Quotas {
			if leg.Quota == nil || w.Owner != leg.Quota.Owner {
				continue
			}
			if w.ExpiredBelow == 0 || leg.Quota.Expired < w.ExpiredBelow {
				// Nothing expired too often. One that was said to have cooled down, and of
				// whom a hold has expired since, is counted anew.
				h.cooledDown = false
				continue
			}
			wait, err := h.coolsFor(*leg.Quota, origin, now)
			if err != nil {
				return err
			}
			if wait > 0 {
				return &ledger.Error{Code: ledger.CodeCoolingDown, RetryAfter: wait,
					Message: "too many of your holds ended unused, one after the other; wait, or ask the seller to let you go on"}
			}
			h.cooledDown = true
		}
	}
	return nil
}

// coolsFor is how long after now the cool-down is over that follows from the counts; zero or
// less if it is. How long it lasts is the core's to say: the plan of somebody who has cooled
// down requires that no hold has expired after a time.
func (h *creation) coolsFor(q ledger.Quota, origin ledger.Origin, now time.Time) (time.Duration, error) {
	cooled, err := h.plan(true, origin, now)
	if err != nil {
		return 0, err
	}
	var wait time.Duration
	for _, w := range cooled.Quotas {
		if w.Owner == q.Owner {
			wait = q.LastExpiredAt.Sub(w.LastExpiredBy)
		}
	}
	return wait, nil
}
