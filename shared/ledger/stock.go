package ledger

import "fmt"

// Counters are the numbers of one stock item, or a change of them.
type Counters struct {
	Available Units // can be held now
	Held      Units // promised by HELD holds
	Confirmed Units // sold
	Capacity  Units // the sum of the three
}

// Plus adds two sets of counters.
func (c Counters) Plus(d Counters) Counters {
	return Counters{c.Available + d.Available, c.Held + d.Held, c.Confirmed + d.Confirmed, c.Capacity + d.Capacity}
}

// Check returns an error unless the counters keep promise P1.
func (c Counters) Check() error {
	if c.Available < 0 || c.Held < 0 || c.Confirmed < 0 {
		return fmt.Errorf("negative counter in %+v", c)
	}
	if c.Available+c.Held+c.Confirmed != c.Capacity {
		return fmt.Errorf("available + held + confirmed is not capacity in %+v", c)
	}
	return nil
}

// Stock is one shard of a slot's stock. Beside the counters it has copies of what a
// sale depends on, so that the condition of one write can check all of it.
type Stock struct {
	Slot     SlotID
	Shard    Shard
	Counters Counters
	// Archived is what the archived events moved, net: what the events that are left tell,
	// and Archived, together make Counters.
	Archived Counters
	Terms    Terms
	Version  Version
}

// retired reports whether s is none of the shards that new holds are spread over.
func (s Stock) retired() bool { return int(s.Shard) >= s.Terms.Shards }

// Terms are the parts of a slot that decide whether and at what price a unit is sold.
// The slot has them, and each of its stock items has a copy.
type Terms struct {
	Open   bool
	Price  Money
	Shards int // how many shards new holds are spread over
	// Retired is how many more stock items there are, numbered after the shards. They are
	// what is left of a slot that once had more shards: holds give back to them, and what
	// they have is sold last.
	Retired int
}

// StockItems is how many stock items the slot has: its shards, and the retired ones.
func (t Terms) StockItems() int { return t.Shards + t.Retired }

// Bucket is where units are at a moment.
type Bucket string

// The buckets. Outside is beyond the slot's capacity: units come from there when
// capacity grows and go there when it shrinks.
const (
	BucketOutside   Bucket = "outside"
	BucketAvailable Bucket = "available"
	BucketHeld      Bucket = "held"
	BucketConfirmed Bucket = "confirmed"
)

// Movement is units of one shard going from one bucket to another. Movements are what
// an event tells; the change of the counters is computed from them, so the event and
// the stock cannot tell different stories.
type Movement struct {
	Slot     SlotID
	Shard    Shard
	From, To Bucket
	Quantity Units
}

// Delta is the change of the counters that m makes.
func (m Movement) Delta() Counters {
	return bucketDelta(m.From, -m.Quantity).Plus(bucketDelta(m.To, m.Quantity))
}

func bucketDelta(b Bucket, q Units) Counters {
	switch b {
	case BucketAvailable:
		return Counters{Available: q, Capacity: q}
	case BucketHeld:
		return Counters{Held: q, Capacity: q}
	case BucketConfirmed:
		return Counters{Confirmed: q, Capacity: q}
	default:
		return Counters{}
	}
}
