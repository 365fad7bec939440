package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"holdfast/shared/commands"
	"holdfast/shared/httpapi"
	"holdfast/shared/system"
)

// The formats of files.
const (
	formatCSV       = "csv"
	formatJSONLines = "jsonl"
)

// importChoice is how a file is imported.
type importChoice struct {
	format, rowType, attributes string
	rowsPerSecond               float64
	restart                     bool
}

func importFlags(set *flag.FlagSet, o *operator) {
	c := &o.importChoice
	set.StringVar(&c.format, "format", "", "csv, whose first line names the columns: slot_id, and members of the body of PUT (or PATCH) /v1/slots and of its policy; "+
		"or jsonl, with a row of POST /v1/slots/batch in each line (default: the end of the file's name)")
	set.StringVar(&c.rowType, "type", string(rowPut), "what a row of csv does: put defines its slot whole, patch changes what it names")
	set.StringVar(&c.attributes, "attributes", "", "names of the parts of the column attributes, as in origin;destination (default: each part is name=value)")
	set.Float64Var(&c.rowsPerSecond, "rows-per-second", 0, "how many rows a second at most (default: as fast as the store takes them)")
	set.BoolVar(&c.restart, "restart", false, "begin anew, and forget how far an import of the file has come; patches of the same file still count once")
}

// importSlots carries out every row of a file. It goes on where an earlier run of the same
// file was stopped, however that was.
func importSlots(ctx context.Context, o *operator, arguments []string) error {
	if len(arguments) != 1 {
		return errors.New("import: say the FILE")
	}
	i := &importer{
		slots: commands.New(o.store, o.clock, o.random), clock: o.clock, random: o.random,
		parallel: system.RealParallel{}, report: os.Stderr,
	}
	var err error
	if i.contract, err = httpapi.LoadContract(); err != nil {
		return err
	}
	err = i.open(arguments[0], o.importChoice, o.config.TableName+" "+o.config.LocalDynamoDBEndpoint)
	if err == nil {
		err = i.run(ctx)
	}
	if err = errors.Join(err, i.close()); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	return o.printImport(i)
}

// printImport tells what came of a file. Rows that were refused make the command fail, so
// that a script does not take a part for the whole.
func (o *operator) printImport(i *importer) error {
	c := i.progress.Counts
	seconds := i.clock.Now().Sub(i.began).Seconds()
	err := o.table(struct {
		importCount
		Seconds       float64 `json:"seconds"`
		RowsPerSecond float64 `json:"rows_per_second"`
	}{c, seconds, i.rowsPerSecond(i.clock.Now())}, "ROWS\tCREATED\tCHANGED\tUNCHANGED\tREFUSED\tSECONDS\tROWS/S", func(print func(...any)) {
		print(c.Rows, c.Created, c.Changed, c.Unchanged, c.Refused, fmt.Sprintf("%.1f", seconds), fmt.Sprintf("%.0f", i.rowsPerSecond(i.clock.Now())))
	})
	if err == nil && c.Refused > 0 {
		err = fmt.Errorf("import: %d of %d rows were refused; %s says which and why", c.Refused, c.Rows, i.file.Name()+errorsSuffix)
	}
	return err
}

// open makes i ready to go on with the file.
func (i *importer) open(name string, choice importChoice, target string) error {
	if choice.rowsPerSecond < 0 {
		return errors.New("-rows-per-second can't be negative")
	}
	i.pace = &pace{clock: i.clock, rowsPerSecond: choice.rowsPerSecond}
	var err error
	if i.file, err = os.Open(name); err != nil { //nolint:gosec // the operator names the file to be read
		return fmt.Errorf("open the file: %w", err)
	}
	// Two imports of one file would write one progress. The kernel gives the lock back when
	// this process ends, however it ends.
	if err := syscall.Flock(int(i.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("lock the file, which another import may be reading: %w", err)
	}
	if i.before, err = i.file.Stat(); err != nil {
		return fmt.Errorf("look at the file: %w", err)
	}
	of := importOf{Target: target}
	if of.FileSHA256, of.FileBytes, err = hashFile(i.file); err != nil {
		return fmt.Errorf("read the file: %w", err)
	}
	if of.Meaning, err = i.understand(choice); err != nil {
		return err
	}
	return i.resume(of, choice)
}

// understand reads the header, if the file has one, and says in one text how rows are read.
func (i *importer) understand(choice importChoice) (string, error) {
	if _, err := i.file.Seek(0, io.SeekStart); err != nil {
		return "", fmt.Errorf("read the file: %w", err)
	}
	i.lines = newLineReader(i.file, 0, 0)
	format := choice.format
	if format == "" {
		format = strings.TrimPrefix(filepath.Ext(i.file.Name()), ".")
	}
	switch t := rowType(choice.rowType); {
	case format == formatJSONLines && choice.attributes != "":
		return "", errors.New("-attributes is for csv only")
	case format == formatJSONLines:
		i.read = jsonLine
		return "-format jsonl", nil
	case format != formatCSV:
		return "", errors.New("say -format csv or -format jsonl")
	case t != rowPut && t != rowPatch:
		return "", errors.New("-type must be put or patch")
	default:
		var names []string
		if choice.attributes != "" {
			names = strings.Split(choice.attributes, listSeparator)
		}
		header, err := i.lines.next()
		if errors.Is(err, io.EOF) {
			return "", errors.New("the file is empty; its first line must name the columns")
		}
		if err != nil {
			return "", fmt.Errorf("read the file: %w", err)
		}
		rows, err := newCSVRows(header, t, names)
		if err != nil {
			return "", err
		}
		i.read = rows.json
		return fmt.Sprintf("-format csv -type %s -attributes %q", t, choice.attributes), nil
	}
}

// jsonLine is a line that is a row of the batch route already.
func jsonLine(text []byte) ([]byte, string, error) {
	var named struct {
		SlotID string `json:"slot_id"`
	}
	if json.Unmarshal(text, &named) != nil {
		named.SlotID = "" // the contract says what is wrong with the row
	}
	return text, named.SlotID, nil
}

// resume goes to where an earlier import was stopped, or begins.
func (i *importer) resume(of importOf, choice importChoice) error {
	stored, found, err := progress{}, false, error(nil)
	if !choice.restart {
		stored, found, err = loadProgress(i.file.Name())
	}
	if err != nil {
		return err
	}
	i.progress = progress{importOf: of, Row: i.lines.number, Offset: i.lines.offset, SavedAt: i.clock.Now().UTC()}
	if found {
		hasPatches := rowType(choice.rowType) == rowPatch || strings.HasPrefix(of.Meaning, "-format "+formatJSONLines)
		if err := stored.checkGoesOn(of, hasPatches, i.clock.Now()); err != nil {
			return err
		}
		i.progress = stored
	}
	if i.errors, err = openErrors(i.file.Name(), i.progress.ErrorsBytes); err != nil {
		return err
	}
	if !found {
		// Before the first row: an import that is stopped in its first wave is known as begun.
		if err := i.progress.save(i.file.Name()); err != nil {
			return err
		}
	}
	if _, err := i.file.Seek(i.progress.Offset, io.SeekStart); err != nil {
		return fmt.Errorf("read the file: %w", err)
	}
	i.lines = newLineReader(i.file, i.progress.Row, i.progress.Offset)
	return nil
}

// close ends what open has begun. A file of errors that tells of none is taken away.
func (i *importer) close() error {
	var failures []error
	if i.errors != nil {
		failures = append(failures, i.errors.Close())
		if i.progress.Done && i.progress.ErrorsBytes == 0 {
			failures = append(failures, os.Remove(i.errors.Name()))
		}
	}
	if i.file != nil {
		failures = append(failures, i.file.Close())
	}
	return errors.Join(failures...)
}
