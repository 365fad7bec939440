package child

import "syscall"

// endWithParent makes the kernel kill the child when the thread that started it
// ends, which here means: when the parent does. See prctl(2), PR_SET_PDEATHSIG.
func endWithParent(attributes *syscall.SysProcAttr) {
	attributes.Pdeathsig = syscall.SIGKILL
}
