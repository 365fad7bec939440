package localrun_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast/scripts/internal/localrun"
)

// Two runs on one data folder would be two engines on one database file.
func TestAFolderInUseIsRefused(t *testing.T) {
	folder := t.TempDir()
	other, err := os.Create(filepath.Join(folder, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	_, err = localrun.Start(t.Context(), localrun.Options{DataFolder: folder})
	if err == nil || !strings.Contains(err.Error(), "another local run uses the data folder "+folder) {
		t.Errorf("a start on a folder in use: %v", err)
	}
}

// A port in use is told at once, before anything is built, and the folder is free again.
func TestAPortInUseIsRefused(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	options := localrun.Options{DataFolder: t.TempDir(), Port: listener.Addr().(*net.TCPAddr).Port}
	for range 2 {
		if _, err := localrun.Start(t.Context(), options); err == nil || !strings.Contains(err.Error(), "is in use; choose another one with -port") {
			t.Errorf("a start on a port in use: %v", err)
		}
	}
	if _, err := os.Stat(filepath.Join(options.DataFolder, "bin")); err == nil {
		t.Error("programs were built for a port in use")
	}
}
