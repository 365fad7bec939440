// Package expiry ends the holds that are over.
//
// The problem it solves: a promise that nobody ends locks stock for ever, and a job that
// should end it can fail in ways that look like success. It can read one page and stop,
// read some partitions and not others, stumble over the same bad hold every minute,
// report "0 errors" while it does nothing, or be killed half-way. So the [Sweep] looks
// at all of the due index, begins with the hold that waits longest, passes over what
// fails, stops in time and says that it stopped, and reports after every run how far
// behind it was when it began.
//
// The sweep is not what makes a late confirm fail: the condition of the confirm is (promise
// P4). It gives the stock back, and keeps promise P9, that every hold ends. It has no
// memory between runs and needs none: the due index and the holds are the truth, and
// ending a hold twice is impossible (promise P3), so any number of sweeps may run at
// once and each may die anywhere.
//
// Time-to-live deletion plays no part in it. See DESIGN.md for the data flow and what
// happens when something dies.
package expiry
