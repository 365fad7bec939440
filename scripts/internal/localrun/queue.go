package localrun

import (
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"holdfast/scripts/internal/cloud"
	"holdfast/scripts/internal/queuesource"
	"holdfast/shared/system"
	"holdfast/shared/topology"
)

// createQueues makes the queues of the topology, each under its name there: first those
// that nothing comes after, then those whose dead letters go to one of them.
func (s *System) createQueues(ctx context.Context) error {
	for _, resource := range topology.QueuesForPeople() {
		queue, err := s.cloud.CreateQueue(ctx, string(resource))
		if err != nil {
			return err
		}
		s.queues[resource] = queue
	}
	for _, function := range topology.Functions() {
		if function.Queue == nil {
			continue
		}
		dead := s.queues[function.Queue.DeadLetters]
		queue, err := s.cloud.CreateQueueInto(ctx, string(function.Queue.Queue), dead, function.Queue.ReceivesMax)
		if err != nil {
			return err
		}
		s.queues[function.Queue.Queue] = queue
	}
	return nil
}

// feed is the mapping from a queue to its function.
type feed struct {
	source *queuesource.Source
	mu     sync.Mutex
	end    context.CancelFunc // nil while it is disabled
	done   chan struct{}
}

// openQueue lets the function's queue feed it.
func (s *System) openQueue(function topology.Function) error {
	queue := s.queues[function.Queue.Queue]
	retryAfter := s.options.QueueRetryAfter
	if retryAfter == 0 {
		retryAfter = queueRetryAfter
	}
	trigger := *function.Queue
	trigger.VisibilityTimeout = queueHiddenFor
	source, err := queuesource.New(queuesource.Config{
		Queue: s.queueClient(), QueueURL: queue.URL, QueueARN: queue.ARN, Region: cloud.Region,
		Trigger: trigger, RetryAfter: retryAfter, Invoke: s.functions[function.Name].Invoke,
		Measured: s.ofQueue(function.Queue.Queue), Clock: system.RealClock{}, Log: s.log,
	})
	if err != nil {
		return err
	}
	s.feeds[function.Queue.Queue] = &feed{source: source}
	s.onClose(func() error { return s.DisableQueue(function.Queue.Queue) })
	if err := s.EnableQueue(function.Queue.Queue); err != nil {
		return err
	}
	s.tell("the queue %s feeds %s", function.Queue.Queue, function.Name)
	return nil
}

// queueClient returns a client that tries each call once. A receive that is tried again in
// silence loses the messages of the answer that was lost, until they are seen again; the
// source tries again too, and says so.
func (s *System) queueClient() *sqs.Client {
	return sqs.NewFromConfig(s.cloud.AWSConfig(), func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
}

// EnableQueue lets the queue feed its function again.
func (s *System) EnableQueue(resource topology.Resource) error {
	f, feeds := s.feeds[resource]
	if !feeds {
		return fmt.Errorf("%s feeds no function", resource)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.end != nil {
		return fmt.Errorf("the queue %s is enabled already", resource)
	}
	ctx, end := context.WithCancel(s.running)
	done := make(chan struct{})
	f.end, f.done = end, done
	go func() {
		defer close(done)
		f.source.Run(ctx)
	}()
	return nil
}

// DisableQueue stops feeding the queue's function. Messages wait in the queue meanwhile.
// A batch that the function works on at this moment comes again later. It may be repeated.
func (s *System) DisableQueue(resource topology.Resource) error {
	f, feeds := s.feeds[resource]
	if !feeds {
		return fmt.Errorf("%s feeds no function", resource)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.end != nil {
		f.end()
		<-f.done
		f.end = nil
	}
	return nil
}

// TakeMessages takes every message that waits out of a queue of the topology, and returns
// their bodies. It is for queues of dead letters, and for losing what is in a queue.
func (s *System) TakeMessages(ctx context.Context, resource topology.Resource) ([]string, error) {
	queue, isQueue := s.queues[resource]
	if !isQueue {
		return nil, fmt.Errorf("%s is no queue of the topology", resource)
	}
	return s.cloud.Take(ctx, queue)
}

// Waiting counts the messages in a queue of the topology, those included that are being
// worked on or wait to be tried again.
func (s *System) Waiting(ctx context.Context, resource topology.Resource) (int, error) {
	queue, isQueue := s.queues[resource]
	if !isQueue {
		return 0, fmt.Errorf("%s is no queue of the topology", resource)
	}
	return s.cloud.Waiting(ctx, queue)
}

// SendMessage puts a message into a queue of the topology, as a function would.
func (s *System) SendMessage(ctx context.Context, resource topology.Resource, body string) error {
	queue, isQueue := s.queues[resource]
	if !isQueue {
		return fmt.Errorf("%s is no queue of the topology", resource)
	}
	return s.cloud.Send(ctx, queue, body)
}
