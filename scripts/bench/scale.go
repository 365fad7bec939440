package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/engine"
	"holdfast/shared/httpapi"
)

const (
	// scaleSmallest and scaleLargest bound the tables; each is ten times the one before.
	scaleSmallest, scaleLargest = 1_000, 1_000_000
	// scaleWarmRounds come first, and their time is not counted.
	scaleWarmRounds = 30
	scaleRoundsMax  = 10_000
	// scaleLatencyCeiling is how much longer the median of a call may be than in the
	// smallest table.
	scaleLatencyCeiling = 1.15
	// scaleMemoryMax is the largest table for which the engines may keep their data on
	// memory-backed storage, where a slot and its hold take about 10 KB, most of it records
	// of the stream.
	scaleMemoryMax = 100_000
	// askedSlots are named in one question for availability.
	askedSlots = 10
)

// The calls that are measured.
const (
	callHold         = "hold"
	callConfirm      = "confirm"
	callBySlots      = "availability of slots"
	callByResource   = "availability of a day"
	scaleLatencyUnit = 10 * time.Microsecond
)

var scaleKinds = []string{callHold, callConfirm, callBySlots, callByResource}

// scaleSizes are the tables up to the largest one.
func scaleSizes(largest int) ([]int, error) {
	var sizes []int
	for size := scaleSmallest; size <= min(largest, scaleLargest); size *= 10 {
		sizes = append(sizes, size)
	}
	if len(sizes) < 2 || sizes[len(sizes)-1] != largest {
		return nil, fmt.Errorf("-largest must be ten times %d, or ten times that, up to %d", scaleSmallest, scaleLargest)
	}
	return sizes, nil
}

// callUnits are the capacity units of one call.
type callUnits struct{ writes, reads float64 }

// scaleTable is a table on an engine of its own, and what was measured on it.
type scaleTable struct {
	size     int
	engine   *engine.Engine
	folder   string // of the engine's data, to be removed; "" where the engine sees to that
	meter    *meter
	contract *httpapi.Contract
	keys     int
	took     map[string][]time.Duration
	units    map[string][]callUnits
}

// runScale measures the same calls on tables of growing size. Every call goes to a handler
// without any cache, as the first one of a container does, so that each call of a kind
// reads and writes the same. The tables take turns at every call, so that they all meet
// the same machine.
func runScale(ctx context.Context, out io.Writer, sizes []int, rounds int) (err error) {
	contract, err := httpapi.LoadContract()
	if err != nil {
		return err
	}
	tables := make([]*scaleTable, 0, len(sizes))
	defer func() {
		for _, t := range tables {
			err = errors.Join(err, t.close())
		}
	}()
	fmt.Fprintf(out, "tables of so many slots and so many HELD holds: for each a slot, its stock item, a hold and its event\n")
	for _, size := range sizes {
		t, err := newScaleTable(ctx, size, sizes[len(sizes)-1] > scaleMemoryMax, contract)
		if err != nil {
			return err
		}
		tables = append(tables, t)
		started := time.Now()
		if err := t.seed(ctx); err != nil {
			return err
		}
		elapsed := time.Since(started)
		fmt.Fprintf(out, "%9d seeded in %s, %.0f items a second\n", size, elapsed.Round(time.Second), float64(size*seededItems)/elapsed.Seconds())
	}
	for round := range scaleWarmRounds + rounds {
		for i := range tables {
			t := tables[(i+round)%len(tables)]
			if err := t.measure(ctx, rand.New(rand.NewPCG(uint64(round), 0))); err != nil { //nolint:gosec // repeatable on purpose
				return fmt.Errorf("table of %d: %w", t.size, err)
			}
			if round < scaleWarmRounds {
				clear(t.took)
			}
		}
	}
	return printScale(out, tables)
}

// newScaleTable makes an empty table. Its data is on the disk if onDisk says so: that is
// said of all tables or of none, so that they differ in their size alone.
func newScaleTable(ctx context.Context, size int, onDisk bool, contract *httpapi.Contract) (*scaleTable, error) {
	t := &scaleTable{size: size, contract: contract, took: make(map[string][]time.Duration), units: make(map[string][]callUnits)}
	options := engine.Options{Log: os.Stderr, OwnProcess: true}
	var err error
	if onDisk {
		if t.folder, err = os.MkdirTemp("", "holdfast-scale-"); err != nil {
			return nil, err
		}
		options.DataFile = filepath.Join(t.folder, "engine.db")
	}
	if t.engine, err = engine.Start(ctx, options); err != nil {
		return nil, errors.Join(err, t.close())
	}
	t.meter = &meter{Client: t.engine.Client()}
	if err := dynamo.CreateTable(ctx, t.meter.Client, tableName); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// close ends the engine and removes its data.
func (t *scaleTable) close() error {
	var failures []error
	if t.engine != nil {
		failures = append(failures, t.engine.Close())
	}
	if t.folder != "" {
		failures = append(failures, os.RemoveAll(t.folder))
	}
	return errors.Join(failures...)
}

// measure makes one call of each kind, somewhere in the table.
func (t *scaleTable) measure(ctx context.Context, dice *rand.Rand) error {
	resources := t.size / slotsPerResource
	resource := dice.IntN(resources)
	slot := scaleSlotID(resource, dice.IntN(slotsPerResource))
	t.keys++
	hold := request(http.MethodPost, "/v1/holds", "holds", fmt.Sprintf("scale-%d", t.keys),
		fmt.Sprintf(`{"lines":[{"slot_id":%q,"quantity":1,"unit_amount":%d}]}`, slot, unitAmount))
	body, err := t.call(ctx, callHold, hold, http.StatusCreated)
	if err != nil {
		return err
	}
	var held httpapi.Hold
	if err := json.Unmarshal([]byte(body), &held); err != nil {
		return err
	}
	confirm := request(http.MethodPost, "/v1/holds/"+held.HoldID+"/confirm", "confirm", "confirm-"+held.HoldID, "{}")
	if _, err := t.call(ctx, callConfirm, confirm, http.StatusOK); err != nil {
		return err
	}
	ids := make([]string, askedSlots) // spread over the whole table
	for i := range ids {
		ids[i] = string(scaleSlotID((resource+i*resources/askedSlots)%resources, dice.IntN(slotsPerResource)))
	}
	bySlots := request(http.MethodGet, "/v1/availability?slot_ids="+strings.Join(ids, ","), "holds", "", "")
	if err := t.callAvailability(ctx, callBySlots, bySlots, askedSlots); err != nil {
		return err
	}
	byResource := request(http.MethodGet, fmt.Sprintf("/v1/availability?resource_type=flight&resource_id=%s&date=%s&limit=%d",
		scaleResourceID(resource), firstDay.Format(time.DateOnly), slotsPerDay), "holds", "", "")
	return t.callAvailability(ctx, callByResource, byResource, slotsPerDay)
}

// callAvailability asks, and requires an answer with so many slots: a cheap answer that
// found nothing must not count.
func (t *scaleTable) callAvailability(ctx context.Context, kind string, event json.RawMessage, slots int) error {
	body, err := t.call(ctx, kind, event, http.StatusOK)
	if err != nil {
		return err
	}
	var answer httpapi.Availability
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		return err
	}
	if len(answer.Slots) != slots {
		return fmt.Errorf("%s: %d slots, want %d", kind, len(answer.Slots), slots)
	}
	return nil
}

// call makes one call on a fresh handler, and enters what it took.
func (t *scaleTable) call(ctx context.Context, kind string, event json.RawMessage, status int) (string, error) {
	api, err := apiWith(t.meter, t.contract)
	if err != nil {
		return "", err
	}
	started := time.Now()
	answer, err := invoke(ctx, api, event)
	took := time.Since(started)
	if err != nil || answer.StatusCode != status {
		return "", errors.Join(err, fmt.Errorf("%s: %d %s", kind, answer.StatusCode, answer.Body))
	}
	writes, reads := t.meter.total()
	t.took[kind] = append(t.took[kind], took)
	t.units[kind] = append(t.units[kind], callUnits{writes, reads})
	return answer.Body, nil
}

// printScale prints all tables, and returns an error for each call that costs more in a
// larger one: one capacity unit, or more time than the ceiling allows.
func printScale(out io.Writer, tables []*scaleTable) error {
	fmt.Fprintf(out, "%-22s %9s %7s %12s %11s %10s %10s %6s\n", "call", "size", "calls", "write units", "read units", "median", "p95", "ratio")
	var failures []error
	for _, kind := range scaleKinds {
		smallest := middleTime(tables[0].took[kind])
		units := tables[0].units[kind][0]
		for _, t := range tables {
			median := middleTime(t.took[kind])
			ratio := float64(median) / float64(smallest)
			fmt.Fprintf(out, "%-22s %9d %7d %12.1f %11.1f %10s %10s %6.2f\n", kind, t.size, len(t.took[kind]), t.units[kind][0].writes, t.units[kind][0].reads,
				median.Round(scaleLatencyUnit), percentile95(t.took[kind]).Round(scaleLatencyUnit), ratio)
			if i := slices.IndexFunc(t.units[kind], func(u callUnits) bool { return u != units }); i >= 0 {
				failures = append(failures, fmt.Errorf("%s in a table of %d: call %d costs %+v units, and the first one of all %+v", kind, t.size, i+1, t.units[kind][i], units))
			}
			if ratio > scaleLatencyCeiling {
				failures = append(failures, fmt.Errorf("%s takes %.2f times as long in a table of %d as in the smallest, more than %.2f", kind, ratio, t.size, scaleLatencyCeiling))
			}
		}
		if units == (callUnits{}) {
			failures = append(failures, fmt.Errorf("%s: the engine counted no units", kind))
		}
	}
	return errors.Join(failures...)
}

// middleTime is the median.
func middleTime(took []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[len(sorted)/2]
}
