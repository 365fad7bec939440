package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// EndpointVariable is the environment variable with the URL of an engine that is
// already running, for example http://127.0.0.1:8000.
const EndpointVariable = "DYNAMODB_ENDPOINT"

// CrateVersion is the version of the crate dynoxide-rs that is built. The conformance
// and the speed that the tests rely on were measured with this one.
const CrateVersion = "3.2.0"

// productVersion is what the program of CrateVersion prints: crate and product are
// numbered separately.
const productVersion = "dynoxide 1.5.0"

const programName = "dynoxide"

// versionCheckWithin bounds the run of `dynoxide --version`, which takes milliseconds.
const versionCheckWithin = 10 * time.Second

// Binary returns the path of a dynoxide that has been seen to run: from PATH, from the
// user's cache, or built into the cache, which takes two to three minutes. What takes
// long is told on log.
//
// A program that is there and does not run is an error, not a reason to go on to the
// next place: silently using another one than the one on PATH would be a surprise.
func Binary(ctx context.Context, log io.Writer) (string, error) {
	if onPath, err := exec.LookPath(programName); err == nil {
		return checkedBinary(ctx, onPath, "found on PATH", log)
	}
	directory, err := cacheDirectory()
	if err != nil {
		return "", unavailable(err)
	}
	cached := filepath.Join(directory, programName)
	if _, err := os.Stat(cached); errors.Is(err, os.ErrNotExist) {
		if err := buildOnce(ctx, directory, cached, log); err != nil {
			return "", unavailable(err)
		}
	} else if err != nil {
		return "", unavailable(err)
	}
	return checkedBinary(ctx, cached, "in the cache; remove it to have it built again", log)
}

// cacheDirectory has the crate's version in its name, so that a newer version never
// meets an older program.
func cacheDirectory() (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(user, "holdfast", programName+"-"+CrateVersion), nil
}

func checkedBinary(ctx context.Context, path, origin string, log io.Writer) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionCheckWithin)
	defer cancel()
	command := exec.CommandContext(ctx, path, "--version")
	// Without this, a script that left a process of its own behind would hold the
	// output open past the end of the context.
	command.WaitDelay = time.Second
	output, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s (%s) does not run: %w: %s", path, origin, err, strings.TrimSpace(string(output)))
	}
	switch version := strings.TrimSpace(string(output)); {
	case !strings.HasPrefix(version, programName+" "):
		return "", fmt.Errorf("%s (%s) is another program: --version prints %q", path, origin, version)
	case version != productVersion:
		fmt.Fprintf(log, "%s is %s; Holdfast is tested with %s\n", path, version, productVersion)
	}
	return path, nil
}

// unavailable names every way to an engine, because this is what a new machine shows
// first.
func unavailable(cause error) error {
	return fmt.Errorf(`no local DynamoDB engine: %w
Any one of these helps:
  - set %s to the URL of a running DynamoDB engine, for example http://127.0.0.1:8000
  - put a program %s on PATH (releases: https://github.com/nubo-db/dynoxide)
  - install Rust's cargo (https://rustup.rs), and it is built on the next run, like this:
      %s`, cause, EndpointVariable, programName, "cargo "+strings.Join(cargoArguments("<directory>"), " "))
}
