package localrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// EnvironmentFileName is the file in the data folder with the environment of all functions
// of a local run, as a JSON object. The operator's tool finds the run by it. It has
// addresses and no secret.
const EnvironmentFileName = "environment.json"

// writeEnvironment lets the operator's tool find this run, until it ends.
func (s *System) writeEnvironment(context.Context) error {
	text, err := json.MarshalIndent(s.environment, "", "  ")
	if err != nil {
		return fmt.Errorf("write the environment: %w", err)
	}
	file := s.folder.file(EnvironmentFileName)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("write the environment: %w", err)
	}
	s.onClose(func() error {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the environment: %w", err)
		}
		return nil
	})
	return nil
}
