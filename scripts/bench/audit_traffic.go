package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/outbox"
	"holdfast/shared/reconcile"
	"holdfast/shared/system"
)

// trafficPerSecond is how many transactions a second run beside an audit.
const trafficPerSecond = 50

// traffic makes, sells and gives up holds of its own owners, on the slots that are not quiet.
type traffic struct {
	store    *dynamo.Store
	commands *commands.Commands
	slots    int
	open     []ledger.HoldID
	steps    int
	began    time.Time
	ended    time.Time
	stopped  chan struct{}
	group    sync.WaitGroup
	failure  error
}

func startTraffic(ctx context.Context, client *dynamodb.Client, slots int) *traffic {
	clock, random := system.RealClock{}, system.RealRandom{}
	store := dynamo.NewStore(client, tableName, clock, random)
	t := &traffic{store: store, commands: commands.New(store, clock, random), slots: slots, began: time.Now(), stopped: make(chan struct{})}
	t.group.Go(func() {
		tick := time.NewTicker(time.Second / trafficPerSecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-t.stopped:
				return
			}
			if err := t.step(ctx); err != nil {
				t.failure = fmt.Errorf("traffic, step %d: %w", t.steps, err)
				return
			}
			t.steps++
		}
	})
	return t
}

// step makes a hold, or ends one of a while ago.
func (t *traffic) step(ctx context.Context) error {
	owner := ledger.OwnerID(fmt.Sprintf("T-%d", t.steps%40))
	request := commands.Request{Actor: ledger.Actor("owner:" + string(owner)), Owner: owner, RequestID: "request_traffic"}
	if t.steps%2 == 0 || len(t.open) < 20 {
		slot := marketSlotID(quietSlots + t.steps*13%(t.slots-quietSlots))
		id, err := makeMarketHold(ctx, t.commands, request, slot, 1)
		if ledger.CodeOf(err) == ledger.CodeInsufficientStock {
			return nil
		}
		t.open = append(t.open, id)
		return err
	}
	id := t.open[0]
	t.open = t.open[1:]
	if t.steps%4 == 1 {
		_, err := t.commands.ConfirmHold(ctx, request, id, "", nil, renderNothing)
		return err
	}
	hold, err := t.store.Hold(ctx, id)
	if err != nil {
		return err
	}
	request.Owner = hold.Owner
	_, err = t.commands.CancelHold(ctx, request, id, renderNothing)
	return err
}

// stop ends the traffic, and returns how many steps it made.
func (t *traffic) stop() (int, error) {
	close(t.stopped)
	t.group.Wait()
	t.ended = time.Now()
	return t.steps, t.failure
}

func (t *traffic) lasted() time.Duration { return t.ended.Sub(t.began) }

// newBenchRepairer is a Repairer as an operator has it, but that nothing is published anywhere:
// events are only marked.
func newBenchRepairer(client *dynamodb.Client) *reconcile.Repairer {
	clock, random := system.RealClock{}, system.RealRandom{}
	store := dynamo.NewStore(client, tableName, clock, random)
	return &reconcile.Repairer{
		Store: store, Expire: commands.New(store, clock, random), Redrive: markingRedrive{store}, Clock: clock, Random: random,
		Actor: ledger.ActorAudit, RequestID: "request_repair",
	}
}

// markingRedrive marks what is unpublished and old as published.
type markingRedrive struct{ store *dynamo.Store }

// Run marks the events of one page of each shard.
func (r markingRedrive) Run(ctx context.Context, age, _ time.Duration) (outbox.RedriveReport, error) {
	report := outbox.RedriveReport{LagKnown: true}
	now := time.Now()
	var failures []error
	for shard := range ledger.UnpublishedShards {
		entries, _, err := r.store.Unpublished(ctx, shard, now.Add(-age), ledger.Page{Limit: ledger.PageItemsMax})
		if err != nil {
			return report, err
		}
		items := make([]ledger.EventItem, len(entries))
		for i, entry := range entries {
			items[i] = entry.Item
		}
		stored, err := r.store.UnpublishedEvents(ctx, items)
		if err != nil {
			return report, err
		}
		for _, event := range stored {
			failures = append(failures, r.store.MarkPublished(ctx, event.Event, now))
			report.Republished++
		}
	}
	return report, errors.Join(failures...)
}
