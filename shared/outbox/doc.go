// Package outbox publishes the ledger's events.
//
// The problem it solves: others must hear of every transition, and a transition must not
// wait for others. Publishing before the commit tells of things that never happened;
// publishing after it forgets when the process dies in between; doing both in one
// transaction is impossible, because the bus is not part of it. So each transition
// commits its event beside the change (promise P5), the table's stream hands the event
// to the [Relay], and the Relay publishes it and then marks it as published. Whatever
// dies, the stream hands it over again.
//
// What consumers get (promise P7): every event at least once, under an event_id that
// never changes, with the version of its hold, reservation, slot, policy or case; the events of
// one of them in the order of their versions, as long as nobody skips one that cannot be
// published.
// Events come twice when an answer is lost or a neighbour fails: consumers drop what
// they have seen by event_id, never by the envelope's id (case I4).
//
// The same news wakes the saga: for an event that concerns a reservation the Relay first
// sends the reservation's id to the saga's queue (see package payment, Message). That is
// a matter of speed. What nobody is woken for, the saga finds in the due index. In the same
// way it sends a due message for each hold that waits, so that it ends at its time and not
// at the next sweep (see package due).
//
// What the stream did not bring to the bus, because the relay was down for longer than the
// stream keeps its records, a [Redrive] publishes from the table. What no retry can publish
// goes into quarantine: it stands in nobody's way, is counted, and can be published from the
// table once its cause is gone.
//
// The schema and an example of each event are in the folder events. See DESIGN.md for
// the data flow and what happens when something dies.
package outbox
