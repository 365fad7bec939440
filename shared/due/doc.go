// Package due finds work whose time has come, the longest overdue first.
//
// The problem it solves: the due index is split over shards, because one partition by
// time would be hot. Whoever works through it shard after shard leaves the last shard
// waiting when there is much to do, reads a first page and takes it for all, or loops
// over a page that is never empty. A [Queue] merges all shards by their due time and
// leaves each list by its cursor, so every entry is met once, the oldest first, and what
// could not be read is told.
//
// The index is a hint. It lags, and lists what has just been done; the thing itself
// decides.
package due
