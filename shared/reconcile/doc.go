// Package reconcile audits the ledger: it reads every item and says whether stock, holds,
// reservations and events tell the same story.
//
// The problem it solves: promises P1 to P3 are kept by the conditions of each write, P8
// by what is written before the payment provider is asked, and nobody should have to
// believe that. The audit adds everything up again from the items themselves, by its own
// arithmetic, and names each difference. It only reads.
package reconcile
