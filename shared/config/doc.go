// Package config turns a function's environment into values that are known to be right.
//
// The problem it solves: a missing or misspelt variable should stop a function before its
// first request, with one message that names everything that is wrong, and not surface at
// night as a strange error of some client. So each function loads its configuration once,
// while it starts, and no other package reads the environment.
//
// Which variables a function has is data in package topology; here is what they may
// hold. The package also builds the AWS configuration that all functions share, because
// its time-outs and retries must fit into topology.DatabaseBudget.
package config
