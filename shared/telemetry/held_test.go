package telemetry_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/shared/ledger"
	"holdfast/shared/telemetry"
	"holdfast/shared/telemetry/telemetrytest"
)

// heldLines are the reports as type, units and top resources, each emitted as CloudWatch
// wants it.
func heldLines(t *testing.T, held []telemetry.Held) []string {
	t.Helper()
	var lines []string
	for _, report := range telemetry.HeldReports(held) {
		var out bytes.Buffer
		if err := emitter(&out).Emit(report.Properties, report.Measurement); err != nil {
			t.Fatal(err)
		}
		mustMatchSpecification(t, strings.TrimSpace(out.String()))
		_, directives := mustReadDirectives(t, out.String())
		if len(directives) != 1 || !slices.Equal(directives[0].Dimensions[0], []string{"stage", "resource_type"}) {
			t.Errorf("directives %v", directives)
		}
		units := telemetrytest.Values(t, out.String())[telemetry.MetricHeldUnits]
		lines = append(lines, fmt.Sprint(report.Properties["resource_type"], units, report.Properties["top_resources"]))
	}
	return lines
}

// The types are the dimension, most held first; the resources are text, and only the top ones.
func TestHeldUnitsAreToldByTypeWithTheirTopResources(t *testing.T) {
	var held []telemetry.Held
	for n := range 7 {
		id := ledger.ResourceID(fmt.Sprintf("hall-%d", n))
		held = append(held, telemetry.Held{Type: "seat", Resource: id, Units: ledger.Units(n)}, telemetry.Held{Type: "seat", Resource: id, Units: 1})
	}
	held = append(held, telemetry.Held{Type: "room", Resource: "hotel", Units: 100}, telemetry.Held{Type: "coupon", Resource: "autumn"})
	want := []string{"room[100]hotel=100", "seat[28]hall-6=7 hall-5=6 hall-4=5 hall-3=4 hall-2=3", "coupon[0]autumn=0"}
	if got := heldLines(t, held); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	if got := heldLines(t, nil); len(got) > 0 {
		t.Errorf("of nothing is told %q", got)
	}
}

// Whatever types a shop invents, the series are bounded, and no unit is left out.
func TestTheSeriesOfHeldUnitsAreBounded(t *testing.T) {
	const types = 30
	var held []telemetry.Held
	for n := range types {
		held = append(held, telemetry.Held{Type: ledger.ResourceType(fmt.Sprintf("type-%02d", n)), Resource: "r", Units: ledger.Units(n + 1)})
	}
	held = append(held, telemetry.Held{Type: ":odd", Resource: "r", Units: 1000}, telemetry.Held{Type: "other", Resource: "r", Units: 2000})
	var total float64
	reports := telemetry.HeldReports(held)
	for _, report := range reports {
		total += report.Measurement.Value
	}
	if len(reports) != telemetry.ResourceTypesMax+1 || total != types*(types+1)/2+3000 {
		t.Errorf("%d series of %v units", len(reports), total)
	}
	last := reports[len(reports)-1].Properties
	if last["resource_type"] != telemetry.ResourceTypeOther || !strings.HasPrefix(last["top_resources"], "other/r=2000 :odd/r=1000 type-19/r=20 ") {
		t.Errorf("the rest is told as %v", last)
	}
}
