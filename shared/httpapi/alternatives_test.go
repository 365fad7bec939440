package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"holdfast/shared/httpapi"
)

// startsIn is the member of a slot that starts so long after the first of December, 12:00.
func startsIn(d time.Duration) string {
	return fmt.Sprintf(`"starts_at":%q`, time.Date(2026, time.December, 1, 12, 0, 0, 0, time.UTC).Add(d).Format(time.RFC3339))
}

// alternatives are what a refused create proposes.
func (f *fixture) alternatives(body string) []string {
	f.t.Helper()
	a := f.create(owner("V"), body, f.key())
	a.wantProblem(http.StatusConflict, "insufficient_stock")
	return a.members("alternatives", "slot_id")
}

func (f *fixture) wantAlternatives(slot string, quantity int, want ...string) {
	f.t.Helper()
	if got := f.alternatives(line(slot, quantity)); !slices.Equal(got, want) {
		f.t.Errorf("alternatives to %d of %s are %v, want %v", quantity, slot, got, want)
	}
}

// The nearest ones are proposed, whether they are earlier or later.
func TestAlternativesLieOnBothSides(t *testing.T) {
	f := newFixture(t)
	for name, in := range map[string]time.Duration{
		"full": 0, "1h-before": -time.Hour, "2h-after": 2 * time.Hour, "3h-before": -3 * time.Hour, "23h-before": -23 * time.Hour,
		"25h-before": -25 * time.Hour, "30h-after": 30 * time.Hour, "same-time": 0,
	} {
		capacity := 5
		if name == "full" {
			capacity = 0
		}
		f.define(name, capacity, startsIn(in))
	}
	f.wantAlternatives("full", 1, "same-time", "1h-before", "2h-after", "3h-before", "23h-before")
}

// In a crowded resource the nearest ones are proposed too, and not the first ones of the
// day before: more slots than are looked at lie before the wanted one, far and near.
func TestAlternativesInACrowdedResource(t *testing.T) {
	for name, minutes := range map[string]func(i int) int{
		"all day long":         func(i int) int { return 8 * (i + 1) },
		"most of them far":     func(i int) int { return map[bool]int{true: 8 * (i + 1), false: 1200 + i}[i < 6] },
		"far, nearer and none": func(i int) int { return map[bool]int{true: 600 + i, false: 1300 + i/8}[i < 6] },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			var before []string
			for i := range 6 * httpapi.AlternativesLooked {
				id := fmt.Sprintf("before-%03d", i)
				f.define(id, 5, startsIn(-time.Duration(minutes(i))*time.Minute))
				before = append(before, id)
			}
			f.define("full", 0, startsIn(0))
			f.wantAlternatives("full", 1, before[:5]...)
			f.define("after", 5, startsIn(time.Minute))
			f.clock.Advance(time.Second)
			f.wantAlternatives("full", 1, append([]string{"after"}, before[:4]...)...)
		})
	}
}

// Who wants a size wants that size, even if another one is nearer.
func TestAlternativesWithTheSameOptionsComeFirst(t *testing.T) {
	f := newFixture(t)
	f.define("full", 0, startsIn(0), `"attributes":{"size":"L","color":"red"}`)
	f.define("M-blue", 5, startsIn(time.Hour), `"attributes":{"size":"M","color":"blue"}`)
	f.define("L-blue", 5, startsIn(2*time.Hour), `"attributes":{"size":"L","color":"blue"}`)
	f.define("M-red", 5, startsIn(-time.Hour), `"attributes":{"size":"M","color":"red"}`)
	f.define("L-red", 5, startsIn(20*time.Hour), `"attributes":{"size":"L","color":"red","extra":"x"}`)
	f.define("none", 5, startsIn(time.Minute))
	f.wantAlternatives("full", 1, "L-red", "M-red", "L-blue", "none", "M-blue")
}

// Nothing is proposed that the next create would be refused for: by the slot's own policy,
// or by that of its resource. Nor is what is over already.
func TestAlternativesCanBeHeld(t *testing.T) {
	f := newFixture(t)
	f.define("full", 1, startsIn(0))
	f.define("good", 9, startsIn(time.Hour))
	f.define("not-yet", 9, startsIn(time.Hour), `"policy":{"sale_from":"2026-11-30T12:00:02Z"}`)
	f.define("no-more", 9, startsIn(time.Hour), `"policy":{"sale_until":"2026-11-30T12:00:00Z"}`)
	f.define("ended", 9, startsIn(-2*time.Hour), `"policy":{"sale_ends_seconds_before_start":86400}`)
	f.define("two-a-hold", 9, startsIn(time.Hour), `"policy":{"quantity_max_per_hold":2}`)
	f.define("two-an-owner", 9, startsIn(time.Hour), `"policy":{"quantity_max_per_owner":2}`)
	f.define("two-of-all", 9, startsIn(time.Hour), `"policy":{"quantity_max_per_owner_of_resource":2}`)
	f.wantAlternatives("full", 3, "good")
	f.wantAlternatives("full", 2, "good", "two-a-hold", "two-an-owner", "two-of-all")
	f.clock.Set(noon.Add(2 * time.Second))
	f.wantAlternatives("full", 3, "good", "not-yet")
	f.do(call{method: http.MethodPut, path: "/v1/policies/flight/KE0901", claims: catalog(), body: `{"quantity_max_per_hold":3}`}).want(http.StatusCreated)
	f.clock.Set(noon.Add(time.Minute))
	f.wantAlternatives("full", 3, "good", "not-yet")
	f.define("full-too", 1, startsIn(0), `"policy":{"quantity_max_per_hold":4}`)
	f.wantAlternatives("full-too", 4)
	f.clock.Set(noon.Add(25 * time.Hour)) // an hour after noon of the first: what started then is over
	f.wantAlternatives("full", 3)
}

// A basket with several short slots gets something for each of them.
func TestAlternativesForSeveralShortSlots(t *testing.T) {
	f := newFixture(t)
	for _, resource := range []string{"X", "Y"} {
		of := fmt.Sprintf(`"resource_id":%q`, resource)
		f.define(resource+"-full", 0, of, startsIn(0))
		for i := range 5 {
			f.define(fmt.Sprintf("%s-%d", resource, i), 5, of, startsIn(time.Duration(i)*time.Hour))
		}
	}
	got := f.alternatives(`{"lines":[{"slot_id":"X-full","quantity":1,"unit_amount":1000},{"slot_id":"Y-full","quantity":1,"unit_amount":1000},{"slot_id":"X-1","quantity":1,"unit_amount":1000}]}`)
	if want := []string{"X-0", "Y-0", "X-2", "Y-1", "X-3"}; !slices.Equal(got, want) {
		t.Errorf("alternatives %v, want %v", got, want)
	}
}
