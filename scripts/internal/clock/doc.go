// Package clock is the port through which the pollers and tickers of a local run
// read the time and wait.
//
// The problem it solves: back-off, record age and minute ticks cannot be tested in
// real time. A test gives a clock that moves only when somebody waits on it.
package clock
