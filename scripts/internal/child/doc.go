// Package child starts programs that must not outlive the one that started them.
//
// The problem it solves: a local run consists of many processes (one or more per
// function, and the emulator of the event bus). When the run is killed, not stopped,
// nobody is left to end them, and the next run meets their ports and their half-done
// work. Here every child is started so that the kernel ends it with its parent where
// the kernel can do that (Linux), it is ended by its own process id and never by
// name, and who ends it also waits until it is gone.
package child
