// Package reconcile looks after what the other parts believe of themselves.
//
// The problem it solves: promises P1 to P3 are kept by the conditions of each write, P8
// by what is written before the payment provider is asked, and nobody should have to
// believe that. And what rests on a stream, a queue or an index is only as good as the
// last of its faults: an event that the stream lost is missed by nobody who reads the
// stream, and a hold that the due index does not list is seen by no sweep.
//
// It does two things. [Audit] adds everything up again from the items themselves, by its
// own arithmetic, and names each difference: stock, events, money, and what is counted of
// each owner. It only reads, beside the traffic. What an operator has marked as
// oversold it lists. The [Handler] runs beside the traffic, every few minutes:
//
//   - it publishes the events that are unpublished for longer than the stream needs, through
//     the relay's own code (see outbox.Redrive), and tells how old the oldest one is, also
//     when it could publish nothing;
//   - it counts the events in quarantine, which wait for a person;
//   - it reads one rolling segment of the table and compares each hold with its place in the
//     due index ([Hole], case B8). In eight hours it has seen every hold. It repairs no
//     hole: each is a fault of ours that somebody must understand, and an alarm says so.
//
// Each part that can't be read leaves its number out, as zero would be a lie.
package reconcile
