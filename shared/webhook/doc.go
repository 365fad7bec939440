// Package webhook takes in what the payment provider tells.
//
// The problem it solves: a provider sends each event at least once, in no order, and gives
// up on a receiver that is slow or says no. Whoever does the work before answering is too
// slow; whoever notes an event as seen before its work is done loses it when the process
// dies in between, and a paid order stays open (case D14). And what is sent holds secrets
// and comes from anybody who knows the address.
//
// So the [Inbox] does little, in this order: it checks the signature on the exact bytes,
// keeps a [payment.Notice] and drops the rest, asks whether the saga has recorded the
// event, and if not puts the notice into the saga's queue. It writes nothing else. Only
// the saga's own Change records the event, together with its effect; until then every
// delivery is queued again, and the saga stands that.
//
// What the answer says to the provider: a success, when it need not come again; 4xx, when
// it is not the provider's or can't be read; 503, when it should come again. Nothing that
// a sender does gives 5xx. No header, body or secret reaches a log, an answer or the
// queue (promise P12).
package webhook
