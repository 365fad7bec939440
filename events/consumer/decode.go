package consumer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// Source is the source of the envelopes.
	Source = "holdfast"
	// EnvelopeBytesMax bounds what Decode looks at: the most that EventBridge takes as one
	// event, and as much again as it adds around. Source:
	// https://docs.aws.amazon.com/eventbridge/latest/userguide/calculate-putevents-entry-size.html
	EnvelopeBytesMax = 1<<20 + 16<<10
	// numberCharactersMax is enough for every number that Holdfast writes.
	numberCharactersMax = 20
	// kindAudit is what the types of the audit's events begin with.
	kindAudit = "audit"
	// timeLayout is how Holdfast writes times.
	timeLayout = "2006-01-02T15:04:05.000Z"
)

// The errors of Decode. None goes away when the same bytes come again: put such an
// envelope aside, in a dead-letter queue, where a person can look at it.
var (
	// ErrInvalid is the error of what is no event of Holdfast, or does not fit its schema.
	ErrInvalid = errors.New("not an event of Holdfast")
	// ErrTooLarge is the error of more than EnvelopeBytesMax.
	ErrTooLarge = errors.New("the envelope is too large")
	// ErrUnknownType is the error of an event whose type this version of the package does
	// not know. Holdfast is newer: leave the type out of your rule, or take the new package.
	ErrUnknownType = errors.New("the type of the event is not known")
)

// Decode reads the JSON that EventBridge delivers, directly or as the body of a message.
// The event is checked against its schema, but members that the schema does not know are
// let through, in the envelope and in the event: a newer Holdfast may tell more. The error
// is one of ErrInvalid, ErrTooLarge and ErrUnknownType, with what is wrong.
func Decode(envelope []byte) (Event, error) {
	if len(envelope) > EnvelopeBytesMax {
		return Event{}, fmt.Errorf("%w: %d bytes, of at most %d", ErrTooLarge, len(envelope), EnvelopeBytesMax)
	}
	detailType, detail, err := open(envelope)
	if err != nil {
		return Event{}, err
	}
	known, err := schemas()
	if err != nil {
		return Event{}, err
	}
	schema, isKnown := known[detailType]
	if !isKnown {
		return Event{}, fmt.Errorf("%w: %.100q", ErrUnknownType, string(detailType))
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(detail))
	if err != nil {
		return Event{}, fmt.Errorf("%w: detail: %w", ErrInvalid, err)
	}
	if err := checkNumbers(value); err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := schema.Validate(value); err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	e, err := eventOf(value)
	if err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	e.Detail = detail
	return e, nil
}

// open takes the event out of its envelope. The members are read from a map, because
// encoding/json would take "DETAIL" for "detail" in a struct.
func open(envelope []byte) (Type, json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(envelope, &members); err != nil {
		return "", nil, fmt.Errorf("%w: envelope: %w", ErrInvalid, err)
	}
	var source, detailType string
	if err := json.Unmarshal(members["source"], &source); err != nil || source != Source {
		return "", nil, fmt.Errorf("%w: the source of the envelope is not %q", ErrInvalid, Source)
	}
	if err := json.Unmarshal(members["detail-type"], &detailType); err != nil {
		return "", nil, fmt.Errorf("%w: the envelope has no detail-type", ErrInvalid)
	}
	return Type(detailType), members["detail"], nil
}

// checkNumbers refuses numbers that Holdfast never writes. Some of them, such as
// 1e999999, would keep the check of the schema busy for long.
func checkNumbers(value any) error {
	switch v := value.(type) {
	case json.Number:
		if len(v) > numberCharactersMax || strings.ContainsAny(string(v), "eE") {
			return fmt.Errorf("the number %.20s… is too long or has an exponent", string(v))
		}
	case []any:
		for _, item := range v {
			if err := checkNumbers(item); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, member := range v {
			if err := checkNumbers(member); err != nil {
				return err
			}
		}
	}
	return nil
}

// eventOf reads the members in common from a detail that fits the schema of its type.
func eventOf(detail any) (Event, error) {
	members, _ := detail.(map[string]any)
	id, isID := members["event_id"].(string)
	kind, isType := members["type"].(string)
	occurred, isTime := members["occurred_at"].(string)
	number, isNumber := members["version"].(json.Number)
	if !isID || !isType || !isTime || !isNumber {
		return Event{}, errors.New("event_id, type, occurred_at or version is missing")
	}
	version, err := number.Int64()
	if err != nil {
		return Event{}, fmt.Errorf("version: %w", err)
	}
	occurredAt, err := time.Parse(timeLayout, occurred)
	if err != nil {
		return Event{}, fmt.Errorf("occurred_at: %w", err)
	}
	subject, err := subjectOf(Type(kind), members)
	if err != nil {
		return Event{}, err
	}
	return Event{ID: EventID(id), Type: Type(kind), Version: Version(version), Subject: subject, OccurredAt: occurredAt}, nil
}

// subjectOf names the thing that an event of this type is of: the member that is called
// like the first part of the type has it. An event of the audit has one of several members.
func subjectOf(t Type, members map[string]any) (Subject, error) {
	kind, _, _ := strings.Cut(string(t), ".")
	if kind == kindAudit {
		kind = auditedKind(members)
	}
	thing, _ := members[kind].(map[string]any)
	if Kind(kind) == KindPolicy {
		return policySubject(thing)
	}
	id, isText := thing[kind+"_id"].(string)
	if !isText || id == "" {
		return Subject{}, fmt.Errorf("the event has no %s with an id", kind)
	}
	return Subject{Kind: Kind(kind), ID: id}, nil
}

// auditedKind is the kind of the thing that the audit has put right. The schema says that
// there is one.
func auditedKind(members map[string]any) string {
	for _, kind := range []Kind{KindHold, KindReservation, KindSlot, KindReview} {
		if _, present := members[string(kind)]; present {
			return string(kind)
		}
	}
	return kindAudit
}

// policySubject names a policy by what it is of: a resource type, or a resource of one.
func policySubject(policy map[string]any) (Subject, error) {
	resourceType, isText := policy["resource_type"].(string)
	if !isText || resourceType == "" {
		return Subject{}, errors.New("the event has no policy with a resource type")
	}
	resource, _ := policy["resource_id"].(string) // missing in the policy of a resource type
	return Subject{Kind: KindPolicy, ID: resourceType + "/" + resource}, nil
}
