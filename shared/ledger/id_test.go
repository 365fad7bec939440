package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"holdfast/shared/ledger"
)

// The forms of ids are part of the API, and stored.
func TestNewIDForms(t *testing.T) {
	var ones, counting [16]byte
	for i := range ones {
		ones[i], counting[i] = 0xff, byte(i)
	}
	tests := []struct {
		random [16]byte
		want   string
	}{
		{[16]byte{}, strings.Repeat("0", 26)},
		{ones, strings.Repeat("z", 25) + "w"},
		{counting, "000g40r40m30e209185gr38e1w"},
	}
	for _, test := range tests {
		if got := ledger.NewHoldID(test.random); got != ledger.HoldID("hold_"+test.want) || !ledger.ValidHoldID(string(got)) {
			t.Errorf("hold id is %s, want hold_%s", got, test.want)
		}
		if got := ledger.NewBatchID(test.random); got != ledger.BatchID("batch_"+test.want) || !ledger.ValidBatchID(string(got)) {
			t.Errorf("batch id is %s, want batch_%s", got, test.want)
		}
		if got := ledger.NewEventID(test.random); got != ledger.EventID("event_"+test.want) {
			t.Errorf("event id is %s, want event_%s", got, test.want)
		}
		if got := ledger.NewRequestID(test.random); got != ledger.RequestID("request_"+test.want) {
			t.Errorf("request id is %s, want request_%s", got, test.want)
		}
	}
}

func TestEveryRandomBitIsInTheID(t *testing.T) {
	seen := map[ledger.HoldID]bool{ledger.NewHoldID([16]byte{}): true}
	for bit := range 128 {
		var random [16]byte
		random[bit/8] = 1 << (bit % 8)
		id := ledger.NewHoldID(random)
		if seen[id] {
			t.Errorf("bit %d is lost: %s was drawn before", bit, id)
		}
		seen[id] = true
	}
}

func TestValidHoldID(t *testing.T) {
	valid := string(ledger.NewHoldID(random("valid")))
	for _, id := range []string{"", "hold_", valid + "0", valid[:len(valid)-1], "HOLD_" + valid[5:], "rsv_" + valid[5:], valid + "\n", " " + valid, strings.ToUpper(valid), "hold_" + strings.Repeat("é", 13)} {
		if ledger.ValidHoldID(id) {
			t.Errorf("%q is a valid hold id", id)
		}
	}
	if !ledger.ValidHoldID(valid) {
		t.Errorf("%q is not a valid hold id", valid)
	}
}

func TestValidName(t *testing.T) {
	for _, name := range []string{"a", "A.b_c:d-9", strings.Repeat("x", ledger.NameCharactersMax)} {
		if !ledger.ValidName(name) {
			t.Errorf("%q is not a valid name", name)
		}
	}
	for _, name := range []string{"", " ", "a b", "a/b", "a#b", "a%2Fb", "a\n", "좌석", "a\x00", strings.Repeat("x", ledger.NameCharactersMax+1)} {
		if ledger.ValidName(name) {
			t.Errorf("%q is a valid name", name)
		}
	}
}

// Keys of the table and of its indexes are stored from these values. If this test is
// red, stored holds would no longer be found: change the code back.
func TestStoredHashesNeverChange(t *testing.T) {
	hold := ledger.HoldID("hold_000g40r40m30e209185gr38e1w")
	if got := ledger.DueShard(hold); got != 14 {
		t.Errorf("due shard is %d", got)
	}
	if got := ledger.UnpublishedShard("event_000g40r40m30e209185gr38e1w"); got != 10 {
		t.Errorf("unpublished shard is %d", got)
	}
	if got := ledger.PickShard(hold, "seat-1A", 64); got != 28 {
		t.Errorf("picked shard is %d", got)
	}
	if got := ledger.NewIdempotencyID("U-1", ledger.CommandCreateHold, "key"); got != "569f2a528dc01885833c1becf737926eb4d9dbff2332cf8f83827aa415569dbb" {
		t.Errorf("idempotency id is %s", got)
	}
}

// A partition without an id in it would be one partition fewer.
func TestShardsAreSpread(t *testing.T) {
	const drawn = 4_000
	due, picked := make(map[int]int), make(map[ledger.Shard]int)
	for i := range drawn {
		id := ledger.NewHoldID(random(fmt.Sprint(i)))
		due[ledger.DueShard(id)]++
		picked[ledger.PickShard(id, "slot", 10)]++
	}
	for shard := range ledger.DueShards {
		if n := due[shard]; n < drawn/ledger.DueShards*3/4 || n > drawn/ledger.DueShards*5/4 {
			t.Errorf("due shard %d has %d of %d holds", shard, n, drawn)
		}
	}
	for shard := range ledger.Shard(10) {
		if n := picked[shard]; n < drawn/10*3/4 || n > drawn/10*5/4 {
			t.Errorf("stock shard %d is picked by %d of %d holds", shard, n, drawn)
		}
	}
}

func TestIdempotencyIDsAreNotSpelledAlike(t *testing.T) {
	ids := make(map[ledger.IdempotencyID]string)
	for _, parts := range [][3]string{
		{"a", "b", "c"}, {"ab", "", "c"}, {"a", "", "bc"}, {"", "ab", "c"}, {"a", "bc", ""}, {"a", "b", "C"},
		{"1:a", "b", "c"}, {"a1:b", "", "c"}, {"a", "b1:c", ""},
	} {
		id := ledger.NewIdempotencyID(ledger.OwnerID(parts[0]), ledger.Command(parts[1]), ledger.IdempotencyKey(parts[2]))
		if before, taken := ids[id]; taken {
			t.Errorf("%q and %s have one id", parts, before)
		}
		ids[id] = fmt.Sprintf("%q", parts)
	}
}
