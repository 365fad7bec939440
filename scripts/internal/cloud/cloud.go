package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventbridgetypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"holdfast/scripts/internal/build"
	"holdfast/scripts/internal/child"
)

// Region is where the emulated services are.
const Region = "us-east-1"

const (
	accountID = "000000000000"
	// readyMax bounds the wait for the first answer of the emulator.
	readyMax = 20 * time.Second
	// endMax bounds the wait for the emulator to end by itself.
	endMax = 2 * time.Second
	// receivesMax is how often a message is received before it moves to the
	// dead-letter queue.
	receivesMax = 3
	// visibility is how long a received message is hidden from others, if its consumer
	// neither deletes it nor gives it back.
	visibility = 30 * time.Second
)

// Cloud is one running emulator.
type Cloud struct {
	// Endpoint is what the AWS SDK's AWS_ENDPOINT_URL is set to.
	Endpoint string

	process *child.Process
	alive   *os.File // closed to end the emulator
	bus     *eventbridge.Client
	queues  *sqs.Client
	secrets *secretsmanager.Client
}

// Queue is one SQS queue.
type Queue struct {
	URL, ARN string
}

// Build compiles the emulator and returns the path of the program. It may be repeated.
// The first time takes about half a minute.
func Build(ctx context.Context, moduleRoot, outputFolder string) (string, error) {
	output := filepath.Join(outputFolder, "emulator")
	return output, build.Program(ctx, moduleRoot, "./scripts/internal/cloud/emulator", "", output)
}

// Start starts the built emulator and waits until it answers. What it writes goes to
// log.
func Start(ctx context.Context, program string, log io.Writer) (*Cloud, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cloud: %w", err)
	}
	// The child gets a copy; this process must not accept anything itself.
	defer listener.Close() //nolint:errcheck // the port is the child's; nothing was written through it here
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		return nil, fmt.Errorf("cloud: %w", err)
	}
	defer file.Close() //nolint:errcheck // as the listener
	input, alive, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cloud: %w", err)
	}
	defer input.Close() //nolint:errcheck // the end that the child reads; the child has its own
	port := listener.Addr().(*net.TCPAddr).Port
	process, err := child.Start(child.Command{
		Program:     program,
		Environment: []string{"KUMO_HOST=127.0.0.1", "KUMO_PORT=" + strconv.Itoa(port), "AWS_DEFAULT_REGION=" + Region},
		Input:       input,
		Output:      log,
		Files:       []*os.File{file},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cloud: %w", err), alive.Close())
	}
	cloud := &Cloud{Endpoint: "http://" + listener.Addr().String(), process: process, alive: alive}
	cloud.bus = eventbridge.NewFromConfig(cloud.AWSConfig())
	cloud.queues = sqs.NewFromConfig(cloud.AWSConfig())
	cloud.secrets = secretsmanager.NewFromConfig(cloud.AWSConfig())
	if err := cloud.waitUntilReady(ctx); err != nil {
		cloud.Close()
		return nil, fmt.Errorf("cloud: %w", err)
	}
	return cloud, nil
}

// waitUntilReady makes one call. It waits in the listener's queue for the emulator to
// come up, or fails when the emulator has ended and its listener with it.
func (c *Cloud) waitUntilReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyMax)
	defer cancel()
	go func() {
		select {
		case <-c.process.Exited():
			cancel()
		case <-ctx.Done():
		}
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Endpoint+"/health", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("the emulator does not answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the emulator is not healthy: %s", response.Status)
	}
	return errors.Join(err, response.Body.Close())
}

// Close ends the emulator and waits until it is gone. It may be repeated.
func (c *Cloud) Close() {
	// An error says that it is closed already.
	_ = c.alive.Close()
	select {
	case <-c.process.Exited():
	case <-time.After(endMax):
	}
	c.process.Kill()
}

// Ended is closed when the emulator has ended, for whatever reason.
func (c *Cloud) Ended() <-chan struct{} { return c.process.Exited() }

// AWSConfig points an AWS client at the emulator, with credentials that no real account
// knows.
func (c *Cloud) AWSConfig() aws.Config {
	return aws.Config{
		Region:       Region,
		BaseEndpoint: aws.String(c.Endpoint),
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""),
		HTTPClient:   awshttp.NewBuildableClient(),
	}
}

// CreateBus makes an event bus. PutEvents to a bus that was never made succeeds, and
// its events are lost: on AWS too.
func (c *Cloud) CreateBus(ctx context.Context, name string) error {
	if _, err := c.bus.CreateEventBus(ctx, &eventbridge.CreateEventBusInput{Name: aws.String(name)}); err != nil {
		return fmt.Errorf("create event bus %s: %w", name, err)
	}
	return nil
}

// CreateQueue makes a queue.
func (c *Cloud) CreateQueue(ctx context.Context, name string) (Queue, error) {
	return c.createQueue(ctx, name, nil)
}

// CreateQueueWithDeadLetters makes a queue and its dead-letter queue, <name>-dead, to
// which a message moves that was received too often.
func (c *Cloud) CreateQueueWithDeadLetters(ctx context.Context, name string) (queue, dead Queue, err error) {
	if dead, err = c.CreateQueue(ctx, name+"-dead"); err != nil {
		return Queue{}, Queue{}, err
	}
	queue, err = c.CreateQueueInto(ctx, name, dead, receivesMax)
	return queue, dead, err
}

// CreateQueueInto makes a queue whose messages move to dead when they are received more
// often than receives.
func (c *Cloud) CreateQueueInto(ctx context.Context, name string, dead Queue, receives int) (Queue, error) {
	policy, err := json.Marshal(map[string]string{
		"deadLetterTargetArn": dead.ARN, "maxReceiveCount": strconv.Itoa(receives),
	})
	if err != nil {
		return Queue{}, fmt.Errorf("create queue %s: %w", name, err)
	}
	return c.createQueue(ctx, name, map[string]string{
		string(sqstypes.QueueAttributeNameRedrivePolicy): string(policy),
	})
}

func (c *Cloud) createQueue(ctx context.Context, name string, attributes map[string]string) (Queue, error) {
	out, err := c.queues.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: attributes})
	if err != nil {
		return Queue{}, fmt.Errorf("create queue %s: %w", name, err)
	}
	return Queue{
		URL: aws.ToString(out.QueueUrl),
		ARN: "arn:aws:sqs:" + Region + ":" + accountID + ":" + name,
	}, nil
}

// Subscribe sends every event of the bus to the queue.
func (c *Cloud) Subscribe(ctx context.Context, busName string, queue Queue) error {
	const ruleName, targetID = "everything", "queue"
	_, err := c.bus.PutRule(ctx, &eventbridge.PutRuleInput{
		Name: aws.String(ruleName), EventBusName: aws.String(busName),
		EventPattern: aws.String(`{"source":[{"prefix":""}]}`),
	})
	if err != nil {
		return fmt.Errorf("rule on event bus %s: %w", busName, err)
	}
	out, err := c.bus.PutTargets(ctx, &eventbridge.PutTargetsInput{
		Rule: aws.String(ruleName), EventBusName: aws.String(busName),
		Targets: []eventbridgetypes.Target{{Id: aws.String(targetID), Arn: aws.String(queue.ARN)}},
	})
	if err != nil {
		return fmt.Errorf("target on event bus %s: %w", busName, err)
	}
	if out.FailedEntryCount > 0 {
		return fmt.Errorf("target on event bus %s: refused: %s", busName, aws.ToString(out.FailedEntries[0].ErrorMessage))
	}
	return nil
}
