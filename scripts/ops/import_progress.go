package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"holdfast/shared/ledger"
)

const (
	progressSuffix = ".progress.json"
	errorsSuffix   = ".errors.jsonl"
	// importFileMode is of the files beside the imported one: they tell of its rows.
	importFileMode = 0o600
	// patchResumeMax is how old a progress may be for a file of patches to go on: rows after
	// it may have been carried out already, and only their keys tell. An hour is left for
	// carrying them out.
	patchResumeMax = ledger.IdempotencyRetainFor - time.Hour
)

// progress is how far the import of one file has come. It is kept beside the file.
type progress struct {
	importOf
	// Row and Offset are of the last line up to which every row is done, and what came of it
	// is told. What comes after may be done or not.
	Row    int64 `json:"row"`
	Offset int64 `json:"offset"`
	// ErrorsBytes is how long the file of errors was then.
	ErrorsBytes int64       `json:"errors_bytes"`
	Counts      importCount `json:"counts"`
	SavedAt     time.Time   `json:"saved_at"`
	Done        bool        `json:"done"`
}

// importOf is what an import is of. Only an import of the same can be gone on with.
type importOf struct {
	FileSHA256 string `json:"file_sha256"`
	FileBytes  int64  `json:"file_bytes"`
	// Meaning is how the file is read.
	Meaning string `json:"meaning"`
	// Target is where the slots are.
	Target string `json:"target"`
}

// importCount counts rows by what came of them.
type importCount struct {
	Rows      int64 `json:"rows"`
	Created   int64 `json:"created"`
	Changed   int64 `json:"changed"`
	Unchanged int64 `json:"unchanged"`
	Refused   int64 `json:"refused"`
}

func (c importCount) plus(d importCount) importCount {
	return importCount{c.Rows + d.Rows, c.Created + d.Created, c.Changed + d.Changed, c.Unchanged + d.Unchanged, c.Refused + d.Refused}
}

// rowFailure is a line of the file of errors: a row that was not carried out.
type rowFailure struct {
	// Row is the number of its line, counted from 1.
	Row    int64       `json:"row"`
	SlotID string      `json:"slot_id,omitempty"`
	Code   ledger.Code `json:"code"`
	// WhatToDo says what is wrong and how it can be set right.
	WhatToDo string `json:"what_to_do"`
}

// hashFile is the SHA-256 and the length of a file, which is read from where it stands.
func hashFile(file io.Reader) (string, int64, error) {
	hash := sha256.New()
	size, err := io.Copy(hash, file)
	return hex.EncodeToString(hash.Sum(nil)), size, err
}

// loadProgress reads how far an import has come; false for one that has not begun.
func loadProgress(file string) (progress, bool, error) {
	text, err := os.ReadFile(file + progressSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return progress{}, false, nil
	}
	if err != nil {
		return progress{}, false, fmt.Errorf("read the progress: %w", err)
	}
	var p progress
	if err := json.Unmarshal(text, &p); err != nil {
		return progress{}, false, fmt.Errorf("the progress in %s can't be read; -restart begins anew: %w", file+progressSuffix, err)
	}
	return p, true, nil
}

// checkGoesOn refuses to go on with an import of something else, or one that is done.
func (p progress) checkGoesOn(of importOf, hasPatches bool, now time.Time) error {
	switch {
	case p.FileSHA256 != of.FileSHA256 || p.FileBytes != of.FileBytes:
		return errors.New("the file has changed since its import began; put the old one back, or begin anew with -restart")
	case p.Meaning != of.Meaning:
		return fmt.Errorf("the import began with %s, and not with %s; say that, or begin anew with -restart", p.Meaning, of.Meaning)
	case p.Target != of.Target:
		return fmt.Errorf("the import began on %s, and not on %s; go on there, or begin anew with -restart", p.Target, of.Target)
	case p.Done:
		return fmt.Errorf("the file is imported since %s; -restart carries all of it out once more", p.SavedAt.Format(time.RFC3339))
	case hasPatches && now.Sub(p.SavedAt) > patchResumeMax:
		return fmt.Errorf("the import stopped more than %s ago, so the ledger may not know any more which rows after line %d were carried out; "+
			"compare the slots of these rows, and import a file of those that are left", patchResumeMax, p.Row)
	}
	return nil
}

// save puts p in place of what is there, whole or not at all, and survives a loss of power.
func (p progress) save(file string) error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return fmt.Errorf("save the progress: %w", err)
	}
	name := file + progressSuffix
	temporary, err := os.OpenFile(name+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, importFileMode)
	if err != nil {
		return fmt.Errorf("save the progress: %w", err)
	}
	_, err = temporary.Write(append(text, '\n'))
	err = errors.Join(err, temporary.Sync(), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), name)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(name))
	}
	if err != nil {
		return fmt.Errorf("save the progress: %w", err)
	}
	return nil
}

// syncFolder makes a rename in the folder last.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// openErrors opens the file of errors as it was at a progress: what was told after it is
// told again.
func openErrors(file string, length int64) (*os.File, error) {
	out, err := os.OpenFile(file+errorsSuffix, os.O_CREATE|os.O_RDWR, importFileMode)
	if err != nil {
		return nil, fmt.Errorf("open the file of errors: %w", err)
	}
	size, err := out.Seek(0, io.SeekEnd)
	if err == nil && size < length {
		err = fmt.Errorf("%s is shorter than when the import stopped; put it back, or begin anew with -restart", out.Name())
	}
	if err == nil {
		err = out.Truncate(length)
	}
	if err == nil {
		_, err = out.Seek(length, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}

// tell adds failures to the file of errors, and returns how many bytes they are. They are
// on the disk before the progress says so.
func tell(out *os.File, failures []rowFailure) (int64, error) {
	if len(failures) == 0 {
		return 0, nil
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for _, f := range failures {
		if err := encoder.Encode(f); err != nil {
			return 0, fmt.Errorf("tell of row %d: %w", f.Row, err)
		}
	}
	n, err := out.Write(text.Bytes())
	if err = errors.Join(err, out.Sync()); err != nil {
		return 0, fmt.Errorf("write the file of errors: %w", err)
	}
	return int64(n), nil
}
