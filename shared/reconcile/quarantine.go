package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/shared/ledger"
)

const (
	// QuarantinePagesMax bounds the pages that are counted of one shard of the quarantine.
	// Together they are far more than anybody could look at.
	QuarantinePagesMax = 20
	// QuarantinePageFor bounds one page.
	QuarantinePageFor = 5 * time.Second
)

// Quarantine lists the events that no retry can publish. A dynamo.Store is one.
type Quarantine interface {
	// Quarantined lists one shard, 0 to ledger.UnpublishedShards-1.
	Quarantined(ctx context.Context, shard int, page ledger.Page) ([]ledger.UnpublishedEvent, ledger.Cursor, error)
}

// errLate is why something was not counted: no time was left for it.
var errLate = errors.New("no time was left")

// quarantineSize counts the events in quarantine, up to QuarantinePagesMax pages of each
// shard. An error says that the number is not known.
func quarantineSize(ctx context.Context, quarantine Quarantine, late func() bool) (int, error) {
	size := 0
	for shard := range ledger.UnpublishedShards {
		page := ledger.Page{Limit: ledger.PageItemsMax}
		for range QuarantinePagesMax {
			if late() {
				return 0, fmt.Errorf("quarantine shard %d: %w", shard, errLate)
			}
			n, next, err := quarantinePage(ctx, quarantine, shard, page)
			if err != nil {
				return 0, fmt.Errorf("quarantine shard %d: %w", shard, err)
			}
			size += n
			if page.After = next; next == "" {
				break
			}
		}
	}
	return size, nil
}

func quarantinePage(ctx context.Context, quarantine Quarantine, shard int, page ledger.Page) (int, ledger.Cursor, error) {
	ctx, cancel := context.WithTimeout(ctx, QuarantinePageFor)
	defer cancel()
	entries, next, err := quarantine.Quarantined(ctx, shard, page)
	return len(entries), next, err
}
