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
// # Where units are taken from
//
// A new hold and an edited one find their units in the same way, in the allocator. The first
// try reads nothing: the hold's id picks a shard by hash, and the definition of the slot
// comes from a cache. Whatever the cache says wrongly is caught, because open, price and the
// numbers of shards are conditions of the write, on each stock item. A write that is refused
// for want of units is followed by a read of the slot's stock, which is not of one moment and
// so only a hint: one shard that fits is taken, then a retired one, and a split over several
// is the last resort. Only if the hint does not fit either is all stock read at one moment,
// and only that read proves "insufficient" (promise P10).
//
// Each proof is of the slot that was believed in. After a reshard units may lie on stock
// items that were not read, so stock that is not all of the slot, or that carries other
// numbers of shards than the definition, proves nothing: the definition is forgotten, and the
// command is decided anew.
//
// When a hot slot is sold out, losers are most of those who come. For a moment after a proof
// the next hold of the slot looks before it writes. One read of the stock tells it that
// nothing has come back, which is a proof again, for the reason that stockCache gives; else
// it writes at once to where something has. So a loser costs one read and never stands in the
// way of a write.
//
// # Why it is refused
//
// What an owner, a device or a means of payment has reached is told from the record that
// refused the write, so it was true at that moment, and costs no read. A refusal beside
// another transaction that was running may be out of date, and is decided anew. A cool-down
// is first assumed not to be there; the refused record says whether it has passed, and then
// the next try says so and the write makes sure. Where a request was refused that had been
// carried out before, its first answer is given.
//
// A command that begins a payment is carried out in two Changes, and the provider is asked
// between them: see [Payments.Start].
//
// # What waits for a person
//
// [Reviews] puts together what waits, from where it waits: reservations by their status, holds
// by their parking, events by their quarantine, findings by their record. Whether a case waits
// is stored nowhere else, so that no case can be forgotten, and none outlives what it is about.
// Each decision takes its subject out of where it waits, in the Change that records it. What
// waits although its record says "decided" has come back, and is open. Only a dismissed event
// stays where it is, and is told from one that came back by when it was set aside.
//
// Trying a hold or an event again changes no promise, so it is no Change. It follows the
// record, and not the other way round: where the process dies in between, the case is still
// open and says what was decided; an effect without a record would say nothing.
//
// The package does no I/O of its own: it has a ledger.Store, a payment.Provider, a Waiting,
// a clock and dice, all injected. It starts no goroutine.
package commands
