// Package lambdahost runs a real Lambda binary on one machine.
//
// The problem it solves: code that is tested by calling its handler in-process has
// never met what surrounds it on AWS: a process of its own, an environment that
// starts empty, one event at a time, a deadline that kills, a panic that ends the
// process. A Host starts the deployed binary (aws-lambda-go, provided.al2023) and
// serves it the Lambda Runtime API, as AWS does:
// https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
//
// Every process has a listener of its own, so that one event goes to exactly one
// process. A Host starts with one process and grows with demand up to ProcessesMax;
// a call that finds all of them busy waits for a bounded time in a bounded queue. A
// process that overruns its deadline, panics or exits is gone, and the next call
// starts a new one. A caller that stops waiting does not stop the function, which
// may still commit: the same as behind API Gateway.
//
// Amazon's own emulator (aws-lambda-rie) is not used. It takes one call at a time,
// and a second call during the first one crashes it, so nothing that has to be shown
// under load could be shown with it.
//
// A Host counts what Lambda counts of a function, so that an alarm on these numbers can be
// tried where there is no CloudWatch.
//
// Not imitated: freezing between calls, extensions, response streaming, asynchronous
// invocation with its own retries (package schedule does what is needed of that).
// Deadlines are those of the machine's clock, because the function reads it too.
package lambdahost
