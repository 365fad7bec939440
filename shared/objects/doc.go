// Package objects keeps objects in a bucket of S3: each is written once under its name and
// never changed.
//
// The problem it solves: a writer may die, or lose the answer to its write, and write again,
// beside another writer who was told the same. So a write says that nothing may be there yet,
// and whoever is refused reads what is there. The archive and the audit both rest on that,
// and neither can delete.
package objects
