//go:build !linux

package child

import "syscall"

// endWithParent does nothing where the kernel has no death signal. There a child
// has to notice by itself: a Lambda binary exits when its runtime interface is gone,
// and the emulator exits when its standard input is closed.
func endWithParent(*syscall.SysProcAttr) {}
