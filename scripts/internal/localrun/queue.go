package localrun

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"holdfast/scripts/internal/cloud"
	"holdfast/scripts/internal/queuesource"
	"holdfast/shared/system"
	"holdfast/shared/topology"
)

// createQueues makes the queues of the topology, each under its name there: first those
// that nothing comes after, then those whose dead letters go to one of them.
func (s *System) createQueues(ctx context.Context) error {
	var last []topology.Resource
	for _, function := range topology.Functions() {
		if function.Stream != nil {
			last = append(last, function.Stream.FailureDestination)
		}
		if function.Schedule != nil {
			last = append(last, function.Schedule.FailureDestination)
		}
		if function.Queue != nil {
			last = append(last, function.Queue.DeadLetters)
		}
	}
	for _, resource := range last {
		if _, isMade := s.queues[resource]; isMade {
			continue
		}
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

// startQueue lets the function's queue feed it.
func (s *System) startQueue(function topology.Function) error {
	queue := s.queues[function.Queue.Queue]
	retryAfter := s.options.QueueRetryAfter
	if retryAfter == 0 {
		retryAfter = queueRetryAfter
	}
	source, err := queuesource.New(queuesource.Config{
		Queue: sqs.NewFromConfig(s.cloud.AWSConfig()), QueueURL: queue.URL, QueueARN: queue.ARN, Region: cloud.Region,
		Trigger: *function.Queue, RetryAfter: retryAfter, Invoke: s.functions[function.Name].Invoke,
		Clock: system.RealClock{}, Log: s.log,
	})
	if err != nil {
		return err
	}
	s.start(source.Run)
	s.tell("the queue %s feeds %s", function.Queue.Queue, function.Name)
	return nil
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
