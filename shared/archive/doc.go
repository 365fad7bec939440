// Package archive moves ended records out of the table into a bucket, and back.
//
// The problem it solves: a table that keeps every hold for ever grows without end, and time
// to live alone would throw away what somebody may have to show years later. So ended
// holds and reservations that are older than the stage's retention are written to S3 with
// their events, read back and compared, and only then marked to leave the table. The order
// of these steps is the whole of it: whatever dies between two of them, a record is in the
// table, or in the archive and verified, or in both; and it is in one batch only.
//
// A [Worker] archives, shard after shard. The [Archive] lists what was archived, verifies
// it, and puts it back into the table, where it can be read again and not be changed. An
// [Eraser] takes the name of a person out of it. See DESIGN.md for the protocols and what
// happens when something dies.
package archive
