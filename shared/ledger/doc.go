// Package ledger is the pure core of Holdfast: what a promise is, how it may change,
// and what must be true at every moment.
//
// The problem it solves: scarce things are promised for a short time while people
// decide and pay. If the promise is only a counter, nobody can say later why the
// counter is wrong; if it is only a row, nobody can say quickly what is left. Here
// both are kept, and every step changes both in one [Change], together with the event
// that tells about it and the record that makes the request repeatable.
//
// # Words
//
// A slot is the smallest sellable unit; its stock is split over one or more shards,
// each with the counters available, held, confirmed and capacity. A hold is a promise
// to one owner over one or more lines (slot, quantity, quoted unit price). It is HELD
// until it is confirmed, cancelled or expired, once. From release_at on no confirm
// succeeds, whether or not a sweep has looked. An event is the immutable record of one
// transition. The doc comments of this package are the glossary.
//
// A reservation is the payment of one hold, from its first attempt to its end. An attempt
// is one try of the buyer to pay; it stands for one payment at the provider. The last one
// is current, and at most one of them is open: while it is, nobody but the reservation
// releases the hold. To capture is to take the money, to void is to make sure that an
// attempt can't succeed any more, and only then is its hold released. Money that must not
// stay is unwanted: it is voided, or given back by a refund, which is recorded as owed
// before the provider is asked for it.
//
// Lines of a CONFIRMED hold can be returned; when nothing of it is left, it is RETURNED.
// A payment that comes late, when the hold is over, may reacquire the units: a new hold is
// born CONFIRMED, because one that has ended never comes back. A grant is stock of another
// slot that grows by what was sold, such as points on a buyer's balance.
//
// A policy is said in layers: of a resource type, of a resource, of a slot, each over the one
// before and all over the default. A layer says some parts and leaves the others, so that one
// word about a venue reaches each of its hundred thousand seats without a write to any of
// them, and a seat that differs says only in what. [Slot.Resolve] gives the whole policy,
// each part from the nearest layer that says it. It reaches new holds only: what a hold
// promises was written down in it when it took its units.
//
// Limits of an owner are charged on the hold. The hold writes down in which counts of its
// owner it counts, and each of its steps changes those counts in the same Change. So two
// holds at once can't pass a limit together, and what falls is by what was charged, whatever
// the policy says by then.
//
// A slot gets more or fewer shards by an edit like any other, and by no operator's command of
// its own: it is one transaction with the slot's version, so it is as safe under load as a
// price, and the catalogue knows when a rush comes. Shards that it no longer has retire
// instead of vanishing: holds give back to the stock item that they took from, which must
// still be there. New holds pick others, and what comes back to a retired one is sold last.
//
// A HELD hold can be edited: its lines, as a whole, and its time, within what it was promised
// at first. What it keeps, it keeps at its price; what it takes is quoted anew. A trusted
// service may confirm a part of it, and the rest goes back in the same step. When fewer units
// are left of a slot than were promised, an operator may mark it as oversold: it is closed
// until they are enough again.
//
// What a person must decide is a case, a [Review], named by what it is about. Whether something
// waits is never stored twice: a reservation's status says so, or a hold's parking, or an
// event's quarantine, and their cases have a record only of who took them and what was decided.
// What the audit finds has no other place, so its case is the record.
//
// A repair puts right what is stored of a thing, and moves nothing: the thing takes a step, so
// that the repair has an event and a place in its story, and is void if another step comes first.
//
// Two things are claimed. A [Uniqueness] claims a value for ever for one hold or one
// reservation: a payment reference, a provider's payment, a provider's event. The claim of
// an [IdempotencyRecord] says for some seconds which caller carries a request out.
//
// # How it is used
//
// A transition is a function from values to a Change or an error. Of slots: [NewSlot],
// [EditSlot]. Of policies: [SetPolicy]. Of holds: [NewHold], [EditHold], [Confirm],
// [ConfirmPart], [Cancel], [Expire], [ReturnUnpaid]. Of an owner: [ForgetExpiries], [EndCooldown]. Of a
// case that a person must decide: [OpenReview], [ClaimReview], [DecideReview]. Of what the audit
// finds stored wrong: [RepairStock], [RepairHold], [RepairReservation], [RepairQuota]. Of a
// hold with its reservation: [StartReservation], [StartNextAttempt], [ConfirmPaid],
// [Reacquire], [Return], [GiveUp], [CancelReservation], [Deliver]. The other steps of a
// reservation are decided in package saga and made by [ReservationStep]; [Together] puts a
// hold's and a reservation's step into one Change. None of them reads a clock, draws an id
// or does I/O; time and ids are passed in. A [Store] applies the Change with [Store.Commit],
// its only write. Package commands, one step outward, reads, decides, commits, and decides
// again when it lost a race.
//
// # Promises
//
//   - P1: available, held and confirmed are never negative, and their sum is capacity,
//     per shard, at every moment.
//   - P2: held is the sum over HELD holds, confirmed the sum over CONFIRMED lines.
//   - P3: a hold leaves HELD exactly once, and its stock moves exactly once.
//   - P4: after release_at no confirm succeeds; before it nobody else gets the stock.
//   - P5: a transition, its stock, its event and its idempotency record commit together.
//   - P6: the same key with the same request has one effect and one answer.
//   - P7: every event is published at least once and carries a stable id and version.
//   - P8: at most one capture for a reservation, of the quoted amount, and no captured money
//     without a CONFIRMED hold, except while its compensation is recorded and worked on.
//   - P9: every hold ends.
//   - P10: "sold out" is said only when it is true at one consistent moment.
//   - P11: nothing of another owner can be read or told apart from what does not exist.
//   - P12: no secret is stored or logged.
//
// Tests cite these by number. Of P8 the record is kept here; what the provider is asked
// for is package saga's.
//
// The package imports the standard library only.
package ledger
