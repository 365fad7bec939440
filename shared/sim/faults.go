package sim

import (
	"fmt"
	"strings"
	"time"
)

// Faults says how unkind the cloud is during a history. A rate of n means that one call
// in n is hit, and zero means never.
type Faults struct {
	// Of the database.
	Throttled   int           // turned away for want of capacity
	LostRequest int           // never arrives, and the caller gets no answer
	LostAnswer  int           // is carried out, and the caller gets no answer
	Slow        int           // takes seconds
	IndexLagMax time.Duration // how far an index may be behind its table
	Purge       int           // one record in n is deleted after its time to live
	Poison      int           // one hold in n can't be ended by the expiry function, whatever it tries
	// Of the functions.
	Crash        int           // the function's process ends in the middle of a call
	ClockSkewMax time.Duration // how wrong the clock of an instance may be
	ClockJump    int           // one instance in n starts with a clock that is wrong by more
	ClockWild    int           // one expiry instance in n starts with a clock that must not be used
	// Of the stream and the bus.
	StreamLagMax   time.Duration // how late a batch may come
	StreamDoubled  int           // a batch comes again although it was handled
	RelayOutageMax time.Duration // how long no batch reaches the relay, at some time
	StreamKeepsFor time.Duration // how old a record is when the stream gives it up; zero is never
	EntryRefused   int           // the bus refuses one entry of a call
	BusAnswerLost  int           // the bus takes a call and does not answer
	BusDown        int           // the bus refuses a whole call
	EventDoubled   int           // the bus delivers an event twice
	// Of the Scheduler.
	TickLateMax time.Duration
	TickSkipped int
	TickDoubled int
	SweepOffMax time.Duration // how long no tick reaches the sweep, at some time
	// Of the payment provider.
	ProviderSlow        int           // a call takes seconds, up to longer than its caller waits
	ProviderLostRequest int           // never arrives, and the caller gets no answer
	ProviderLostAnswer  int           // is carried out, and the caller gets no answer
	ProviderRefused     int           // is answered that the provider has a fault
	ProviderOutageMax   time.Duration // how long it is away, at some time
	BankMisbehaves      int           // one payment in n: other money, a void that lies, refusals
	// Of its notices.
	NoticeLateMax time.Duration
	NoticeDoubled int
	NoticeLost    int
	// Of the queues.
	QueueLateMax     time.Duration // how late, and so in what order, messages come
	QueueDoubled     int           // delivers a message again although it was handled
	QueueRefused     int           // does not take a message
	QueueAnswerLost  int           // takes messages and does not answer
	QueueLostRequest int           // never gets them, and the caller gets no answer
	DueLost          int           // the due queue loses a message that it has taken
	DueQueueOff      bool          // the due queue takes no message, to the end of the history
	// Of the archive's bucket.
	ObjectLostRequest int // a call never arrives, and the caller gets no answer
	ObjectAnswerLost  int // a call is carried out, and the caller gets no answer
	ObjectConflict    int // a write meets another one of the same name
	// Of the clients.
	ClientRepeats int // a client sends its request again although it was answered
}

// faultKind is one kind of fault, and how to turn it off.
type faultKind struct {
	name string
	off  func(*Faults)
}

// faultNames lists the switches of faults, for shrinking: each turns one kind off.
var faultNames = []faultKind{
	{"throttled", func(f *Faults) { f.Throttled = 0 }},
	{"lost-request", func(f *Faults) { f.LostRequest = 0 }},
	{"lost-answer", func(f *Faults) { f.LostAnswer = 0 }},
	{"slow", func(f *Faults) { f.Slow = 0 }},
	{"index-lag", func(f *Faults) { f.IndexLagMax = 0 }},
	{"poison", func(f *Faults) { f.Poison = 0 }},
	{"purge", func(f *Faults) { f.Purge = 0 }},
	{"crash", func(f *Faults) { f.Crash = 0 }},
	{"clock-skew", func(f *Faults) { f.ClockSkewMax = 0 }},
	{"clock-jump", func(f *Faults) { f.ClockJump = 0 }},
	{"clock-wild", func(f *Faults) { f.ClockWild = 0 }},
	{"stream-lag", func(f *Faults) { f.StreamLagMax = 0 }},
	{"stream-doubled", func(f *Faults) { f.StreamDoubled = 0 }},
	{"relay-outage", func(f *Faults) { f.RelayOutageMax = 0 }},
	{"stream-gives-up", func(f *Faults) { f.StreamKeepsFor = 0 }},
	{"entry-refused", func(f *Faults) { f.EntryRefused = 0 }},
	{"bus-answer-lost", func(f *Faults) { f.BusAnswerLost = 0 }},
	{"bus-down", func(f *Faults) { f.BusDown = 0 }},
	{"event-doubled", func(f *Faults) { f.EventDoubled = 0 }},
	{"tick-late", func(f *Faults) { f.TickLateMax = 0 }},
	{"tick-skipped", func(f *Faults) { f.TickSkipped = 0 }},
	{"tick-doubled", func(f *Faults) { f.TickDoubled = 0 }},
	{"sweep-off", func(f *Faults) { f.SweepOffMax = 0 }},
	{"provider-slow", func(f *Faults) { f.ProviderSlow = 0 }},
	{"provider-lost-request", func(f *Faults) { f.ProviderLostRequest = 0 }},
	{"provider-lost-answer", func(f *Faults) { f.ProviderLostAnswer = 0 }},
	{"provider-refused", func(f *Faults) { f.ProviderRefused = 0 }},
	{"provider-outage", func(f *Faults) { f.ProviderOutageMax = 0 }},
	{"bank-misbehaves", func(f *Faults) { f.BankMisbehaves = 0 }},
	{"notice-late", func(f *Faults) { f.NoticeLateMax = 0 }},
	{"notice-doubled", func(f *Faults) { f.NoticeDoubled = 0 }},
	{"notice-lost", func(f *Faults) { f.NoticeLost = 0 }},
	{"queue-late", func(f *Faults) { f.QueueLateMax = 0 }},
	{"queue-doubled", func(f *Faults) { f.QueueDoubled = 0 }},
	{"queue-refused", func(f *Faults) { f.QueueRefused = 0 }},
	{"queue-answer-lost", func(f *Faults) { f.QueueAnswerLost = 0 }},
	{"queue-lost-request", func(f *Faults) { f.QueueLostRequest = 0 }},
	{"due-lost", func(f *Faults) { f.DueLost = 0 }},
	{"due-queue-off", func(f *Faults) { f.DueQueueOff = false }},
	{"object-lost-request", func(f *Faults) { f.ObjectLostRequest = 0 }},
	{"object-answer-lost", func(f *Faults) { f.ObjectAnswerLost = 0 }},
	{"object-conflict", func(f *Faults) { f.ObjectConflict = 0 }},
	{"client-repeats", func(f *Faults) { f.ClientRepeats = 0 }},
}

// drawFaults decides how unkind the cloud is. Each kind of fault is off in some
// histories, so that no fault always hides behind another.
func drawFaults(d *dice) Faults {
	rate := func(often, rarely int) int {
		switch d.IntN(4) {
		case 0, 1:
			return 0
		case 2:
			return rarely
		}
		return often
	}
	lag := func(most time.Duration) time.Duration {
		if d.IntN(2) == 0 {
			return 0
		}
		return d.between(0, most)
	}
	keeps := func() time.Duration {
		if d.IntN(2) == 0 {
			return 0
		}
		return d.between(10*time.Second, time.Minute)
	}
	return Faults{
		Throttled: rate(8, 60), LostRequest: rate(12, 80), LostAnswer: rate(8, 50), Slow: rate(20, 100),
		IndexLagMax: lag(5 * time.Second), Purge: rate(1, 3), Poison: rate(1, 3),
		Crash: rate(25, 150), ClockSkewMax: lag(2 * time.Second), ClockJump: rate(6, 20), ClockWild: rate(2, 6),
		StreamLagMax: lag(20 * time.Second), StreamDoubled: rate(4, 20), RelayOutageMax: lag(2 * time.Minute), StreamKeepsFor: keeps(),
		EntryRefused: rate(6, 40), BusAnswerLost: rate(6, 40), BusDown: rate(4, 30), EventDoubled: rate(4, 20),
		TickLateMax: lag(30 * time.Second), TickSkipped: rate(3, 10), TickDoubled: rate(3, 10), SweepOffMax: lag(3 * time.Minute),
		ProviderSlow: rate(6, 30), ProviderLostRequest: rate(8, 40), ProviderLostAnswer: rate(6, 30),
		ProviderRefused: rate(8, 40), ProviderOutageMax: lag(2 * time.Minute), BankMisbehaves: rate(2, 6),
		NoticeLateMax: lag(20 * time.Second), NoticeDoubled: rate(3, 10), NoticeLost: rate(2, 8),
		QueueLateMax: lag(10 * time.Second), QueueDoubled: rate(4, 20), QueueRefused: rate(6, 40),
		QueueAnswerLost: rate(6, 40), QueueLostRequest: rate(6, 40),
		DueLost: rate(3, 10), DueQueueOff: d.chance(5),
		ObjectLostRequest: rate(6, 30), ObjectAnswerLost: rate(6, 30), ObjectConflict: rate(4, 20),
		ClientRepeats: rate(5, 20),
	}
}

// ofArchive are the faults that the archive meets, when all else is at rest.
func (f Faults) ofArchive() Faults {
	return Faults{
		Throttled: f.Throttled, LostRequest: f.LostRequest, LostAnswer: f.LostAnswer, Slow: f.Slow, IndexLagMax: f.IndexLagMax,
		Crash: f.Crash, ClockSkewMax: f.ClockSkewMax, ClockJump: f.ClockJump,
		ObjectLostRequest: f.ObjectLostRequest, ObjectAnswerLost: f.ObjectAnswerLost, ObjectConflict: f.ObjectConflict,
	}
}

// without returns f with the named kinds turned off.
func (f Faults) without(names []string) Faults {
	for _, kind := range faultNames {
		for _, name := range names {
			if kind.name == name {
				kind.off(&f)
			}
		}
	}
	return f
}

// String names the kinds that are on.
func (f Faults) String() string {
	var on []string
	for _, kind := range faultNames {
		without := f
		kind.off(&without)
		if without != f {
			on = append(on, kind.name)
		}
	}
	if len(on) == 0 {
		return "no faults"
	}
	return fmt.Sprintf("faults: %s", strings.Join(on, ", "))
}
