package main

import (
	"fmt"
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "infra:", err)
		os.Exit(1)
	}
}

func run() error {
	defer jsii.Close()
	app := newApp(nil, nil)
	// The CDK command sets the account when it has credentials. Without one nothing
	// can be deployed, and example settings are allowed.
	if _, err := compose(app, os.Getenv("CDK_DEFAULT_ACCOUNT"), "."); err != nil {
		return err
	}
	app.Synth(nil)
	return nil
}

// newApp returns the CDK app. Nil outDir and context leave both to the environment,
// where the CDK command, or a caller without it, puts them: CDK_OUTDIR and
// CDK_CONTEXT_JSON.
func newApp(outDir *string, context *map[string]any) awscdk.App {
	return awscdk.NewApp(&awscdk.AppProps{
		Outdir:  outDir,
		Context: context,
		// Without this a template differs by whether the CDK command started the synth.
		AnalyticsReporting: jsii.Bool(false),
	})
}

// compose adds the stack of the chosen stage to app, and the checks of cdk-nag.
// account is empty when nothing can be deployed from this synth. moduleRoot is the
// folder of go.mod, from which the functions are built.
func compose(app awscdk.App, account, moduleRoot string) (awscdk.Stack, error) {
	chosen, err := readSettings(app.Node(), account)
	if err != nil {
		return nil, err
	}
	stack, err := newStack(app, chosen, moduleRoot)
	if err != nil {
		return nil, err
	}
	checkWithNag(app)
	return stack, nil
}
