// Package explain answers why a number is what it is: it tells the story of a hold, a
// reservation or a slot from its records, in the order of time, and adds it up.
//
// It is a pure function: [Tell] takes records as values, reads nothing, and knows no clock. So
// what it says can be tested, and who shows it, as a table or as JSON, adds nothing to it.
//
// A story is made of steps, one for each event: who did what by which command, and why if they
// said so; what moved in the stock, with the counters as they were right after; what happened
// to the money, with its sums; and whether the event has reached its consumers. It ends with
// a verdict: what the steps add up to is compared with the stock, the hold and the reservation
// as they are stored, and each difference is a sentence.
//
// It does not judge like the audit of package reconcile, which looks at the whole table, and
// knows what is under way. It shows one thing whole.
package explain
