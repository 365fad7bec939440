package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"holdfast/shared/ledger"
)

// signalsOf hashes what the shop's service says of the buyer's device and means of payment.
// From here on only the hashes go on, so the texts are in no store, event or log line
// (promise P12). now decides the window that they are counted in; a hash of one window has
// nothing in common with that of the next, so that what is kept follows nobody around. A
// request that is decided just after the end of its window is counted under a hash that
// nobody else has, which lets one hold through and refuses none.
func signalsOf(body *Signals, now time.Time) []ledger.Signal {
	if body == nil {
		return nil
	}
	window := now.UTC().Truncate(ledger.SignalWindow).Format(time.RFC3339)
	var out []ledger.Signal
	for _, signal := range []struct {
		kind ledger.SignalKind
		text *Signal
	}{{ledger.SignalDevice, body.Device}, {ledger.SignalPaymentMeans, body.PaymentMeans}} {
		if signal.text != nil {
			// Neither a kind nor a window has a line break, so no two lists of three are one text.
			sum := sha256.Sum256([]byte(string(signal.kind) + "\n" + window + "\n" + *signal.text))
			out = append(out, ledger.Signal{Kind: signal.kind, Hash: hex.EncodeToString(sum[:])})
		}
	}
	return out
}
