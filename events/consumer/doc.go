// Package consumer is what a consumer of Holdfast's events imports. It imports nothing of
// Holdfast but the schemas.
//
// The problem it solves: events come at least once, and now and then out of order. The
// same event may arrive under two envelope ids, minutes apart or at the same moment, and
// an older event of a hold after a newer one. A consumer that acts on each arrival sends
// two mails and shows a hold as held that was sold long ago.
//
// Decode turns what EventBridge delivers into an Event that is known to fit its schema.
// An Inbox hands each event to a handler once, and leaves out what is outdated:
//
//   - An event whose event_id was handled is a duplicate. The id of the envelope says
//     nothing: it differs each time that an event is sent.
//   - An event whose version is lower than the highest version that was handled of its
//     subject (one hold, reservation, slot, policy or case) is outdated. Each event tells the whole state
//     of its subject, so nothing is missed by who wants to know how it is now. Who adds up
//     what happened instead needs every event, and sets [Inbox.Older].
//
// What was handled is kept in a [Memory]. A handler that fails leaves nothing behind in
// it, so the event is handled when it comes again.
//
// # Memory in your own database
//
// [Bounded] keeps its memory in the process. That is right for a cache or a screen, which
// a restart empties as well. Where an effect outlives the process, what was handled must
// be kept with it, in one transaction: kept before, a crash loses the effect; kept after,
// it doubles it. Implement Memory over your database so:
//
//  1. Begin a transaction. Read the row of the subject and lock it (in SQL: insert it if it
//     is missing, then SELECT ... FOR UPDATE), and look for the event_id in the table of
//     handled events. Two deliveries of one event now run one after the other.
//  2. Call decide with a context that carries the transaction. The handler makes its
//     changes in that transaction and in no other.
//  3. If decide returns true, insert the event_id, and set the version of the subject
//     unless it is higher already. Commit. In every other case roll back.
//
// With DynamoDB the same is one TransactWriteItems: the handler adds its writes to a list
// in the context, and the memory adds a Put of the event_id under attribute_not_exists and
// an Update of the subject's version under the condition that it is what was read. If the
// transaction is canceled by a condition, read and decide again.
//
// Rows of handled events may go once they are older than every way on which an event can
// come again: an archive replay of EventBridge, a dead-letter queue (14 days), and
// Holdfast's own outbox, which sends again what it is not sure of. Keep the rows of the
// subjects, which are few and small.
//
// Package consumertest checks an implementation of Memory.
package consumer
