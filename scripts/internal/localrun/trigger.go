package localrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"holdfast/scripts/internal/cloud"
	"holdfast/scripts/internal/eventsource"
	"holdfast/scripts/internal/schedule"
	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/engine"
	"holdfast/shared/system"
	"holdfast/shared/topology"
)

const functionARNPrefix = "arn:aws:lambda:" + cloud.Region + ":000000000000:function:holdfast-local-"

// startTriggers starts what calls functions by itself. The gateway comes last, on its own.
func (s *System) startTriggers(context.Context) error {
	for _, function := range topology.Functions() {
		if function.Schedule != nil {
			if err := s.startSchedule(function); err != nil {
				return err
			}
		}
		if function.Queue != nil {
			if err := s.openQueue(function); err != nil {
				return err
			}
		}
		if function.Stream != nil {
			if err := s.openStream(function); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *System) startSchedule(function topology.Function) error {
	trigger := *function.Schedule
	switch {
	case s.options.SweepEvery == 0 && function.Name == topology.FunctionAudit:
		trigger.Every = s.options.auditEvery()
	case s.options.SweepEvery > 0:
		trigger.Every = time.Duration(float64(trigger.Every) / float64(time.Minute) * float64(s.options.SweepEvery))
	}
	failures := s.queues[trigger.FailureDestination]
	created, err := schedule.New(schedule.Config{
		Name: string(function.Name), Trigger: trigger, Invoke: s.functions[function.Name].Invoke,
		GiveUp: func(ctx context.Context, failure schedule.Failure) error { return s.send(ctx, failures, failure) },
		Clock:  system.RealClock{}, Log: s.log,
	})
	if err != nil {
		return err
	}
	s.start(created.Run)
	s.tell("the schedule starts %s every %s", function.Name, trigger.Every)
	return nil
}

// stream is the mapping from the table's stream to its function.
type stream struct {
	config eventsource.Config
	mu     sync.Mutex
	end    context.CancelFunc // nil while it is disabled
	done   chan struct{}
}

func (s *System) openStream(function topology.Function) error {
	failures := s.queues[function.Stream.FailureDestination]
	s.stream = &stream{config: eventsource.Config{
		Streams:   dynamodbstreams.NewFromConfig(engine.AWSConfig(s.engineEndpoint)),
		StreamARN: s.streamARN, SortKey: dynamo.AttributeSortKey, Trigger: *function.Stream,
		FunctionARN: functionARNPrefix + string(function.Name), Invoke: s.functions[function.Name].Invoke,
		GiveUp:         func(ctx context.Context, failure eventsource.Failure) error { return s.send(ctx, failures, failure) },
		Measured:       s.ofStream(function.Name),
		CheckpointFile: s.folder.file(checkpointFileName), Clock: system.RealClock{}, Log: s.log,
	}}
	s.onClose(func() error { s.DisableStream(); return nil })
	if err := s.EnableStream(); err != nil {
		return err
	}
	s.tell("the table's stream feeds %s", function.Name)
	return nil
}

// EnableStream lets the stream feed its function again, from where it stopped.
func (s *System) EnableStream() error {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	if s.stream.end != nil {
		return errors.New("the stream is enabled already")
	}
	poller, err := eventsource.New(s.stream.config)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(s.running)
	done := make(chan struct{})
	s.stream.end, s.stream.done = end, done
	go func() {
		defer close(done)
		if err := poller.Run(ctx); err != nil {
			s.fail(fmt.Errorf("read the table's stream: %w", err))
		}
	}()
	return nil
}

// DisableStream stops feeding the function. What is written meanwhile waits in the stream.
// A batch that the function works on at this moment is still worked on, and comes again
// later. It may be repeated.
func (s *System) DisableStream() {
	s.stream.mu.Lock()
	defer s.stream.mu.Unlock()
	if s.stream.end == nil {
		return
	}
	s.stream.end()
	<-s.stream.done
	s.stream.end = nil
}

// send puts a message about something that was given up into its queue.
func (s *System) send(ctx context.Context, queue cloud.Queue, failure any) error {
	body, err := json.Marshal(failure)
	if err != nil {
		return fmt.Errorf("write the failure: %w", err)
	}
	return s.cloud.Send(ctx, queue, string(body))
}
