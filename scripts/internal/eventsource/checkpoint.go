package eventsource

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// checkpoints says how far each shard of one stream has been read.
type checkpoints struct {
	StreamARN string              `json:"stream_arn"`
	Shards    map[string]position `json:"shards"`
}

type position struct {
	// Sequence is the number of the last finished record; "" is the start of the shard.
	Sequence string `json:"sequence"`
	// Finished says that the shard is closed and read to its end.
	Finished bool `json:"finished,omitempty"`
}

// loadCheckpoints reads the file. A missing file, and one of another stream (the table
// was made anew), both mean a start from the beginning.
func loadCheckpoints(path, streamARN string) (checkpoints, error) {
	fresh := checkpoints{StreamARN: streamARN, Shards: make(map[string]position)}
	encoded, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err != nil {
		return fresh, fmt.Errorf("read stream checkpoints: %w", err)
	}
	var stored checkpoints
	if err := json.Unmarshal(encoded, &stored); err != nil {
		return fresh, fmt.Errorf("stream checkpoints %s: %w", path, err)
	}
	if stored.StreamARN != streamARN || stored.Shards == nil {
		return fresh, nil
	}
	return stored, nil
}

// save replaces the file in one step, so that a run that is killed leaves the old one
// or the new one.
func (c checkpoints) save(path string) error {
	encoded, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("write stream checkpoints: %w", err)
	}
	next := path + ".next"
	if err := os.WriteFile(next, encoded, 0o600); err != nil {
		return fmt.Errorf("write stream checkpoints: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("write stream checkpoints: %w", err)
	}
	return nil
}
