// Package queuesource feeds a function from an SQS queue, as the event source mapping of
// Lambda does.
//
// The problem it solves: a consumer of a queue is right or wrong by what it does when some
// messages of a batch fail, when a message comes again, and when one can never be handled.
// A local run that simply hands new messages to the function shows none of this, and a test
// that fakes the function's answer does not show that an answer in the wrong form loses
// messages, or brings all of them back.
//
// The rules are those of the mapping that is deployed, with partial batch failures:
//
//   - The function is given up to ten messages. Its answer names those that failed; the
//     others are deleted. Those that failed come again, and after ReceivesMax receives the
//     queue itself moves them to its dead letters.
//   - An error, or an answer that is malformed or names a message that was not in the
//     batch, means the whole batch. No answer, null, and an object without a list of
//     failures mean that all is done: also when the list is there under a misspelt name.
//   - A run at a time is not a rule: up to ConcurrencyMax batches are worked on at once, in
//     no certain order.
//
// Sources: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html and
// .../services-sqs-configure.html. What an answer means is the pure function Failed; the
// Source does what it says.
//
// One thing differs on purpose. On AWS a failed message stays hidden for the rest of its
// visibility timeout, which is minutes, because nobody can say that its run is over. Here
// that is known, so a failed message may come again after RetryAfter, and nobody at a desk
// waits for minutes. A message whose run goes on is hidden as long as on AWS.
//
// Not imitated: the batching window, the slow growth of the number of pollers, filters, and
// FIFO queues.
package queuesource
