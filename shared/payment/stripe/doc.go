// Package stripe puts the payment port on Stripe's API.
//
// The problem it solves: Stripe says the same thing in many ways, and Holdfast acts on
// what an answer means. A declined card, a lost login, a busy lock and a payment that was
// captured a second ago are all "an error"; taken for one another, they lose money. Here
// each of them becomes one of four kinds, and an answer that says nothing is told as that.
//
// A payment is a PaymentIntent with manual capture: the card is authorized first and
// captured when the hold is confirmed. [Provider] makes one call per question and retries
// nothing, because only its caller knows whether the question still stands. [Verify] reads
// webhooks, and is the only part that a stranger can reach.
//
// No error of this package has a secret, a card number or any text that Stripe sent,
// other than codes of a fixed form.
package stripe
