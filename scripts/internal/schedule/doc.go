// Package schedule starts a function at a fixed rate, as EventBridge Scheduler and
// Lambda's asynchronous invocation do together.
//
// The problem it solves: a sweep that runs every minute must stand what the schedule
// does to it. A tick may start while the one before it still works, a failed tick is
// run again beside later ones, and a tick that comes too late is dropped, because the
// next one does its work.
//
// The rules are those of the deployed schedule. A tick carries the time it was meant
// for. A failed run is tried again after a minute, and then after two more, while the
// trigger allows a retry and the tick is not too old; then a message about it goes to
// the failure destination. Sources:
// https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html and
// https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
//
// Not imitated: a flexible time window, and ticks that come twice.
package schedule
