// Package saga takes a payment from its first attempt to its end.
//
// The problem it solves: a hold lives in our table and its money lives with a payment
// provider, and no transaction spans the two. In between, answers are lost, notices come
// late, twice, out of order or never, processes die, and buyers change their minds. What
// must never come of it: money taken and nothing given, a unit sold twice, stock stuck for
// ever (promises P8 and P9).
//
// [Decide] is the heart: a pure function from how things stand (the reservation, its
// hold, what the provider says of each attempt, the policy, the time) to the next step,
// which is one Change to write, or one effect to perform, or a time to look again. It
// never looks at how things came to stand so. That is why the order of signals can't
// matter: a notice only says "look there".
//
// [Driver] loops: decide, do, look again. It keeps nothing in memory between calls. Each
// step is one transaction with the version that it rests on, each effect is a call that
// may be repeated under its own key, and what is going to be asked of the provider is
// written down before. So a driver may be killed anywhere, and any number of them may
// work on one reservation.
//
// [Worker] drives what a queue names, the moment that something happens. [Tick] drives
// what is due, every minute, from the table's own index: with every message lost, all
// still comes to its end. DESIGN.md has the table of decisions and what happens when
// something dies.
package saga
