package child

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// outputDrainMax bounds how long the output of an ended child is still read. A
// grandchild that inherited the pipe could keep it open for ever.
const outputDrainMax = 2 * time.Second

// Command says what to start.
type Command struct {
	Program   string
	Arguments []string
	// Environment is the whole environment as NAME=value. Nothing is inherited, so
	// that a developer's own AWS settings never reach a child.
	Environment []string
	Directory   string
	// Input may be nil. It is closed in the parent by the caller, not by Start.
	Input *os.File
	// Output receives stdout and stderr, possibly from two goroutines at once.
	Output io.Writer
	// Files are inherited by the child as file descriptors 3, 4, and so on.
	Files []*os.File
}

// Process is one started child.
type Process struct {
	command *exec.Cmd
	exited  chan struct{}
	err     error // written once, before exited is closed
}

// Start starts the command and returns when the child runs or could not be started.
func Start(command Command) (*Process, error) {
	cmd := exec.Command(command.Program, command.Arguments...)
	cmd.Env = command.Environment
	if cmd.Env == nil {
		cmd.Env = []string{} // nil would mean: inherit everything
	}
	cmd.Dir = command.Directory
	if command.Input != nil {
		cmd.Stdin = command.Input
	}
	cmd.Stdout, cmd.Stderr = command.Output, command.Output
	cmd.ExtraFiles = command.Files
	cmd.WaitDelay = outputDrainMax
	// A process group of its own: Ctrl-C in a terminal reaches the parent only, which then
	// ends its children in its own order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)

	process := &Process{command: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go process.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Program, err)
	}
	return process, nil
}

// run starts the child and waits for it on one locked thread: the kernel ties the
// death signal to the thread that started the child, not to the process, so this
// thread must live at least as long as the child does.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.command.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	p.err = p.command.Wait()
	close(p.exited)
}

// ID returns the process id.
func (p *Process) ID() int { return p.command.Process.Pid }

// Exited is closed when the child has ended and its output has been read.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// ExitError returns how the child ended: nil after exit status 0. It must be called
// only after Exited is closed.
func (p *Process) ExitError() error { return p.err }

// Kill ends the child without asking it, and returns when it is gone. It may be
// repeated, and called by several goroutines at once.
func (p *Process) Kill() {
	// The only error says that the child has already ended, which is what is wanted.
	_ = p.command.Process.Kill()
	<-p.exited
}
