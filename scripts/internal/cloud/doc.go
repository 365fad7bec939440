// Package cloud runs EventBridge, SQS, Secrets Manager and S3 on one machine, for a local
// run and for end-to-end tests.
//
// The problem it solves: whether an event arrives is decided between three services: the
// bus takes it, a rule matches it, a queue receives it. A fake publisher that a test
// looks into proves none of that. Here the emulator kumo plays the services, behind one
// loopback endpoint that the AWS SDK is pointed at.
//
// The emulator is a program of its own (package emulator) and not part of this process,
// for two reasons. Its state is one per process, so two users of it in one process would
// see each other's queues. And its bus delivers to queues over HTTP, to an address that
// it reads from the environment before main starts. So the parent opens the listener
// first, hands it to the child as an inherited file, and names its port in the child's
// environment: the port is known before the child runs, nobody else can take it, and a
// request that comes early waits in the listener's queue.
//
// What is in the emulator is gone with it. Its differences from AWS that matter here: a
// long poll is not woken by a message whose delay has ended, and events on a custom bus
// carry an extra event-bus-name.
package cloud
