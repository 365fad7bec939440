package localrun

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

const (
	scratchPattern     = "holdfast-local-"
	lockFileName       = "lock"
	engineFileName     = "engine.db"
	checkpointFileName = "stream-checkpoints.json"
	logFolderName      = "log"
	programFolderName  = "bin"
)

// folder is the data folder of one System, which holds a lock on it.
type folder struct {
	path      string
	isScratch bool
	lock      *os.File
}

// openFolder makes the folder if it is missing, and locks it. The kernel gives the lock
// back when this process ends, however it ends.
func openFolder(path string) (*folder, error) {
	f := &folder{path: path, isScratch: path == ""}
	var err error
	if f.isScratch {
		f.path, err = os.MkdirTemp("", scratchPattern)
	} else if f.path, err = filepath.Abs(path); err == nil {
		// The folder has a key that signs tokens.
		err = os.MkdirAll(f.path, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	if f.lock, err = os.OpenFile(f.file(lockFileName), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	if err := syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		err = errors.Join(err, f.lock.Close())
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("another local run uses the data folder %s; end it, or choose another folder", f.path)
		}
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	if err := os.MkdirAll(f.file(logFolderName), 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("make the log folder: %w", err), f.close())
	}
	return f, nil
}

func (f *folder) file(name string) string { return filepath.Join(f.path, name) }

// close removes a scratch folder, and gives the lock back.
func (f *folder) close() error {
	var err error
	if f.isScratch {
		err = os.RemoveAll(f.path)
	}
	return errors.Join(err, f.lock.Close())
}

// removeTable removes the engine's files, and the place in the stream of the old table.
func (f *folder) removeTable() error {
	files, err := filepath.Glob(f.file(engineFileName) + "*") // SQLite has further files beside it
	if err != nil {
		return fmt.Errorf("find the old table: %w", err)
	}
	for _, file := range append(files, f.file(checkpointFileName)) {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the old table: %w", err)
		}
	}
	return nil
}

// openLog makes the log of one part anew, so that logs do not grow from run to run.
func (f *folder) openLog(part string) (*logFile, error) {
	file, err := os.Create(filepath.Join(f.path, logFolderName, part+".log"))
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", part, err)
	}
	return &logFile{file: file}, nil
}

// logFile is a file with one part's log. Several goroutines may write to it.
type logFile struct {
	mu   sync.Mutex
	file *os.File
}

func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Write(p)
}

// Close implements io.Closer.
func (l *logFile) Close() error { return l.file.Close() }
