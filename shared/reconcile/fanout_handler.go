package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
)

// FanoutHandler is the audit function: it hands messages and ticks of the Scheduler to a
// Fanout.
type FanoutHandler struct {
	fanout *Fanout
	random system.Random
	logger *slog.Logger
}

// NewFanoutHandler returns a FanoutHandler.
func NewFanoutHandler(fanout *Fanout, random system.Random, logger *slog.Logger) *FanoutHandler {
	return &FanoutHandler{fanout, random, logger}
}

// Handle answers one event. A batch of the queue is what has Records, and its answer names
// the messages that must come again. Everything else is a tick, whatever it says, so that
// nothing in it can keep an audit from beginning; it has no answer. With an error Lambda
// hands the event over again.
func (h *FanoutHandler) Handle(ctx context.Context, event json.RawMessage) (any, error) {
	request := telemetry.RequestID(ctx, h.random)
	ctx = telemetry.WithCorrelation(ctx, slog.String(telemetry.KeyRequestID, string(request)))
	if !hasRecords(event) {
		return nil, h.tick(ctx)
	}
	var batch events.SQSEvent
	if err := json.Unmarshal(event, &batch); err != nil {
		// The error may repeat what it read.
		return nil, errors.New("reconcile: the records are not messages of a queue")
	}
	response := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for _, message := range batch.Records {
		if err := h.do(ctx, message.Body, request); err != nil {
			h.logger.ErrorContext(ctx, "a part of an audit failed; it comes again", slog.String(telemetry.KeyMessageID, message.MessageId), slog.Any("error", err))
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: message.MessageId})
		}
	}
	return response, nil
}

// hasRecords reports whether the event is of an event source, and not a tick.
func hasRecords(event json.RawMessage) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(event, &members) != nil {
		return false
	}
	_, has := members["Records"]
	return has
}

func (h *FanoutHandler) tick(ctx context.Context) error {
	if err := h.fanout.Tick(ctx); err != nil {
		return fmt.Errorf("tick of the audit: %w", err)
	}
	return nil
}

// do does the task in the body of a message. What is no task of ours fails until it is a
// dead letter, so that a person sees it.
func (h *FanoutHandler) do(ctx context.Context, body string, request ledger.RequestID) error {
	var task Task
	if err := json.Unmarshal([]byte(body), &task); err != nil {
		// The error may repeat what it read.
		return errNoTask
	}
	return h.fanout.Do(ctx, task, request)
}
