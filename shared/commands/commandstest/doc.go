// Package commandstest is a market in which several owners, an operator and a sweep use one
// ledger at the same time, and which looks at the promises after every write.
//
// The problem it solves: what goes wrong between commands goes wrong between two calls of
// the store, and goroutines that run freely meet there once in a thousand runs and never
// again. Here every request stops before each call of the store, and a drawn number says
// which one goes on. So all that happens follows from the numbers that were drawn: a failed
// run is repeated, and made shorter, by the property test that drew them.
//
// [Check] runs on any ledger.Store: on the one in memory in many runs, and on the engine in
// few.
package commandstest
