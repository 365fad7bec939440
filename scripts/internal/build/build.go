package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// timeout bounds one build. A first build of the AWS SDK on two busy cores takes
// about a minute.
const timeout = 10 * time.Minute

// LambdaTags leaves the RPC mode of the go1.x runtime out of a Lambda binary. The
// provided.al2023 runtime does not use it.
const LambdaTags = "lambda.norpc"

// goModName is the file in the root of every module.
const goModName = "go.mod"

// ModuleRoot returns the folder of the module that the folder belongs to: its own or the
// nearest one above it that has a go.mod.
func ModuleRoot(folder string) (string, error) {
	start, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("find the module of %s: %w", folder, err)
	}
	for at := start; ; at = filepath.Dir(at) {
		_, err := os.Stat(filepath.Join(at, goModName))
		if err == nil {
			return at, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("find the module of %s: %w", folder, err)
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is in no Go module; go into a clone of the repository", start)
		}
	}
}

// Program builds the main package at packagePath (such as ./functions/api, relative
// to moduleRoot) for this machine and writes the binary to output. It may be
// repeated. An error carries what the compiler said.
func Program(ctx context.Context, moduleRoot, packagePath, tags, output string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	output, err := filepath.Abs(output)
	if err != nil {
		return fmt.Errorf("build %s: %w", packagePath, err)
	}
	command := exec.CommandContext(ctx, "go", "build",
		"-trimpath", "-buildvcs=false", "-tags", tags, "-o", output, packagePath)
	command.Dir = moduleRoot
	// The last of two equal names wins.
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	said, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("build %s: %w\n%s", packagePath, err, said)
	}
	return nil
}
