// Package dynamotest gives tests a real DynamoDB API, and the failures that the local
// engine never shows.
//
// The problem it solves: code that is only ever tested against an engine that serialises
// all writes has never met a conflict, a throttle or a lost answer, and those are what
// the store must survive in production.
//
// A test package starts one engine for itself:
//
//	func TestMain(m *testing.M) { dynamotest.Main(m) }
//
// and each test gets a table of its own from NewTable, so that tests never see each
// other's items. NewFaults puts itself between the code under test and that table, and
// fails, cancels, drops, or loses the answer of the calls that it is told to.
//
// NewThrottled puts a limit on each partition in place of planned faults: it shows what a
// hot partition does to the code in front of it, at a rate that the engine can reach.
package dynamotest
