package build

import (
	"context"
	"fmt"
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
