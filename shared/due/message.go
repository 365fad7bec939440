package due

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"holdfast/shared/ledger"
)

// DelayMax is the longest that SQS keeps a message back. What is due later is sent on when
// it comes. Source:
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
const DelayMax = 900 * time.Second

// messageBytesMax bounds a message that is read: an honest one has about a hundred.
const messageBytesMax = 1 << 10

// Message asks to look at a hold at its due time. It is a hint, as an entry of the due
// index is: the hold itself decides.
type Message struct {
	Hold  ledger.HoldID
	DueAt time.Time // in whole milliseconds
}

// message is a Message as it is sent.
type message struct {
	Hold    ledger.HoldID `json:"hold_id"`
	DueAtMs int64         `json:"due_at_ms"`
}

// Encode returns the body of the message. It returns an error for a hold id that is none.
func (m Message) Encode() (string, error) {
	if !ledger.ValidHoldID(string(m.Hold)) || m.DueAt.IsZero() {
		return "", errors.New("due message: it needs a hold and a time")
	}
	body, err := json.Marshal(message{m.Hold, m.DueAt.UnixMilli()})
	if err != nil {
		return "", fmt.Errorf("due message: %w", err)
	}
	return string(body), nil
}

// DecodeMessage reads the body of a message. The error never repeats what it read.
func DecodeMessage(body string) (Message, error) {
	var read message
	if len(body) > messageBytesMax || json.Unmarshal([]byte(body), &read) != nil {
		return Message{}, errors.New("due message: it is not one")
	}
	m := Message{read.Hold, time.UnixMilli(read.DueAtMs).UTC()}
	if !ledger.ValidHoldID(string(m.Hold)) || read.DueAtMs <= 0 {
		return Message{}, errors.New("due message: it needs a hold and a time")
	}
	return m, nil
}

// Delay is for how long a message that is sent at now is kept back: until its due time,
// in whole seconds, rounded up, and DelayMax at the most.
func (m Message) Delay(now time.Time) time.Duration {
	wait := m.DueAt.Sub(now)
	if wait <= 0 {
		return 0
	}
	return min(DelayMax, (wait + time.Second - 1).Truncate(time.Second))
}
