package ledger

import "time"

// SignalKind says what a signal tells apart.
type SignalKind string

// The kinds.
const (
	SignalDevice       SignalKind = "device"
	SignalPaymentMeans SignalKind = "payment_means"
)

// Signal is a device or a means of payment that several owners may share, as a hash that
// leads back to nobody.
type Signal struct {
	Kind SignalKind
	Hash string // lower-case hexadecimal
}

// SignalWrite counts one more hold of a signal in its window, which may then have at most
// Max. The counter is never taken back: it counts tries, and ends with its window.
type SignalWrite struct {
	Signal Signal
	Window time.Time // when the window began
	Max    Units
}

// signalWrites counts a hold that is made at now with the signals.
func (l limits) signalWrites(signals []Signal, now time.Time) []SignalWrite {
	if l.signal == 0 {
		return nil
	}
	out := make([]SignalWrite, 0, len(signals))
	for _, s := range signals {
		out = append(out, SignalWrite{Signal: s, Window: now.UTC().Truncate(SignalWindow), Max: l.signal})
	}
	return out
}
