package telemetry

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast/shared/ledger"
)

const (
	// ResourceTypesMax bounds the resource types that have a series of their own, each for
	// $0.30 a month; a shop sells a handful of kinds of things.
	ResourceTypesMax = 10
	// TopResourcesMax is how many resources a line names: what a person reads at a glance.
	TopResourcesMax = 5
	// ResourceTypeOther stands for the types beyond ResourceTypesMax, and for those whose
	// names CloudWatch does not take.
	ResourceTypeOther = "other"
	// PropertyTopResources names the resources with the most held units, as id=units.
	PropertyTopResources = "top_resources"
)

// Held is how many units of one resource are held.
type Held struct {
	Type     ledger.ResourceType
	Resource ledger.ResourceID
	Units    ledger.Units
}

// HeldReport is what one line says: the held units of one resource type.
type HeldReport struct {
	Properties  Properties
	Measurement Measurement
}

// HeldReports are the lines that tell of what is held, the type with the most first. Each
// resource may be named several times, for its slots and their shards.
//
// They are made of what an audit has read: how much is held is a level, and what a process
// that sees some of the holds come and go could add up is no level of anything. A level of
// types that sell at the moment is bounded, and which resources they are is for people, so
// the types are a dimension and the resources are text.
func HeldReports(held []Held) []HeldReport {
	resources := make(map[ledger.ResourceType]map[ledger.ResourceID]ledger.Units)
	totals := make(map[ledger.ResourceType]ledger.Units)
	for _, h := range held {
		if resources[h.Type] == nil {
			resources[h.Type] = make(map[ledger.ResourceID]ledger.Units)
		}
		resources[h.Type][h.Resource] += h.Units
		totals[h.Type] += h.Units
	}
	var reports []HeldReport
	other := make(map[ledger.ResourceID]ledger.Units)
	for _, kind := range mostFirst(totals) {
		if len(reports) == ResourceTypesMax || kind == ResourceTypeOther || !usable(string(kind)) {
			for id, units := range resources[kind] {
				other[ledger.ResourceID(kind)+"/"+id] += units
			}
			continue
		}
		reports = append(reports, newHeldReport(string(kind), resources[kind]))
	}
	if len(other) > 0 {
		reports = append(reports, newHeldReport(ResourceTypeOther, other))
	}
	return reports
}

func newHeldReport(kind string, resources map[ledger.ResourceID]ledger.Units) HeldReport {
	var total ledger.Units
	var top []string
	for i, id := range mostFirst(resources) {
		total += resources[id]
		if i < TopResourcesMax {
			top = append(top, fmt.Sprintf("%s=%d", id, resources[id]))
		}
	}
	return HeldReport{
		Properties:  Properties{DimensionResourceType: kind, PropertyTopResources: strings.Join(top, " ")},
		Measurement: Measurement{Metric: MetricHeldUnits, Value: float64(total)},
	}
}

// mostFirst are the keys, the one with the most units first, so that equal numbers give equal
// lines.
func mostFirst[K ~string](units map[K]ledger.Units) []K {
	return slices.SortedFunc(maps.Keys(units), func(a, b K) int {
		return cmp.Or(cmp.Compare(units[b], units[a]), cmp.Compare(a, b))
	})
}
