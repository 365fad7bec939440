package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/shared/ledger"
)

const (
	// formatVersion is the version of the objects that are written. A reader refuses any
	// other.
	formatVersion = 1
	rootPrefix    = "archive/"
	dataSuffix    = ".jsonl.gz"
	manifestName  = ".manifest.json"
	dayLayout     = "2006/01/02"
	// rewrittenBytes of the hash of an object that was rewritten are part of its name.
	rewrittenBytes = 8

	dataType     = "application/gzip"
	manifestType = "application/json"
)

// Batch names one batch of the archive: its objects are found by it.
type Batch struct {
	Kind ledger.ArchiveKind
	ID   ledger.BatchID
	// Begun is when the batch was begun; its day is part of the names.
	Begun time.Time
}

func batchOf(p ledger.ArchivePlan) Batch { return Batch{Kind: p.Kind, ID: p.Batch, Begun: p.Begun} }

// stem is what the names of the batch's objects begin with.
func (b Batch) stem() string {
	return rootPrefix + string(b.Kind) + "/" + b.Begun.UTC().Format(dayLayout) + "/" + string(b.ID)
}

// DataKey is the name of the object that has the items, and ManifestKey of the one that
// says which of them are archived.
func (b Batch) DataKey() string { return b.stem() + dataSuffix }

// rewrittenKey is the name of the object that has the items without a name that was forgotten.
// It follows from its bytes, so a run that was stopped finds what it has written.
func (b Batch) rewrittenKey(object []byte) string {
	sum := sha256.Sum256(object)
	return b.stem() + "." + hex.EncodeToString(sum[:rewrittenBytes]) + dataSuffix
}

// hasData reports whether key may be the name of the batch's data object.
func (b Batch) hasData(key string) bool {
	return key == b.DataKey() || strings.HasPrefix(key, b.stem()+".") && strings.HasSuffix(key, dataSuffix)
}

// ManifestKey is the name of the manifest.
func (b Batch) ManifestKey() string { return b.stem() + manifestName }

// parseManifestKey reads a batch from the name of its manifest, and reports false for any
// other name. Begun is the day alone.
func parseManifestKey(key string) (Batch, bool) {
	stem, manifest := strings.CutSuffix(key, manifestName)
	b, ours := parseStem(stem)
	return b, ours && manifest
}

// parseDataKey reads a batch from the name of an object that has items of it.
func parseDataKey(key string) (Batch, bool) {
	stem, data := strings.CutSuffix(key, dataSuffix)
	if i := strings.LastIndexByte(stem, '.'); i >= 0 {
		stem = stem[:i] // it was rewritten
	}
	b, ours := parseStem(stem)
	return b, ours && data
}

// parseStem reads a batch from what the names of its objects begin with.
func parseStem(stem string) (Batch, bool) {
	rest, ours := strings.CutPrefix(stem, rootPrefix)
	kind, rest, _ := strings.Cut(rest, "/")
	if !ours || len(rest) <= len(dayLayout)+1 || rest[len(dayLayout)] != '/' {
		return Batch{}, false
	}
	day, err := time.Parse(dayLayout, rest[:len(dayLayout)])
	if err != nil {
		return Batch{}, false
	}
	return Batch{Kind: ledger.ArchiveKind(kind), ID: ledger.BatchID(rest[len(dayLayout)+1:]), Begun: day}, true
}

// Manifest says what one batch has archived. It is written last: a batch is in the archive
// once its manifest is. A data object may have lines of subjects that are not named here;
// they changed before they were marked, and are in a later batch.
type Manifest struct {
	FormatVersion int                `json:"format_version"`
	Batch         ledger.BatchID     `json:"batch_id"`
	Kind          ledger.ArchiveKind `json:"kind"`
	CreatedAtMs   int64              `json:"created_at_ms"` // when the batch was begun
	DataObject    string             `json:"data_object"`   // its name in the bucket
	DataBytes     int                `json:"data_bytes"`    // its length as stored
	DataSHA256    string             `json:"data_sha256"`   // in hexadecimal digits
	Count         int                `json:"count"`
	Subjects      []ManifestSubject  `json:"subjects"` // in the order of the plan
}

// ManifestSubject is one hold or reservation that the batch has archived.
type ManifestSubject struct {
	ID      string         `json:"id"`
	Version ledger.Version `json:"version"`
}

// newManifest describes a sealed batch. It follows from the plan and the object alone, so
// whoever writes it again writes the same bytes.
func newManifest(plan ledger.ArchivePlan, object []byte) Manifest {
	sum := sha256.Sum256(object)
	m := Manifest{
		FormatVersion: formatVersion, Batch: plan.Batch, Kind: plan.Kind, CreatedAtMs: plan.Begun.UnixMilli(),
		DataObject: batchOf(plan).DataKey(), DataBytes: len(object), DataSHA256: hex.EncodeToString(sum[:]),
		Count: len(plan.Subjects), Subjects: make([]ManifestSubject, len(plan.Subjects)),
	}
	for i, s := range plan.Subjects {
		m.Subjects[i] = ManifestSubject{idOf(s.Subject), s.Version}
	}
	return m
}

func (m Manifest) encode() ([]byte, error) {
	var out bytes.Buffer
	if err := json.NewEncoder(&out).Encode(m); err != nil {
		return nil, fmt.Errorf("encode the manifest of %s: %w", m.Batch, err)
	}
	return out.Bytes(), nil
}

// decodeManifest reads the manifest of that batch.
func decodeManifest(text []byte, b Batch) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return Manifest{}, fmt.Errorf("decode the manifest of %s: %w", b.ID, err)
	}
	switch {
	case m.FormatVersion != formatVersion:
		return Manifest{}, fmt.Errorf("decode the manifest of %s: its format version is %d, and %d is known", b.ID, m.FormatVersion, formatVersion)
	case m.Batch != b.ID, m.Kind != b.Kind, !b.hasData(m.DataObject):
		return Manifest{}, fmt.Errorf("decode the manifest of %s: it is of %s %s", b.ID, m.Kind, m.Batch)
	case m.Count != len(m.Subjects):
		return Manifest{}, fmt.Errorf("decode the manifest of %s: it counts %d subjects and names %d", b.ID, m.Count, len(m.Subjects))
	}
	return m, nil
}

// check compares a data object with what the manifest says of it.
func (m Manifest) check(object []byte) (data, error) {
	sum := sha256.Sum256(object)
	if len(object) != m.DataBytes || hex.EncodeToString(sum[:]) != m.DataSHA256 {
		return data{}, fmt.Errorf("verify %s: the data object is not what was archived: %d bytes with another checksum", m.Batch, len(object))
	}
	d, err := decodeData(object)
	if err != nil {
		return data{}, fmt.Errorf("verify %s: %w", m.Batch, err)
	}
	seen := make(map[string]bool, len(m.Subjects))
	var failures []error
	for _, s := range m.Subjects {
		stored, there := d.lines[subjectOf(m.Kind, s.ID)]
		switch {
		case seen[s.ID]:
			failures = append(failures, fmt.Errorf("verify %s: %s is named twice", m.Batch, s.ID))
		case !there || stored.Version != s.Version:
			failures = append(failures, fmt.Errorf("verify %s: the data object has no %s at version %d", m.Batch, s.ID, s.Version))
		}
		seen[s.ID] = true
	}
	return d, errors.Join(failures...)
}
