package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// memoryDirectory is Linux' memory-backed file system: a test's data is never worth
	// a write to the disk.
	memoryDirectory = "/dev/shm"
	// memoryFreeBytesMin is the free space below which the disk is used instead.
	// Containers often get a memoryDirectory of 64 MB, which a benchmark would fill.
	memoryFreeBytesMin = 1 << 30

	scratchPrefix    = "holdfast-engine-"
	scratchOwnerLock = "owner.lock"
	// abandonedAfter is the age from which a scratch directory without a living owner is
	// removed. The age covers the moment between making a directory and locking it.
	abandonedAfter = time.Minute
)

// scratch is a directory whose data ends with the engine. Its owner holds a lock on a
// file in it, so that what a killed process left behind can be told from what is in use.
type scratch struct {
	directory string
	lock      *os.File
}

// newScratch makes a scratch directory, and removes those that killed processes have
// left: on memory-backed storage they would cost memory until the next restart.
func newScratch() (*scratch, error) {
	parent := scratchParent()
	if err := removeAbandoned(parent, time.Now()); err != nil {
		return nil, err
	}
	directory, err := os.MkdirTemp(parent, scratchPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a scratch directory: %w", err)
	}
	s := &scratch{directory: directory}
	if s.lock, err = os.Create(filepath.Join(directory, scratchOwnerLock)); err == nil {
		err = tryLock(s.lock)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the scratch directory: %w", err), s.remove())
	}
	return s, nil
}

func (s *scratch) dataFile() string { return filepath.Join(s.directory, "engine.db") }

// remove may be repeated, and is nothing for nil. The lock is given back last, so that
// nobody else removes the same directory meanwhile.
func (s *scratch) remove() error {
	if s == nil {
		return nil
	}
	if err := os.RemoveAll(s.directory); err != nil {
		return fmt.Errorf("remove the scratch directory: %w", err)
	}
	if err := s.lock.Close(); err != nil && !errors.Is(err, os.ErrClosed) && !errors.Is(err, os.ErrInvalid) {
		return fmt.Errorf("give back the scratch directory: %w", err)
	}
	return nil
}

func scratchParent() string {
	var memory syscall.Statfs_t
	if err := syscall.Statfs(memoryDirectory, &memory); err != nil {
		return os.TempDir()
	}
	if uint64(memory.Bavail)*uint64(memory.Bsize) < memoryFreeBytesMin {
		return os.TempDir()
	}
	return memoryDirectory
}

func removeAbandoned(parent string, now time.Time) error {
	directories, err := filepath.Glob(filepath.Join(parent, scratchPrefix+"*"))
	if err != nil {
		return fmt.Errorf("look for abandoned scratch directories: %w", err)
	}
	for _, directory := range directories {
		// A directory that another process removes at this moment, or that belongs to
		// another user, is none of ours.
		if err := removeIfAbandoned(directory, now); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("remove the abandoned scratch directory %s: %w", directory, err)
		}
	}
	return nil
}

func removeIfAbandoned(directory string, now time.Time) error {
	info, err := os.Stat(directory)
	if err != nil {
		return err
	}
	if now.Sub(info.ModTime()) < abandonedAfter {
		return nil
	}
	lock, err := os.OpenFile(filepath.Join(directory, scratchOwnerLock), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // nothing was written to it
	if err := tryLock(lock); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil
		}
		return err
	}
	return os.RemoveAll(directory)
}
