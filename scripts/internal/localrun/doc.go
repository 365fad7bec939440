// Package localrun runs all of Holdfast on one machine: what is described in package
// topology, with every part of AWS that it needs.
//
// The problem it solves: the local server, its demo and the end-to-end tests must all meet
// the same system, and it must be the deployed one as far as one machine can have it. So
// there is one place that starts it: the engine with the table, the event bus and the
// queues, the secret, a payment provider, each function as the binary that is deployed, and
// between them what AWS puts there, which is the gateway with its authorizer, the event
// source mappings and the schedules.
//
// A System keeps its data in one folder: the table, the key that signs tokens, how far the
// stream has been read, and a log of each part. The folder belongs to one System at a time.
// What is in the event bus, the queues and the payment provider is gone at the end, as they
// keep it in memory.
//
// Everything that a System starts ends with Close. When its process is killed, the kernel
// ends the children (on Linux; see packages child and engine for the others).
package localrun
