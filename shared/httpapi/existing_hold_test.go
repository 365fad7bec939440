package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// Case B12: going back in the checkout showed buyers their own units as sold out.
func TestCaseB12_OwnUnitsAreNotSoldOut(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 1, `"policy":{"hold_seconds":900}`)
	f.define("other", 5)
	f.mustHold(owner("U"), "other", 1)
	hold := f.mustHold(owner("U"), "seat", 1)
	f.clock.Advance(5 * time.Minute)

	ask := func(who string) answer {
		a := f.create(owner(who), line("seat", 1), f.key())
		a.want(http.StatusConflict)
		if a.text("code") != "insufficient_stock" {
			t.Errorf("%s is told %s", who, a.text("code"))
		}
		return a
	}
	if a := ask("U"); a.json()["existing_hold_id"] != hold {
		t.Errorf("U is told of %v, want %s", a.json()["existing_hold_id"], hold)
	}
	if a := ask("V"); strings.Contains(a.body, "hold_") || a.json()["existing_hold_id"] != nil {
		t.Errorf("V is told %s", a.body)
	}
	f.counters("seat", 0, 1, 0, 1)

	// A hold that is over, swept or not, is nothing to go on with.
	f.clock.Advance(10 * time.Minute)
	if a := ask("U"); a.json()["existing_hold_id"] != nil {
		t.Errorf("U is told of a hold that is over: %s", a.body)
	}
	f.balanced()
}

// Case B12, for a change of a hold: the hold that is to grow is no other one, and another
// one of the same owner is named.
func TestCaseB12_TheEditedHoldIsNoOtherOne(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 3)
	f.define("meal", 9)
	edited := f.mustHold(owner("U"), "seat", 1)
	f.mustHold(owner("V"), "seat", 1)
	grow := func(want any) {
		t.Helper()
		a := f.do(call{method: http.MethodPatch, path: "/v1/holds/" + edited, claims: owner("U"), headers: f.key(), body: line("seat", 3)})
		a.wantProblem(http.StatusConflict, "insufficient_stock")
		if got := a.json()["existing_hold_id"]; got != want {
			t.Errorf("U is told of %v, want %v: %s", got, want, a.body)
		}
	}
	grow(nil)
	f.mustHold(owner("U"), "meal", 1)
	grow(nil)
	other := f.mustHold(owner("U"), "seat", 1)
	grow(other)
	f.counters("seat", 0, 3, 0, 3)
	f.balanced()
}
