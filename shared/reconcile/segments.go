package reconcile

import (
	"context"

	"holdfast/shared/ledger"
)

// Segments reads parts of the table, page by page. Its reads need not be consistent: what
// looks wrong is looked at again. A page may be empty and not be the last. A dynamo.Scan is
// one.
type Segments interface {
	ScanSegment(ctx context.Context, segment, total int, after ledger.Cursor) (ledger.RecordsPage, error)
}
