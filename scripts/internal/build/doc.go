// Package build compiles programs of this module.
//
// The problem it solves: the local run must start the very binaries that are
// deployed, not code linked into itself. So they are built each time, by the same
// compiler flags as in the deployment except for the processor, and the Go build
// cache makes an unchanged one cheap.
package build
