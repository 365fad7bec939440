package hotslot

import "testing"

// A refusal is judged by what was surely and what was perhaps sold when it was told.
func TestRefusalsAreJudgedByWhatWasLeft(t *testing.T) {
	for _, test := range []struct {
		name    string
		sold    bool // 8 of 10 units are sold before the refusal
		open    bool // 2 more are on their way, and are sold after it
		applied bool // what was on its way was applied
		asked   int64
		want    judged
	}{
		{"nothing sold", false, false, false, 4, judged{wrong: 1}},
		{"as much left", true, false, false, 2, judged{wrong: 1}},
		{"less left", true, false, false, 3, judged{right: 1}},
		{"perhaps less left", true, true, true, 2, judged{open: 1}},
		{"what was on its way failed", true, true, false, 2, judged{wrong: 1}},
		{"less left whatever is on its way", true, true, true, 3, judged{right: 1}},
		{"enough left whatever is on its way", false, true, true, 4, judged{wrong: 1}},
	} {
		b := newBook(10)
		if test.sold {
			b.end(b.begin(8), true)
			b.end(b.begin(1), false)
		}
		if test.open {
			e := b.begin(2)
			b.refuse(units(test.asked))
			b.end(e, test.applied)
		} else {
			b.refuse(units(test.asked))
		}
		b.end(b.begin(1), true) // sold after the refusal
		if got := b.judge(); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}
