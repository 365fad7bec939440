// Command archive is the Lambda function that moves ended records from the table to the
// archive, at every tick of the Scheduler. It only wires: what is archived and how is in
// package archive.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"holdfast/shared/archive"
	"holdfast/shared/config"
	"holdfast/shared/dynamo"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
)

// handler answers one tick.
type handler func(ctx context.Context, tick json.RawMessage) error

func main() {
	handle, err := compose(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the archive function:", err)
		os.Exit(1)
	}
	lambda.Start(handle)
}

// compose builds the function from its environment, once, before the first tick.
func compose(ctx context.Context) (handler, error) {
	c, err := config.Load(topology.FunctionArchive, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	if c.Local() && c.LocalS3Endpoint == "" {
		return nil, errors.New("a local run must name its server of buckets")
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
	objects := s3.NewFromConfig(shared, func(o *s3.Options) {
		if c.Local() {
			o.BaseEndpoint = config.Endpoint(c.LocalS3Endpoint)
			// One host stands for all buckets there.
			o.UsePathStyle = true
		}
	})
	clock, random := system.RealClock{}, system.RealRandom{}
	source := telemetry.Source{Stage: string(c.Stage), Function: string(topology.FunctionArchive)}
	logger := telemetry.NewLogger(os.Stdout, source)
	worker, err := archive.NewWorker(archive.Ports{
		Store:  dynamo.NewStore(client, c.TableName, clock, random),
		Bucket: archive.NewBucket(objects, c.ArchiveBucketName, clock, random),
		Clock:  clock, Random: random, Logger: logger,
	}, archive.Retention{Holds: c.ArchiveHoldsAfter, Reservations: c.ArchiveReservationsAfter})
	if err != nil {
		return nil, err
	}
	return archive.NewHandler(worker, telemetry.NewEmitter(os.Stdout, clock, source), random, logger).Handle, nil
}
