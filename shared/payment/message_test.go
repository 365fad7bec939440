package payment_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
)

const reservation ledger.ReservationID = "rsv_6vgqk3t9m2x4n8r5c7w1z0hjsd"

func notice() payment.Notice {
	return payment.Notice{
		ID: "evt_1", Type: "payment_intent.amount_capturable_updated", Payment: "pi_1", Reservation: reservation, Attempt: 1,
		OccurredAt: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), AmountMinor: 1000, Currency: "USD", Status: payment.StatusAuthorized,
	}
}

func mustEncode(tb testing.TB, m payment.Message) string {
	tb.Helper()
	body, err := m.Encode()
	if err != nil {
		tb.Fatal(err)
	}
	return body
}

func TestAMessageComesBackAsItWas(t *testing.T) {
	told := notice()
	for _, m := range []payment.Message{{Reservation: reservation}, {Reservation: reservation, Notice: &told}} {
		body := mustEncode(t, m)
		spaced := "\n " + strings.ReplaceAll(body, `,"`, ` , "`) + " "
		for _, form := range []string{body, spaced} {
			if got, err := payment.DecodeMessage(form); err != nil || !reflect.DeepEqual(got, m) {
				t.Errorf("%s comes back as %+v, %v", form, got, err)
			}
		}
	}
	if body := mustEncode(t, payment.Message{Reservation: reservation}); body != `{"reservation_id":"`+string(reservation)+`"}` {
		t.Errorf("a wake-up is %s", body)
	}
}

func TestTheLongestMessageFits(t *testing.T) {
	long := notice()
	long.ID = ledger.ProviderEventID(strings.Repeat("e", payment.ProviderNameCharactersMax))
	long.Type = strings.Repeat("t", payment.ProviderNameCharactersMax)
	long.Payment = ledger.PaymentID(strings.Repeat("p", payment.ProviderNameCharactersMax))
	long.Attempt, long.AmountMinor = ledger.AttemptsMax, 1<<63-1
	long.OccurredAt = long.OccurredAt.Add(123456789)
	body := mustEncode(t, payment.Message{Reservation: reservation, Notice: &long})
	if len(body) >= 1100 {
		t.Errorf("it has %d bytes", len(body))
	}
	if _, err := payment.DecodeMessage(body); err != nil {
		t.Error(err)
	}
}

// What was not written by Encode is refused, and the refusal does not repeat it (P12).
func TestP12_ForeignMessagesAreRefusedAndNotRepeated(t *testing.T) {
	told := notice()
	good := mustEncode(t, payment.Message{Reservation: reservation, Notice: &told})
	replaced := func(old, with string) string {
		if strings.Count(good, old) == 0 {
			t.Fatalf("the message has no %s", old)
		}
		return strings.Replace(good, old, with, 1)
	}
	for name, body := range map[string]string{
		"nothing":                 "",
		"a text":                  `"marker"`,
		"null":                    `null`,
		"a list":                  `["marker"]`,
		"no reservation":          `{}`,
		"another word":            `{"reservation":"` + string(reservation) + `"}`,
		"another case":            `{"Reservation_ID":"` + string(reservation) + `"}`,
		"a short id":              `{"reservation_id":"rsv_marker"}`,
		"a hold":                  `{"reservation_id":"hold_6vgqk3t9m2x4n8r5c7w1z0hjsd"}`,
		"an unknown member":       `{"reservation_id":"` + string(reservation) + `","client_secret":"marker"}`,
		"a member twice":          `{"reservation_id":"` + string(reservation) + `","reservation_id":"` + string(reservation) + `"}`,
		"a null notice":           `{"reservation_id":"` + string(reservation) + `","notice":null}`,
		"an empty notice":         `{"reservation_id":"` + string(reservation) + `","notice":{}}`,
		"a tail":                  good + `{}`,
		"half of it":              good[:len(good)/2],
		"an unknown notice part":  replaced(`"attempt":1`, `"attempt":1,"card":"marker"`),
		"a missing notice part":   replaced(`"attempt":1,`, ``),
		"another reservation":     replaced(`"reservation_id":"rsv_6`, `"reservation_id":"rsv_7`),
		"attempt 0":               replaced(`"attempt":1`, `"attempt":0`),
		"attempt 21":              replaced(`"attempt":1`, `"attempt":21`),
		"a fraction":              replaced(`"amount_minor":1000`, `"amount_minor":1000.5`),
		"an exponent":             replaced(`"amount_minor":1000`, `"amount_minor":1e3`),
		"a negative amount":       replaced(`"amount_minor":1000`, `"amount_minor":-1`),
		"a text as amount":        replaced(`"amount_minor":1000`, `"amount_minor":"marker"`),
		"a small currency":        replaced(`"USD"`, `"usd"`),
		"an unknown status":       replaced(`"authorized"`, `"marker"`),
		"no time":                 replaced(`"2026-03-01T09:00:00Z"`, `"0001-01-01T00:00:00Z"`),
		"a time that is none":     replaced(`"2026-03-01T09:00:00Z"`, `"marker"`),
		"no event id":             replaced(`"evt_1"`, `""`),
		"an event id with spaces": replaced(`"evt_1"`, `"evt marker"`),
		"an event id too long":    replaced(`"evt_1"`, `"`+strings.Repeat("e", payment.ProviderNameCharactersMax+1)+`"`),
		"a type that is none":     replaced(`"payment_intent.amount_capturable_updated"`, `"<marker>"`),
		"a secret as payment":     replaced(`"pi_1"`, `"pi_1_secret_marker"`),
		"too long":                strings.Repeat(" ", payment.MessageBytesMax) + good,
	} {
		m, err := payment.DecodeMessage(body)
		if !errors.Is(err, payment.ErrMessage) || m != (payment.Message{}) {
			t.Errorf("%s: %+v, %v", name, m, err)
			continue
		}
		if strings.Contains(err.Error(), "marker") {
			t.Errorf("%s: the error repeats the message: %v", name, err)
		}
	}
}

func TestWhatCannotBeReadIsNotWritten(t *testing.T) {
	for name, change := range map[string]func(*payment.Message){
		"no reservation": func(m *payment.Message) { m.Reservation = "" },
		"another one's":  func(m *payment.Message) { m.Notice.Reservation = "rsv_00000000000000000000000000" },
		"a secret":       func(m *payment.Message) { m.Notice.Payment = "pi_1_secret_marker" },
		"no status":      func(m *payment.Message) { m.Notice.Status = "" },
	} {
		told := notice()
		m := payment.Message{Reservation: reservation, Notice: &told}
		change(&m)
		if body, err := m.Encode(); !errors.Is(err, payment.ErrMessage) || body != "" || strings.Contains(err.Error(), "marker") {
			t.Errorf("%s: %q, %v", name, body, err)
		}
	}
}
