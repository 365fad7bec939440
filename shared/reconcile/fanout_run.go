package reconcile

import (
	"errors"
	"fmt"
	"time"
)

// FanoutSegments is in how many parts the table is read. Parts of a table of 100 GB have some
// 6 GB, which one worker reads in seven minutes, half of its time; a small table costs one
// read unit for each part.
const FanoutSegments = 16

// RunID names one audit by the time of its interval: two ticks of one interval mean the same
// audit, and the names of later audits are greater.
type RunID string

// runIDLayout has no colon, so that the name can stand in the name of an object.
const runIDLayout = "20060102T150405Z"

// RunAt is the audit that belongs to now, where one begins in every interval of that length.
// It follows from the time alone, so that it is begun once, however often it is asked for.
func RunAt(now time.Time, every time.Duration) RunID {
	return RunID(now.UTC().Truncate(every).Format(runIDLayout))
}

// TaskKind is what a part of an audit does.
type TaskKind string

// The kinds of tasks.
const (
	// TaskTally reads one segment of the table, and keeps what it saw.
	TaskTally TaskKind = "tally"
	// TaskMerge puts the segments together, examines what differs, and tells of it.
	TaskMerge TaskKind = "merge"
)

// Task is one part of an audit: the body of a message in the audit's queue. It may come
// twice, late, and never.
type Task struct {
	Run RunID    `json:"run"`
	Do  TaskKind `json:"do"`
	// Segment is the one to read, from 0, of Segments.
	Segment  int `json:"segment"`
	Segments int `json:"segments"`
	// BegunAt is when the first tick has begun the audit.
	BegunAt time.Time `json:"begun_at"`
}

// errNoTask is the error of a message that nobody of us has sent.
var errNoTask = errors.New("the message is no task of an audit")

// valid returns an error for a task that no version of this code sends.
func (t Task) valid() error {
	_, err := time.Parse(runIDLayout, string(t.Run))
	isKnown := t.Do == TaskMerge || t.Do == TaskTally && t.Segment >= 0 && t.Segment < t.Segments
	if err != nil || !isKnown || t.Segments < 1 || t.BegunAt.IsZero() {
		return errNoTask
	}
	return nil
}

func (t Task) String() string {
	if t.Do == TaskMerge {
		return fmt.Sprintf("merge of audit %s", t.Run)
	}
	return fmt.Sprintf("segment %d of %d of audit %s", t.Segment, t.Segments, t.Run)
}

// beginning is what the first tick writes down of an audit. The number of segments is in it,
// so that a deployment that changes the number spoils no audit that is under way.
type beginning struct {
	Run      RunID     `json:"run"`
	Segments int       `json:"segments"`
	BegunAt  time.Time `json:"begun_at"`
}

func (b beginning) tally(segment int) Task {
	return Task{Run: b.Run, Do: TaskTally, Segment: segment, Segments: b.Segments, BegunAt: b.BegunAt}
}

func (b beginning) merge() Task {
	return Task{Run: b.Run, Do: TaskMerge, Segments: b.Segments, BegunAt: b.BegunAt}
}
