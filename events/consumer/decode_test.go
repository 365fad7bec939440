package consumer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/events/consumer"
)

const (
	exampleFolder = "../example"
	schemaFolder  = "../schema"
)

// detail is the example of one type.
func detail(tb testing.TB, kind string) []byte {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(exampleFolder, kind+".json"))
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// kinds are the types of events that have an example.
func kinds(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(exampleFolder, "*.json"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("%d examples, %v", len(files), err)
	}
	var out []string
	for _, file := range files {
		out = append(out, strings.TrimSuffix(filepath.Base(file), ".json"))
	}
	return out
}

// envelope is a detail as EventBridge delivers it.
func envelope(tb testing.TB, id, kind string, detail []byte) []byte {
	tb.Helper()
	text, err := json.Marshal(map[string]any{
		"version": "0", "id": id, "detail-type": kind, "source": "holdfast", "account": "123456789012",
		"time": "2026-03-01T09:00:07Z", "region": "eu-central-1", "resources": []string{"hold/hold_1"},
		"detail": json.RawMessage(detail),
	})
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// changed is detail after change; numbers stay as they are written.
func changed(tb testing.TB, detail []byte, change func(members map[string]any)) []byte {
	tb.Helper()
	var members map[string]any
	decoder := json.NewDecoder(bytes.NewReader(detail))
	decoder.UseNumber()
	if err := decoder.Decode(&members); err != nil {
		tb.Fatal(err)
	}
	change(members)
	text, err := json.Marshal(members)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// Every example decodes, and every type has a schema and an example.
func TestEveryExampleDecodes(t *testing.T) {
	for _, kind := range kinds(t) {
		body := detail(t, kind)
		e, err := consumer.Decode(envelope(t, "envelope-1", kind, body))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		var want struct {
			EventID    string    `json:"event_id"`
			Version    int64     `json:"version"`
			OccurredAt time.Time `json:"occurred_at"`
			Hold       struct {
				ID string `json:"hold_id"`
			}
			Reservation struct {
				ID string `json:"reservation_id"`
			}
			Slot struct {
				ID string `json:"slot_id"`
			}
			Review struct {
				ID string `json:"review_id"`
			}
			Policy *struct {
				Type     string `json:"resource_type"`
				Resource string `json:"resource_id"`
			}
		}
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatal(err)
		}
		of := strings.Split(kind, ".")[0]
		if of == "audit" {
			of = "slot" // the example's repair is of one
		}
		subject := of + "/" + want.Hold.ID + want.Reservation.ID + want.Slot.ID + want.Review.ID
		if want.Policy != nil {
			subject += want.Policy.Type + "/" + want.Policy.Resource
		}
		if string(e.ID) != want.EventID || string(e.Type) != kind || int64(e.Version) != want.Version || e.Subject.String() != subject || !e.OccurredAt.Equal(want.OccurredAt) {
			t.Errorf("%s: %+v, want %+v of %s", kind, e, want, subject)
		}
		var got, all any
		if err := errors.Join(json.Unmarshal(e.Detail, &got), json.Unmarshal(body, &all)); err != nil || !equal(t, got, all) {
			t.Errorf("%s: detail %s, %v", kind, e.Detail, err)
		}
	}
	schemas, err := filepath.Glob(filepath.Join(schemaFolder, "*.*.json"))
	if err != nil || len(schemas) != len(kinds(t)) {
		t.Errorf("%d schemas, %d examples, %v", len(schemas), len(kinds(t)), err)
	}
}

func equal(tb testing.TB, a, b any) bool {
	tb.Helper()
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	if err := errors.Join(errX, errY); err != nil {
		tb.Fatal(err)
	}
	return bytes.Equal(x, y)
}

// On the day that Holdfast tells more, consumers with an older package go on.
func TestUnknownMembersAreLetThrough(t *testing.T) {
	for _, kind := range kinds(t) {
		more := changed(t, detail(t, kind), func(members map[string]any) {
			members["told_later"] = map[string]any{"a": []any{1.5, "b"}}
			members["EVENT_ID"], members["Version"] = "event_other", 99
			if thing, ok := members[strings.Split(kind, ".")[0]].(map[string]any); ok {
				thing["told_later"] = true
			}
		})
		e, err := consumer.Decode(envelope(t, "envelope-1", kind, more))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
		} else if e.ID == "event_other" || e.Version == 99 || !bytes.Contains(e.Detail, []byte("told_later")) {
			t.Errorf("%s: %+v", kind, e)
		}
	}
}

func TestWhatIsNoEventIsRefused(t *testing.T) {
	const kind = "hold.confirmed"
	good := detail(t, kind)
	with := func(member string, value any) []byte {
		return envelope(t, "e", kind, changed(t, good, func(m map[string]any) { m[member] = value }))
	}
	inHold := func(member string, value any) []byte {
		return envelope(t, "e", kind, changed(t, good, func(m map[string]any) { m["hold"].(map[string]any)[member] = value }))
	}
	whole := string(envelope(t, "e", kind, good))
	for name, c := range map[string]struct {
		envelope []byte
		want     error
	}{
		"nothing":                   {nil, consumer.ErrInvalid},
		"no JSON":                   {[]byte("{"), consumer.ErrInvalid},
		"null":                      {[]byte("null"), consumer.ErrInvalid},
		"a list":                    {[]byte("[]"), consumer.ErrInvalid},
		"two values":                {[]byte(whole + "{}"), consumer.ErrInvalid},
		"another source":            {[]byte(strings.Replace(whole, `"source":"holdfast"`, `"source":"aws.s3"`, 1)), consumer.ErrInvalid},
		"the source in capitals":    {[]byte(strings.Replace(whole, `"source"`, `"SOURCE"`, 1)), consumer.ErrInvalid},
		"no detail-type":            {[]byte(strings.Replace(whole, `"detail-type"`, `"kind"`, 1)), consumer.ErrInvalid},
		"no detail":                 {[]byte(strings.Replace(whole, `"detail":`, `"other":`, 1)), consumer.ErrInvalid},
		"detail is text":            {envelope(t, "e", kind, []byte(`"text"`)), consumer.ErrInvalid},
		"an unknown type":           {envelope(t, "e", "hold.exploded", good), consumer.ErrUnknownType},
		"the type of another event": {envelope(t, "e", "hold.expired", good), consumer.ErrInvalid},
		"definitions are no type":   {envelope(t, "e", "definitions", good), consumer.ErrUnknownType},
		"no event_id":               {with("event_id", nil), consumer.ErrInvalid},
		"an event_id of two":        {with("event_id", "event_1 event_2"), consumer.ErrInvalid},
		"version 0":                 {with("version", 0), consumer.ErrInvalid},
		"half a version":            {with("version", 1.5), consumer.ErrInvalid},
		"a version as text":         {with("version", "2"), consumer.ErrInvalid},
		"a version too large":       {with("version", json.Number("99999999999999999999")), consumer.ErrInvalid},
		"an endless number":         {with("version", json.Number("1e999999")), consumer.ErrInvalid},
		"an endless unknown number": {with("later", []any{json.Number("1e-999999")}), consumer.ErrInvalid},
		"a time that is none":       {with("occurred_at", "2026-13-41T25:61:61.000Z"), consumer.ErrInvalid},
		"no hold":                   {with("hold", nil), consumer.ErrInvalid},
		"a hold without an id":      {inHold("hold_id", ""), consumer.ErrInvalid},
		"a status of another event": {inHold("status", "HELD"), consumer.ErrInvalid},
		"too large":                 {with("later", strings.Repeat("x", consumer.EnvelopeBytesMax)), consumer.ErrTooLarge},
	} {
		e, err := consumer.Decode(c.envelope)
		if !errors.Is(err, c.want) || e.ID != "" {
			t.Errorf("%s: %+v, %v; want %v", name, e, err, c.want)
		}
	}
	if _, err := consumer.Decode([]byte(whole)); err != nil {
		t.Errorf("what the others were made of: %v", err)
	}
}

// The largest event that EventBridge takes is taken.
func TestTheLargestEventIsTaken(t *testing.T) {
	const busMax = 1 << 20
	large := changed(t, detail(t, "hold.created"), func(m map[string]any) { m["later"] = "" })
	large = changed(t, large, func(m map[string]any) { m["later"] = strings.Repeat("x", busMax-len(large)) })
	if _, err := consumer.Decode(envelope(t, "e", "hold.created", large)); err != nil {
		t.Errorf("a detail of %d bytes: %v", len(large), err)
	}
}

// FuzzDecode: whatever comes, Decode ends, does not panic, and what it lets through is
// whole and decodes to the same again.
func FuzzDecode(f *testing.F) {
	for _, kind := range kinds(f) {
		f.Add(envelope(f, "envelope-1", kind, detail(f, kind)))
	}
	for _, seed := range []string{
		"", "null", `{}`, `{"source":"holdfast"}`, `{"source":"holdfast","detail-type":"hold.created"}`,
		`{"source":"holdfast","detail-type":"hold.created","detail":{"version":1e999999}}`,
		`{"source":"holdfast","detail-type":"hold.created","detail":[[[[]]]]}`,
		`{"source":"holdfast","detail-type":"slot.created","detail":null}`,
		`{"source":"holdfast","detail-type":"slot.created","detail":{"slot":{"slot_id":"\ud800"}}}`,
	} {
		f.Add([]byte(seed))
	}
	types := kinds(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := consumer.Decode(body)
		if err != nil {
			if !errors.Is(err, consumer.ErrInvalid) && !errors.Is(err, consumer.ErrUnknownType) && !errors.Is(err, consumer.ErrTooLarge) {
				t.Errorf("an error of no kind: %v", err)
			}
			return
		}
		if e.ID == "" || e.Version < 1 || e.Subject.ID == "" || e.OccurredAt.IsZero() || !slices.Contains(types, string(e.Type)) || !json.Valid(e.Detail) {
			t.Errorf("let through %+v", e)
		}
		again, err := consumer.Decode(envelope(t, "another", string(e.Type), e.Detail))
		if err != nil || again.ID != e.ID || again.Version != e.Version || again.Subject != e.Subject || !again.OccurredAt.Equal(e.OccurredAt) {
			t.Errorf("again: %+v, %v", again, err)
		}
	})
}

// The policy of a resource type and those of its resources are subjects of their own, each
// with its own versions, and named as the envelope's resources name them.
func TestPoliciesAreSubjects(t *testing.T) {
	const kind = "policy.changed"
	of := func(resource any) []byte {
		return envelope(t, "e", kind, changed(t, detail(t, kind), func(m map[string]any) {
			if resource != nil {
				m["policy"].(map[string]any)["resource_id"] = resource
			}
		}))
	}
	for want, body := range map[string][]byte{"policy/train/": of(nil), "policy/train/KTX-101": of("KTX-101")} {
		if e, err := consumer.Decode(body); err != nil || e.Subject.String() != want {
			t.Errorf("%+v, %v; want the subject %s", e, err, want)
		}
	}
	if e, err := consumer.Decode(of(17)); !errors.Is(err, consumer.ErrInvalid) {
		t.Errorf("a resource that is a number: %+v, %v", e, err)
	}
	in := &consumer.Inbox{Memory: consumer.NewBounded(consumer.SubjectsMaxDefault)}
	for i, c := range []struct {
		resource any
		version  int
		want     consumer.Outcome
	}{{nil, 5, consumer.OutcomeHandled}, {"KTX-101", 1, consumer.OutcomeHandled}, {nil, 4, consumer.OutcomeOutdated}} {
		body := changed(t, of(c.resource), func(m map[string]any) {
			d := m["detail"].(map[string]any)
			d["version"], d["event_id"] = c.version, fmt.Sprintf("event_%026d", i)
		})
		got, err := in.Handle(t.Context(), body, func(context.Context, consumer.Event) error { return nil })
		if err != nil || got != c.want {
			t.Errorf("version %d of resource %v: %s, %v; want %s", c.version, c.resource, got, err, c.want)
		}
	}
}

// A repair counts as a version of what was repaired, so that what consumers know of a slot,
// a hold, a reservation or a case stays in order.
func TestRepairsAreOfWhatWasRepaired(t *testing.T) {
	const kind = "audit.repaired"
	of := func(member string, thing any) []byte {
		return envelope(t, "e", kind, changed(t, detail(t, kind), func(m map[string]any) {
			delete(m, "slot")
			m[member] = thing
		}))
	}
	for member, from := range map[string]string{"hold": "hold.created", "reservation": "reservation.payment_started", "slot": "slot.changed", "review": "review.decided"} {
		var whole map[string]json.RawMessage
		if err := json.Unmarshal(detail(t, from), &whole); err != nil {
			t.Fatal(err)
		}
		var thing map[string]any
		decoder := json.NewDecoder(bytes.NewReader(whole[member]))
		decoder.UseNumber()
		if err := decoder.Decode(&thing); err != nil {
			t.Fatal(err)
		}
		if member == "review" {
			thing["decision"] = "repaired"
		}
		id := fmt.Sprint(thing[member+"_id"])
		if e, err := consumer.Decode(of(member, thing)); err != nil || e.Subject.String() != member+"/"+id {
			t.Errorf("%+v, %v; want the subject %s/%s", e, err, member, id)
		}
	}
	nothing := envelope(t, "e", kind, changed(t, detail(t, kind), func(m map[string]any) { delete(m, "slot") }))
	if e, err := consumer.Decode(nothing); !errors.Is(err, consumer.ErrInvalid) {
		t.Errorf("a repair of nothing: %+v, %v", e, err)
	}
}

// The prefixes of types are the kinds of subjects.
func TestKinds(t *testing.T) {
	found := map[consumer.Kind]bool{}
	for _, kind := range kinds(t) {
		e, err := consumer.Decode(envelope(t, "e", kind, detail(t, kind)))
		if err != nil {
			t.Fatal(err)
		}
		found[e.Subject.Kind] = true
	}
	want := map[consumer.Kind]bool{consumer.KindHold: true, consumer.KindReservation: true, consumer.KindSlot: true, consumer.KindPolicy: true, consumer.KindReview: true}
	if !maps.Equal(found, want) {
		t.Errorf("kinds %v", found)
	}
}
