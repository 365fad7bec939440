package dynamo

import (
	"fmt"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// Store is the ledger's store in one DynamoDB table. It is safe for concurrent use and
// starts no goroutine.
type Store struct {
	client  Client
	table   string
	clock   system.Clock
	random  system.Random
	counter Counter
}

// Counter is told how often calls meet each other. It is called from several goroutines at
// once. DynamoDB counts throttles itself, and conflicts only for the whole table, with those of
// no consequence.
type Counter interface {
	// Conflicted: a call met a running transaction, and is made again.
	Conflicted()
}

// Uncounted is the Counter of a store that nobody counts.
type Uncounted struct{}

// Conflicted does nothing.
func (Uncounted) Conflicted() {}

var _ ledger.Store = (*Store)(nil)

// NewStore returns the store in the named table, which must have TableSchema. Nobody counts it.
func NewStore(client Client, table string, clock system.Clock, random system.Random) *Store {
	return NewCountedStore(client, table, clock, random, Uncounted{})
}

// NewCountedStore returns such a store that tells the counter how it fares.
func NewCountedStore(client Client, table string, clock system.Clock, random system.Random, counter Counter) *Store {
	return &Store{client: client, table: table, clock: clock, random: random, counter: counter}
}

// unavailable says that the database could not answer. Reads give it, and writes whose
// every try was turned away.
func unavailable(doing string, cause error) error {
	return &ledger.Error{
		Code: ledger.CodeUnavailable, Message: "the ledger can't be reached now; try again",
		Cause: fmt.Errorf("%s: %w", doing, cause),
	}
}

// internal says that the store itself, or what it was given, is at fault.
func internal(doing string, cause error) error {
	return &ledger.Error{
		Code: ledger.CodeInternal, Message: "an internal fault", Cause: fmt.Errorf("%s: %w", doing, cause),
	}
}
