// Package skew measures how far this machine's clock is off AWS's.
//
// The problem it solves: a hold ends at a millisecond, and which millisecond it is now is
// told by the machine that asks. A machine whose clock is minutes off would make holds
// that nobody can use, or end promises that still stand. Nobody notices from the inside.
// But every answer of an AWS service has a Date header, so each call that is made anyway
// also says what time it is elsewhere.
//
// The measure is a warning, never a correction: nothing adds it to a time. Every decision
// uses one clock, the machine's own, and what a Gauge says only stops a machine whose
// clock is too wrong to decide anything. A correction would be a second clock, which has
// errors and jumps of its own, and two decisions about one hold could then follow two of
// them.
//
// A Date header has whole seconds, and an answer travels for an unknown time. So a single
// observation gives a range, and Skew is the part of it that is certain: zero, if the
// clock can be right.
package skew
