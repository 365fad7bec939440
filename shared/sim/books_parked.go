package sim

import (
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/sim/table"
	"holdfast/shared/topology"
)

const (
	parkedShardPrefix = "parked#"
	// parkedForMax is the published bound of the time between two tries to end a parked
	// hold.
	parkedForMax = 15 * time.Minute
	// parkedAfter is how many failures park a hold.
	parkedAfter = 3
)

// writeParked checks a note about a hold that could not be ended: it changes nothing of
// the hold, leaves it among those that a sweep looks at, and puts the next try off by no
// more than is promised.
func (s *step) writeParked(book *holdBook, stored ledger.StoredHold) {
	hold, w := stored.Hold, s.world
	if hold.Status != ledger.StatusHeld || !stored.Due {
		s.violated("P9", "noted a failure of %s, which is %s, in the due index: %t", hold.ID, hold.Status, stored.Due)
	}
	if !w.poisoned(hold.ID) {
		s.violated("liveness", "noted a failure of %s, whose end nothing prevents", hold.ID)
	}
	shard, tryAt := s.listed(hold.ID)
	book.parkedUntil = time.Time{}
	book.failures++
	if strings.HasPrefix(shard, parkedShardPrefix) {
		book.parkedUntil = tryAt
		s.parked++
		if book.failures < parkedAfter {
			s.violated("liveness", "parked %s after %d failures", hold.ID, book.failures)
		}
		w.trace.add("%s parks %s until %s", s.commit.by, hold.ID, tryAt.Sub(historyStart))
	}
	if latest := w.kernel.now.Add(parkedForMax + clockJumpMax); book.parkedUntil.After(latest) {
		s.violated("P9", "parked %s until %s, which is after %s", hold.ID, tryAt, latest)
	}
}

// promptWithin is how long after its due time a hold has ended for which a due message was
// sent while all was well.
const promptWithin = 5 * time.Second

// checkPrompt checks that an overdue hold ends by its message, and does not wait for the
// sweep: when its time was told and came while all was well.
func (s *step) checkPrompt(book *holdBook, after ledger.Hold) {
	w := s.world
	dueAt, waits := book.now.DueAt()
	told := s.steps[stepName(ledger.Event{Hold: &ledger.Hold{ID: after.ID}}, book.now.Version)]
	if !waits || after.Status != ledger.StatusExpired || w.queues[dueQueueURL].off || told == nil ||
		!told.firstAt.After(w.calmSince) || !told.firstAt.Before(dueAt) {
		return
	}
	s.prompt++
	if late := w.kernel.now.Sub(dueAt); late > promptWithin {
		s.violated("prompt", "ended %s %s after its due time, and its message was sent in the calm", after.ID, late)
	}
}

// listed is where the due index has the hold after this commit.
func (s *step) listed(id ledger.HoldID) (shard string, at time.Time) {
	for _, m := range s.commit.mutations {
		if m.Key.Partition == "HOLD#"+string(id) && m.Key.Sort == "HOLD" {
			return textOf(m.New, dynamo.AttributeDueShard), time.UnixMilli(numberOf(m.New, dynamo.AttributeDueAtMs)).UTC()
		}
	}
	return "", time.Time{}
}

// textOf is the text in an item, or "".
func textOf(item table.Item, attribute string) string {
	if value, is := item[attribute].(*types.AttributeValueMemberS); is {
		return value.Value
	}
	return ""
}

// numberOf is the whole number in an item, or 0.
func numberOf(item table.Item, attribute string) int64 {
	value, is := item[attribute].(*types.AttributeValueMemberN)
	if !is {
		return 0
	}
	number, err := strconv.ParseInt(value.Value, 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// preventsEnd reports whether a transaction of this item fails when that instance tries it.
func (w *world) preventsEnd(by *instance, key table.Key) bool {
	id, isHold := strings.CutPrefix(key.Partition, "HOLD#")
	return w.faults.Poison > 0 && by.function.Name == topology.FunctionExpiry && isHold && w.poisoned(ledger.HoldID(id))
}

// poisoned reports whether the hold is one that the expiry function can't end before the
// calm.
func (w *world) poisoned(id ledger.HoldID) bool {
	return w.dice("poison of " + string(id)).chance(w.poison)
}
