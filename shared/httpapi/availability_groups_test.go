package httpapi_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
)

// night is a slot from the one hour to the other after noon. attributes are name=value.
func night(id string, from, to int, attributes ...string) ledger.Slot {
	slot := ledger.Slot{
		ID: ledger.SlotID(id), StartsAt: noon.Add(time.Duration(from) * time.Hour), EndsAt: noon.Add(time.Duration(to) * time.Hour),
		Attributes: make(map[string]string),
	}
	for _, a := range attributes {
		name, value, _ := strings.Cut(a, "=")
		slot.Attributes[name] = value
	}
	return slot
}

func TestStays(t *testing.T) {
	endless := night("endless", 1, 1)
	endless.EndsAt = time.Time{}
	timeless := ledger.Slot{ID: "timeless"}
	for name, test := range map[string]struct {
		nights int
		slots  []ledger.Slot
		want   string
	}{
		"none":                         {2, nil, "[]"},
		"two of three":                 {2, []ledger.Slot{night("a", 0, 24), night("b", 24, 48), night("c", 48, 72)}, "[[a b] [b c]]"},
		"a gap":                        {2, []ledger.Slot{night("a", 0, 24), night("b", 25, 48), night("c", 48, 72)}, "[[b c]]"},
		"an overlap":                   {2, []ledger.Slot{night("a", 0, 24), night("b", 23, 48)}, "[]"},
		"of different length":          {3, []ledger.Slot{night("a", 0, 1), night("b", 1, 50), night("c", 50, 51)}, "[[a b c]]"},
		"one night":                    {1, []ledger.Slot{night("a", 0, 24), endless, timeless}, "[[a]]"},
		"without an end":               {2, []ledger.Slot{night("a", 0, 1), endless}, "[]"},
		"one that lasts no time":       {2, []ledger.Slot{night("a", 0, 1), night("b", 1, 1)}, "[]"},
		"the same room":                {2, []ledger.Slot{night("a", 0, 24, "room=2"), night("b", 24, 48, "room=1"), night("c", 24, 48, "room=2")}, "[[a c]]"},
		"another room, if it has to":   {2, []ledger.Slot{night("a", 0, 24, "room=2"), night("b", 24, 48, "room=1")}, "[[a b]]"},
		"the first id of equals":       {2, []ledger.Slot{night("a", 0, 24), night("c", 24, 48), night("b", 24, 48)}, "[[a b]]"},
		"no dead end":                  {3, []ledger.Slot{night("a", 0, 24, "room=1"), night("b", 24, 48, "room=1"), night("c", 24, 49, "room=2"), night("d", 49, 72, "room=2")}, "[[a c d]]"},
		"the fewest changes, not soon": {4, []ledger.Slot{night("a", 0, 1, "r=1"), night("b", 1, 2, "r=1"), night("c", 1, 2, "r=2"), night("d", 2, 3, "r=2"), night("e", 3, 4, "r=2"), night("f", 2, 3, "r=3")}, "[[a b d e]]"},
		"a change now, for fewer later": {4, []ledger.Slot{night("a", 0, 1, "r=1"), night("b", 1, 2, "r=1"), night("c", 1, 3, "r=2"),
			night("e", 2, 6, "r=2"), night("f", 6, 7, "r=3"), night("g", 3, 4, "r=2"), night("h", 4, 5, "r=2")}, "[[a c g h]]"},
	} {
		if got := fmt.Sprint(httpapi.Stays(test.nights, test.slots, test.slots)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// The dumb model walks every way. What is found has to be a way, begin with every slot that
// a way begins with, and change the attributes as seldom as any.
func TestStaysAreThoseOfADumbModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := drawNights(t)
		nights := rapid.IntRange(1, 6).Draw(t, "nights")
		byID := make(map[ledger.SlotID]ledger.Slot)
		for _, slot := range slots {
			byID[slot.ID] = slot
		}
		want := make(map[ledger.SlotID]int)
		for _, slot := range slots {
			if changes, possible := fewestChanges(slots, slot, nights); possible {
				want[slot.ID] = changes
			}
		}
		got := make(map[ledger.SlotID]int)
		for _, stay := range httpapi.Stays(nights, slots, slots) {
			if len(stay) != nights {
				t.Fatalf("%v has %d nights, want %d", stay, len(stay), nights)
			}
			for i := 1; i < len(stay); i++ {
				if !byID[stay[i-1]].EndsAt.Equal(byID[stay[i]].StartsAt) {
					t.Fatalf("%v does not go on at its night %d", stay, i)
				}
				if !maps.Equal(byID[stay[i-1]].Attributes, byID[stay[i]].Attributes) {
					got[stay[0]]++
				}
			}
			got[stay[0]] += 0
		}
		if !maps.Equal(got, want) {
			t.Fatalf("changes by first night are %v, want %v", got, want)
		}
	})
}

// drawNights draws slots of a few lengths and rooms at so few starts that most of them go on
// with others, and in more than one way.
func drawNights(t *rapid.T) []ledger.Slot {
	var slots []ledger.Slot
	for i := range rapid.IntRange(0, 20).Draw(t, "slots") {
		from := rapid.IntRange(0, 5).Draw(t, "from")
		slots = append(slots, night(fmt.Sprintf("s%02d", i), from, from+rapid.SampledFrom([]int{1, 1, 1, 2, 0}).Draw(t, "hours"),
			"room="+strconv.Itoa(rapid.IntRange(1, 3).Draw(t, "room"))))
	}
	return slots
}

func fewestChanges(slots []ledger.Slot, first ledger.Slot, nights int) (int, bool) {
	if !first.EndsAt.After(first.StartsAt) {
		return 0, false
	}
	if nights == 1 {
		return 0, true
	}
	best, possible := 0, false
	for _, next := range slots {
		if !next.StartsAt.Equal(first.EndsAt) {
			continue
		}
		changes, goesOn := fewestChanges(slots, next, nights-1)
		if !maps.Equal(first.Attributes, next.Attributes) {
			changes++
		}
		if goesOn && (!possible || changes < best) {
			best, possible = changes, true
		}
	}
	return best, possible
}

// What is said to be needed is what the first slots can reach, and nothing else.
func TestStayNeeds(t *testing.T) {
	hours := func(at time.Time) string {
		if at.IsZero() {
			return "-"
		}
		return strconv.Itoa(int(at.Sub(noon).Hours()))
	}
	a, b, c := night("a", 0, 10), night("b", 10, 15), night("c", 20, 30)
	for name, test := range map[string]struct {
		nights        int
		firsts, slots []ledger.Slot
		want          string // first, last and ahead
	}{
		"one night":               {1, []ledger.Slot{a}, nil, "- - -"},
		"two nights":              {2, []ledger.Slot{a}, nil, "10 10 10"},
		"three nights":            {3, []ledger.Slot{a}, nil, "10 10 20"},
		"the next one is known":   {3, []ledger.Slot{a}, []ledger.Slot{b}, "10 15 20"},
		"one that is not reached": {3, []ledger.Slot{a}, []ledger.Slot{b, c}, "10 15 20"},
		"enough is known":         {2, []ledger.Slot{a}, []ledger.Slot{b}, "10 10 10"},
		"two firsts":              {2, []ledger.Slot{a, c}, nil, "10 30 30"},
		"no first":                {5, nil, []ledger.Slot{a}, "- - -"},
	} {
		first, last, ahead := httpapi.StayNeeds(test.nights, test.firsts, test.slots)
		if got := hours(first) + " " + hours(last) + " " + hours(ahead); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// seatAt is a slot of a house that starts at an hour after noon.
func seatAt(id string, hour int, row, number string, attributes ...string) ledger.Slot {
	return night(id, hour, hour+2, append([]string{"row=" + row, "seat=" + number}, attributes...)...)
}

func TestSeatsSideBySide(t *testing.T) {
	rowless := seatAt("r", 0, "", "2")
	for name, test := range map[string]struct {
		n     int
		slots []ledger.Slot
		want  string
	}{
		"none":             {2, nil, "[]"},
		"groups overlap":   {2, []ledger.Slot{seatAt("c", 0, "A", "3"), seatAt("a", 0, "A", "1"), seatAt("b", 0, "A", "2")}, "[[a b] [b c]]"},
		"numbers, no text": {2, []ledger.Slot{seatAt("a", 0, "A", "10"), seatAt("b", 0, "A", "9"), seatAt("c", 0, "A", "100")}, "[[b a]]"},
		"leading zeros":    {2, []ledger.Slot{seatAt("a", 0, "A", "08"), seatAt("b", 0, "A", "9")}, "[[a b]]"},
		"a gap":            {2, []ledger.Slot{seatAt("a", 0, "A", "1"), seatAt("b", 0, "A", "3")}, "[]"},
		"another row":      {2, []ledger.Slot{seatAt("a", 0, "A", "1"), seatAt("b", 0, "B", "2")}, "[]"},
		"another section":  {2, []ledger.Slot{seatAt("a", 0, "A", "1", "section=left"), seatAt("b", 0, "A", "2", "section=right")}, "[]"},
		"another show":     {2, []ledger.Slot{seatAt("a", 0, "A", "1"), seatAt("b", 4, "A", "2")}, "[]"},
		"another class":    {2, []ledger.Slot{seatAt("a", 0, "A", "1", "class=1"), seatAt("b", 0, "A", "2", "class=2")}, "[[a b]]"},
		"no seats": {2, []ledger.Slot{seatAt("a", 0, "A", "1"), rowless, seatAt("c", 0, "A", "2nd"), seatAt("d", 0, "A", "-2"), seatAt("e", 0, "A", "+2"),
			seatAt("f", 0, "A", "2.0"), seatAt("g", 0, "A", ""), seatAt("h", 0, "A", "1000000002"), seatAt("i", 0, "A", "２")}, "[]"},
		"the same seat twice": {2, []ledger.Slot{seatAt("a", 0, "A", "1"), seatAt("c", 0, "A", "2"), seatAt("b", 0, "A", "2"), seatAt("d", 0, "A", "3")}, "[[a b] [b d]]"},
	} {
		if got := fmt.Sprint(httpapi.SeatsSideBySide(test.slots, test.n)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// The dumb model looks for each neighbour among all seats.
func TestSeatsSideBySideAreThoseOfADumbModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 4).Draw(t, "n")
		var slots []ledger.Slot
		for i := range rapid.IntRange(0, 16).Draw(t, "slots") {
			slots = append(slots, seatAt(fmt.Sprintf("s%02d", i), rapid.IntRange(0, 1).Draw(t, "show"),
				rapid.SampledFrom([]string{"A", "B"}).Draw(t, "row"), strconv.Itoa(rapid.IntRange(1, 9).Draw(t, "seat"))))
		}
		var want []string
		for _, first := range slots {
			group := []ledger.SlotID{first.ID}
			for i := 0; i < n && len(group) == max(1, i); i++ {
				number, _ := strconv.Atoi(first.Attributes["seat"])
				at := slices.IndexFunc(slots, func(s ledger.Slot) bool {
					return s.StartsAt.Equal(first.StartsAt) && s.Attributes["row"] == first.Attributes["row"] && s.Attributes["seat"] == strconv.Itoa(number+i)
				})
				switch {
				case at < 0 || (i == 0 && slots[at].ID != first.ID): // the first of two that say the same counts
					group = nil
				case i > 0:
					group = append(group, slots[at].ID)
				}
			}
			if len(group) == n {
				want = append(want, fmt.Sprint(group))
			}
		}
		var got []string
		for _, group := range httpapi.SeatsSideBySide(slots, n) {
			got = append(got, fmt.Sprint(group))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("groups %v, want %v", got, want)
		}
	})
}
