package payment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"holdfast/shared/ledger"
)

const (
	// MessageBytesMax bounds a message. With every text of a notice at its longest it has
	// less than 1,100 bytes; a queue takes 256 KiB, and whatever is that large is not ours.
	MessageBytesMax = 4 << 10
	// ProviderNameCharactersMax bounds what a provider names: its events, their types, its
	// payments. Stripe's names are at most 255 characters long. Source:
	// https://docs.stripe.com/upgrades#what-changes-does-stripe-consider-to-be-backwards-compatible
	ProviderNameCharactersMax = 255
)

// ErrMessage is the error of a message that is not one of ours. Its text never repeats
// the message, which may hold anything.
var ErrMessage = errors.New("not a message to the saga")

var (
	providerNamePattern = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,255}$`)
	currencyPattern     = regexp.MustCompile(`^[A-Z]{3}$`)
)

// secretMark is in every client secret of Stripe, and in no name of anything else. A
// client secret looks like a payment's id with a tail, so it could stand in its place.
const secretMark = "_secret"

// Message makes the saga look at a reservation. It says nothing of how the reservation
// stands: the saga reads that. So it may come twice, late, or in any order.
type Message struct {
	Reservation ledger.ReservationID `json:"reservation_id"`
	// Notice is what the provider told, and nil for a wake-up of our own.
	Notice *Notice `json:"notice,omitempty"`
}

// Encode is m as the body of a message. It returns an ErrMessage for what DecodeMessage
// would not take.
func (m Message) Encode() (string, error) {
	if err := m.validate(); err != nil {
		return "", err
	}
	body, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("%w: it has no form in JSON", ErrMessage)
	}
	if len(body) > MessageBytesMax {
		return "", fmt.Errorf("%w: it has %d of %d bytes", ErrMessage, len(body), MessageBytesMax)
	}
	return string(body), nil
}

// DecodeMessage reads what Encode has written, with any white space. Everything else is
// an ErrMessage: an unknown, missing or repeated member, a name that is none. What is in
// a queue was put there by us, so a difference is a mistake, and half of a message is
// worse than none.
func DecodeMessage(body string) (Message, error) {
	if len(body) > MessageBytesMax {
		return Message{}, fmt.Errorf("%w: it has more than %d bytes", ErrMessage, MessageBytesMax)
	}
	var m Message
	// The errors of package json repeat what they read, so none of them is kept.
	if json.Unmarshal([]byte(body), &m) != nil {
		return Message{}, fmt.Errorf("%w: it is not that JSON object", ErrMessage)
	}
	written, err := m.Encode()
	if err != nil {
		return Message{}, err
	}
	var read bytes.Buffer
	if err := json.Compact(&read, []byte(body)); err != nil || read.String() != written {
		return Message{}, fmt.Errorf("%w: it has other members, or in another form, than were written", ErrMessage)
	}
	return m, nil
}

func (m Message) validate() error {
	switch {
	case !ledger.ValidReservationID(string(m.Reservation)):
		return fmt.Errorf("%w: reservation_id has not the form of one", ErrMessage)
	case m.Notice == nil:
		return nil
	case m.Notice.Reservation != m.Reservation:
		return fmt.Errorf("%w: the notice is of another reservation", ErrMessage)
	}
	return m.Notice.validate()
}

func (n Notice) validate() error {
	switch {
	case !isProviderName(string(n.ID)):
		return fmt.Errorf("%w: the notice's id is none", ErrMessage)
	case !isProviderName(n.Type):
		return fmt.Errorf("%w: the notice's type is none", ErrMessage)
	case !isProviderName(string(n.Payment)):
		return fmt.Errorf("%w: the notice's payment_id is none", ErrMessage)
	case n.Attempt < 1 || n.Attempt > ledger.AttemptsMax:
		return fmt.Errorf("%w: the notice's attempt is not 1 to %d", ErrMessage, ledger.AttemptsMax)
	case n.OccurredAt.IsZero():
		return fmt.Errorf("%w: the notice has no time", ErrMessage)
	case n.AmountMinor < 0 || !currencyPattern.MatchString(string(n.Currency)):
		return fmt.Errorf("%w: the notice's amount or currency can't be", ErrMessage)
	}
	switch n.Status {
	case StatusPending, StatusRequiresAction, StatusDeclined, StatusAuthorized, StatusCaptured, StatusVoided:
		return nil
	}
	return fmt.Errorf("%w: the notice's status is unknown", ErrMessage)
}

// isProviderName reports whether text can be a provider's name of something, and is not
// a secret in the place of one (promise P12).
func isProviderName(text string) bool {
	return providerNamePattern.MatchString(text) && !strings.Contains(text, secretMark)
}
