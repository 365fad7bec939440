package engine

import (
	"os/exec"
	"syscall"
)

// startBoundToThisThread starts the command so that the kernel kills it when the calling
// thread ends. The caller keeps the thread until the command has ended, and then calls
// release.
func startBoundToThisThread(command *exec.Cmd) (release func(), err error) {
	command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return func() {}, command.Start()
}
