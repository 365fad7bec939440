package expiry

import (
	"context"
	"fmt"
	"sync"
	"time"

	"holdfast/shared/ledger"
)

// ReadAheadFor bounds the reading of a round's holds. It is short, because each of them is
// read by itself if this fails.
const ReadAheadFor = 2 * time.Second

// HoldsReader reads many holds at once. A dynamo.Store is one.
type HoldsReader interface {
	// Holds returns the holds of these ids in no fixed order, each strongly consistent. One
	// that is not there, or can't be read, is left out.
	Holds(ctx context.Context, ids []ledger.HoldID) ([]ledger.Hold, error)
}

// ReadAhead is a ledger.Store that has read the holds of a round together, with one call
// in place of one for each. What was read is given once: who asks for the same hold again
// has lost a race, and reads it anew. So it can't be older than a round, and the version in
// the condition of the write decides in any case.
type ReadAhead struct {
	ledger.Store
	reader HoldsReader
	mutex  sync.Mutex
	holds  map[ledger.HoldID]ledger.Hold
}

// NewReadAhead returns a ReadAhead of the store, which has read nothing yet.
func NewReadAhead[S interface {
	ledger.Store
	HoldsReader
}](store S) *ReadAhead {
	return &ReadAhead{Store: store, reader: store}
}

// Read reads the holds of the next round, and forgets those of the last. After an error
// each hold is read by itself. It may be repeated.
func (a *ReadAhead) Read(ctx context.Context, ids []ledger.HoldID) error {
	ctx, cancel := context.WithTimeout(ctx, ReadAheadFor)
	defer cancel()
	holds, err := a.reader.Holds(ctx, ids)
	byID := make(map[ledger.HoldID]ledger.Hold, len(holds))
	for _, hold := range holds {
		byID[hold.ID] = hold
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.holds = byID
	if err != nil {
		return fmt.Errorf("read the holds of a round: %w", err)
	}
	return nil
}

// Hold gives what was read ahead, once, or reads the hold.
func (a *ReadAhead) Hold(ctx context.Context, id ledger.HoldID) (ledger.Hold, error) {
	a.mutex.Lock()
	hold, read := a.holds[id]
	delete(a.holds, id)
	a.mutex.Unlock()
	if read {
		return hold, nil
	}
	return a.Store.Hold(ctx, id)
}
