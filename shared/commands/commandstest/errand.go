package commandstest

import (
	"context"
	"errors"

	"holdfast/shared/ledger"
)

// callsMax is the deadline of a request, in calls of the store: as many as fit many times
// into the time that a function has. A request that needs more is called off, and the run
// fails.
const callsMax = 80

// errand is one request that is being carried out by its own goroutine, a call of the store
// at a time. Only one goroutine runs at any moment: this one, between resume and the answer
// on arrived, or the one that gives the turns.
type errand struct {
	kind    string
	name    string
	run     func(ctx context.Context) error
	judge   func(err error) error
	ctx     context.Context
	cancel  context.CancelFunc
	proceed chan struct{}
	arrived chan struct{} // it stands before a call of the store, or has ended
	from    int           // how much was written when it began
	calls   int
	commits int
	ended   bool
	err     error
}

type errandKey struct{}

// errCalledOff is what the store says to an errand that is past its deadline, or that is
// left over when the run ends.
var errCalledOff = errors.New("the request is past its deadline")

// begin starts the errand, which waits for its first turn.
func begin(ctx context.Context, e *errand) {
	e.proceed, e.arrived = make(chan struct{}), make(chan struct{})
	ctx, e.cancel = context.WithCancel(ctx)
	e.ctx = context.WithValue(ctx, errandKey{}, e)
	go func() {
		<-e.proceed
		e.err = e.run(e.ctx)
		e.ended = true
		e.arrived <- struct{}{}
	}()
}

// resume gives the errand one turn: the call of the store that it waits for, and what it does
// until the next one.
func (e *errand) resume() {
	if e.calls++; e.calls > callsMax {
		e.cancel()
	}
	e.proceed <- struct{}{}
	<-e.arrived
}

// callOff lets an errand that is not wanted any more end.
func (e *errand) callOff() {
	e.cancel()
	for !e.ended {
		e.resume()
	}
}

// await stops the errand of ctx before a call of the store until it is its turn. Calls that
// belong to no errand go on at once.
func await(ctx context.Context) error {
	e, is := ctx.Value(errandKey{}).(*errand)
	if !is {
		return nil
	}
	e.arrived <- struct{}{}
	<-e.proceed
	if e.ctx.Err() != nil {
		return &ledger.Error{Code: ledger.CodeUnavailable, Message: "called off", Cause: errCalledOff}
	}
	return nil
}
