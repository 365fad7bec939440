// Package hotslot sells one slot to more buyers than it has units, and judges what they
// were told.
//
// The problem it solves: that a sold-out slot was sold exactly, and that nobody was sent
// away while a unit was free, can only be said of a real table with many callers at once.
// The bench measures such a sale, and a test of this package requires that it is right;
// both run this code.
//
// A worker stands for one container of the API: a handler with caches of its own, which
// answers one request after the other. Buyers ask for one to four units under a key of
// their own, and ask again with the same key when they are turned away by a busy table.
// A worker goes on until a buyer of a single unit is told that nothing is left, so a sale
// that ends too early leaves units behind, which is an error.
//
// Nobody gives units back during a sale. What is available only falls, so "less is left
// than you asked for" was true at some moment of a request exactly if it was true when the
// answer was given. [Outcome.Check] says what follows from that.
package hotslot
