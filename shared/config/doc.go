// Package config turns a function's environment into values that are known to be right.
//
// The problem it solves: a missing or misspelt variable should stop a function before its
// first request, with one message that names everything that is wrong, and not surface at
// night as a strange error of some client. So each function loads its configuration once,
// while it starts, and no other package reads the environment.
//
// Which variables a function has is data in package topology; here is what they may
// hold. The package also builds the AWS configuration that all functions share, because
// its time-outs and retries must fit into topology.DatabaseBudget, and because every
// answer of AWS tells how far this machine's clock is off (package skew).
//
// The payment provider's keys are not in the environment, which anybody who may look at a
// function sees. They are one secret in AWS Secrets Manager. SecretCache reads it when it
// is needed, and again after SecretLife, so that a key is changed without a deployment.
package config
