// Package dynamo keeps the ledger in one DynamoDB table.
//
// The problem it solves: a transition of a hold, the movement of its stock, its
// event and the record of the request's key must become true together, while many
// callers write at once, answers get lost and the database throttles. The package
// turns one ledger.Change into one TransactWriteItems, reads the reasons of a
// refusal leg by leg, and settles a lost answer by looking, not by guessing.
// DESIGN.md beside this file has the layout of the items and the failure table.
//
// Condition expressions exist in this package and nowhere else.
package dynamo
