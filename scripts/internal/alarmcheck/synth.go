package alarmcheck

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// synthMax bounds the synth of one stage, with the first build of the stack's code.
const synthMax = 5 * time.Minute

// Synthesize writes the template of a stage into folder and reads its alarms. It runs the
// stack's own command in the root of the module, so that these are the alarms that are
// deployed. Bundling is left out: they do not depend on what the functions are built from.
func Synthesize(ctx context.Context, moduleRoot, stage, folder string) ([]Alarm, error) {
	ctx, cancel := context.WithTimeout(ctx, synthMax)
	defer cancel()
	synth := exec.CommandContext(ctx, "go", "run", "./infra")
	synth.Dir = moduleRoot
	synth.Env = append(os.Environ(), "CDK_OUTDIR="+folder, `CDK_CONTEXT_JSON={"stage":"`+stage+`","aws:cdk:bundling-stacks":[]}`,
		"JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=20")
	if output, err := synth.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("synthesise the stage %s: %w\n%s", stage, err, output)
	}
	template, err := os.ReadFile(filepath.Join(folder, "Holdfast-"+stage+".template.json"))
	if err != nil {
		return nil, fmt.Errorf("read the template: %w", err)
	}
	return Alarms(template)
}
