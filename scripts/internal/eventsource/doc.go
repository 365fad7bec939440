// Package eventsource feeds a function from a DynamoDB stream, as the event source
// mapping of Lambda does.
//
// The problem it solves: a stream consumer is right or wrong by what it does when
// half of a batch fails, when it is called again with records that it has handled,
// and when one record can never be handled. A local run that simply calls the
// function with new records shows none of this.
//
// The rules are those of the mapping that is deployed:
//
//   - Records come in order, from TRIM_HORIZON, at least once. Only the sort key
//     decides which are delivered; the function itself decides by event name.
//   - The function's answer names the records that failed. The lowest one is the
//     checkpoint: all before it are done, it and all after it are delivered again. An
//     error, or an answer that names a record that was not in the batch, means the
//     whole batch.
//   - After an error the batch is split in two halves, which uses no retry. After the
//     last retry, or when a record is too old, the batch is given to the failure
//     destination, and the stream goes on.
//
// Sources: https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-batchfailurereporting.html,
// .../services-ddb-params.html and .../services-dynamodb-errors.html. What to do after a
// batch is one pure function, Decide; the Poller does what it says.
//
// The documentation does not say what happens when the first record of a batch is the
// one that failed. Here the batch cannot be split there, so it is retried, and given
// up as a whole: the strictest reading for the function.
//
// How far a shard has been read is kept in a small file, so that a restarted local run
// goes on where the last one ended.
//
// Not imitated: several batches in flight per shard, and a batching window. The local
// engine has one shard per table.
package eventsource
