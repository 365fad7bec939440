package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// terminateWithin is how long a child may take to end by itself after SIGTERM. The
// engine finishes the requests it is working on, which take milliseconds.
const terminateWithin = 5 * time.Second

// child is a started process that ends no later than this one.
type child struct {
	command *exec.Cmd
	done    chan struct{}
	err     error
}

// startChild starts the command in a process group of its own, so that Ctrl-C at the
// terminal reaches only the program that started it, which then ends its children in
// the right order.
//
// One goroutine starts the process and waits for it, and keeps its operating-system
// thread all the while: Linux ties "end with the parent" to the thread that started the
// child, not to the process, and Go would end or reuse that thread at will. See PR_SET_PDEATHSIG in
// https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html.
func startChild(command *exec.Cmd) (*child, error) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c := &child{command: command, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		release, err := startBoundToThisThread(command)
		started <- err
		if err != nil {
			return
		}
		c.err = command.Wait()
		release()
		close(c.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// PID returns the process id.
func (c *child) PID() int { return c.command.Process.Pid }

// Done is closed when the process has ended and has been waited for.
func (c *child) Done() <-chan struct{} { return c.done }

// Err says how the process ended, nil for exit status 0. It may be called only after
// Done is closed.
func (c *child) Err() error { return c.err }

// Terminate asks the process to end, waits for a bounded time, and then kills it. It
// returns after the end of the process, and may be repeated.
func (c *child) Terminate() error {
	if err := c.signal(syscall.SIGTERM); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), terminateWithin)
	defer cancel()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return c.Kill()
	}
}

// Kill ends the process at once and returns after its end. It may be repeated.
func (c *child) Kill() error {
	if err := c.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-c.done
	return nil
}

// KillGroup kills the process and what it has started itself, as cargo does with its
// compilers, and returns after the end of the process.
func (c *child) KillGroup() error {
	if err := syscall.Kill(-c.PID(), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill process group %d: %w", c.PID(), err)
	}
	<-c.done
	return nil
}

// signal does nothing when the process has ended. os.Process takes care that the
// signal never reaches another process that got the same id later.
func (c *child) signal(signal syscall.Signal) error {
	err := c.command.Process.Signal(signal)
	if err == nil || errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return fmt.Errorf("send %v to process %d: %w", signal, c.PID(), err)
}
