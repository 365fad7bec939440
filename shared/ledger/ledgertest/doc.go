// Package ledgertest holds every store of the ledger to one contract.
//
// The problem it solves: the safety of the ledger rests on the conditions of its
// writes, and those are written once per store. [Run] is the meaning of the conditions
// in executable form: which legs refuse a change, with which old items, and that a
// refused change leaves no trace in any read. A rule that is not here is not a rule.
//
// [CheckBooks] is the audit for the end of any other test: it recounts promises P1 and
// P2, and what is counted of each owner, from the stored holds and events, by its own
// arithmetic.
//
// A store under test must begin empty, must take times in UTC to the millisecond and
// give them back exactly so, and may return an empty list or map where nil was stored.
package ledgertest
