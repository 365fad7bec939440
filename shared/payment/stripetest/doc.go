// Package stripetest is a server that speaks the part of Stripe's API that Holdfast uses.
//
// The problem it solves: the adapter is only as good as what it was tried against. Stripe's
// own mock keeps no state, so it can't show a payment that is captured while somebody
// voids it, an answer that got lost, or a key that is used twice. This server keeps the
// state in a paymenttest.Bank and speaks HTTP over it: with Stripe's forms, its JSON, its
// errors and its idempotency keys, on loopback. A test holds its shapes against Stripe's
// mock, so that it can't drift away from what Stripe describes.
//
// Webhooks wait in a queue until a test delivers them, in whatever order it likes; for
// the local runner they are delivered by themselves. A [Fault] loses requests or answers,
// delays them or turns them into errors. Everything that a test does in Go can be done
// over HTTP under /_test/, for a person at a terminal.
package stripetest
