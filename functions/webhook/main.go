// Command webhook is the Lambda function that takes in what the payment provider tells.
// It only wires: what becomes of a delivery is in package webhook.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"holdfast/shared/config"
	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/stripe"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
	"holdfast/shared/webhook"
)

// handler answers one delivery.
type handler func(ctx context.Context, event json.RawMessage) (events.APIGatewayV2HTTPResponse, error)

func main() {
	handle, err := compose(context.Background(), system.RealClock{})
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the webhook function:", err)
		os.Exit(1)
	}
	lambda.Start(handle)
}

// compose builds the function from its environment, once, before the first delivery. The
// clock is what signatures are compared with.
func compose(ctx context.Context, clock system.Clock) (handler, error) {
	c, err := config.Load(topology.FunctionWebhook, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	shared, err := c.AWS(ctx, nil)
	if err != nil {
		return nil, err
	}
	table := dynamodb.NewFromConfig(shared, func(o *dynamodb.Options) {
		if c.Local() {
			o.BaseEndpoint = config.Endpoint(c.LocalDynamoDBEndpoint)
		}
	})
	queue := sqs.NewFromConfig(shared, func(o *sqs.Options) {
		if c.Local() {
			o.BaseEndpoint = config.Endpoint(c.LocalSQSEndpoint)
		}
	})
	vault := secretsmanager.NewFromConfig(shared, func(o *secretsmanager.Options) {
		if c.Local() {
			o.BaseEndpoint = config.Endpoint(c.LocalSecretsEndpoint)
		}
	})
	source := telemetry.Source{Stage: string(c.Stage), Function: string(topology.FunctionWebhook)}
	logger := telemetry.NewLogger(os.Stdout, source)
	inbox, err := webhook.NewInbox(webhook.Ports{
		Verify:   verifier(config.NewSecretCache(c, vault, clock, logger).PaymentSecrets),
		Recorded: recorded(dynamo.NewStore(table, c.TableName, clock, system.RealRandom{})),
		Queue:    queue, Metrics: telemetry.NewEmitter(os.Stdout, clock, source), Clock: clock, Logger: logger,
	}, webhook.Settings{SignatureHeader: stripe.SignatureHeader, SagaQueueURL: c.SagaQueueURL})
	if err != nil {
		return nil, err
	}
	return inbox.Handle, nil
}

// verifier checks a delivery as Stripe's, with the secrets of the moment.
func verifier(secrets func(context.Context) (config.PaymentSecrets, error)) func(context.Context, []byte, string, time.Time) (payment.Notice, error) {
	return func(ctx context.Context, body []byte, signature string, now time.Time) (payment.Notice, error) {
		read, err := secrets(ctx)
		if err != nil {
			return payment.Notice{}, err
		}
		return stripe.Verify(body, signature, read.Webhook, now)
	}
}

// recorded reports whether a Change of the saga has claimed the event.
func recorded(store *dynamo.Store) func(context.Context, ledger.ProviderEventID) (bool, error) {
	return func(ctx context.Context, id ledger.ProviderEventID) (bool, error) {
		_, claimed, err := store.Claimed(ctx, ledger.UniqueProviderEvent, string(id))
		return claimed, err
	}
}
