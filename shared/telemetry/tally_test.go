package telemetry_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/telemetry"
)

// Each count is told once, zeros too, and nothing is told twice.
func TestATallyBeginsAnewWhenItIsTaken(t *testing.T) {
	fared := telemetry.NewCommandTally()
	if !fared.Empty() || fared.Take(telemetry.MetricConflictRetries) != nil {
		t.Error("a tally of nothing tells something")
	}
	var counting sync.WaitGroup
	for range 10 {
		counting.Go(func() {
			fared.DecidedAnew()
			fared.Conflicted()
			fared.Probed(3)
		})
	}
	counting.Wait()
	fared.Split()
	fared.ConfirmedLate()
	fared.Short()
	metrics := []telemetry.MetricName{
		telemetry.MetricConflictRetries, telemetry.MetricShardProbes, telemetry.MetricShardSplits,
		telemetry.MetricConfirmsLate, telemetry.MetricOversellPrevented, telemetry.MetricHoldRequests,
	}
	lines := fared.Take(metrics...)
	if len(lines) != 1 || !fared.Empty() {
		t.Fatalf("told in %d lines, and then is empty: %t", len(lines), fared.Empty())
	}
	for i, want := range []float64{20, 30, 1, 1, 1, 0} {
		if got := lines[0][i]; got.Metric != metrics[i] || got.Value != want {
			t.Errorf("%s is %v, want %v", got.Metric, got.Value, want)
		}
	}
}

// All times are told, in as many lines as CloudWatch needs, the counts beside the first.
func TestASpreadIsToldWhole(t *testing.T) {
	fared := telemetry.NewCommandTally()
	const many = 2*telemetry.ValuesMax + 1
	for n := range many {
		fared.Left(ledger.ReservationCaptured, time.Duration(n)*time.Second)
	}
	fared.Left(ledger.ReservationReview, time.Minute)
	fared.Left(ledger.ReservationCompleted, time.Hour) // an end, where it stays
	lines := fared.Take(telemetry.MetricConflictRetries)
	var captured []float64
	told := ""
	for _, line := range lines {
		for _, m := range line {
			told += fmt.Sprintf("%s ", m.Metric)
			if m.Metric == telemetry.MetricSagaDwellCapturedSeconds {
				captured = append(captured, m.Values...)
			}
		}
	}
	if len(captured) != many || !slices.IsSorted(captured) || captured[many-1] != many-1 {
		t.Errorf("%d values of %d are told", len(captured), many)
	}
	const want = "saga_dwell_captured_seconds saga_dwell_review_seconds conflict_retries saga_dwell_captured_seconds saga_dwell_captured_seconds "
	if told != want || !fared.Empty() {
		t.Errorf("told %q, want %q", told, want)
	}
}

// Every status that is no end has its metric.
func TestEveryStatusHasItsTime(t *testing.T) {
	for status, want := range map[ledger.ReservationStatus]telemetry.MetricName{
		ledger.ReservationPaymentPending: telemetry.MetricSagaDwellPaymentPendingSeconds,
		ledger.ReservationAuthorized:     telemetry.MetricSagaDwellAuthorizedSeconds,
		ledger.ReservationConfirmed:      telemetry.MetricSagaDwellConfirmedSeconds,
		ledger.ReservationCaptured:       telemetry.MetricSagaDwellCapturedSeconds,
		ledger.ReservationCompensating:   telemetry.MetricSagaDwellCompensatingSeconds,
		ledger.ReservationRefundRequired: telemetry.MetricSagaDwellRefundRequiredSeconds,
		ledger.ReservationReview:         telemetry.MetricSagaDwellReviewSeconds,
		ledger.ReservationCompleted:      "",
		ledger.ReservationCanceled:       "",
		ledger.ReservationRefunded:       "",
	} {
		fared := telemetry.NewCommandTally()
		fared.Left(status, time.Minute)
		lines := fared.Take()
		if want == "" {
			if len(lines) > 0 {
				t.Errorf("%s, which is an end, is told as %v", status, lines)
			}
			continue
		}
		if len(lines) != 1 || len(lines[0]) != 1 || lines[0][0].Metric != want || !slices.Equal(lines[0][0].Values, []float64{60}) {
			t.Errorf("%s is told as %v, want %s of 60", status, lines, want)
		}
	}
}
