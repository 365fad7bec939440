package ledger_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
)

func TestIdempotencyKeyValid(t *testing.T) {
	for _, key := range []ledger.IdempotencyKey{"a", "!", "~", "8e03978e-40d5-43e8-bc93-6894a57f9324",
		ledger.IdempotencyKey(strings.Repeat("k", ledger.IdempotencyKeyCharactersMax))} {
		if !key.Valid() {
			t.Errorf("%q is not valid", key)
		}
	}
	for _, key := range []ledger.IdempotencyKey{"", " ", "a b", "a,b", "a\t", "a\n", "\x7f", "키",
		ledger.IdempotencyKey(strings.Repeat("k", ledger.IdempotencyKeyCharactersMax+1))} {
		if key.Valid() {
			t.Errorf("%q is valid", key)
		}
	}
}

func TestIdempotencyRecordLivesUntilItsRetention(t *testing.T) {
	record := ledger.IdempotencyRecord{RetainUntil: noon}
	for offset, want := range map[time.Duration]bool{-time.Millisecond: true, 0: false, time.Millisecond: false} {
		if got := record.Live(noon.Add(offset)); got != want {
			t.Errorf("%v after its retention the record is live: %t", offset, got)
		}
	}
}

func TestIdempotencyRecordReplay(t *testing.T) {
	record := ledger.IdempotencyRecord{Fingerprint: "f", Response: ledger.Response{Status: 201, Body: []byte("answer")}}
	response, err := record.Replay("f", noon)
	if err != nil || response.Status != 201 || string(response.Body) != "answer" {
		t.Errorf("replay gives %+v, error %v", response, err)
	}
	response, err = record.Replay("g", noon)
	if ledger.CodeOf(err) != ledger.CodeKeyReused || response.Status != 0 || response.Body != nil {
		t.Errorf("replay of another request gives %+v, error %v", response, err)
	}
}
