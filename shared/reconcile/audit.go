package reconcile

import (
	"context"
	"fmt"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
)

// AuditSegments is into how many parts an audit in one process divides the table.
const AuditSegments = 8

// UnpublishedFor is how long an event may wait to be published: longer than the redrive, which
// takes up what is older than RedriveAge every few minutes, needs to come round twice.
const UnpublishedFor = 2 * RedriveAge

// Source reads the whole ledger, page by page. It calls visit for each page, in no fixed
// order, until all is read or visit returns an error.
type Source interface {
	ScanRecords(ctx context.Context, visit func(ledger.Records) error) error
}

// Report is what an audit found.
type Report struct {
	Slots        int `json:"slots"`
	Policies     int `json:"policies"`
	Holds        int `json:"holds"`
	Reservations int `json:"reservations"`
	Events       int `json:"events"`
	// Archived counts the holds and reservations that lie in the archive and have not left
	// the table yet. They and their events are not among those above.
	Archived int `json:"archived"`
	// Money is what the reservations above took and gave back, by currency.
	Money map[ledger.Currency]Money `json:"money"`
	// Held is what is held of each resource.
	Held []telemetry.Held `json:"held,omitempty"`
	// Oversold are the slots of which more is promised than there is, as an operator has
	// marked them. That breaks no promise of the ledger, and somebody must keep those that
	// were made.
	Oversold []Oversold `json:"oversold,omitempty"`
	// Findings are what is wrong, in a fixed order.
	Findings []Finding `json:"findings"`
	// Suspects is how many things did not agree when they were first read, at many moments, and
	// Unsettled how many of them could not be looked at in peace.
	Suspects  int `json:"suspects"`
	Unsettled int `json:"unsettled"`
	// Uncompared says why the provider's payments were not compared with the reservations: it
	// did not answer. All else was looked at, and the payments count as one thing unsettled.
	Uncompared string `json:"uncompared,omitempty"`
	// ReadUnits is what reading the segments has cost, in Pages.
	ReadUnits float64 `json:"read_units"`
	Pages     int     `json:"pages"`
}

// Oversold is a slot of which more is promised than there is, as an operator has marked it.
type Oversold struct {
	Slot  ledger.SlotID `json:"slot_id"`
	Units ledger.Units  `json:"units"` // by how many
}

func (o Oversold) String() string { return fmt.Sprintf("%s by %d", o.Slot, o.Units) }

// report is what the tally says without its findings.
func (t *Tally) report() Report {
	counts := t.rows.Counts
	r := Report{
		Slots: len(t.rows.Slots), Policies: counts.Policies, Holds: counts.Holds, Reservations: counts.Reservations,
		Events: counts.Events, Archived: counts.Archived, Money: counts.Money, Oversold: t.oversold(),
		ReadUnits: counts.ReadUnits, Pages: counts.Pages,
	}
	for _, told := range t.rows.Histories {
		r.Events += len(told.Versions)
	}
	for _, row := range t.rows.Stock {
		if of, found := t.resourceOf(row.Slot); found && row.Counters.Held > 0 {
			r.Held = append(r.Held, telemetry.Held{Type: of.Type, Resource: of.ID, Units: row.Counters.Held})
		}
	}
	return r
}

// AuditAtRest reads everything that source has and checks it, as it was at that time; a zero
// time judges nothing by how long it lasts. The ledger must be at rest: beside traffic it
// would see one item before and another after the same change.
func AuditAtRest(ctx context.Context, source Source, at time.Time) (Report, error) {
	t := NewTally(at)
	err := source.ScanRecords(ctx, func(r ledger.Records) error {
		t.add(r)
		return nil
	})
	if err != nil {
		return Report{}, fmt.Errorf("audit: %w", err)
	}
	report := t.report()
	report.Findings = t.Suspects()
	report.Suspects = len(report.Findings)
	return report, nil
}

// AuditPorts are what an audit of a whole table works with. All but Payments must be set.
type AuditPorts struct {
	Segments Segments
	Store    Reader
	Payments Payments // nil for an audit that asks no provider
	Clock    system.Clock
	Wait     func(context.Context, time.Duration) error
}

// Audit reads the whole table in AuditSegments parts, one after the other, beside the traffic,
// and looks at what does not agree until it is sure. Where the parts are to be read at once,
// many workers do (see Fanout).
func Audit(ctx context.Context, p AuditPorts) (Report, error) {
	at := p.Clock.Now()
	merged := NewTally(at)
	for segment := range AuditSegments {
		tally, err := TallySegment(ctx, p.Segments, segment, AuditSegments, at)
		if err != nil {
			return Report{}, err
		}
		merged.Merge(tally)
	}
	return (&Examiner{Store: p.Store, Payments: p.Payments, Clock: p.Clock, Wait: p.Wait}).Examine(ctx, merged)
}
