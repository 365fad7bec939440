package main

import (
	"testing"

	"holdfast/shared/topology"
)

func TestStreamMappingsLoseNothingAndBlockNobody(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		mapped := 0
		for _, f := range topology.Functions() {
			if f.Stream == nil {
				continue
			}
			mapped++
			id := constructID(string(f.Name))
			m := s.mustResource(t, "AWS::Lambda::EventSourceMapping", id+"Stream")
			mustBeRef(t, "function", m.at("FunctionName"), id+"Function")
			mustBeRef(t, "stream", m.at("EventSourceArn"), "Table.StreamArn")
			mustBe(t, "start", m.at("StartingPosition"), "TRIM_HORIZON")
			mustBe(t, "bisect", m.at("BisectBatchOnFunctionError"), true)
			mustBe(t, "partial failures", m.at("FunctionResponseTypes"), []string{"ReportBatchItemFailures"})
			mustBe(t, "batch", m.at("BatchSize"), f.Stream.BatchRecordsMax)
			mustBe(t, "window", m.at("MaximumBatchingWindowInSeconds"), f.Stream.BatchWindow.Seconds())
			mustBe(t, "parallel batches", m.at("ParallelizationFactor"), f.Stream.ParallelBatches)
			mustBe(t, "retries", m.at("MaximumRetryAttempts"), f.Stream.Retries)
			mustBe(t, "record age", m.at("MaximumRecordAgeInSeconds"), f.Stream.RecordAgeMax.Seconds())
			mustBeRef(t, "destination", m.at("DestinationConfig", "OnFailure", "Destination"), constructID(string(f.Stream.FailureDestination))+".Arn")
			// Lambda tries the role when the mapping is made, so the policy comes first.
			mustDependOnPolicyOf(t, m, id+"FunctionRole")
		}
		if mapped == 0 {
			t.Error("no function has the stream")
		}
	})
}

func TestEveryMappingIsOfTheTopology(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		want := 0
		for _, f := range topology.Functions() {
			for _, has := range []bool{f.Stream != nil, f.Queue != nil} {
				if has {
					want++
				}
			}
		}
		if made := len(s.mustResources(t, "AWS::Lambda::EventSourceMapping")); made != want {
			t.Errorf("%d mappings, want %d", made, want)
		}
	})
}

// The filter is written out here: it must be the one that Lambda understands, on the
// key of the item and in DynamoDB's form.
func TestTheOutboxIsStartedForEventsOnly(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		m := s.mustResource(t, "AWS::Lambda::EventSourceMapping", "OutboxStream")
		mustBe(t, "filters", m.at("FilterCriteria", "Filters"), []any{
			map[string]any{"Pattern": `{"dynamodb":{"Keys":{"sk":{"S":[{"prefix":"EVENT#"}]}}}}`},
		})
	})
}

func mustDependOnPolicyOf(tb testing.TB, r resource, role string) {
	tb.Helper()
	for _, id := range r.DependsOn {
		if nameOf(id) == role+"DefaultPolicy" {
			return
		}
	}
	tb.Errorf("%s may be made before the policy of %s: %v", r.ID, role, r.DependsOn)
}
