package ledger

import (
	"fmt"
	"time"
)

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
	if l.holdsPerSignal == 0 {
		return nil
	}
	out := make([]SignalWrite, 0, len(signals))
	for _, s := range signals {
		out = append(out, SignalWrite{Signal: s, Window: now.UTC().Truncate(SignalWindow), Max: l.holdsPerSignal})
	}
	return out
}

// validate returns an error for a write that could not be meant.
func (w SignalWrite) validate() error {
	if w.Signal.Kind == "" || len(w.Signal.Hash) != SignalHashCharacters || w.Max < 1 || w.Window.IsZero() || !w.Window.Equal(w.Window.Truncate(SignalWindow)) {
		return fmt.Errorf("change: %+v counts no signal of a window", w)
	}
	return nil
}
