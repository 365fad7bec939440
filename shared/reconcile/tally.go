package reconcile

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"holdfast/shared/ledger"
)

// Tally is what a part of the table says, as compact as it can be said.
type Tally struct {
	At time.Time `json:"at"`
}

// NewTally is the tally of nothing, of an audit that began at that time.
func NewTally(at time.Time) *Tally { return &Tally{At: at} }

// TallySegment reads one of total segments.
func TallySegment(ctx context.Context, from Segments, segment, total int, at time.Time) (*Tally, error) {
	t := NewTally(at)
	var after ledger.Cursor
	for {
		page, err := from.ScanSegment(ctx, segment, total, after)
		if err != nil {
			return nil, err
		}
		if after = page.Next; after == "" {
			return t, nil
		}
	}
}

// Merge adds what another tally says.
func (t *Tally) Merge(other *Tally) {
	if other.At.Before(t.At) {
		t.At = other.At
	}
}

// Encode writes the tally, for whoever merges it elsewhere.
func (t *Tally) Encode(w io.Writer) error { return json.NewEncoder(w).Encode(t) }

// DecodeTally reads what Encode wrote.
func DecodeTally(r io.Reader) (*Tally, error) {
	var t Tally
	if err := json.NewDecoder(r).Decode(&t); err != nil {
		return nil, err
	}
	return &t, nil
}
