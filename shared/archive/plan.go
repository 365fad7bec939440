package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/objects"
	"holdfast/shared/system"
)

// errStandsStill is the error of a list whose cursor leads back to the same page.
var errStandsStill = errors.New("the cursor of the archive's list does not move")

// verdict is what becomes of an entry of the archive's list.
type verdict int

const (
	leaveOut verdict = iota // it is not, or not yet, what the list says
	takeIn
	leaveToNext // the batch is full
)

// stored is the plan of the shard that is not done, and whether there is one.
func (s *shardRun) stored(ctx context.Context) (ledger.ArchivePlan, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, StepFor)
	defer cancel()
	plan, planned, err := s.store.Plan(ctx, s.kind, s.shard)
	if err != nil {
		return ledger.ArchivePlan{}, false, fmt.Errorf("read the plan: %w", err)
	}
	return plan, planned, nil
}

// idle reports whether the shard has neither a plan nor anything old enough, so that most
// shards cost two reads and no lease.
func (s *shardRun) idle(ctx context.Context) (bool, error) {
	_, planned, err := s.stored(ctx)
	if err != nil || planned {
		return false, err
	}
	before := system.Millisecond(s.clock).Add(-s.retention.of(s.kind))
	entries, next, err := s.page(ctx, before, "", 1)
	return len(entries) == 0 && next == "", err
}

// begin plans a batch of what is old enough in the shard, writes the plan, and then the
// data object. It returns nil if there is nothing, or no time.
func (s *shardRun) begin(ctx context.Context) (*batch, error) {
	now := system.Millisecond(s.clock)
	b := &batch{
		plan: ledger.ArchivePlan{
			Kind: s.kind, Shard: s.shard, Batch: ledger.NewBatchID(s.random.Bits128()), Begun: now,
		},
		records: make(map[ledger.ArchiveSubject]record),
	}
	lines, err := s.choose(ctx, b, now.Add(-s.retention.of(s.kind)))
	if err != nil || len(lines) == 0 {
		return nil, err
	}
	if err := s.save(ctx, b.plan); err != nil {
		return nil, err
	}
	return b, s.write(ctx, b, lines)
}

// save writes the plan. That a worker with a later lease has written one is no failure.
func (s *shardRun) save(ctx context.Context, plan ledger.ArchivePlan) error {
	ctx, cancel := context.WithTimeout(ctx, StepFor)
	defer cancel()
	saved, err := s.store.SavePlan(ctx, plan, s.lease.Fence)
	if err != nil {
		return fmt.Errorf("save the plan: %w", err)
	}
	if !saved {
		return errTakenOver
	}
	return nil
}

// clear forgets the plan of a batch that is done.
func (s *shardRun) clear(ctx context.Context, plan ledger.ArchivePlan) error {
	ctx, cancel := context.WithTimeout(ctx, StepFor)
	defer cancel()
	cleared, err := s.store.ClearPlan(ctx, plan, s.lease.Fence)
	if err != nil {
		return fmt.Errorf("clear the plan: %w", err)
	}
	if !cleared {
		return errTakenOver
	}
	return nil
}

// choose reads the list until a batch is full, and returns its lines.
func (s *shardRun) choose(ctx context.Context, b *batch, before time.Time) (lines [][]byte, err error) {
	var after ledger.Cursor
	size := 0
	for {
		if s.late(ctx) {
			s.report.Truncated = true
			return nil, nil
		}
		entries, next, err := s.page(ctx, before, after, SubjectsPerBatchMax)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if s.late(ctx) {
				s.report.Truncated = true
				return nil, nil
			}
			if err := s.keep(ctx); err != nil {
				return nil, err
			}
			text, decided, err := s.consider(ctx, b, entry, before, size)
			if err != nil {
				return nil, err
			}
			switch decided {
			case leaveToNext:
				return lines, nil
			case takeIn:
				lines, size = append(lines, text), size+len(text)
			case leaveOut:
			}
			if len(lines) == s.batchSubjects {
				return lines, nil
			}
		}
		if next == "" {
			return lines, nil
		}
		if next == after {
			return nil, errStandsStill
		}
		after = next
	}
}

func (s *shardRun) page(ctx context.Context, before time.Time, after ledger.Cursor, limit int) ([]ledger.ArchiveEntry, ledger.Cursor, error) {
	ctx, cancel := context.WithTimeout(ctx, StepFor)
	defer cancel()
	entries, next, err := s.store.Archivable(ctx, s.kind, s.shard, before, ledger.Page{Limit: limit, After: after})
	if err != nil {
		return nil, "", fmt.Errorf("list what is old enough: %w", err)
	}
	return entries, next, nil
}

// consider decides on one entry: the subject itself says whether it is old enough. One
// that is and can't be archived yet is put off, so that it does not stand at the head of
// the list in every run.
func (s *shardRun) consider(ctx context.Context, b *batch, entry ledger.ArchiveEntry, before time.Time, size int) ([]byte, verdict, error) {
	r, there, err := s.read(ctx, entry.Subject)
	if unreadable(err) {
		return nil, leaveOut, s.putOff(ctx, entry, before, err)
	}
	if err != nil || !there || r.archivedIn() != "" {
		return nil, leaveOut, err
	}
	if from, counts := r.from(); counts && from.After(before) {
		return nil, leaveOut, nil // the list lags
	}
	_, err = s.mark(ctx, r, b.plan.Batch, b.plan.Begun)
	if ledger.CodeOf(err) == ledger.CodeNotArchivable {
		return nil, leaveOut, s.putOff(ctx, entry, before, nil)
	}
	if err != nil {
		return nil, leaveOut, err
	}
	text, err := s.line(r)
	if err != nil {
		return nil, leaveOut, s.putOff(ctx, entry, before, err)
	}
	if size > 0 && size+len(text) > s.batchBytes {
		return nil, leaveToNext, nil
	}
	b.records[entry.Subject] = r
	b.plan.Subjects = append(b.plan.Subjects, ledger.PlannedSubject{Subject: entry.Subject, Version: r.version()})
	return text, takeIn, nil
}

// unreadable says that the record is at fault, and not the way to it: a table that refuses
// the call, as for want of a permission, says nothing about the record.
func unreadable(err error) bool {
	return err != nil && ledger.CodeOf(err) == ledger.CodeInternal && objects.CodeOf(err) == ""
}

// putOff looks at the entry again after PutOffFor. A cause is told: a person must see why
// the record can't be read.
func (s *shardRun) putOff(ctx context.Context, entry ledger.ArchiveEntry, before time.Time, cause error) error {
	ctx, cancel := context.WithTimeout(ctx, StepFor)
	defer cancel()
	if cause != nil {
		s.tellOf(ctx, "a record that is old enough can't be archived; it stays in the table", entry.Subject, cause)
	}
	if err := s.store.PutOff(ctx, entry, before.Add(PutOffFor)); err != nil {
		return fmt.Errorf("put %s %s off: %w", entry.Subject.Kind(), idOf(entry.Subject), err)
	}
	s.report.PutOff++
	return nil
}
