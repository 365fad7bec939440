// Command local runs all of Holdfast on this machine, without an AWS account:
//
//	go run ./scripts/local          run until Ctrl-C; the data is kept in the folder .local
//	go run ./scripts/local -demo    tell a story on data of its own, check the books, end;
//	                                -demo=hotel, cinema, basket and drop tell others
//	go run ./scripts/local token -sub U-17 -scope holds
//
// The third prints a token that the first accepts.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"holdfast/scripts/internal/build"
	"holdfast/scripts/internal/localrun"
	"holdfast/scripts/local/flights"
	"holdfast/shared/topology"
)

const (
	portDefault = 8080
	// dataFolderName is git-ignored in the root of the module.
	dataFolderName = ".local"
	tokenCommand   = "token"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "local:", err)
		os.Exit(1)
	}
}

// settings are what the command line says.
type settings struct {
	fresh      bool
	demo       demoFlag
	port       int
	dataFolder string
	sweepEvery time.Duration
}

func run(ctx context.Context, arguments []string, out io.Writer) error {
	if len(arguments) > 0 && arguments[0] == tokenCommand {
		return printToken(arguments[1:], out)
	}
	var chosen settings
	flags := flag.NewFlagSet("local", flag.ContinueOnError)
	flags.BoolVar(&chosen.fresh, "fresh", false, "begin with an empty table")
	flags.Var(&chosen.demo, "demo", demoUsage())
	flags.IntVar(&chosen.port, "port", portDefault, "port of the HTTP API on 127.0.0.1; 0 means any free one")
	flags.DurationVar(&chosen.sweepEvery, "sweep", 0, "how often overdue holds are ended; 0 means as deployed, every minute")
	flags.StringVar(&chosen.dataFolder, "data", "", "data folder (default: the folder "+dataFolderName+" of the module)")
	if err := parse(flags, arguments, out); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unknown argument %q; -h lists the flags, and %q is the only sub-command", flags.Arg(0), tokenCommand)
	}
	if chosen.sweepEvery < 0 {
		return errors.New("-sweep cannot be negative")
	}
	if chosen.demo.name != "" {
		return runDemos(ctx, out, chosen.demo.name)
	}
	return serve(ctx, chosen, out)
}

// parse reads the flags. What is wrong is told once, and the list of flags only to those
// who ask for it.
func parse(flags *flag.FlagSet, arguments []string, out io.Writer) error {
	flags.SetOutput(io.Discard)
	err := flags.Parse(arguments)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(out)
		flags.Usage()
		return err
	}
	if err != nil {
		return fmt.Errorf("%w; -h lists the flags", err)
	}
	return nil
}

// dataFolder is the folder that was chosen, or the module's own.
func dataFolder(chosen string) (string, error) {
	if chosen != "" {
		return chosen, nil
	}
	working, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the data folder: %w", err)
	}
	root, err := build.ModuleRoot(working)
	if err != nil {
		return "", err
	}
	return filepath.Join(root, dataFolderName), nil
}

// serve runs everything until the context ends, which is what the user wants and no error.
func serve(ctx context.Context, chosen settings, out io.Writer) (err error) {
	folder, err := dataFolder(chosen.dataFolder)
	if err != nil {
		return err
	}
	system, err := localrun.Start(ctx, localrun.Options{
		DataFolder: folder, Fresh: chosen.fresh, Port: chosen.port, SweepEvery: chosen.sweepEvery, Progress: out,
	})
	if ctx.Err() != nil {
		// Ctrl-C while it starts. What Start says then is only that it was interrupted.
		if err != nil {
			return nil
		}
		return system.Close()
	}
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, system.Close())
		if err == nil {
			fmt.Fprintln(out, "everything has ended; the data stays in", folder)
		}
	}()
	all, err := flights.Day()
	if err != nil {
		return err
	}
	catalog, err := system.Caller("catalogue", topology.ScopeCatalog)
	if err != nil {
		return err
	}
	loaded, err := loadFlights(ctx, catalog, all)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	if loaded > 0 {
		fmt.Fprintf(out, "loaded %d flights\n", loaded)
	} else {
		fmt.Fprintf(out, "the table has the %d flights already, with what was changed since; -fresh begins anew\n", len(all))
	}
	printWhatToTry(out, system, chosen.dataFolder, all[0])
	select {
	case <-ctx.Done():
		fmt.Fprintln(out, "\nending everything")
		return nil
	case err := <-system.Failed():
		return err
	}
}
