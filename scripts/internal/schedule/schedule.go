package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"holdfast/shared/system"
	"holdfast/shared/topology"
)

// retryWaitStep is what Lambda waits before the first retry of an asynchronous run, and
// by which it waits longer before each further one.
const retryWaitStep = time.Minute

const (
	region    = "us-east-1"
	accountID = "000000000000"
)

// Condition says why a tick was given up, in the words of a failure message.
type Condition string

// The conditions.
const (
	RetriesExhausted Condition = "RetriesExhausted"
	EventAgeExceeded Condition = "EventAgeExceeded"
)

// Tick is the event of one tick: what the Scheduler sends if it is given no input.
type Tick struct {
	Version    string    `json:"version"`
	ID         string    `json:"id"`
	DetailType string    `json:"detail-type"`
	Source     string    `json:"source"`
	Account    string    `json:"account"`
	Time       time.Time `json:"time"` // what the tick was meant for, in whole seconds
	Region     string    `json:"region"`
	Resources  []string  `json:"resources"`
	Detail     string    `json:"detail"`
}

// Failure is the message about a tick that was given up.
type Failure struct {
	Version        string         `json:"version"`
	Timestamp      time.Time      `json:"timestamp"`
	RequestContext FailureContext `json:"requestContext"`
	RequestPayload Tick           `json:"requestPayload"`
}

// FailureContext says why a tick was given up.
type FailureContext struct {
	Condition              Condition `json:"condition"`
	ApproximateInvokeCount int       `json:"approximateInvokeCount"`
}

// Config describes one schedule. Everything is needed.
type Config struct {
	Name    string
	Trigger topology.ScheduleTrigger
	// Invoke gives an event to the function and returns its answer, which is ignored.
	Invoke func(ctx context.Context, payload []byte) ([]byte, error)
	// GiveUp delivers the message about a tick that was given up.
	GiveUp func(context.Context, Failure) error
	Clock  system.Clock
	Log    *slog.Logger
}

// Schedule starts one function at a fixed rate.
type Schedule struct {
	config Config
}

// New checks the trigger.
func New(config Config) (*Schedule, error) {
	if config.Trigger.Every <= 0 || config.Trigger.EventAgeMax <= 0 {
		return nil, errors.New("schedule: the rate and the age of an event need a value")
	}
	return &Schedule{config: config}, nil
}

// Run starts the function at each tick, the first time after one interval, until the
// context ends, and returns when no run is left. Ticks that passed while the machine
// slept are left out.
func (s *Schedule) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	every := s.config.Trigger.Every
	for at := s.config.Clock.Now().Add(every); ; at = at.Add(every) {
		now := s.config.Clock.Now()
		if late := now.Sub(at); late >= every {
			at = at.Add(late.Truncate(every))
		}
		if s.config.Clock.Sleep(ctx, at.Sub(now)) != nil {
			return
		}
		running.Go(func() { s.run(ctx, s.tick(at)) })
	}
}

func (s *Schedule) tick(at time.Time) Tick {
	return Tick{
		Version: "0", ID: uuid.NewString(), DetailType: "Scheduled Event", Source: "aws.scheduler",
		Account: accountID, Time: at.UTC().Truncate(time.Second), Region: region,
		Resources: []string{fmt.Sprintf("arn:aws:scheduler:%s:%s:schedule/default/%s", region, accountID, s.config.Name)},
		Detail:    "{}",
	}
}

// run gives one tick to the function until it succeeds or is given up.
func (s *Schedule) run(ctx context.Context, tick Tick) {
	payload, err := json.Marshal(tick)
	if err != nil {
		s.config.Log.Error("tick cannot be written", "schedule", s.config.Name, "error", err)
		return
	}
	for tries := 1; ; tries++ {
		_, err := s.config.Invoke(ctx, payload)
		if err == nil || ctx.Err() != nil {
			return
		}
		s.config.Log.Warn("scheduled run failed", "schedule", s.config.Name, "tries", tries, "error", err)
		wait := retryWaitStep * time.Duration(tries)
		age := s.config.Clock.Now().Add(wait).Sub(tick.Time)
		switch {
		case tries > s.config.Trigger.Retries:
			s.giveUp(ctx, tick, RetriesExhausted, tries)
			return
		case age > s.config.Trigger.EventAgeMax:
			s.giveUp(ctx, tick, EventAgeExceeded, tries)
			return
		}
		if s.config.Clock.Sleep(ctx, wait) != nil {
			return
		}
	}
}

func (s *Schedule) giveUp(ctx context.Context, tick Tick, condition Condition, tries int) {
	err := s.config.GiveUp(ctx, Failure{
		Version:        "1.0",
		Timestamp:      s.config.Clock.Now().UTC(),
		RequestContext: FailureContext{Condition: condition, ApproximateInvokeCount: tries},
		RequestPayload: tick,
	})
	if err != nil && ctx.Err() == nil {
		s.config.Log.Error("tick cannot be given up", "schedule", s.config.Name, "error", err)
	}
}
