// Package topology says, as data, what Holdfast consists of when it is deployed:
// its functions, what starts each one, what each may do, and the HTTP routes.
//
// The problem it solves: a deployed system and its local copy drift apart when each
// is described in its own words. Here there is one description. The CDK stack
// (infra) turns it into CloudFormation, the local runner (scripts/local) starts the
// same list on one machine, and a test compares what each function really calls
// with the actions that are granted to it.
//
// The package holds data and pure look-ups only. It imports nothing of ours, reads
// no environment and knows no AWS types, so both sides can use it freely.
package topology
