// Package telemetry is what Holdfast says about itself: metrics and log lines.
//
// The problem it solves: a function that does nothing looks just like one that has
// nothing to do, unless it says what it saw. So the sweep and the relay report after
// every run, also when there was nothing to report, and the alarms are on those numbers
// and on their absence.
//
// Metrics are lines of JSON on standard output in CloudWatch's embedded metric format,
// so they cost no call and are not lost with one. Their names, units, dimensions and meanings
// are in the files metric*.go and nowhere else; the alarms and the local parts read them from
// there. The stage is the only dimension, but for the type of the resources that are held: a
// function's name as a second dimension would double the bill and say nothing, and an id as a
// dimension would make a billed series for every hold. The function's name and the ids are
// properties of the line: they can be searched and cost nothing.
//
// A line for each request would cost more than the request. What requests and steps count is
// added up in the process (see [Tally] and [Spread]) and told with the line that a run writes
// anyway, or every few seconds where there is none.
//
// Log lines are JSON too. Correlation ids travel in the context (see [WithCorrelation]),
// so that no function has to pass a logger along. No line may hold a secret, a token or
// the details of a payment (promise P12).
package telemetry
