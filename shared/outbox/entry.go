package outbox

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"holdfast/shared/ledger"
)

// Source is the source of every event of Holdfast on the bus.
const Source = "holdfast"

const (
	// EntriesPerCallMax is the limit of one PutEvents. Source:
	// https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html
	EntriesPerCallMax = 10
	// CallBytesMaxDefault bounds the entries of one PutEvents together. AWS has raised the
	// limit to 1 MiB, but its reference pages still say 256 KiB, and a bus that refuses is
	// worse than one more call.
	CallBytesMaxDefault = 256 << 10
	// CallBytesLimit is the most that AWS takes in any Region.
	CallBytesLimit = 1 << 20
	// entryTimeBytes is what AWS counts for an entry's time. Source:
	// https://docs.aws.amazon.com/eventbridge/latest/userguide/calculate-putevents-entry-size.html
	entryTimeBytes = 14
)

// newEntry is e as an entry for the bus. Resources names the hold, reservation, slot, policy
// or case, so that a rule can pick the events of one.
func newEntry(e ledger.Event, bus, stage string) (types.PutEventsRequestEntry, error) {
	detail, err := renderDetail(e, stage)
	if err != nil {
		return types.PutEventsRequestEntry{}, err
	}
	return types.PutEventsRequestEntry{
		EventBusName: aws.String(bus),
		Source:       aws.String(Source),
		DetailType:   aws.String(string(e.Type)),
		Time:         aws.Time(e.OccurredAt),
		Resources:    []string{e.Subject()},
		Detail:       aws.String(string(detail)),
	}, nil
}

// entryBytes is what AWS counts for an entry: its texts in UTF-8, and its time.
func entryBytes(e types.PutEventsRequestEntry) int {
	n := entryTimeBytes + len(aws.ToString(e.Source)) + len(aws.ToString(e.DetailType)) + len(aws.ToString(e.Detail))
	for _, resource := range e.Resources {
		n += len(resource)
	}
	return n
}
