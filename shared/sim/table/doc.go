// Package table is a DynamoDB table in memory, for a simulation that runs the real store.
//
// The problem it solves: the store's correctness lies in its condition expressions, so a
// simulation that looks for wrong interleavings has to evaluate those very expressions,
// many million times, and get the same answer each time for the same seed. An engine
// behind a socket is a thousand times too slow for that and never shows a conflict. This
// table is a pure state: no goroutine, no clock, no chance, and no fault of its own. The
// caller decides which call comes next, when a prepared transaction is applied, and how
// far an index is behind.
//
// What it knows is what the store uses and its neighbours: conditions with comparisons,
// BETWEEN, IN, AND, OR, NOT, begins_with, attribute_exists, attribute_not_exists and
// size; key conditions; SET with + and - and if_not_exists, REMOVE, and ADD of a number,
// of top-level attributes; filters and projections of a scan. What it does not know gives ErrUnsupported, never a guess.
// Messages of errors are not DynamoDB's to the letter; their types, codes and reasons
// are. A random differential test holds it against the local engine.
//
// The nearest library, truora/minidyn, changes its indexes within the write, so none can
// lag, and takes a transaction back by copying whole tables; it has no two phases that
// the steps of others could come between.
package table
