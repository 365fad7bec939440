package engine

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/shared/dynamo"
)

// Region is the region of the local engine's clients. The engine ignores it, but the SDK
// does not send a request without one.
const Region = "us-east-1"

// idleConnectionsMax keeps a connection for each concurrent caller of a benchmark. The
// SDK's own limit is 10, and each caller above it would open a new connection for nearly
// every request.
const idleConnectionsMax = 256

// AWSConfig returns the configuration of an AWS client that talks to the engine at the
// endpoint, with credentials that are none. It reads neither the environment nor any
// file, so a real account of the person at the desk is never touched.
func AWSConfig(endpoint string) aws.Config {
	return aws.Config{
		Region:       Region,
		BaseEndpoint: aws.String(endpoint),
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""),
		HTTPClient: awshttp.NewBuildableClient().WithTransportOptions(func(transport *http.Transport) {
			transport.MaxIdleConns = idleConnectionsMax
			transport.MaxIdleConnsPerHost = idleConnectionsMax
		}),
	}
}

// Client returns a client of the engine at the endpoint that sends no token with its
// transactions, for the reason told at dynamo.WithoutClientToken.
func Client(endpoint string) *dynamodb.Client {
	return dynamodb.NewFromConfig(AWSConfig(endpoint), dynamo.WithoutClientToken)
}

// Client returns a new client of this engine; see the function Client.
func (e *Engine) Client() *dynamodb.Client { return Client(e.endpoint) }

func withoutRetries(options *dynamodb.Options) {
	options.Retryer = aws.NopRetryer{}
}
