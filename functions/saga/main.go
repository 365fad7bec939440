// Command saga is the Lambda function that drives reservations, for each batch of its
// queue and at every tick of the Scheduler. It only wires: what is done with a reservation
// is in package saga.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"holdfast/shared/config"
	"holdfast/shared/dynamo"
	"holdfast/shared/payment"
	"holdfast/shared/payment/stripe"
	"holdfast/shared/saga"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
)

// handler answers one batch of messages, or one tick.
type handler func(ctx context.Context, event json.RawMessage) (any, error)

func main() {
	handle, err := compose(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the saga function:", err)
		os.Exit(1)
	}
	lambda.Start(handle)
}

// compose builds the function from its environment, once, before the first event.
func compose(ctx context.Context) (handler, error) {
	c, err := config.Load(topology.FunctionSaga, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	shared, err := c.AWS(ctx, nil)
	if err != nil {
		return nil, err
	}
	client := dynamodb.NewFromConfig(shared, func(o *dynamodb.Options) {
		if c.Local() {
			o.BaseEndpoint = config.Endpoint(c.LocalDynamoDBEndpoint)
			dynamo.WithoutClientToken(o)
		}
	})
	clock, random := system.RealClock{}, system.RealRandom{}
	source := telemetry.Source{Stage: string(c.Stage), Function: string(topology.FunctionSaga)}
	logger, metrics := telemetry.NewLogger(os.Stdout, source), telemetry.NewEmitter(os.Stdout, clock, source)
	provider, err := newProvider(c, shared, clock, logger)
	if err != nil {
		return nil, err
	}
	store := dynamo.NewStore(client, c.TableName, clock, random)
	dwells := &telemetry.Spread{}
	driver := saga.NewDriver(saga.Ports{
		Store: store, Provider: provider, Clock: clock, Random: random, Metrics: metrics, Dwells: dwells, Logger: logger,
	})
	worker := saga.NewWorker(driver, metrics, clock, logger)
	tick := saga.NewTick(store, driver, clock, logger)
	return saga.NewHandler(worker, tick, dwells, metrics, random, logger).Handle, nil
}

// newProvider is the payment provider of this stage. A run on one machine must name both
// of its own servers: it must never reach the real ones.
func newProvider(c config.Config, shared aws.Config, clock system.Clock, logger *slog.Logger) (payment.Provider, error) {
	if c.Local() && (c.LocalSecretsEndpoint == "" || c.LocalStripeEndpoint == "") {
		return nil, errors.New("a local run must name its servers of secrets and payments")
	}
	vault := secretsmanager.NewFromConfig(shared, func(o *secretsmanager.Options) {
		if c.Local() {
			o.BaseEndpoint = config.Endpoint(c.LocalSecretsEndpoint)
		}
	})
	secrets := config.NewSecretCache(c, vault, clock, logger)
	key := func(ctx context.Context) (payment.Secret, error) {
		all, err := secrets.PaymentSecrets(ctx)
		return all.APIKey, err
	}
	return stripe.NewKeyed(key, c.LocalStripeEndpoint, clock), nil
}
