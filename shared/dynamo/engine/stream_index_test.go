package engine_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/shared/dynamo/engine"
)

// enginesQuery is what dynoxide asks before each stream record that it writes.
const enginesQuery = `SELECT COALESCE(MAX(CAST(sequence_number AS INTEGER)), 0) + 1 FROM _stream_records WHERE table_name = ?1`

func mustOpen(tb testing.TB, dataFile string) *sql.DB {
	tb.Helper()
	database, err := sql.Open("sqlite", dataFile)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := database.Close(); err != nil {
			tb.Error(err)
		}
	})
	return database
}

func queryPlan(tb testing.TB, database *sql.DB) string {
	tb.Helper()
	var id, parent, unused int
	var detail string
	row := database.QueryRow("EXPLAIN QUERY PLAN "+enginesQuery, table)
	if err := row.Scan(&id, &parent, &unused, &detail); err != nil {
		tb.Fatal(err)
	}
	return detail
}

func TestStreamRecordsAreFoundThroughTheIndex(t *testing.T) {
	directory := t.TempDir()
	t.Chdir(directory)
	for _, test := range []struct {
		name     string
		dataFile string
		url      string
	}{
		{"characters that a URL would take apart", filepath.Join(directory, "100% of #1?.db"), "file:" + directory + "/100%25 of %231%3f.db"},
		{"relative path", "relative.db", "file:" + directory + "/relative.db"},
	} {
		t.Run(test.name, func(t *testing.T) {
			told := newLog()
			started := mustStart(t, engine.Options{DataFile: test.dataFile, OwnProcess: true, Log: told})
			if plan := queryPlan(t, mustOpen(t, test.url)); !strings.Contains(plan, "holdfast_stream_order") {
				t.Errorf("the engine's query is planned as %q", plan)
			}
			mustCreateTable(t, started.Client())
			mustPut(t, started.Client())
			if strings.Contains(told.String(), "slow down") {
				t.Errorf("the log says %q", told)
			}
		})
	}
}

func TestOtherLayoutGetsNoIndex(t *testing.T) {
	for name, layout := range map[string]string{
		"other type":   `CREATE TABLE _stream_records (table_name TEXT, sequence_number INTEGER)`,
		"other column": `CREATE TABLE _stream_records (table_name TEXT, position TEXT)`,
		"no table":     `CREATE TABLE streams (table_name TEXT, sequence_number TEXT)`,
	} {
		t.Run(name, func(t *testing.T) {
			dataFile := filepath.Join(t.TempDir(), "engine.db")
			database := mustOpen(t, dataFile)
			if _, err := database.Exec(layout); err != nil {
				t.Fatal(err)
			}
			mustNameAll(t, engine.AddStreamIndex(context.Background(), dataFile), []string{"another layout"})
			var indexes int
			if err := database.QueryRow(`SELECT COUNT(*) FROM sqlite_master WHERE type = 'index'`).Scan(&indexes); err != nil {
				t.Fatal(err)
			}
			if indexes != 0 {
				t.Error("an index was created all the same")
			}
		})
	}
}
