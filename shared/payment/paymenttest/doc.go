// Package paymenttest keeps the rules of a payment provider, without HTTP, goroutines or
// real time.
//
// The problem it solves: what goes wrong with payments goes wrong at the provider's side
// of the wire, in states that no test account can be brought into on demand. A [Bank] is
// that side: payments with their statuses, refunds, idempotency keys and events, buyers
// who pay, decline and come back, and [Script]s for a provider that says one thing and
// does another. It also sees everything, so that a test can count the money itself.
//
// A Bank follows Stripe where providers differ: a result is saved under its key for 24
// hours, errors included; times are whole seconds; a void of a voided payment is refused.
//
// [Provider] puts the payment port over a Bank, for tests and for the simulation. Package
// stripetest puts Stripe's HTTP API over the same Bank. Nothing here starts a goroutine,
// reads the machine's clock or lets the order of a map decide, so that a history that was
// played twice is the same twice.
package paymenttest
