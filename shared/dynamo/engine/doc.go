// Package engine finds, builds and runs the DynamoDB engine of the desk: dynoxide, one
// small program that speaks DynamoDB's API.
//
// The problem it solves: the tests, the local server and the benchmark need a real
// DynamoDB API without an AWS account and without a set-up step, on a machine that has
// never seen this repository. So the engine is looked for in this order:
//
//  1. The environment variable DYNAMODB_ENDPOINT names an engine that runs already.
//     Nothing is started then.
//  2. A program dynoxide on PATH.
//  3. The user's cache directory, where step 4 put it earlier.
//  4. It is built with cargo into that cache, once: whoever comes while another process
//     builds waits for that build, under a file lock.
//
// An engine that was started is a child process with three guarantees. It listens on a
// loopback port that it really got: two test packages that picked the same free port do
// not end up on one engine. It is ready when Start returns: it has answered a request.
// And it never outlives the process that started it, also not when that process is
// killed or panics (see child_linux.go and child_other.go).
//
// Two things make it fast enough for tests and benchmarks. Its database file is on
// memory-backed storage where the machine has that, as the data of a test is scratch.
// And its table of stream records gets an index, see stream_index.go.
//
// The package runs on Linux and macOS.
package engine
