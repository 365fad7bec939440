package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"holdfast/shared/config"
	"holdfast/shared/due"
	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/outbox"
	"holdfast/shared/telemetry"
)

const (
	// redriveFor bounds one run of the redrive; the next goes on where it stopped.
	redriveFor = time.Minute
	// redriveRunsMax bounds the runs of one command.
	redriveRunsMax = 1_000
)

// redriveChoice is what the operator wants to be published.
type redriveChoice struct {
	olderThan   time.Duration
	quarantined bool
}

func redriveFlags(flags *flag.FlagSet, o *operator) {
	flags.DurationVar(&o.olderThan, "older-than", 0, "only events of which so much time has passed; younger ones are perhaps on their way")
	flags.BoolVar(&o.quarantined, "quarantined", false, "let the quarantined events try again first: when what was wrong with them, or with us, is mended")
}

// redriven is what a redrive came to.
type redriven struct {
	Requeued    int `json:"requeued"`
	Republished int `json:"republished"`
	Quarantined int `json:"quarantined"`
	Failed      int `json:"failed"`
	Left        int `json:"left"`
}

// redrive publishes what is in the index of unpublished events, the oldest first, until
// nothing is left that can be published now. It may be repeated, and may run beside the
// functions: consumers see some events twice.
func redrive(ctx context.Context, o *operator, arguments []string) error {
	if len(arguments) > 0 {
		return fmt.Errorf("redrive takes no argument, and was given %q", arguments[0])
	}
	if o.olderThan < 0 {
		return errors.New("redrive: -older-than can't be negative")
	}
	var sum redriven
	if o.quarantined {
		var err error
		if sum.Requeued, err = o.requeue(ctx); err != nil {
			return err
		}
	}
	relay, err := o.relay()
	if err != nil {
		return err
	}
	again := outbox.NewRedrive(relay, o.store)
	var failure error
	for range redriveRunsMax {
		report, err := again.Run(ctx, o.olderThan, redriveFor)
		sum.Republished += report.Republished
		sum.Quarantined += report.Quarantined
		sum.Failed, sum.Left = report.Failed, report.Left
		failure = err
		switch {
		case report.Futile:
			failure = errors.Join(err, errors.New("the bus, a queue or the table takes nothing now; try again later"))
		case report.Truncated && report.Republished == 0:
			failure = errors.Join(err, fmt.Errorf("nothing could be published in %s; try again later", redriveFor))
		}
		if failure != nil || !report.Truncated {
			break
		}
	}
	printed := o.table(sum, "REQUEUED\tREPUBLISHED\tQUARANTINED\tFAILED\tLEFT", func(print func(...any)) {
		print(sum.Requeued, sum.Republished, sum.Quarantined, sum.Failed, sum.Left)
	})
	return errors.Join(failure, printed)
}

// requeue takes all events out of quarantine, and returns how many.
func (o *operator) requeue(ctx context.Context) (int, error) {
	requeued := 0
	err := eachEntry(ctx, due.Shards(ledger.UnpublishedShards), o.store.Quarantined, func(entry ledger.UnpublishedEvent) error {
		was, err := o.store.Requeue(ctx, entry.Item)
		if was {
			requeued++
		}
		return err
	})
	return requeued, err
}

// relay is the relay as the reconcile function wires it. Its log goes to the error output.
func (o *operator) relay() (*outbox.Relay, error) {
	bus := eventbridge.NewFromConfig(o.aws, func(options *eventbridge.Options) {
		if o.config.Local() {
			options.BaseEndpoint = config.Endpoint(o.config.LocalEventBridgeEndpoint)
		}
		options.Retryer = aws.NopRetryer{}
	})
	queue := sqs.NewFromConfig(o.aws, func(options *sqs.Options) {
		if o.config.Local() {
			options.BaseEndpoint = config.Endpoint(o.config.LocalSQSEndpoint)
		}
		options.Retryer = aws.NopRetryer{}
	})
	return outbox.NewRelay(outbox.Ports{
		Publisher: bus, Queue: queue, Marker: o.store, Decode: dynamo.DecodeEventImage, Metrics: unmeasured{},
		Clock: o.clock, Random: o.random, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}, outbox.Settings{
		Bus: o.config.EventBusName, Stage: string(o.config.Stage), CallBytesMax: outbox.CallBytesMaxDefault,
		SagaQueueURL: o.config.SagaQueueURL, DueQueueURL: o.config.DueQueueURL,
	})
}

// unmeasured takes no numbers: the command prints its own.
type unmeasured struct{}

// Emit does nothing.
func (unmeasured) Emit(telemetry.Properties, ...telemetry.Measurement) error { return nil }
