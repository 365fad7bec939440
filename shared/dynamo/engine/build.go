package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// buildWithin bounds one build, and the wait for somebody else's. Two cores need
	// two to three minutes, a loaded or slow machine several times that.
	buildWithin = 30 * time.Minute
	// lockPollDelay is the pause between two tries to get the build lock.
	lockPollDelay = 200 * time.Millisecond
	// progressEvery is how often a build or a wait says that it is still going on.
	progressEvery = 10 * time.Second
)

func cargoArguments(root string) []string {
	return []string{
		"install", programName + "-rs", "--version", CrateVersion, "--locked",
		"--no-default-features", "--features", "native-sqlite,http-server,cli",
		"--root", root,
	}
}

// buildOnce builds the program at path inside directory, unless another process has
// done so by the time this one has the lock. The lock is the kernel's and ends with the
// process that has it, so a killed build blocks nobody.
func buildOnce(ctx context.Context, directory, path string, log io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, buildWithin)
	defer cancel()
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return fmt.Errorf("make the cache directory: %w", err)
	}
	unlock, err := lockForBuild(ctx, filepath.Join(directory, "build.lock"), log)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	cargo, err := exec.LookPath("cargo")
	if err != nil {
		return fmt.Errorf("%s is neither on PATH nor in %s, and it cannot be built: %w", programName, directory, err)
	}
	return build(ctx, cargo, directory, path, log)
}

// build lets cargo work in directories of its own beside path and moves the finished
// program into place with one rename, so that nobody ever sees half a program. What an
// interrupted build has compiled is kept for the next one; the lock makes sure that only
// one works there.
func build(ctx context.Context, cargo, directory, path string, log io.Writer) error {
	work := filepath.Join(directory, "build")
	root := filepath.Join(work, "root")
	fmt.Fprintf(log, "building the local DynamoDB engine (%s-rs %s) into %s; this happens once and takes some minutes\n", programName, CrateVersion, directory)
	command := exec.Command(cargo, cargoArguments(root)...)
	command.Env = append(os.Environ(), "CARGO_TARGET_DIR="+filepath.Join(work, "target"))
	output := newOutput(log)
	command.Stdout, command.Stderr = output, output
	cargoRun, err := startChild(command)
	if err != nil {
		return fmt.Errorf("start cargo: %w", err)
	}
	if err := waitWithProgress(ctx, cargoRun, output); err != nil {
		return fmt.Errorf("build %s-rs %s: %w; the end of cargo's output:\n%s", programName, CrateVersion, err, output.Tail())
	}
	if err := os.Rename(filepath.Join(root, "bin", programName), path); err != nil {
		return fmt.Errorf("put the built engine into the cache: %w", err)
	}
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("remove the build directory: %w", err)
	}
	fmt.Fprintf(log, "the local DynamoDB engine is built: %s\n", path)
	return nil
}

// waitWithProgress says every few seconds that cargo is still at work, because cargo is
// silent for long while it compiles one large crate.
func waitWithProgress(ctx context.Context, cargoRun *child, log io.Writer) error {
	started := time.Now()
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-cargoRun.Done():
			return cargoRun.Err()
		case <-ctx.Done():
			return errors.Join(ctx.Err(), cargoRun.KillGroup())
		case <-ticker.C:
			fmt.Fprintf(log, "still building the local DynamoDB engine, %d s\n", int(time.Since(started).Seconds()))
		}
	}
}

// lockForBuild returns the function that gives the lock back. It asks again and again
// instead of blocking, because a blocked flock cannot be ended by a context.
func lockForBuild(ctx context.Context, path string, log io.Writer) (func(), error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the build lock: %w", err)
	}
	nextProgress := time.Now()
	for {
		err := tryLock(file)
		if err == nil {
			// Closing the file is what gives the lock back.
			return func() { file.Close() }, nil //nolint:errcheck // nothing was written to it
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
		}
		if now := time.Now(); !now.Before(nextProgress) {
			fmt.Fprintln(log, "waiting for another process that is building the local DynamoDB engine")
			nextProgress = now.Add(progressEvery)
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for the build lock %s: %w", path, ctx.Err()), file.Close())
		case <-time.After(lockPollDelay):
		}
	}
}

// tryLock takes the exclusive lock of an open file, or returns EWOULDBLOCK when another
// open file has it.
func tryLock(file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
