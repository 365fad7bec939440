// Package ledger is the pure core of Holdfast: what a promise is, how it may change,
// and what must be true at every moment.
//
// The problem it solves: scarce things are promised for a short time while people
// decide and pay. If the promise is only a counter, nobody can say later why the
// counter is wrong; if it is only a row, nobody can say quickly what is left. Here
// both are kept, and every step changes both in one [Change], together with the event
// that tells about it and the record that makes the request repeatable.
//
// # Words
//
// A slot is the smallest sellable unit; its stock is split over one or more shards,
// each with the counters available, held, confirmed and capacity. A hold is a promise
// to one owner over one or more lines (slot, quantity, quoted unit price). It is HELD
// until it is confirmed, cancelled or expired, once. From release_at on no confirm
// succeeds, whether or not a sweep has looked. An event is the immutable record of one
// transition. The doc comments of this package are the glossary.
//
// # How it is used
//
// A transition is a function from values to a Change or an error: [NewHold], [Confirm],
// [Cancel], [Expire], [NewSlot], [EditSlot]. None of them reads a clock, draws an id or
// does I/O; time and ids are passed in. A [Store] applies the Change with
// [Store.Commit], its only write. Package commands, one step outward, reads, decides,
// commits, and decides again when it lost a race.
//
// # Promises
//
//   - P1: available, held and confirmed are never negative, and their sum is capacity,
//     per shard, at every moment.
//   - P2: held is the sum over HELD holds, confirmed the sum over CONFIRMED lines.
//   - P3: a hold leaves HELD exactly once, and its stock moves exactly once.
//   - P4: after release_at no confirm succeeds; before it nobody else gets the stock.
//   - P5: a transition, its stock, its event and its idempotency record commit together.
//   - P6: the same key with the same request has one effect and one answer.
//   - P7: every event is published at least once and carries a stable id and version.
//   - P9: every hold ends.
//   - P10: "sold out" is said only when it is true at one consistent moment.
//   - P11: nothing of another owner can be read or told apart from what does not exist.
//   - P12: no secret is stored or logged.
//
// Tests cite these by number. (P8 speaks of payments, which are another package's.)
//
// The package imports the standard library only.
package ledger
