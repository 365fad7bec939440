// Command audit is the Lambda function that compares all of the table with itself: at every
// tick of the Scheduler it begins an audit or looks after one, and for each message of its
// queue it does one part. It only wires: what an audit is and how it is spread is in package
// reconcile.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"holdfast/shared/commands"
	"holdfast/shared/config"
	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/objects"
	"holdfast/shared/reconcile"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
)

// handler answers one batch of messages, or one tick.
type handler func(ctx context.Context, event json.RawMessage) (any, error)

func main() {
	handle, err := compose(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the audit function:", err)
		os.Exit(1)
	}
	lambda.Start(handle)
}

// compose builds the function from its environment, once, before the first event.
func compose(ctx context.Context) (handler, error) {
	c, err := config.Load(topology.FunctionAudit, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	if c.Local() && (c.LocalSQSEndpoint == "" || c.LocalS3Endpoint == "") {
		return nil, errors.New("a local run must name its servers of queues and of buckets")
	}
	shared, err := c.AWS(ctx, nil)
	if err != nil {
		return nil, err
	}
	clock, random := system.RealClock{}, system.RealRandom{}
	source := telemetry.Source{Stage: string(c.Stage), Function: string(topology.FunctionAudit)}
	logger, metrics := telemetry.NewLogger(os.Stdout, source), telemetry.NewEmitter(os.Stdout, clock, source)
	payments, err := newPayments(c, shared, clock, logger)
	if err != nil {
		return nil, err
	}
	table := newTable(c, shared)
	store := dynamo.NewStore(table, c.TableName, clock, random)
	fanout, err := reconcile.NewFanout(reconcile.FanoutPorts{
		Segments: dynamo.NewScan(table, c.TableName),
		Shelf:    reconcile.NewShelf(objects.NewBucket(newObjects(c, shared), c.AuditBucketName, clock, random)),
		Tasks:    reconcile.NewTaskQueue(newQueue(c, shared), c.AuditQueueURL),
		Examine:  &reconcile.Examiner{Store: store, Payments: payments, Clock: clock, Wait: clock.Sleep},
		Repair: func(request ledger.RequestID) reconcile.Repairs {
			return &reconcile.Repairer{
				Store: store, Expire: commands.New(store, clock, random), Clock: clock, Random: random,
				Actor: ledger.ActorAudit, RequestID: request,
			}
		},
		Metrics: metrics, Clock: clock, Logger: logger,
	}, reconcile.FanoutSettings{Every: c.AuditEvery, Repair: c.AuditRepair})
	if err != nil {
		return nil, err
	}
	return reconcile.NewFanoutHandler(fanout, random, logger).Handle, nil
}

func newTable(c config.Config, shared aws.Config) *dynamodb.Client {
	return dynamodb.NewFromConfig(shared, func(o *dynamodb.Options) {
		if c.Local() {
			o.BaseEndpoint = config.Endpoint(c.LocalDynamoDBEndpoint)
			dynamo.WithoutClientToken(o)
		}
	})
}

func newObjects(c config.Config, shared aws.Config) *s3.Client {
	return s3.NewFromConfig(shared, func(o *s3.Options) {
		if c.Local() {
			o.BaseEndpoint = config.Endpoint(c.LocalS3Endpoint)
			// One host stands for all buckets there.
			o.UsePathStyle = true
		}
	})
}

func newQueue(c config.Config, shared aws.Config) *sqs.Client {
	return sqs.NewFromConfig(shared, func(o *sqs.Options) {
		if c.Local() {
			o.BaseEndpoint = config.Endpoint(c.LocalSQSEndpoint)
		}
	})
}
