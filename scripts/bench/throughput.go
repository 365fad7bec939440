package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// floors are the least ratios of handler to bare transaction, by number of callers.
var floors = []struct {
	callers int
	ratio   float64
}{{1, 0.75}, {8, 0.80}}

// measureThroughput prints holds per second through the handler, and the same
// transactions sent bare, in alternating rounds so that both meet the same machine.
func (b *bench) measureThroughput(ctx context.Context, out io.Writer, holds, rounds int) error {
	fmt.Fprintf(out, "holds per second, %d rounds of %d holds each, median (lowest to highest)\n", rounds, holds)
	fmt.Fprintf(out, "%8s %28s %28s %20s %6s\n", "callers", "handler", "bare transaction", "handler/bare", "floor")
	var below []error
	for _, floor := range floors {
		var handler, bare, ratios []float64
		for round := range rounds {
			events, inputs, err := b.prepareRound(ctx, holds)
			if err != nil {
				return err
			}
			throughHandler := func() (float64, error) { return perSecond(holds, floor.callers, b.handlerCall(ctx, events)) }
			sentBare := func() (float64, error) { return perSecond(holds, floor.callers, b.bareCall(ctx, inputs)) }
			h, t, err := inTurn(round, throughHandler, sentBare)
			if err != nil {
				return err
			}
			handler, bare, ratios = append(handler, h), append(bare, t), append(ratios, h/t)
		}
		fmt.Fprintf(out, "%8d %28s %28s %20s %6.2f\n", floor.callers, spread(handler, "%.0f"), spread(bare, "%.0f"), spread(ratios, "%.2f"), floor.ratio)
		if median := middle(ratios); median < floor.ratio {
			below = append(below, fmt.Errorf("at %d callers the handler does %.2f of the bare transaction, less than %.2f", floor.callers, median, floor.ratio))
		}
	}
	return errors.Join(below...)
}

// prepareRound makes what a round sends, outside its time: events for the handler, and
// for the bare side the very transactions that the handler makes of other such events.
func (b *bench) prepareRound(ctx context.Context, holds int) ([]json.RawMessage, []*dynamodb.TransactWriteItemsInput, error) {
	recorder := &recorder{Client: b.client}
	api, err := apiOn(recorder)
	if err != nil {
		return nil, nil, err
	}
	events := make([]json.RawMessage, holds)
	for i := range events {
		if answer, err := invoke(ctx, api, b.createEvent()); err != nil || answer.StatusCode != http.StatusCreated {
			return nil, nil, fmt.Errorf("record a transaction: %d %s: %w", answer.StatusCode, answer.Body, err)
		}
		events[i] = b.createEvent()
	}
	return events, recorder.inputs, nil
}

// recorder keeps the transactions instead of sending them. Reads go through.
type recorder struct {
	*dynamodb.Client
	inputs []*dynamodb.TransactWriteItemsInput
}

// TransactWriteItems keeps the transaction and says that it was applied.
func (r *recorder) TransactWriteItems(_ context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	r.inputs = append(r.inputs, in)
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

func (b *bench) handlerCall(ctx context.Context, events []json.RawMessage) func(int) error {
	return func(i int) error {
		answer, err := invoke(ctx, b.api, events[i])
		if err == nil && answer.StatusCode != http.StatusCreated {
			err = fmt.Errorf("create a hold: %d %s", answer.StatusCode, answer.Body)
		}
		return err
	}
}

func (b *bench) bareCall(ctx context.Context, inputs []*dynamodb.TransactWriteItemsInput) func(int) error {
	return func(i int) error {
		_, err := b.client.TransactWriteItems(ctx, inputs[i])
		return err
	}
}

// inTurn runs two measurements, in the other order each round, so that neither is always
// the one that meets the fuller table.
func inTurn(round int, first, second func() (float64, error)) (float64, float64, error) {
	if round%2 == 1 {
		s, f, err := inTurn(0, second, first)
		return f, s, err
	}
	f, err := first()
	if err != nil {
		return 0, 0, err
	}
	s, err := second()
	return f, s, err
}

// perSecond makes n calls by so many callers at once and returns the calls per second.
func perSecond(n, callers int, call func(int) error) (float64, error) {
	var group sync.WaitGroup
	failures := make([]error, callers)
	started := time.Now()
	for c := range callers {
		group.Go(func() {
			for i := c; i < n && failures[c] == nil; i += callers {
				failures[c] = call(i)
			}
		})
	}
	group.Wait()
	elapsed := time.Since(started)
	for _, err := range failures {
		if err != nil {
			return 0, err
		}
	}
	return float64(n) / elapsed.Seconds(), nil
}

// middle is the median.
func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// spread writes the median, the lowest and the highest.
func spread(values []float64, format string) string {
	sorted := slices.Sorted(slices.Values(values))
	one := func(v float64) string { return fmt.Sprintf(format, v) }
	return fmt.Sprintf("%s (%s to %s)", one(middle(values)), one(sorted[0]), one(sorted[len(sorted)-1]))
}
