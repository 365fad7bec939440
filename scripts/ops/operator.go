package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/scripts/internal/build"
	"holdfast/scripts/internal/localrun"
	"holdfast/shared/config"
	"holdfast/shared/dynamo"
	"holdfast/shared/system"
	"holdfast/shared/topology"
)

// localFolderName is where a local run keeps its data, in the root of the module.
const localFolderName = ".local"

// operator is one run of the tool: what it works on, and how it prints.
type operator struct {
	out  io.Writer
	json bool
	redriveChoice
	importChoice

	config config.Config
	aws    aws.Config
	store  *dynamo.Store
	clock  system.Clock
	random system.Random
}

// connect reads the environment of the function and makes the store.
func (o *operator) connect(ctx context.Context, as topology.FunctionName, file string) error {
	environment, err := readEnvironment(file)
	if err != nil {
		return err
	}
	o.config, err = config.Load(as, func(name string) (string, bool) {
		value, present := environment[name]
		return value, present
	})
	if err != nil {
		return fmt.Errorf("%w\nIt must be the environment of the function %s", err, as)
	}
	if o.aws, err = o.config.AWS(ctx, nil); err != nil {
		return err
	}
	o.clock, o.random = system.RealClock{}, system.RealRandom{}
	client := dynamodb.NewFromConfig(o.aws, func(options *dynamodb.Options) {
		if o.config.Local() {
			options.BaseEndpoint = config.Endpoint(o.config.LocalDynamoDBEndpoint)
			dynamo.WithoutClientToken(options)
		}
	})
	o.store = dynamo.NewStore(client, o.config.TableName, o.clock, o.random)
	return nil
}

// readEnvironment reads the file, or that of the local run.
func readEnvironment(file string) (map[string]string, error) {
	local := file == ""
	if local {
		working, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("find the local run: %w", err)
		}
		root, err := build.ModuleRoot(working)
		if err != nil {
			return nil, err
		}
		file = filepath.Join(root, localFolderName, localrun.EnvironmentFileName)
	}
	text, err := os.ReadFile(file)
	if local && errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("no local run is there; begin one with `go run ./scripts/local`, or name a stage by -environment FILE")
	}
	if err != nil {
		return nil, fmt.Errorf("read the environment: %w", err)
	}
	var environment map[string]string
	if err := json.Unmarshal(text, &environment); err != nil {
		return nil, fmt.Errorf("the environment in %s is no JSON object of texts: %w", file, err)
	}
	return environment, nil
}

// table prints rows below their titles, or, if so asked, value as JSON.
func (o *operator) table(value any, titles string, rows func(print func(columns ...any))) error {
	if o.json {
		encoder := json.NewEncoder(o.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	}
	var text strings.Builder
	text.WriteString(titles + "\n")
	rows(func(columns ...any) {
		words := make([]string, len(columns))
		for i, column := range columns {
			words[i] = fmt.Sprint(column)
		}
		text.WriteString(strings.Join(words, "\t") + "\n")
	})
	w := tabwriter.NewWriter(o.out, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(w, text.String()); err != nil {
		return err
	}
	return w.Flush()
}
