package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/telemetry"
)

const (
	// SegmentsTotal is how many parts the table is looked at in: one in each run, all of it
	// in eight hours.
	SegmentsTotal = 96
	// SegmentEvery is for how long a segment is the one to look at: the time between two
	// runs.
	SegmentEvery = 5 * time.Minute
	// SegmentPagesMax bounds the pages of one run. A page is up to 1 MiB, so this is enough
	// for a table of 48 GiB; of a larger one the ends of the segments are not looked at, and
	// the log says so.
	SegmentPagesMax = 512
	// SegmentPageFor bounds one page.
	SegmentPageFor = 5 * time.Second
	// HoleLinesMax bounds the log lines of one run. The metric counts them all.
	HoleLinesMax = 20
)

// Segments reads the holds of the table itself, a part at a time. A dynamo.Scan is one.
type Segments interface {
	// ScanHoldsSegment reads one page of one of total segments. A page may be empty and not
	// be the last.
	ScanHoldsSegment(ctx context.Context, segment, total int, after ledger.Cursor) ([]ledger.IndexedHold, ledger.Cursor, error)
}

// SegmentAt is the segment to look at at now. It follows from the time alone, so that runs
// need no memory; a run that fails leaves its segment to the next round.
func SegmentAt(now time.Time) int {
	return int(now.UnixMilli() / SegmentEvery.Milliseconds() % SegmentsTotal)
}

// Hole says what is wrong with the place of a hold in the due index, or "". A HELD hold
// that is not listed is never swept, and one that is listed too late is swept too late; an
// ended one that is listed is looked at by every sweep (case B8).
func Hole(h ledger.IndexedHold) string {
	listed := h.InDue || h.Parked || h.Misplaced
	switch {
	case h.Status != ledger.StatusHeld && listed:
		return "it is not HELD, and listed"
	case h.Status != ledger.StatusHeld:
		return ""
	case !listed:
		return "it is HELD, and not listed"
	case h.Misplaced:
		return "it is HELD, and listed in the wrong shard"
	case h.InDue && !h.ListedAt.Equal(h.DueAt):
		return "it is HELD, and listed under a time at which it is not due"
	}
	return ""
}

// HolesReport is what a look at one segment found.
type HolesReport struct {
	Segment int
	Holds   int // looked at
	Holes   int
	// Cut says that the segment was not read to its end.
	Cut bool
}

// holes looks for holes in the index.
type holes struct {
	segments Segments
	logger   *slog.Logger
}

// look looks at one segment until it ends, or late, or SegmentPagesMax is reached. The
// report is right in any case.
func (h *holes) look(ctx context.Context, segment int, late func() bool) (HolesReport, error) {
	report := HolesReport{Segment: segment}
	var after ledger.Cursor
	for range SegmentPagesMax {
		if late() {
			break
		}
		page, next, err := h.page(ctx, segment, after)
		if err != nil {
			report.Cut = true
			return report, fmt.Errorf("holes: %w", err)
		}
		for _, hold := range page {
			h.judge(ctx, hold, &report)
		}
		if after = next; after == "" {
			return report, nil
		}
	}
	report.Cut = true
	h.logger.WarnContext(ctx, "a segment of the table was not read to its end", slog.Int("segment", segment), slog.Int("holds", report.Holds))
	return report, nil
}

func (h *holes) page(ctx context.Context, segment int, after ledger.Cursor) ([]ledger.IndexedHold, ledger.Cursor, error) {
	ctx, cancel := context.WithTimeout(ctx, SegmentPageFor)
	defer cancel()
	return h.segments.ScanHoldsSegment(ctx, segment, SegmentsTotal, after)
}

func (h *holes) judge(ctx context.Context, hold ledger.IndexedHold, report *HolesReport) {
	report.Holds++
	hole := Hole(hold)
	if hole == "" {
		return
	}
	if report.Holes++; report.Holes > HoleLinesMax {
		return
	}
	h.logger.ErrorContext(ctx, "the due index is wrong about a hold: "+hole,
		slog.String(telemetry.KeyHoldID, string(hold.Hold)), slog.String("status", string(hold.Status)),
		slog.Time("due_at", hold.DueAt), slog.Time("listed_at", hold.ListedAt))
}
