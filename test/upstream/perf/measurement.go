package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/gangctl/gangctl/test/upstream/programs"
)

// measurement is what one scheduler took for a workload, once or several times.
type measurement struct {
	throughputs []float64 // pods a second, the mean of upstream's samples of a second; none where all was done in the first
	durations   []float64 // seconds, from the first pod that was created to the last that was scheduled
}

// add runs a workload once more.
func (m *measurement) add(ctx context.Context, program programs.Program, w workload) error {
	temporary, err := os.MkdirTemp("", "perf")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary) //nolint:errcheck // it is temporary
	log, err := program.Log()
	if err != nil {
		return err
	}
	defer log.Close()
	cmd, end := program.Command(ctx, temporary, program.Path, "-test.run=^$", "-test.bench="+w.pattern(), "-test.benchtime=1x", "-test.timeout=60m",
		"-perf-scheduling-label-filter="+measured, "-data-items-dir="+temporary)
	cmd.Dir, cmd.Stdout, cmd.Stderr = program.Source, log, log
	fmt.Fprintln(os.Stderr, "run", w, "- see", log.Name())
	if err := cmd.Start(); err != nil {
		return err
	}
	defer end() //nolint:errcheck // most often nothing is left
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w: see %s", err, log.Name())
	}
	return m.read(temporary)
}

// read reads what upstream's collectors wrote to a directory.
func (m *measurement) read(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	duration := 0.0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var written struct {
			DataItems []struct {
				Data   map[string]float64
				Labels map[string]string
			}
		}
		if err := json.Unmarshal(text, &written); err != nil {
			return fmt.Errorf("read measurements: %s: %w", file, err)
		}
		for _, item := range written.DataItems {
			switch item.Labels["Metric"] {
			case "SchedulingThroughput":
				m.throughputs = append(m.throughputs, item.Data["Average"])
			case "SchedulingDuration":
				duration = item.Data["Duration"]
			}
		}
	}
	if duration == 0 {
		return errors.New("the benchmark measured no duration")
	}
	m.durations = append(m.durations, duration)
	return nil
}

// median returns the middle one of some values, and false where there is none.
func median(values []float64) (middle float64, ok bool) {
	if len(values) == 0 {
		return 0, false
	}
	return slices.Sorted(slices.Values(values))[(len(values)-1)/2], true
}
