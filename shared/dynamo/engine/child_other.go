//go:build !linux

package engine

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// watchScript kills the process of its first argument when its standard input ends,
// which the kernel sees to when the process at the other end of the pipe is gone.
const watchScript = `cat >/dev/null; kill -KILL "$1"`

// startBoundToThisThread starts the command, and beside it a shell that kills it when
// this process ends: systems other than Linux have no signal for the death of a parent.
// After the command has ended, release ends the shell.
func startBoundToThisThread(command *exec.Cmd) (release func(), err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the watch pipe: %w", err)
	}
	defer read.Close()
	if err := command.Start(); err != nil {
		write.Close()
		return nil, err
	}
	watch := exec.Command("/bin/sh", "-c", watchScript, "sh", strconv.Itoa(command.Process.Pid))
	watch.Stdin = read
	// A process group of its own, so that Ctrl-C does not end the watch before the
	// child.
	watch.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := watch.Start(); err != nil {
		write.Close()
		killErr := command.Process.Kill()
		waitErr := command.Wait()
		return nil, fmt.Errorf("start the watch of the child: %w (kill: %v, wait: %v)", err, killErr, waitErr)
	}
	return func() {
		// The shell dies before the pipe is closed, so that it can never kill
		// another process that got the same id.
		watch.Process.Kill()
		watch.Wait()
		write.Close()
	}, nil
}
