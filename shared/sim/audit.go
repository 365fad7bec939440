package sim

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/reconcile"
)

const (
	// auditsMax is how many audits run beside the buyers of one history.
	auditsMax = 2
	// auditSegments is into how many parts an audit reads the table here.
	auditSegments = 3
	// lastAuditFor is how long the audit of a history at rest may take.
	lastAuditFor = 20 * time.Minute
)

// auditor is what an instance needs to audit and to repair.
type auditor struct {
	instance *instance
	scan     *dynamo.Scan
	store    *dynamo.Store
}

func (i *instance) newAuditor(store *dynamo.Store) *auditor {
	return &auditor{i, dynamo.NewScan(&session{database: i.world.database, instance: i}, tableName), store}
}

// audit reads the table part by part, hands the parts on as the messages of a fan-out do, and
// looks again at what is suspicious.
func (a *auditor) audit(ctx context.Context) (reconcile.Report, error) {
	began := a.instance.clock.Now()
	whole := reconcile.NewTally(began)
	for segment := range auditSegments {
		part, err := reconcile.TallySegment(ctx, a.scan, segment, auditSegments, began)
		if err != nil {
			return reconcile.Report{}, err
		}
		var sent bytes.Buffer
		if err := part.Encode(&sent); err != nil {
			return reconcile.Report{}, err
		}
		if part, err = reconcile.DecodeTally(&sent); err != nil {
			return reconcile.Report{}, err
		}
		whole.Merge(part)
	}
	examiner := &reconcile.Examiner{Store: a.store, Clock: a.instance.clock, Wait: a.instance.clock.Sleep}
	return examiner.Examine(ctx, whole)
}

// startAudits lets audits run at some times from one to another. What they find must be so:
// nothing that is under way is a finding.
func (w *world) startAudits(from, to time.Time) {
	d := w.dice("audits")
	for n := range d.IntN(auditsMax + 1) {
		w.kernel.at(from.Add(d.between(0, to.Sub(from))), func() { w.tickAudit(fmt.Sprintf("audit %d", n)) })
	}
}

func (w *world) tickAudit(name string) {
	w.trace.add("%s", name)
	i := w.auditor
	i.invoke(name, func() {
		report, err := i.auditor.audit(i.deadline())
		if err != nil {
			w.trace.add("%s: %v", name, err)
			return
		}
		w.audits++
		w.trace.add("%s: %d findings, %d unsettled", name, len(report.Findings), report.Unsettled)
		for _, f := range report.Findings {
			if !w.isSo(f) {
				w.violated("audit", "beside the traffic it found: %s (%s)", f, f.Cause)
			}
		}
	}, func(completed bool) { w.trace.add("%s ended, completed: %t", name, completed) })
}

// isSo reports whether the books say the same as the finding. Nothing is ever wrong about the
// numbers of a history, but holds can be late, and events and money, while the cloud is unkind.
func (w *world) isSo(f reconcile.Finding) bool {
	now := w.kernel.now.Add(clockJumpMax) // the auditor's clock may be ahead
	switch f.Kind {
	case reconcile.FindingGhostHold:
		hold := w.books.holds[f.Hold]
		if hold == nil || hold.now.Status != ledger.StatusHeld {
			return false
		}
		due, _ := hold.now.DueAt()
		return due.Before(now)
	case reconcile.FindingEventUnpublished:
		return slices.ContainsFunc(sortedKeys(w.books.events), func(id ledger.EventID) bool { return !w.books.events[id].marked })
	case reconcile.FindingCompensationOwed:
		r := w.books.reservations[f.Reservation]
		return r != nil && (r.now.OwedMinor() > 0 || r.now.Status == ledger.ReservationCompensating || r.now.Status == ledger.ReservationRefundRequired)
	case reconcile.FindingAuthorizedTooLong:
		return w.isIn(f.Reservation, ledger.ReservationAuthorized)
	case reconcile.FindingCaptureMissing:
		return w.isIn(f.Reservation, ledger.ReservationConfirmed)
	case reconcile.FindingDeliveryMissing:
		return w.isIn(f.Reservation, ledger.ReservationCaptured)
	default:
		return false
	}
}

func (w *world) isIn(id ledger.ReservationID, status ledger.ReservationStatus) bool {
	r := w.books.reservations[id]
	return r != nil && r.now.Status == status
}

// auditAtRest audits a history that has come to rest, in a cloud that is kind.
func (w *world) auditAtRest(name string) (reconcile.Report, error) {
	var report reconcile.Report
	err := fmt.Errorf("%s did not come to its end", name)
	w.atRest(name, func(a *auditor, ctx context.Context) { report, err = a.audit(ctx) })
	return report, err
}

// atRest runs something in the auditor's process until it has ended.
func (w *world) atRest(name string, do func(a *auditor, ctx context.Context)) {
	i, ended := w.auditor, false
	i.invoke(name, func() { do(i.auditor, i.deadline()) }, func(bool) { ended = true })
	for until := w.kernel.now.Add(lastAuditFor); !ended && w.kernel.now.Before(until); {
		w.kernel.run(w.kernel.now.Add(time.Second))
	}
}

// closeAudit compares what the audit says of a history at rest with what the books say.
func (w *world) closeAudit() {
	report, err := w.auditAtRest(fmt.Sprintf("audit at rest at %s", w.kernel.now.Sub(historyStart)))
	if err != nil {
		w.violated("audit", "at rest it failed: %v", err)
		return
	}
	for _, f := range report.Findings {
		if !w.isSo(f) || f.Kind == reconcile.FindingGhostHold || f.Kind == reconcile.FindingEventUnpublished {
			w.violated(f.Promise, "the audit found: %s (%s)", f, f.Cause)
		}
	}
	if report.Unsettled > 0 {
		w.violated("audit", "at rest %d suspects did not settle", report.Unsettled)
	}
	if want := w.books.count(); report.Slots != want.Slots || report.Holds != want.Holds || report.Reservations != want.Reservations ||
		report.Events != want.Events || report.Archived != want.Archived {
		w.violated("P5", "the audit counted %+v, and it is %+v", report, want)
	}
}
