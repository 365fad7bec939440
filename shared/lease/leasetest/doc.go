// Package leasetest is the contract of lease.Leases as a suite, and leases in memory that
// keep it and can be told to fail.
package leasetest
