// Package sim plays the whole ledger under a deterministic simulation.
//
// The problem it solves: the errors that lose seats and money live between the steps of
// several processes, in orders that no test author thinks of, and in a real cloud they
// show themselves once, without a trace. Here one seed decides everything: who asks for
// what and when, which call is slow, lost, doubled or throttled, which process ends in
// the middle of which call, how wrong each clock is. The code under it is the real one:
// the handlers of the API, of expiry and of the outbox, and the DynamoDB store with its
// expressions. What is simulated begins at the SDK's interfaces.
//
// Every commit is checked against the promises at the moment it is made, every answer
// against what was true between its request and itself, and every slot's history for an
// order that explains it. A failing seed can be played again to the byte, and shrunk.
//
// DESIGN.md tells how it works and how a new part joins.
package sim
