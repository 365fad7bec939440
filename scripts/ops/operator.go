package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/scripts/internal/build"
	"holdfast/scripts/internal/localrun"
	"holdfast/shared/commands"
	"holdfast/shared/config"
	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/topology"
)

// localFolderName is where a local run keeps its data, in the root of the module.
const localFolderName = ".local"

// operator is one run of the tool: what it works on, and how it prints.
type operator struct {
	out  io.Writer
	json bool
	// yes says that a destructive command shall do what it would do without -yes.
	yes bool
	// who and why go with each event that a person's command makes.
	who, why string
	redriveChoice
	importChoice
	reviewsChoice
	audit      auditChoice
	adjust     adjustChoice
	forgetting forgetChoice

	// folder is where the local run keeps its data; "" for a stage.
	folder string
	// auditBucket has the reports of the stage's audits; "" where the environment does not
	// name it, which only that of the audit function has to.
	auditBucket string
	config      config.Config
	aws         aws.Config
	client      *dynamodb.Client
	store       *dynamo.Store
	clock       system.Clock
	random      system.Random
	// wait passes the time between two looks of an audit.
	wait func(context.Context, time.Duration) error
}

// connect reads the environment of the function and makes the store.
func (o *operator) connect(ctx context.Context, as topology.FunctionName, file string) error {
	if file == "" {
		folder, err := localFolder()
		if err != nil {
			return err
		}
		o.folder = folder
	}
	environment, err := readEnvironment(cmp.Or(file, filepath.Join(o.folder, localrun.EnvironmentFileName)), o.folder != "")
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
	o.auditBucket = environment[string(topology.VariableAuditBucketName)]
	o.clock, o.random = system.RealClock{}, system.RealRandom{}
	o.wait = o.clock.Sleep
	o.use(dynamodb.NewFromConfig(o.aws, func(options *dynamodb.Options) {
		if o.config.Local() {
			options.BaseEndpoint = config.Endpoint(o.config.LocalDynamoDBEndpoint)
			dynamo.WithoutClientToken(options)
		}
	}))
	return nil
}

// use works with this client from now on.
func (o *operator) use(client *dynamodb.Client) {
	o.client = client
	o.store = dynamo.NewStore(client, o.config.TableName, o.clock, o.random)
}

// commands are those that the API carries out too, on the operator's store.
func (o *operator) commands() *commands.Commands { return commands.New(o.store, o.clock, o.random) }

// whyFlags registers who does something, and why.
func (o *operator) whyFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.why, "why", "", "the reason, which is kept with the event (required)")
	o.whoFlag(flags)
}

func (o *operator) whoFlag(flags *flag.FlagSet) {
	flags.StringVar(&o.who, "who", os.Getenv("USER"), "who does it (default: $USER)")
}

// yesFlag registers the one word that lets a destructive command do its work.
func (o *operator) yesFlag(flags *flag.FlagSet) {
	flags.BoolVar(&o.yes, "yes", false, "do it; without it the command says what it would do, and fails")
}

// errNotSaidYes is the error of a destructive command that has only said what it would do.
var errNotSaidYes = errors.New("nothing was changed; the same with -yes does it")

// actor is the person at the keyboard, as events name an operator.
func (o *operator) actor() (ledger.Actor, error) {
	if o.who == "" {
		return "", errors.New("say who you are by -who, as $USER does not")
	}
	return ledger.Actor("operator:" + o.who), nil
}

// request is what a person asks of the commands.
func (o *operator) request(command string) (commands.Request, error) {
	actor, err := o.actor()
	if err != nil {
		return commands.Request{}, fmt.Errorf("%s: %w", command, err)
	}
	if o.why == "" || utf8.RuneCountInString(o.why) > ledger.WhyCharactersMax {
		return commands.Request{}, fmt.Errorf("%s: say -why, in 1 to %d characters; it is kept with the event", command, ledger.WhyCharactersMax)
	}
	return commands.Request{Actor: actor, RequestID: ledger.NewRequestID(o.random.Bits128()), Why: o.why}, nil
}

// localFolder is the folder of the local run.
func localFolder() (string, error) {
	working, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the local run: %w", err)
	}
	root, err := build.ModuleRoot(working)
	return filepath.Join(root, localFolderName), err
}

// readEnvironment reads the file, which is perhaps that of the local run.
func readEnvironment(file string, local bool) (map[string]string, error) {
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
