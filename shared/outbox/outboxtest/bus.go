// Package outboxtest is an event bus and a queue for tests, which can be told to fail.
//
// The problem it solves: the interesting part of publishing is what happens when the bus
// refuses one entry of ten, is down, or accepts and loses its answer. A real bus does
// that when nobody looks. The Bus and the Queue here do it on order, and measure what they are
// given by their own arithmetic, so that a relay which counts wrongly is found out.
package outboxtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/smithy-go"

	"holdfast/shared/system"
)

// Codes of refused entries, one that is worth a retry and one that is not.
const (
	CodeThrottled = "ThrottlingException"
	CodeInvalid   = "InvalidArgument"
)

// The limits of PutEvents, written down here a second time on purpose. Source:
// https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html
const (
	entriesMax          = 10
	detailTypeLengthMax = 128
	timeBytes           = 14
)

// ErrDown is the error of a bus that can't be reached.
var ErrDown = errors.New("outboxtest: connection refused")

// ErrAnswerLost is the error of a call whose entries were accepted all the same.
var ErrAnswerLost = errors.New("outboxtest: connection reset while reading the answer")

// Delivery is an entry that the bus has accepted, with the id of its envelope. The same
// event sent twice is two deliveries under two envelope ids, as on the real bus.
type Delivery struct {
	EnvelopeID string
	Entry      types.PutEventsRequestEntry
}

// Bus is an event bus. Use NewBus; it is safe for concurrent use.
type Bus struct {
	mutex      sync.Mutex
	callBytes  int
	calls      [][]types.PutEventsRequestEntry
	deliveries []Delivery
	violations []string

	failNext   int
	failCode   string
	share      float64
	shareCode  string
	random     system.Random
	refuse     func(types.PutEventsRequestEntry) string
	down       bool
	loseNext   int
	beforeCall func()
}

// NewBus returns a bus that takes callBytesMax bytes in a call.
func NewBus(callBytesMax int) *Bus { return &Bus{callBytes: callBytesMax} }

// FailNext makes the bus refuse the next n entries, over all calls, with code.
func (b *Bus) FailNext(n int, code string) {
	b.order(func() { b.failNext, b.failCode = n, code })
}

// FailShare makes the bus refuse a share of all entries, 0 to 1, with code, by random.
func (b *Bus) FailShare(share float64, code string, random system.Random) {
	b.order(func() { b.share, b.shareCode, b.random = share, code, random })
}

// Refuse makes the bus refuse each entry for which code gives a code that is not "".
func (b *Bus) Refuse(code func(types.PutEventsRequestEntry) string) {
	b.order(func() { b.refuse = code })
}

// Down makes every call fail with ErrDown, or ends that.
func (b *Bus) Down(down bool) { b.order(func() { b.down = down }) }

// LoseAnswers makes the next n calls accept their entries and answer with ErrAnswerLost.
func (b *Bus) LoseAnswers(n int) { b.order(func() { b.loseNext = n }) }

// BeforeCall makes the bus call f at the beginning of every call.
func (b *Bus) BeforeCall(f func()) { b.order(func() { b.beforeCall = f }) }

func (b *Bus) order(f func()) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	f()
}

// Calls are the entries of every call that reached the bus, accepted or not.
func (b *Bus) Calls() [][]types.PutEventsRequestEntry {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return slices.Clone(b.calls)
}

// Deliveries are what the bus has accepted, in order.
func (b *Bus) Deliveries() []Delivery {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return slices.Clone(b.deliveries)
}

// Violations say what no call should have contained. A test of a relay requires that
// there are none.
func (b *Bus) Violations() []string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return slices.Clone(b.violations)
}

// PutEvents takes the entries as a real bus would, and obeys the orders given before.
func (b *Bus) PutEvents(ctx context.Context, input *eventbridge.PutEventsInput, _ ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error) {
	b.mutex.Lock()
	hook := b.beforeCall
	b.mutex.Unlock()
	if hook != nil {
		hook()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.down {
		return nil, ErrDown
	}
	b.calls = append(b.calls, slices.Clone(input.Entries))
	if faults := callFaults(input.Entries, b.callBytes); len(faults) > 0 {
		b.violations = append(b.violations, faults...)
		return nil, &smithy.GenericAPIError{Code: "ValidationException", Message: faults[0], Fault: smithy.FaultClient}
	}
	output := &eventbridge.PutEventsOutput{}
	for _, entry := range input.Entries {
		code := b.verdict(entry)
		if code != "" {
			output.FailedEntryCount++
			output.Entries = append(output.Entries, types.PutEventsResultEntry{
				ErrorCode: aws.String(code), ErrorMessage: aws.String("refused on order"),
			})
			continue
		}
		id := fmt.Sprintf("envelope-%d", len(b.deliveries)+1)
		b.deliveries = append(b.deliveries, Delivery{id, entry})
		output.Entries = append(output.Entries, types.PutEventsResultEntry{EventId: aws.String(id)})
	}
	if b.loseNext > 0 {
		b.loseNext--
		return nil, ErrAnswerLost
	}
	return output, nil
}

// verdict is the code that an entry is refused with, or "".
func (b *Bus) verdict(entry types.PutEventsRequestEntry) string {
	if b.refuse != nil {
		if code := b.refuse(entry); code != "" {
			return code
		}
	}
	if b.failNext > 0 {
		b.failNext--
		return b.failCode
	}
	const resolution = 1 << 20
	if b.share > 0 && float64(b.random.Below(resolution)) < b.share*resolution {
		return b.shareCode
	}
	return ""
}

// callFaults says what is wrong with a call.
func callFaults(entries []types.PutEventsRequestEntry, bytesMax int) []string {
	var faults []string
	if n := len(entries); n < 1 || n > entriesMax {
		faults = append(faults, fmt.Sprintf("%d entries in one call", n))
	}
	total, resources := 0, map[string]bool{}
	for i, entry := range entries {
		total += Bytes(entry)
		var detail map[string]json.RawMessage
		if err := json.Unmarshal([]byte(aws.ToString(entry.Detail)), &detail); err != nil {
			faults = append(faults, fmt.Sprintf("entry %d: the detail is not a JSON object: %v", i, err))
		}
		kind := aws.ToString(entry.DetailType)
		if kind == "" || len(kind) > detailTypeLengthMax || aws.ToString(entry.Source) == "" || aws.ToString(entry.EventBusName) == "" {
			faults = append(faults, fmt.Sprintf("entry %d: the source, the bus or the type %q is not right", i, kind))
		}
		for _, resource := range entry.Resources {
			if resources[resource] {
				faults = append(faults, fmt.Sprintf("entry %d: a second event of %s in one call can overtake the first", i, resource))
			}
			resources[resource] = true
		}
	}
	if total > bytesMax {
		faults = append(faults, fmt.Sprintf("%d bytes in one call, more than %d", total, bytesMax))
	}
	return faults
}

// Bytes is what an entry counts for: every text in UTF-8, and 14 for its time. Source:
// https://docs.aws.amazon.com/eventbridge/latest/userguide/calculate-putevents-entry-size.html
func Bytes(entry types.PutEventsRequestEntry) int {
	total := 0
	if entry.Time != nil {
		total += timeBytes
	}
	for _, text := range append([]string{
		aws.ToString(entry.Source), aws.ToString(entry.DetailType), aws.ToString(entry.Detail),
	}, entry.Resources...) {
		total += len([]byte(text))
	}
	return total
}
