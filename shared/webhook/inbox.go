package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
)

// The bounds of the steps. Together they are shorter than topology.WebhookTimeout, so that
// a delivery which can't be taken in is answered, and not cut off.
const (
	// VerifyFor bounds the check of a signature, which may have to read the secret.
	VerifyFor = 3 * time.Second
	// RecordedFor bounds the one read of the table.
	RecordedFor = 2 * time.Second
	// QueueFor bounds the one message to the queue.
	QueueFor = 3 * time.Second
)

// Queue takes the notices for the saga. An sqs.Client is one.
type Queue interface {
	SendMessage(ctx context.Context, input *sqs.SendMessageInput, options ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// Metrics counts the deliveries. A telemetry.Emitter is one.
type Metrics interface {
	Emit(properties telemetry.Properties, measurements ...telemetry.Measurement) error
}

// Ports are what an Inbox works with. All of them must be set.
type Ports struct {
	// Verify checks the signature of exactly these bytes at now, and gives what is kept of
	// the event. Its errors have nothing of the delivery in their text.
	Verify func(ctx context.Context, body []byte, signature string, now time.Time) (payment.Notice, error)
	// Recorded reports whether the saga has taken up the event: whether the Change that has
	// its effect was written. Nothing less may count.
	Recorded func(ctx context.Context, id ledger.ProviderEventID) (bool, error)
	Queue    Queue
	Metrics  Metrics
	Clock    system.Clock
	Logger   *slog.Logger
}

// Settings say what an Inbox listens for, and where it puts what it hears.
type Settings struct {
	SignatureHeader string // the header with the signature, in any case
	SagaQueueURL    string
}

// Inbox takes in the deliveries of one payment provider. It has no memory; any number of
// them may run at once.
type Inbox struct {
	ports    Ports
	settings Settings
}

// NewInbox returns an Inbox, or an error for settings that cannot be right.
func NewInbox(ports Ports, settings Settings) (*Inbox, error) {
	if settings.SignatureHeader == "" || settings.SagaQueueURL == "" {
		return nil, errors.New("webhook: the signature's header and the saga's queue must be named")
	}
	return &Inbox{ports: ports, settings: settings}, nil
}

// Handle answers one event of an HTTP API. Every event has an answer: the error is always
// nil, because API Gateway would turn one into a 500.
func (x *Inbox) Handle(ctx context.Context, raw json.RawMessage) (events.APIGatewayV2HTTPResponse, error) {
	event, err := readEvent(raw)
	id := event.requestID()
	ctx = telemetry.WithCorrelation(ctx, slog.String(telemetry.KeyRequestID, string(id)))
	result := outcomeBroken
	if err != nil {
		// Only a wrong trigger sends that. The error may repeat what it read.
		x.ports.Logger.ErrorContext(ctx, "the function was given what is no event of an HTTP API")
	} else {
		result = x.take(ctx, event)
	}
	if err := x.ports.Metrics.Emit(telemetry.Properties{telemetry.KeyRequestID: string(id)}, telemetry.Count(result.metric, 1)); err != nil {
		// Failing the delivery for it would bring it again for nothing.
		x.ports.Logger.ErrorContext(ctx, "a delivery could not be counted", slog.Any("error", err))
	}
	return result.answer(id), nil
}

// take does with a delivery what the package's story says.
func (x *Inbox) take(ctx context.Context, event gatewayEvent) outcome {
	body, err := event.bytes()
	if err != nil {
		if errors.Is(err, errBodyTooLarge) {
			return outcomeTooLarge
		}
		return outcomeBroken
	}
	notice, err := x.verify(ctx, body, event.header(x.settings.SignatureHeader))
	switch {
	case errors.Is(err, payment.ErrSignature):
		return outcomeRefused
	case errors.Is(err, payment.ErrNotOurs):
		return outcomeIgnored
	case errors.Is(err, payment.ErrMalformed):
		return x.malformed(ctx, err)
	case err != nil:
		return x.failed(ctx, "the signature could not be checked", err)
	}
	message, err := payment.Message{Reservation: notice.Reservation, Notice: &notice}.Encode()
	if err != nil {
		return x.malformed(ctx, err)
	}
	ctx = telemetry.WithCorrelation(ctx,
		slog.String(telemetry.KeyReservationID, string(notice.Reservation)), slog.Int(telemetry.KeyAttempt, int(notice.Attempt)),
		slog.String(telemetry.KeyProviderEventID, string(notice.ID)))
	recorded, err := x.recorded(ctx, notice.ID)
	if err != nil {
		return x.failed(ctx, "the table did not say whether the event is recorded", err)
	}
	if recorded {
		return outcomeRecorded
	}
	if err := x.send(ctx, message); err != nil {
		return x.failed(ctx, "the event could not be queued", err)
	}
	x.ports.Logger.InfoContext(ctx, "event queued", slog.String("type", notice.Type), slog.String("status", string(notice.Status)))
	return outcomeQueued
}

func (x *Inbox) verify(ctx context.Context, body []byte, signature string) (payment.Notice, error) {
	if signature == "" {
		return payment.Notice{}, payment.ErrSignature
	}
	ctx, cancel := context.WithTimeout(ctx, VerifyFor)
	defer cancel()
	return x.ports.Verify(ctx, body, signature, x.ports.Clock.Now())
}

func (x *Inbox) recorded(ctx context.Context, id ledger.ProviderEventID) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, RecordedFor)
	defer cancel()
	return x.ports.Recorded(ctx, id)
}

func (x *Inbox) send(ctx context.Context, message string) error {
	ctx, cancel := context.WithTimeout(ctx, QueueFor)
	defer cancel()
	_, err := x.ports.Queue.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(x.settings.SagaQueueURL), MessageBody: aws.String(message),
	})
	return err
}

// malformed tells the log of an event that no repetition makes readable. Its ids are not
// told: they may be what is wrong with it.
func (x *Inbox) malformed(ctx context.Context, err error) outcome {
	x.ports.Logger.ErrorContext(ctx, "a signed event can't be read", slog.Any("error", err))
	return outcomeMalformed
}

func (x *Inbox) failed(ctx context.Context, what string, err error) outcome {
	x.ports.Logger.ErrorContext(ctx, what+"; the provider will send it again", slog.Any("error", err))
	return outcomeFailed
}
