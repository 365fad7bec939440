// Command infra writes the CloudFormation templates of Holdfast with the AWS CDK,
// one stack for each stage.
//
// The problem it solves: permissions, time-outs, throttles and alarms that live in
// a second description drift away from the code. Here nothing is described twice.
// The functions, their triggers, exact permissions and routes come from
// shared/topology, the keys and indexes from the schema in shared/dynamo, and the
// metric names from shared/telemetry. What is decided here is only what the
// platform adds: roles, log groups, queues, alarms, and how stages differ.
//
// The stage is chosen with the context key "stage". A synth needs no network, no
// AWS account and no CDK command. DESIGN.md beside this file has the decisions, how
// to synthesise and deploy, and what each stage differs in.
package main
