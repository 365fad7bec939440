package reconcile

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"holdfast/shared/objects"
	"holdfast/shared/topology"
)

// What the shelf has of an audit, by the last part of the names of the objects. The folder
// of a run goes after days, that of a report after months.
const (
	objectBegun     = "begun.json"     // of the run: when, and in how many segments
	objectAbandoned = "abandoned.json" // of the run: it was told that it will not end
	objectReport    = "report.json"    // of the report: what was found
	objectSettled   = "settled.json"   // of the report: what became of it; the audit has ended
)

const (
	tallyType  = "application/gzip"
	reportType = "application/json"
	// tallyBytesMax bounds an object with a tally, and tallyTextBytesMax what is in it. A
	// worker has 512 MB, and both are in memory at once.
	tallyBytesMax     = 48 << 20
	tallyTextBytesMax = 384 << 20
	// reportBytesMax bounds the other objects. A report names findings, and few are found.
	reportBytesMax = 16 << 20
	// LastReportWithin is how far back a report is looked for: an audit that ended earlier is
	// not the last one that one should know of, and the heartbeat rings long before.
	LastReportWithin = 24 * time.Hour
	// shelfPagesMax bounds the pages of one list. A day of audits, one a minute, is three
	// pages of two objects for each.
	shelfPagesMax = 8
)

// errTallyTooLarge is the error of a tally that is no tally of ours.
var errTallyTooLarge = errors.New("the tally is larger than a worker can hold")

// Shelf keeps what the parts of audits saw, and the reports. It is the only memory that the
// workers share: each of them dies after its part, and S3 shows every reader what was
// written before it began to read. Source:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html#ConsistencyModel
type Shelf struct{ bucket *objects.Bucket }

// NewShelf returns the shelf in the bucket.
func NewShelf(bucket *objects.Bucket) *Shelf { return &Shelf{bucket} }

// AuditReport is what one audit found, and when.
type AuditReport struct {
	Run      RunID     `json:"run"`
	BegunAt  time.Time `json:"begun_at"`
	EndedAt  time.Time `json:"ended_at"`
	Segments int       `json:"segments"`
	Report   Report    `json:"report"`
}

// Settlement is what became of the findings of an audit. Repair has the findings that the
// stage lets an audit deal with.
type Settlement struct {
	Run       RunID                `json:"run"`
	SettledAt time.Time            `json:"settled_at"`
	Setting   topology.AuditRepair `json:"setting"`
	Repair    RepairReport         `json:"repair"`
}

// Last returns the last report that is not older than LastReportWithin at now, and what
// became of it; found is false if there is none, and the settlement is nil while the audit is
// still at it.
func (s *Shelf) Last(ctx context.Context, now time.Time) (report AuditReport, settlement *Settlement, found bool, err error) {
	keys, err := s.list(ctx, topology.AuditReportPrefix, topology.AuditReportPrefix+string(RunAt(now.Add(-LastReportWithin), time.Second)))
	if err != nil {
		return AuditReport{}, nil, false, err
	}
	var last RunID
	for _, key := range keys {
		if run, name, ok := strings.Cut(strings.TrimPrefix(key, topology.AuditReportPrefix), "/"); ok && name == objectReport {
			last = RunID(run)
		}
	}
	if last == "" {
		return AuditReport{}, nil, false, nil
	}
	report, err = s.report(ctx, last)
	if err != nil {
		return AuditReport{}, nil, false, err
	}
	var settled Settlement
	err = s.readJSON(ctx, reportKey(last, objectSettled), &settled)
	if errors.Is(err, objects.ErrNotThere) {
		return report, nil, true, nil
	}
	return report, &settled, err == nil, err
}

// progress is how far an audit is.
type progress struct {
	begun, abandoned bool
	tallied          map[string]bool // by the names of the objects
}

// missing are the segments whose tally is not there.
func (p progress) missing(b beginning) []int {
	var segments []int
	for segment := range b.Segments {
		if !p.tallied[tallyName(segment, b.Segments)] {
			segments = append(segments, segment)
		}
	}
	return segments
}

func (s *Shelf) progress(ctx context.Context, run RunID) (progress, error) {
	folder := runKey(run, "")
	keys, err := s.list(ctx, folder, "")
	if err != nil {
		return progress{}, err
	}
	p := progress{tallied: make(map[string]bool)}
	for _, key := range keys {
		switch name := strings.TrimPrefix(key, folder); name {
		case objectBegun:
			p.begun = true
		case objectAbandoned:
			p.abandoned = true
		default:
			p.tallied[name] = true
		}
	}
	return p, nil
}

// begin writes down that the run has begun, and returns the beginning that counts: the first
// one that was written.
func (s *Shelf) begin(ctx context.Context, b beginning) (beginning, error) {
	if _, err := s.createJSON(ctx, runKey(b.Run, objectBegun), b); err != nil {
		return beginning{}, err
	}
	return s.beginning(ctx, b.Run)
}

func (s *Shelf) beginning(ctx context.Context, run RunID) (beginning, error) {
	var b beginning
	err := s.readJSON(ctx, runKey(run, objectBegun), &b)
	return b, err
}

// abandon writes down that it was told that the run will not end.
func (s *Shelf) abandon(ctx context.Context, b beginning) error {
	_, err := s.createJSON(ctx, runKey(b.Run, objectAbandoned), b)
	return err
}

// putTally keeps what was seen of a segment. Another worker may have put its own there
// before: both saw all of the segment, and the first one counts.
func (s *Shelf) putTally(ctx context.Context, task Task, tally *Tally) error {
	var body bytes.Buffer
	packer := gzip.NewWriter(&body)
	if err := errors.Join(tally.Encode(packer), packer.Close()); err != nil {
		return fmt.Errorf("write a tally: %w", err)
	}
	if body.Len() > tallyBytesMax {
		return fmt.Errorf("%s: %w: %d bytes", task, errTallyTooLarge, body.Len())
	}
	_, err := s.bucket.Create(ctx, runKey(task.Run, tallyName(task.Segment, task.Segments)), tallyType, body.Bytes())
	return err
}

func (s *Shelf) tally(ctx context.Context, run RunID, segment, segments int) (*Tally, error) {
	key := runKey(run, tallyName(segment, segments))
	body, err := s.bucket.Read(ctx, key, tallyBytesMax)
	if err != nil {
		return nil, err
	}
	text, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	limited := &io.LimitedReader{R: text, N: tallyTextBytesMax}
	tally, err := DecodeTally(limited)
	if limited.N <= 0 {
		err = errTallyTooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return tally, nil
}

// putReport keeps the report, and returns the one that counts: the first that was put.
func (s *Shelf) putReport(ctx context.Context, report AuditReport) (AuditReport, error) {
	if _, err := s.createJSON(ctx, reportKey(report.Run, objectReport), report); err != nil {
		return AuditReport{}, err
	}
	return s.report(ctx, report.Run)
}

// report returns objects.ErrNotThere for a run without one.
func (s *Shelf) report(ctx context.Context, run RunID) (AuditReport, error) {
	var report AuditReport
	err := s.readJSON(ctx, reportKey(run, objectReport), &report)
	return report, err
}

func (s *Shelf) settle(ctx context.Context, settlement Settlement) error {
	_, err := s.createJSON(ctx, reportKey(settlement.Run, objectSettled), settlement)
	return err
}

func (s *Shelf) settled(ctx context.Context, run RunID) (bool, error) {
	key := reportKey(run, objectSettled)
	keys, err := s.list(ctx, key, "")
	return len(keys) > 0, err
}

func (s *Shelf) list(ctx context.Context, prefix, after string) ([]string, error) {
	var all []string
	for range shelfPagesMax {
		keys, next, err := s.bucket.List(ctx, prefix, after)
		if err != nil {
			return nil, err
		}
		all = append(all, keys...)
		if after = next; after == "" {
			return all, nil
		}
	}
	return nil, fmt.Errorf("there are more than %d pages of objects under %s", shelfPagesMax, prefix)
}

func (s *Shelf) createJSON(ctx context.Context, key string, value any) (bool, error) {
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return false, fmt.Errorf("%s: %w", key, err)
	}
	return s.bucket.Create(ctx, key, reportType, text)
}

func (s *Shelf) readJSON(ctx context.Context, key string, value any) error {
	text, err := s.bucket.Read(ctx, key, reportBytesMax)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, value); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

func runKey(run RunID, name string) string {
	return topology.AuditRunPrefix + string(run) + "/" + name
}

func reportKey(run RunID, name string) string {
	return topology.AuditReportPrefix + string(run) + "/" + name
}

func tallyName(segment, segments int) string {
	return fmt.Sprintf("tally-%03d-of-%03d.json.gz", segment, segments)
}
