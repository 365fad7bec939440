// Package reconcile looks after what the other parts believe of themselves.
//
// The problem it solves: promises P1 to P3 are kept by the conditions of each write, P8
// by what is written before the payment provider is asked, and nobody should have to
// believe that. And what rests on a stream, a queue or an index is only as good as the
// last of its faults: an event that the stream lost is missed by nobody who reads the
// stream, and a hold that the due index does not list is seen by no sweep.
//
// It does three things. An audit adds everything up again from the items themselves, by its
// own arithmetic, beside the traffic, and names each difference: stock, events, money, lists,
// and what is counted of each owner. What an operator has marked as oversold it lists. It only
// reads. [Audit] does it in one process; a [Fanout] spreads it over many, begins one in every
// interval, and tells of it.
//
// A [Repairer] deals with what an audit found. What is certain and can be undone it puts right,
// by the ledger's own commands; of all else it asks a person.
//
// The [Handler] runs every few minutes:
//
//   - it publishes the events that are unpublished for longer than the stream needs, through
//     the relay's own code (see outbox.Redrive), and tells how old the oldest one is, also
//     when it could publish nothing;
//   - it counts the events in quarantine, which wait for a person.
//
// Each part that can't be read leaves its number out, as zero would be a lie.
package reconcile
