package config

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"holdfast/shared/skew"
)

// The budget of one AWS call. TriesMax tries of TryTimeout with BackoffMax between
// them stay below topology.DatabaseBudget, so that a function learns of a failure while it
// can still answer (case H8). The SDK's own defaults add up to far more.
const (
	// TriesMax is how often the SDK tries one call.
	TriesMax = 2
	// BackoffMax is the longest pause of the SDK between two tries.
	BackoffMax = 100 * time.Millisecond
	// TryTimeout bounds one try, from the connection to the end of the answer.
	TryTimeout = 3 * time.Second
	// dialTimeout bounds making a connection.
	dialTimeout = time.Second
	// idleConnectionsMax keeps a connection for each call that may run at once.
	idleConnectionsMax = 64
)

// localRegion stands in where a local run names none; local servers ignore it.
const localRegion = "us-east-1"

// Local reports whether the function talks to servers on the same machine.
func (c Config) Local() bool {
	return c.LocalDynamoDBEndpoint != "" || c.LocalEventBridgeEndpoint != "" ||
		c.LocalSQSEndpoint != "" || c.LocalSecretsEndpoint != "" || c.LocalStripeEndpoint != "" || c.LocalS3Endpoint != ""
}

// AWS returns the configuration that all AWS clients of the function share. Every answer
// that a client gets is observed by gauge, which may be nil where nobody asks it. In a
// local run the credentials are none at all and no file of the user is read, so that no
// real account is ever touched.
func (c Config) AWS(ctx context.Context, gauge *skew.Gauge) (aws.Config, error) {
	if c.Local() {
		return aws.Config{
			Region:      localRegion,
			Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
			HTTPClient:  httpClient(),
			Retryer:     retryer,
			APIOptions:  observing(gauge),
		}, nil
	}
	loaded, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRetryer(retryer),
		awsconfig.WithHTTPClient(httpClient()), awsconfig.WithAPIOptions(observing(gauge)))
	if err != nil {
		return aws.Config{}, fmt.Errorf("load the AWS configuration: %w", err)
	}
	return loaded, nil
}

// Endpoint is the base endpoint for a client: nil, which leaves it to the SDK, unless
// local is set.
func Endpoint(local string) *string {
	if local == "" {
		return nil
	}
	return aws.String(local)
}

func retryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = TriesMax
		o.MaxBackoff = BackoffMax
	})
}

func httpClient() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().
		WithTimeout(TryTimeout).
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTimeout }).
		WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = idleConnectionsMax, idleConnectionsMax
		})
}
