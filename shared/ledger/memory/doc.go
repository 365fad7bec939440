// Package memory keeps a ledger in the memory of one process.
//
// The problem it solves: the rules of the ledger need a second store that is small
// enough to be obviously right. The contract suite of package ledgertest runs on it and
// on the DynamoDB store, so what a condition means is written down twice, and a
// difference between the two is a failing test. Golden scripts and the property tests
// of package ledger run on it because it needs nothing to be started.
//
// One mutex guards everything, so every Commit and every read is of one moment. Values
// are copied on the way in and on the way out: nobody can change what is stored by
// keeping a slice. Nothing is ever deleted but counts of zero, and nothing survives the
// process.
package memory
