package skew_test

import (
	"sync"
	"testing"
	"time"

	"holdfast/shared/skew"
	"holdfast/shared/system/systemtest"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// answer is one call, in times after noon: when it was sent, when its answer had come, and
// the date in it.
type answer struct{ sent, received, date time.Duration }

// observed is a gauge whose clock shows noon and which has had these answers.
func observed(answers ...answer) (*skew.Gauge, *systemtest.Clock) {
	clock := systemtest.NewClock(noon)
	g := skew.NewGauge(clock)
	for _, a := range answers {
		g.Observe(noon.Add(a.sent), noon.Add(a.received), noon.Add(a.date))
	}
	return g, clock
}

func thrice(a answer) []answer { return []answer{a, a, a} }

// A date of whole seconds and an answer that travels leave a range; what is told is the
// part of the skew that no reading of it can explain away.
func TestSkewIsWhatIsCertain(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		answer answer
		want   time.Duration
	}{
		"the same second":                                {answer{0, 5 * ms, 0}, 0},
		"the date is cut to the second":                  {answer{999 * ms, 999 * ms, 0}, 0},
		"the last moment that the date can mean":         {answer{1000 * ms, 1000 * ms, 0}, 0},
		"ahead by a millisecond more than a date allows": {answer{1001 * ms, 1020 * ms, 0}, ms},
		"ahead by a minute, of which a second may be":    {answer{0, 20 * ms, -time.Minute}, 59 * time.Second},
		"the date can be of the moment of the answer":    {answer{0, 0, 0}, 0},
		"behind by a millisecond":                        {answer{0, 20 * ms, 21 * ms}, -ms},
		"behind by a minute":                             {answer{0, 20 * ms, time.Minute}, -time.Minute + 20*ms},
		"a slow answer explains a late date":             {answer{0, 40 * time.Second, 35 * time.Second}, 0},
		"a slow answer explains an early arrival":        {answer{0, 40 * time.Second, 0}, 0},
	} {
		g, _ := observed(thrice(c.answer)...)
		if got := g.Skew(); got != c.want || !g.Known() {
			t.Errorf("%s: %s, known %t; want %s", name, got, g.Known(), c.want)
		}
	}
}

func TestOneOddAnswerDecidesNothing(t *testing.T) {
	right, odd := answer{}, answer{date: time.Hour}
	for name, c := range map[string]struct {
		answers []answer
		want    bool // unreliable
		known   bool
	}{
		"nothing has come":                {nil, false, false},
		"one answer":                      {[]answer{odd}, false, false},
		"two answers":                     {[]answer{odd, odd}, false, false},
		"three that agree":                {[]answer{odd, odd, odd}, true, true},
		"one of three":                    {[]answer{right, odd, right}, false, true},
		"two of three":                    {[]answer{odd, right, odd}, false, true},
		"the right one is too long ago":   {[]answer{right, odd, odd, odd}, true, true},
		"the last one is right again":     {[]answer{odd, odd, odd, right}, false, true},
		"off in both directions, not far": {[]answer{odd, {date: -20 * time.Second}, odd}, false, true},
	} {
		g, _ := observed(c.answers...)
		if g.Unreliable() != c.want || g.Known() != c.known {
			t.Errorf("%s: unreliable %t, known %t; want %t, %t", name, g.Unreliable(), g.Known(), c.want, c.known)
		}
	}
}

func TestBounds(t *testing.T) {
	const second, ms = time.Second, time.Millisecond
	for _, c := range []struct {
		date                time.Duration
		notable, unreliable bool
	}{
		{0, false, false},
		{second, false, false},
		{second + ms, true, false},
		{30 * second, true, false},
		{30*second + ms, true, true},
		{-2 * second, false, false},
		{-2*second - ms, true, false},
		{-31 * second, true, false},
		{-31*second - ms, true, true},
	} {
		g, _ := observed(thrice(answer{date: c.date})...)
		if g.Notable() != c.notable || g.Unreliable() != c.unreliable {
			t.Errorf("date %s: notable %t, unreliable %t; want %t, %t", c.date, g.Notable(), g.Unreliable(), c.notable, c.unreliable)
		}
	}
}

// What was measured before a function was frozen, or before its clock was set, says
// nothing about the clock that it wakes up with.
func TestOldAnswersDoNotCount(t *testing.T) {
	for _, c := range []struct {
		moved time.Duration
		known bool
	}{
		{skew.FreshFor, true},
		{skew.FreshFor + time.Millisecond, false},
		{-skew.FreshFor, true},
		{-skew.FreshFor - time.Millisecond, false},
	} {
		g, clock := observed(thrice(answer{date: time.Hour})...)
		clock.Advance(c.moved)
		if g.Known() != c.known || g.Unreliable() != c.known || (g.Skew() != 0) != c.known {
			t.Errorf("moved by %s: known %t, unreliable %t, skew %s", c.moved, g.Known(), g.Unreliable(), g.Skew())
		}
	}
}

func TestUnusableAnswersAreLeftOut(t *testing.T) {
	g, clock := observed(thrice(answer{})...)
	for range skew.Observations {
		g.Observe(noon, noon, time.Time{})
		g.Observe(noon, noon.Add(-time.Hour), noon) // the clock was set back meanwhile
	}
	if !g.Known() || g.Skew() != 0 {
		t.Errorf("known %t, skew %s", g.Known(), g.Skew())
	}
	if got := g.Now(); !got.Equal(clock.Now()) {
		t.Errorf("the gauge measures a clock that shows %s", got)
	}
}

// A gauge that has seen a clock that is always off by d says at most that, and at least
// that without a second, whenever within a second the answers come.
func TestTheMeasureIsNeverTooLarge(t *testing.T) {
	random := systemtest.NewRandom(1)
	draw := func(most time.Duration) time.Duration { return time.Duration(random.Below(int64(most))) }
	for range 20_000 {
		off := draw(10*time.Minute) - 5*time.Minute
		g := skew.NewGauge(systemtest.NewClock(noon))
		var slowest time.Duration
		for range skew.Observations {
			there, back := draw(300*time.Millisecond), draw(300*time.Millisecond)
			slowest = max(slowest, there+back)
			sent := noon.Add(draw(time.Minute))
			date := sent.Add(there - off).Truncate(time.Second)
			g.Observe(sent, sent.Add(there+back), date)
		}
		got := g.Skew()
		if got.Abs() > off.Abs() || (got > 0) != (got != 0 && off > 0) || off.Abs()-got.Abs() > time.Second+slowest {
			t.Fatalf("off by %s, answers in %s: measured %s", off, slowest, got)
		}
	}
}

func TestAGaugeIsSharedByCalls(t *testing.T) {
	g, _ := observed()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				g.Observe(noon, noon, noon.Add(-time.Minute))
				if s := g.Skew(); s != 0 && s != 59*time.Second {
					t.Errorf("skew %s", s)
					return
				}
			}
		})
	}
	all.Wait()
	if !g.Unreliable() {
		t.Error("a clock that is a minute off counts as reliable")
	}
}
