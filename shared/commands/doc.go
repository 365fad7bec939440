// Package commands carries out one command against a store: read, decide, commit, and
// decide again when another caller was faster.
//
// The problem it solves: the pure functions of package ledger decide on values that may
// be stale by the time they are written. The condition in the write catches that, and
// then somebody must look again, know an own earlier write when it meets one, answer a
// repeated request with its first answer, and never tell a user "sold out" when it was
// only a lost race. That is written once, here, for every function that changes the
// ledger at somebody's wish or when its time has come: the HTTP API and the sweep. What
// follows from a payment is decided in package saga, whose driver has its own loop.
//
// A command that begins a payment is carried out in two Changes, and the provider is asked
// between them: see [Payments.Start].
//
// The package does no I/O of its own: it has a ledger.Store, a payment.Provider, a clock
// and dice, all injected. It starts no goroutine.
package commands
