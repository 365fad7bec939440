package expiry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/shared/ledger"
)

const (
	// FailuresMax is how many tries to end a hold may fail before it is parked: it is then
	// tried more and more seldom, so that it takes no time from others, and people are told.
	FailuresMax = 3
	// BackOffMin is the time from the failure that parks a hold to its next try. It doubles
	// with every failure.
	BackOffMin = time.Minute
	// BackOffMax bounds that time, so that a repaired hold ends soon without anybody's help.
	BackOffMax = 15 * time.Minute
	// ParkedLooksMax bounds how many parked holds one sweep looks at, and so how many it
	// tries. More than a few are a fault of ours, and have waited for so long that a minute
	// more is nothing.
	ParkedLooksMax = 50
	// ParkedPagesMax bounds the pages of parked holds that one sweep reads of each shard, of
	// ledger.PageItemsMax entries.
	ParkedPagesMax = 4
	// ParkedLookFor bounds the look as a whole: a database that hangs must leave time for
	// the holds that are merely due.
	ParkedLookFor = 8 * time.Second
)

// nextTry says when a hold is tried again that could not be ended so many times, and
// whether it is parked until then. One that is not stays where it is, for the next sweep.
func nextTry(failures int, now time.Time) (at time.Time, parked bool) {
	if failures < FailuresMax {
		return time.Time{}, false
	}
	backOff := BackOffMin
	for range failures - FailuresMax {
		if backOff *= 2; backOff >= BackOffMax {
			return now.Add(BackOffMax), true
		}
	}
	return now.Add(backOff), true
}

// Parking keeps what is known of holds that could not be ended. A dynamo.Store is one. It
// changes no promise, so none of it is a Change. Every method may be repeated. Each write
// is made only while the due index lists the hold as the entry says, and reports whether
// it was: an end, a payment or another worker may have been faster. It works on a hold that
// can't be read too.
type Parking interface {
	// Failures says how often ending the hold has failed. It is zero for a hold that does not
	// exist.
	Failures(ctx context.Context, id ledger.HoldID) (ledger.EndFailures, error)
	// CountFailure notes how often ending the hold has failed.
	CountFailure(ctx context.Context, entry ledger.DueHold, failures int) (bool, error)
	// Park notes the same, and takes the entry from the due holds to the parked ones, or
	// moves it among those, until tryAt.
	Park(ctx context.Context, entry ledger.DueHold, failures int, tryAt time.Time) (bool, error)
	// Unpark puts a parked entry back to the due holds, at its due time and without failures.
	Unpark(ctx context.Context, entry ledger.DueHold) (bool, error)
	// Parked lists the parked holds of one shard, those that are tried next first, as entries
	// whose DueAt is not known.
	Parked(ctx context.Context, shard int, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error)
}

// ParkedLook finds out how the parked holds stand, at the beginning of a sweep.
type ParkedLook struct {
	parking Parking
}

// NewParkedLook returns a ParkedLook.
func NewParkedLook(parking Parking) *ParkedLook { return &ParkedLook{parking} }

// ParkedReport is how the parked holds stand.
type ParkedReport struct {
	// Count is how many there are, up to ParkedPagesMax pages of each shard.
	Count int
	// OldestDueAt is the due time of the one that is overdue longest, of the ParkedLooksMax
	// that are tried next; zero when there is none.
	OldestDueAt time.Time
	// Due are those whose next try has come, with their due times: the longest waiting
	// first, and ParkedLooksMax at most.
	Due []ledger.DueHold
}

// Look reads all shards of the parked holds. With an error the report has what could be
// read all the same, and its numbers are too small. It may be repeated.
func (p *ParkedLook) Look(ctx context.Context, now time.Time) (ParkedReport, error) {
	ctx, cancel := context.WithTimeout(ctx, ParkedLookFor)
	defer cancel()
	var failures []error
	var listed []ledger.DueHold
	for shard := range ledger.DueShards {
		entries, err := p.shard(ctx, shard)
		listed = append(listed, entries...)
		failures = append(failures, err)
	}
	slices.SortStableFunc(listed, func(a, b ledger.DueHold) int { return a.TryAt.Compare(b.TryAt) })
	report := ParkedReport{Count: len(listed)}
	for _, entry := range listed[:min(len(listed), ParkedLooksMax)] {
		dueAt, err := p.dueAt(ctx, entry)
		switch {
		case err != nil:
			failures = append(failures, fmt.Errorf("parked hold %s: %w", entry.ID, err))
			entry.DueAt = entry.TryAt // it has been due since before that
		case dueAt.IsZero(): // the index is late
			report.Count--
			continue
		default:
			entry.DueAt = dueAt
		}
		if !dueAt.IsZero() && (report.OldestDueAt.IsZero() || dueAt.Before(report.OldestDueAt)) {
			report.OldestDueAt = dueAt
		}
		if !entry.TryAt.After(now) {
			report.Due = append(report.Due, entry)
		}
	}
	return report, errors.Join(failures...)
}

// shard lists the parked holds of one shard.
func (p *ParkedLook) shard(ctx context.Context, shard int) ([]ledger.DueHold, error) {
	var all []ledger.DueHold
	page := ledger.Page{Limit: ledger.PageItemsMax}
	for range ParkedPagesMax {
		entries, after, err := p.page(ctx, shard, page)
		all = append(all, entries...)
		switch {
		case err != nil:
			return all, fmt.Errorf("parked shard %d: %w", shard, err)
		case after == "":
			return all, nil
		}
		page.After = after
	}
	return all, nil
}

func (p *ParkedLook) page(ctx context.Context, shard int, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
	ctx, cancel := context.WithTimeout(ctx, StepFor)
	defer cancel()
	return p.parking.Parked(ctx, shard, page)
}

// dueAt is since when the entry's hold is due, or zero if it is not parked any more.
func (p *ParkedLook) dueAt(ctx context.Context, entry ledger.DueHold) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, StepFor)
	defer cancel()
	failures, err := guarded(func() (ledger.EndFailures, error) { return p.parking.Failures(ctx, entry.ID) })
	return failures.DueAt, err
}
