package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3assets"
	"github.com/aws/jsii-runtime-go"

	"holdfast/shared/topology"
)

const (
	// binaryName is what the runtime provided.al2023 starts. Source:
	// https://docs.aws.amazon.com/lambda/latest/dg/golang-package.html
	binaryName = "bootstrap"
	// buildTimeout bounds one compilation, a cold one on a small machine included.
	buildTimeout = 10 * time.Minute
)

// bundledCode is the code of a function, built while the template is synthesised, so
// that a stale binary cannot be shipped. The hash is that of the output: only a
// function whose binary changed is deployed again.
func bundledCode(moduleRoot string, name topology.FunctionName) awslambda.Code {
	return awslambda.Code_FromAsset(jsii.String(moduleRoot), &awss3assets.AssetOptions{
		AssetHashType: awscdk.AssetHashType_OUTPUT,
		Bundling: &awscdk.BundlingOptions{
			// Mandatory, and never used: the local build either succeeds or fails the synth.
			Image: awscdk.DockerImage_FromRegistry(jsii.String("not-used")),
			// CDK stages two assets as one when their folder and options are the same, and
			// does not look into Local. The command tells the functions apart.
			Command: jsii.Strings("build", string(name)),
			Local:   &goBuild{moduleRoot, name},
		},
	})
}

// goBuild builds the main package of one function with the Go tool of this machine.
// It implements awscdk.ILocalBundling.
type goBuild struct {
	moduleRoot string
	name       topology.FunctionName
}

// TryBundle builds the function into outputDir. It never returns false, which would
// make CDK try Docker and hide the error; it panics with what the compiler said,
// which jsii passes on as the failure of the construct.
func (b *goBuild) TryBundle(outputDir *string, _ *awscdk.BundlingOptions) *bool {
	if err := b.build(*outputDir); err != nil {
		panic(err)
	}
	return jsii.Bool(true)
}

func (b *goBuild) build(outputDir string) error {
	output, err := filepath.Abs(filepath.Join(outputDir, binaryName))
	if err != nil {
		return fmt.Errorf("build function %s: %w", b.name, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	// The same source gives the same bytes: no paths, no version control stamp.
	command := exec.CommandContext(ctx, "go", "build",
		"-trimpath", "-buildvcs=false", "-tags", "lambda.norpc", "-ldflags=-s -w",
		"-o", output, "./functions/"+string(b.name))
	command.Dir = b.moduleRoot
	// The last duplicate wins, so these come after what the machine has set.
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64")
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build function %s: %w\n%s", b.name, err, said)
	}
	return nil
}
