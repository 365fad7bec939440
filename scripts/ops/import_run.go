package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

const (
	// importBatchRows is how many rows go in one batch: three full transactions, where the
	// rows are new slots of one shard. One row more would be a transaction of its own.
	importBatchRows = 99
	// importBatchesAtOnceMax is how many batches are on their way at the same time.
	importBatchesAtOnceMax = 8
	// importWaveBatchesMax is how many batches are read before the progress is saved. Each
	// save waits for the last of them, so there are some rounds of batches in one wave; a
	// killed import does at most so many of them again.
	importWaveBatchesMax = 32
	// importWaveBytesMax bounds the lines that are in memory.
	importWaveBytesMax = 8 << 20
	// importBatchBudget bounds one try of one batch.
	importBatchBudget = 30 * time.Second
	// importTriesMax bounds how often rows are tried that could not be carried out just then,
	// over some half a minute. Longer than that no store is merely busy.
	importTriesMax = 8
	// importPauseMin and importPauseMax bound the pause between these tries, which doubles.
	importPauseMin = 200 * time.Millisecond
	importPauseMax = 10 * time.Second
	// importReportEvery is how often a line tells how far it has come.
	importReportEvery = 5 * time.Second
	// importOwner is whose idempotency keys the patches have: the same for every operator, so
	// that one can go on where another was stopped.
	importOwner ledger.OwnerID = "import"
)

// slotPutter carries out rows. commands.Commands is one.
type slotPutter interface {
	PutSlots(ctx context.Context, r commands.Request, rows []commands.SlotRow) ([]commands.SlotOutcome, error)
}

// importer carries out the rows of one file.
type importer struct {
	slots    slotPutter
	clock    system.Clock
	random   system.Random
	parallel system.Parallel
	pace     *pace
	// report gets a line every few seconds.
	report io.Writer

	file   *os.File
	before os.FileInfo // of the file when its hash was taken
	lines  *lineReader
	// read turns the text of a line into the row of the batch route, and names its slot as
	// far as that can be told.
	read     func(text []byte) (row []byte, slotID string, err error)
	contract *httpapi.Contract
	errors   *os.File
	progress progress

	held *importRow // the first row of the next wave

	mutex    sync.Mutex // over what follows
	live     importCount
	began    time.Time
	atBegin  int64 // rows that an earlier run has done
	reportAt time.Time
}

// importRow is a line of the file as a row to carry out, or why it is none.
type importRow struct {
	line
	row     commands.SlotRow
	failure *rowFailure
}

// wave is what is carried out before the progress is saved. No slot is in it twice, so the
// order of its batches does not matter, and rows of one slot take effect in their order.
type wave struct {
	batches  [][]importRow
	failures []rowFailure
	count    importCount
	last     line
}

// run carries out the file from where the progress stands.
func (i *importer) run(ctx context.Context) error {
	i.began, i.live, i.atBegin = i.clock.Now(), i.progress.Counts, i.progress.Counts.Rows
	i.reportAt = i.began.Add(importReportEvery)
	for {
		w, err := i.nextWave()
		if err != nil {
			return err
		}
		if w.count.Rows == 0 {
			break
		}
		if err := i.carryOutWave(ctx, &w); err != nil {
			return fmt.Errorf("%w\nall rows up to line %d are done; the same command goes on after it", err, i.progress.Row)
		}
		if err := i.finishWave(w); err != nil {
			return err
		}
	}
	i.progress.Done, i.progress.SavedAt = true, i.clock.Now().UTC()
	return i.progress.save(i.file.Name())
}

// nextWave reads rows until there are enough, a slot comes again, or the file ends.
func (i *importer) nextWave() (wave, error) {
	var w wave
	seen := map[ledger.SlotID]bool{}
	size := 0
	for w.count.Rows < importWaveBatchesMax*importBatchRows && size < importWaveBytesMax {
		next, err := i.nextRow()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return wave{}, fmt.Errorf("read the file: %w", err)
		}
		if next.failure == nil && seen[next.row.ID] {
			i.held = &next
			break
		}
		size += len(next.text)
		w.last = next.line
		w.count.Rows++
		if next.failure != nil {
			w.fail(*next.failure)
			continue
		}
		seen[next.row.ID] = true
		w.add(next)
	}
	return w, nil
}

func (w *wave) add(row importRow) {
	if last := len(w.batches) - 1; last >= 0 && len(w.batches[last]) < importBatchRows {
		w.batches[last] = append(w.batches[last], row)
		return
	}
	w.batches = append(w.batches, []importRow{row})
}

func (w *wave) fail(f rowFailure) {
	w.failures = append(w.failures, f)
	w.count.Refused++
}

func (i *importer) nextRow() (importRow, error) {
	if held := i.held; held != nil {
		i.held = nil
		return *held, nil
	}
	next, err := i.lines.next()
	if err != nil {
		return importRow{}, err
	}
	out := importRow{line: next}
	var text []byte
	var slotID string
	if err = next.err; err == nil {
		text, slotID, err = i.read(next.text)
	}
	if err != nil {
		out.failure = &rowFailure{next.number, slotID, ledger.CodeInvalid, err.Error()}
		return out, nil
	}
	if out.row, err = i.contract.SlotRow(text); err != nil {
		out.failure = failureOf(next.number, slotID, err)
		return out, nil
	}
	if out.row.Patch != nil {
		out.row.Key = ledger.IdempotencyKey(fmt.Sprintf("import-%s-%d", i.progress.FileSHA256, next.number))
	}
	return out, nil
}

// failureOf tells of a row in the words of the API.
func failureOf(number int64, slotID string, err error) *rowFailure {
	p := httpapi.ProblemOf(err)
	what := []string{p.Detail}
	if len(p.Errors) > 0 {
		what = nil
	}
	for _, e := range p.Errors {
		place := strings.TrimPrefix(strings.TrimPrefix(e.Name, "/"+string(rowPut)), "/"+string(rowPatch))
		what = append(what, strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(place, "/"), policyMember+"/")+" "+e.Detail))
	}
	return &rowFailure{number, slotID, ledger.Code(p.Code), strings.Join(what, "; ")}
}

// carryOutWave carries out all batches of w, several at the same time.
func (i *importer) carryOutWave(ctx context.Context, w *wave) error {
	failures := make([]error, len(w.batches))
	var mutex sync.Mutex // over w
	i.parallel.Do(len(w.batches), importBatchesAtOnceMax, func(n int) {
		count, refused, err := i.carryOut(ctx, w.batches[n])
		failures[n] = err
		mutex.Lock()
		w.count = w.count.plus(count)
		for _, f := range refused {
			w.fail(f)
		}
		mutex.Unlock()
		count.Rows, count.Refused = int64(len(w.batches[n])), int64(len(refused))
		i.tellProgress(count)
	})
	for _, err := range failures { // the others fail alike when the store does
		if err != nil {
			return err
		}
	}
	return nil
}

// carryOut carries out one batch, and tries those rows again that could not be carried out
// just then. Its error says that some are left after all tries.
func (i *importer) carryOut(ctx context.Context, rows []importRow) (count importCount, refused []rowFailure, err error) {
	for try := range importTriesMax {
		if try > 0 {
			bound := min(importPauseMin<<(try-1), importPauseMax)
			if err := i.clock.Sleep(ctx, bound/2+time.Duration(i.random.Below(int64(bound/2)))); err != nil {
				return count, refused, err
			}
		}
		if err := i.pace.wait(ctx, len(rows)); err != nil {
			return count, refused, err
		}
		var outcomes []commands.SlotOutcome
		outcomes, err = i.put(ctx, rows)
		if ctx.Err() != nil {
			return count, refused, ctx.Err()
		}
		if err != nil && !comesBack(err) {
			return count, refused, err
		}
		if err != nil {
			continue
		}
		var left []importRow
		for n, o := range outcomes {
			switch {
			case o.Did == commands.SlotCreated:
				count.Created++
			case o.Did == commands.SlotChanged:
				count.Changed++
			case o.Did == commands.SlotUnchanged:
				count.Unchanged++
			case comesBack(o.Err):
				left, err = append(left, rows[n]), o.Err
			case ledger.CodeOf(o.Err) == ledger.CodeInternal:
				return count, refused, fmt.Errorf("line %d, slot %s: %w", rows[n].number, o.ID, o.Err)
			default:
				refused = append(refused, *failureOf(rows[n].number, string(o.ID), o.Err))
			}
		}
		if rows = left; len(rows) == 0 {
			return count, refused, nil
		}
	}
	return count, refused, fmt.Errorf("%d rows from line %d on can't be carried out now: %w", len(rows), rows[0].number, err)
}

// comesBack reports whether what failed so may succeed a little later.
func comesBack(err error) bool {
	switch ledger.CodeOf(err) {
	case ledger.CodeUnavailable, ledger.CodeOutcomeUnknown, ledger.CodeBusy, ledger.CodeKeyInProgress:
		return true
	default:
		return false
	}
}

func (i *importer) put(ctx context.Context, rows []importRow) ([]commands.SlotOutcome, error) {
	ctx, cancel := context.WithTimeout(ctx, importBatchBudget)
	defer cancel()
	batch := make([]commands.SlotRow, len(rows))
	for n, r := range rows {
		batch[n] = r.row
	}
	return i.slots.PutSlots(ctx, commands.Request{
		Actor: "operator:import", RequestID: ledger.NewRequestID(i.random.Bits128()), Owner: importOwner,
	}, batch)
}

// finishWave tells of the rows that were refused, and then saves that w is done.
func (i *importer) finishWave(w wave) error {
	after, err := i.file.Stat()
	if err != nil {
		return fmt.Errorf("look at the file: %w", err)
	}
	if after.Size() != i.before.Size() || !after.ModTime().Equal(i.before.ModTime()) {
		return errors.New("the file was changed while it was imported; begin anew with -restart")
	}
	slices.SortFunc(w.failures, func(a, b rowFailure) int { return cmp.Compare(a.Row, b.Row) })
	told, err := tell(i.errors, w.failures)
	if err != nil {
		return err
	}
	i.progress.ErrorsBytes += told
	i.progress.Row, i.progress.Offset = w.last.number, w.last.end
	i.progress.Counts = i.progress.Counts.plus(w.count)
	i.progress.SavedAt = i.clock.Now().UTC()
	i.mutex.Lock()
	i.live = i.progress.Counts
	i.mutex.Unlock()
	return i.progress.save(i.file.Name())
}

// tellProgress adds what is done, and says so if it has not for a while.
func (i *importer) tellProgress(done importCount) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.live = i.live.plus(done)
	now := i.clock.Now()
	if now.Before(i.reportAt) {
		return
	}
	i.reportAt = now.Add(importReportEvery)
	// A report that can't be written is no reason to stop: the progress is in its file.
	_, _ = fmt.Fprintf(i.report, "import: %d rows, %d refused, %.0f rows/s\n", i.live.Rows, i.live.Refused, i.rowsPerSecond(now))
}

// rowsPerSecond is the pace since this run began.
func (i *importer) rowsPerSecond(now time.Time) float64 {
	seconds := now.Sub(i.began).Seconds()
	if seconds <= 0 {
		return 0
	}
	return float64(i.live.Rows-i.atBegin) / seconds
}
