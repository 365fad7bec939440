// Package payment is the port to a payment provider: what Holdfast asks of one, in its
// own words.
//
// The problem it solves: a provider answers late, twice, or not at all, and what a
// missing answer means decides whether money is lost. So every call says apart what
// was answered from what is not known ([Error] with KindUnreachable), and every call
// that changes something carries a [Key] that makes it repeatable. The key follows from
// the reservation, the attempt and the step, so that a process that starts anew makes
// the same call and not a second one.
//
// A [Payment] is what the provider says that a payment is now. Nothing here is about an
// order of events: whoever wants to know how a payment stands asks for it.
//
// Package stripe is the adapter for Stripe. Package stripetest is a server that speaks
// the part of Stripe's API that the adapter uses, and paymenttest has the rules that it
// keeps, without HTTP.
package payment
