package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"holdfast/shared/ledger"
	"holdfast/shared/reconcile"
	"holdfast/shared/topology"
)

// A sound table has no finding. A counter that was changed past the ledger, and a hold that
// nobody ends, are found with what a repair does about them; without -yes nothing is written;
// with it they are put right; and the next audit finds nothing.
func TestAuditAndRepair(t *testing.T) {
	w := newWorld(t, time.Hour)
	sold := w.sell(w.owner())
	w.ops("redrive")
	var out audited
	if w.opsJSON(&out, "audit"); len(out.Findings) != 0 || out.Holds != 1 || out.Slots != 1 || out.Pages == 0 {
		t.Fatalf("a sound table: %+v", out)
	}
	if err := w.fails("audit", "-yes"); !strings.Contains(err.Error(), "-yes goes with -repair") {
		t.Errorf("-yes alone: %v", err)
	}

	w.set("STOCK#seat#0", "STOCK", "available", "3")
	w.set("STOCK#seat#0", "STOCK", "held", "1")
	ghost := w.hold()
	w.ops("redrive")
	before := w.items()
	text, err := w.audit(operator{})
	if err == nil || !strings.Contains(err.Error(), "2 findings; ops audit -repair says") {
		t.Errorf("audit: %v\n%s", err, text)
	}
	for _, want := range []string{"terminal_live_stock", "ghost_hold", string(ghost.ID), "repair_stock", "expire", "evidence: ", "cause: "} {
		if !strings.Contains(text, want) {
			t.Errorf("audit does not tell %q:\n%s", want, text)
		}
	}
	if got := w.status()["ghost holds"]; got.Count != 1 || len(got.First) != 1 || !strings.Contains(got.First[0], string(ghost.ID)) {
		t.Errorf("status tells of ghosts %+v", got)
	}
	text, err = w.audit(operator{audit: auditChoice{repair: true}})
	if !errors.Is(err, errNotSaidYes) || strings.Count(text, string(reconcile.RepairPlanned)+": ") != 2 {
		t.Errorf("a repair without -yes: %v\n%s", err, text)
	}
	if len(w.items()) != len(before) {
		t.Errorf("a repair without -yes has written")
	}
	text, err = w.audit(operator{audit: auditChoice{repair: true}, yes: true, who: "olga"})
	if err != nil || strings.Count(text, string(reconcile.RepairDone)+": ") != 2 {
		t.Errorf("the repair: %v\n%s", err, text)
	}
	w.ops("redrive")
	if w.opsJSON(&out, "audit"); len(out.Findings) != 0 {
		t.Errorf("after the repair: %+v", out.Findings)
	}
	events, err := w.store.SlotEvents(t.Context(), slotID)
	w.check(err)
	if last := events[len(events)-1]; last.Type != ledger.EventAuditRepaired || last.Origin.Actor != "operator:olga" {
		t.Errorf("the last event of the slot is %+v", last)
	}
	if ended, err := w.store.Hold(t.Context(), ghost.ID); err != nil || ended.Status != ledger.StatusExpired {
		t.Errorf("the ghost is %s, %v", ended.Status, err)
	}
	if kept, err := w.store.Hold(t.Context(), sold); err != nil || kept.Status != ledger.StatusConfirmed {
		t.Errorf("the sale is %s, %v", kept.Status, err)
	}
}

// audit runs one audit of who is given, which waits for nothing: the index of this table never
// lags.
func (w *world) audit(o operator) (string, error) {
	w.t.Helper()
	var out bytes.Buffer
	o.out = &out
	w.check(o.connect(w.t.Context(), topology.FunctionReconcile, w.environment))
	o.wait = func(context.Context, time.Duration) error { return nil }
	err := auditTable(w.t.Context(), &o, nil)
	return out.String(), err
}

// What is in doubt becomes a case, which status names until it is decided.
func TestStatusTellsOfReviews(t *testing.T) {
	w := newWorld(t, time.Minute)
	at := w.clock.Now()
	opened := reconcile.CaseOf(reconcile.Finding{Kind: reconcile.FindingLinkBroken, Subject: "hold X"}, at)
	w.check(w.store.Commit(t.Context(), ledger.OpenReview(ledger.Review{}, opened, ledger.Origin{Actor: ledger.ActorAudit, EventID: "event_test"}, at)))
	if got := w.status()["reviews"]; got.Count != 1 || len(got.First) != 1 || !strings.HasPrefix(got.First[0], string(opened.ID)) || got.OldestAgeSeconds < 59 {
		t.Errorf("status tells of reviews %+v", got)
	}
}

// The last audit of the stage is told where the environment names its bucket.
func TestStatusTellsOfTheLastAudit(t *testing.T) {
	w := newWorld(t, time.Minute)
	if _, told := w.status()["findings of the last audit"]; told {
		t.Error("an audit is told without its bucket")
	}
	var environment map[string]string
	text, err := os.ReadFile(w.environment)
	w.check(err)
	w.check(json.Unmarshal(text, &environment))
	environment["HOLDFAST_AUDIT_BUCKET_NAME"] = bucketName
	w.environment = mustWriteEnvironment(t, environment)
	if none := w.status()["findings of the last audit"]; none.Count != 0 || !none.OldestAt.IsZero() || !strings.Contains(none.Remedy, "no audit has ended") {
		t.Errorf("without an audit: %+v", none)
	}
	run := reconcile.RunAt(time.Now(), time.Minute)
	report := reconcile.AuditReport{Run: run, EndedAt: time.Now().Add(-time.Minute), Report: reconcile.Report{
		Findings: []reconcile.Finding{{Kind: reconcile.FindingGhostHold, Subject: "hold X"}},
	}}
	body, err := json.Marshal(report)
	w.check(err)
	_, err = w.cloud.Objects().PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: aws.String(bucketName), Key: aws.String(topology.AuditReportPrefix + string(run) + "/report.json"), Body: bytes.NewReader(body),
	})
	w.check(err)
	last := w.status()["findings of the last audit"]
	if last.Count != 1 || len(last.First) != 1 || last.First[0] != "ghost_hold: hold X" || last.OldestAgeSeconds < 59 {
		t.Errorf("the last audit: %+v", last)
	}
}
