package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"holdfast/shared/telemetry"
)

func TestALogLineCarriesItsIds(t *testing.T) {
	var out bytes.Buffer
	logger := telemetry.NewLogger(&out, telemetry.Source{Stage: "dev", Function: "outbox"})
	ctx := telemetry.WithCorrelation(context.Background(), slog.String(telemetry.KeyRequestID, "request_1"))
	other := telemetry.WithCorrelation(ctx, slog.String(telemetry.KeyHoldID, "hold_2"))
	inner := telemetry.WithCorrelation(other, slog.String(telemetry.KeyHoldID, "hold_1"))
	logger.With(slog.String("part", "relay")).ErrorContext(inner, "the bus is down", telemetry.Duration("lag_seconds", 1500*time.Millisecond))
	logger.InfoContext(ctx, "done")
	logger.InfoContext(inner, "about another", slog.String(telemetry.KeyHoldID, "hold_3"))
	logger.InfoContext(other, "the outer context has its own")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 {
		t.Fatalf("want four lines, got %q", out.String())
	}
	for i, want := range map[int]string{0: "hold_1", 2: "hold_3", 3: "hold_2"} {
		if strings.Count(lines[i], `"hold_id"`) != 1 || !strings.Contains(lines[i], `"hold_id":"`+want+`"`) {
			t.Errorf("line %d is %s; want the hold %s, once", i, lines[i], want)
		}
	}
	var first, second map[string]any
	for line, into := range map[string]*map[string]any{lines[0]: &first, lines[1]: &second} {
		if err := json.Unmarshal([]byte(line), into); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
	}
	want := map[string]any{
		"level": "ERROR", "msg": "the bus is down", "stage": "dev", "function": "outbox",
		"part": "relay", "request_id": "request_1", "hold_id": "hold_1", "lag_seconds": 1.5,
	}
	for key, value := range want {
		if first[key] != value {
			t.Errorf("%s = %v, want %v", key, first[key], value)
		}
	}
	if _, has := second["hold_id"]; has || second["request_id"] != "request_1" {
		t.Errorf("an inner id has reached the outer context: %v", second)
	}
	at, _ := first["time"].(string)
	if _, err := time.Parse("2006-01-02T15:04:05.000Z", at); err != nil {
		t.Errorf("time: %v", err)
	}
}
